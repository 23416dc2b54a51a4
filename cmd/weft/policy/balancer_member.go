package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func balancerMemberCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Add, change and delete members of a pool",
		Example: `  weft balancer member add web 10.0.0.3:8080@2
  weft balancer member delete web 10.0.0.3:8080 --dry-run`,
	}
	cmd.AddCommand(balancerMemberAddCommand(r), balancerMemberDeleteCommand(r))
	return cmd
}

// changesMember makes a command of a call that changes the member of a pool that
// its arguments name, or only says what it would do.
func changesMember(r *cli.Remote, cmd *cobra.Command, call func(c *cli.Controller, vip string, m *api.PoolMember, dry bool) (*api.Vip, error)) *cobra.Command {
	var dry bool
	cmd.Args = cobra.ExactArgs(2)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would happen")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := parseMember(args[1])
		if err != nil {
			return cli.View{}, cli.Usagef(cmd, "%s", err)
		}
		v, err := call(c, args[0], m, dry)
		return cli.View{Value: v, Text: func(t *cli.Table) { vipsOrTrial(t, []*api.Vip{v}, dry) }}, err
	})
}

func balancerMemberAddCommand(r *cli.Remote) *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "add VIP ADDRESS[:PORT][@WEIGHT[/PRIORITY]]",
		Short: "Add a member to a pool, or change its weight, priority or state",
		Example: `  weft balancer member add web 10.0.0.3:8080@2
  weft balancer member add web 10.0.0.3:8080 --state down`,
	}
	cmd.Flags().StringVar(&state, "state", "up", "up, draining (no new connections) or down (no connections)")
	return changesMember(r, cmd, func(c *cli.Controller, vip string, m *api.PoolMember, dry bool) (*api.Vip, error) {
		m.State = state
		return c.SetMember(c.Ctx, &api.SetMemberRequest{Vip: vip, Member: m, DryRun: dry})
	})
}

func balancerMemberDeleteCommand(r *cli.Remote) *cobra.Command {
	return changesMember(r, &cobra.Command{
		Use:     "delete VIP ADDRESS[:PORT]",
		Short:   "Delete a member from a pool; its connections end",
		Example: "  weft balancer member delete web 10.0.0.3:8080",
	}, func(c *cli.Controller, vip string, m *api.PoolMember, dry bool) (*api.Vip, error) {
		v, err := c.DeleteMember(c.Ctx, &api.DeleteMemberRequest{Vip: vip, Address: m.Address, Port: m.Port, DryRun: dry})
		if err == nil && v.Effect == "unchanged" {
			err = fmt.Errorf("virtual IP %s had no such member; weft balancer list %[1]s shows those that it has", vip)
		}
		return v, err
	})
}

func balancerDrainCommand(r *cli.Remote) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain VIP ADDRESS[:PORT]",
		Short: "Give a member no new connections and leave it those that it has",
		Long: `Give a member no new connections and leave it those that it has; when weft
balancer list shows none any more it may be switched off.`,
		Example: `  weft balancer drain web 10.0.0.1:8080
  weft balancer drain web 10.0.0.1:8080 --undo`,
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "give it new connections again")
	return changesMember(r, cmd, func(c *cli.Controller, vip string, m *api.PoolMember, dry bool) (*api.Vip, error) {
		return c.DrainMember(c.Ctx, &api.DrainMemberRequest{Vip: vip, Address: m.Address, Port: m.Port, Undo: undo, DryRun: dry})
	})
}

func balancerConnectionsCommand(r *cli.Remote) *cobra.Command {
	var limit uint32
	cmd := &cobra.Command{
		Use:   "connections [VIP]",
		Short: "Show the connections and their members",
		Example: `  weft balancer connections
  weft balancer connections web --limit 20`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "how many to show; 0 is 1000, at most 10000")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		req := &api.ListConnectionsRequest{Limit: limit, Vip: strings.Join(args, "")}
		m, err := c.ListConnections(c.Ctx, req)
		if err == nil && req.Vip != "" && len(m.Connections) == 0 {
			var all *api.ListVipsResponse
			if all, err = c.ListVips(c.Ctx, &api.ListVipsRequest{Name: req.Vip}); err == nil {
				_, err = vips().named(all.Vips, req.Vip)
			}
		}
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("VIP", "PROTOCOL", "CLIENT", "PORT", "MEMBER", "PORT", "AT", "SINCE")
			for _, b := range m.Connections {
				t.Row(b.Vip, b.Protocol, b.Client, b.ClientPort, b.Member, b.MemberPort, b.At.Flow().String(), cli.When(b.Since))
			}
			if int(m.Total) > len(m.Connections) {
				fmt.Fprintf(t, "\n%d of %d; --limit shows more\n", len(m.Connections), m.Total)
			}
		}}, err
	})
}

func balancerPairsCommand(r *cli.Remote) *cobra.Command {
	var limit uint32
	cmd := &cobra.Command{
		Use:   "pairs [VIP]",
		Short: "Show pairs of client and member, and what their entries have counted",
		Long: `Show the pairs of client and member of virtual IPs with --per pair. PACKETS and
BYTES are those of both directions, read from the switches.`,
		Example: `  weft balancer pairs
  weft balancer pairs udm --limit 20`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "how many to show; 0 is 1000, at most 10000")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		req := &api.ListPairsRequest{Limit: limit, Vip: strings.Join(args, "")}
		m, err := c.ListPairs(c.Ctx, req)
		if err == nil && req.Vip != "" && len(m.Pairs) == 0 {
			var all *api.ListVipsResponse
			if all, err = c.ListVips(c.Ctx, &api.ListVipsRequest{Name: req.Vip}); err == nil {
				_, err = vips().named(all.Vips, req.Vip)
			}
		}
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("VIP", "CLIENT", "MEMBER", "PORT", "PACKETS", "BYTES", "AT", "SINCE")
			for _, p := range m.Pairs {
				t.Row(p.Vip, p.Client, p.Member, p.MemberPort, p.Packets, p.Bytes, p.At.Flow().String(), cli.When(p.Since))
			}
			if int(m.Total) > len(m.Pairs) {
				fmt.Fprintf(t, "\n%d of %d; --limit shows more\n", len(m.Pairs), m.Total)
			}
			for _, sw := range m.Incomplete {
				fmt.Fprintf(t, "\nswitch %s did not answer: the counts of its entries are missing\n", sw)
			}
		}}, err
	})
}
