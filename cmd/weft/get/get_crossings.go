package get

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getCrossings(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "crossings",
		Short: "Show the messages between services, with rates and latencies",
		Long: `Show the calls, events and packets that services send each other, within
processes and between them: how many a second over the last ten, how many since
the process started, and how long they take (half of them, and 99 in 100). A call
takes from its beginning to the answer, an event from its publication until it was
handled; of packets it is the time of the stage, or, of those that cross to another
process, from hand-over until the decision is back. With -o json there are the
histograms, too.`,
		Example: `  weft get crossings
  weft get crossings -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListCrossings(c.Ctx, &api.ListCrossingsRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) { crossingsTable(t, m) }}, err
	})
}

func crossingsTable(t *cli.Table, m *api.ListCrossingsResponse) {
	t.Row("KIND", "FROM", "TO", "NAME", "PROCESSES", "TRANSPORT", "PER SECOND", "TOTAL", "HALF us", "99 % us")
	for _, x := range m.GetCrossings() {
		processes := x.FromProcess
		if x.ToProcess != x.FromProcess {
			processes += " > " + x.ToProcess
		}
		took := func(us float64) string {
			if len(x.Latency) == 0 {
				return "-"
			}
			return fmt.Sprintf("%.4g", us)
		}
		t.Row(x.Kind, x.From, x.To, cmp.Or(x.Name, "-"), processes, cmp.Or(x.Transport, "-"), fmt.Sprintf("%.1f", x.PerS), x.Total, took(x.P50Us), took(x.P99Us))
	}
	for _, p := range m.GetMissing() {
		fmt.Fprintf(t, "without process %s: %s\n", p.Process, p.Error)
	}
}
