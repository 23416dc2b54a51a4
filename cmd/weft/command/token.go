package command

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func tokenCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of clients",
		Long: `Make, list and revoke the tokens by which clients are let in, each with a name,
which the audit log has, and a role: read looks at everything but secrets, operate
changes the network, too, admin everything. The controller keeps no token, only its
SHA-256. This is for administrators.`,
		Example: `  weft token create --name ci --role operate --expires 30d
  weft token list
  weft token revoke ci`,
	}
	r.Flags(cmd)
	cmd.AddCommand(tokenCreate(&r), tokenList(&r), tokenRevoke(&r))
	return cmd
}

// created is the answer of create for programs.
type created struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Expires string `json:"expires"`
	Token   string `json:"token"`
}

func tokenCreate(r *cli.Remote) *cobra.Command {
	var out cli.Output
	var name, role, expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token",
		Long: `Make a token and print it, this once. It is made here; the controller learns its
SHA-256 only.`,
		Example: `  weft token create --name ci --role operate --expires 30d
  weft token create --name grafana --role read -o json | jq -r .token > grafana.token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			until := ""
			if expires != "" {
				d, err := days(expires)
				if err != nil {
					return cli.Usagef(cmd, "--expires %q; want a time such as 30d, 12h or 90m", expires)
				}
				until = time.Now().Add(d).UTC().Format(time.RFC3339)
			}
			token, err := newToken()
			if err != nil {
				return err
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			sum := sha256.Sum256([]byte(token))
			t, err := c.CreateToken(c.Ctx, &api.CreateTokenRequest{Name: name, Role: role, Sha256: hex.EncodeToString(sum[:]), Expires: until})
			if err != nil {
				return cli.AsUsage(cmd, err)
			}
			made := created{Name: t.Name, Role: t.Role, Expires: t.Expires, Token: token}
			if out.Format == "table" {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), token)
				return err
			}
			return out.Print(cmd, made, nil)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the token's name, such as that of its holder")
	cmd.Flags().StringVar(&role, "role", "", "read, operate or admin; or node, for weft node run")
	cmd.Flags().StringVar(&expires, "expires", "", "for how long it is good, such as 30d or 12h (default for ever)")
	cmd.MarkFlagRequired("name")
	cmd.MarkFlagRequired("role")
	cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"read", "operate", "admin", "node"}, cobra.ShellCompDirectiveNoFileComp))
	out.Flag(cmd)
	return cmd
}

// newToken returns a token of 256 random bits. What it begins with lets programs
// that look for secrets in repositories find it.
func newToken() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return "weft_" + base64.RawURLEncoding.EncodeToString(b), nil
}

// days reads a duration that may be in days.
func days(text string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(text, "d"); ok {
		d, err := strconv.Atoi(n)
		if err != nil || d < 1 || d > 36_500 {
			return 0, fmt.Errorf("%q: want 1d to 36500d", text)
		}
		return time.Duration(d) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q: want more than nothing", text)
	}
	return d, err
}

func tokenList(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without what they are",
		Example: "  weft token list -o json",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListTokens(c.Ctx, &api.ListTokensRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("NAME", "ROLE", "CREATED", "BY", "EXPIRES")
			for _, k := range m.GetTokens() {
				expires := "never"
				if k.Expires != "" {
					expires = cli.When(k.Expires)
				}
				if k.Expired {
					expires = "expired " + expires
				}
				t.Row(k.Name, k.Role, cli.When(k.Created), k.CreatedBy, expires)
			}
		}}, err
	})
}

func tokenRevoke(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "revoke NAME...",
		Short:   "Revoke tokens: they end at once",
		Example: "  weft token revoke ci",
		Args:    cobra.MinimumNArgs(1),
	}, func(c *cli.Controller, names []string) (v cli.View, _ error) {
		revoked := map[string]bool{}
		for _, name := range names {
			m, err := c.RevokeToken(c.Ctx, &api.RevokeTokenRequest{Name: name})
			if err != nil {
				return v, err
			}
			if revoked[name] = m.Revoked; !m.Revoked {
				v.Failed = cmp.Or(v.Failed, fmt.Errorf("there was no token %s; weft token list shows those that there are", name))
			}
		}
		v.Value, v.Text = revoked, func(t *cli.Table) {
			for _, name := range names {
				if revoked[name] {
					t.Row("token " + name + " is revoked")
				}
			}
		}
		return v, nil
	})
}
