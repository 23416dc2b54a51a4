package get

import (
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getAudit(r *cli.Remote) *cobra.Command {
	var who, method string
	var since time.Duration
	var limit uint32
	cmd := cli.Query(r, &cobra.Command{
		Use:   "audit",
		Short: "List the changes that clients have made",
		Long: `List the changes that clients have made, or tried to: who, by the name of the
token (configured is the one of the configuration, loopback none), when, from
where, what, and with which result. Secrets are left out of requests, and what
is too long. This is for administrators. The same is in the directory audit of
the controller's data, one JSON object per line.`,
		Example: `  weft get audit
  weft get audit --who ci --since 24h
  weft get audit --method flowrules -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		req := &api.ListAuditRequest{Who: who, Method: method, Limit: limit}
		if since < 0 {
			return cli.View{}, api.Errorf(codes.InvalidArgument, "--since %v: want a time that is not negative, such as 24h", since)
		}
		if since > 0 {
			req.Since = time.Now().Add(-since).UTC().Format(time.RFC3339)
		}
		m, err := c.ListAudit(c.Ctx, req)
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("TIME", "WHO", "ROLE", "FROM", "METHOD", "RESULT", "REQUEST", "ERROR")
			for _, a := range m.GetRecords() {
				t.Row(cli.When(a.Time), a.Who, a.Role, a.From, a.Method, a.Result, short(a.Request), short(a.Error))
			}
		}}, err
	})
	cmd.Flags().StringVar(&who, "who", "", "only the changes of this token")
	cmd.Flags().StringVar(&method, "method", "", "only those of this method, or of this service")
	cmd.Flags().DurationVar(&since, "since", 0, "only those of this time, such as 24h")
	cmd.Flags().Uint32Var(&limit, "limit", 100, "at most so many, the latest")
	return cmd
}

// short cuts a text to the width of a column.
func short(text string) string {
	const most = 80
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most]) + "…"
}
