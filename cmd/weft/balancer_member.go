package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func balancerMemberCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Add, change and delete members of a pool",
		Example: `  weft balancer member add web 10.0.0.3:8080@2
  weft balancer member delete web 10.0.0.3:8080`,
	}
	cmd.AddCommand(balancerMemberAddCommand(r), balancerMemberDeleteCommand(r))
	return cmd
}

func balancerMemberAddCommand(r *cli.Remote) *cobra.Command {
	var state string
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "add VIP ADDRESS[:PORT][@WEIGHT]",
		Short: "Add a member to a pool, or change its weight or state",
		Example: `  weft balancer member add web 10.0.0.3:8080@2
  weft balancer member add web 10.0.0.3:8080 --state down`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := parseMember(args[1])
			if err != nil {
				return cli.Usagef(cmd, "%s", err)
			}
			m.State = state
			return changeVip(cmd, r, &out, func(c *cli.Controller) (*api.Vip, error) {
				return c.SetMember(c.Ctx, &api.SetMemberRequest{Vip: args[0], Member: m})
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "up", "up, draining (no new connections) or down (no connections)")
	out.Flag(cmd)
	return cmd
}

func balancerMemberDeleteCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "delete VIP ADDRESS[:PORT]",
		Short:   "Delete a member from a pool; its connections end",
		Example: "  weft balancer member delete web 10.0.0.3:8080",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := parseMember(args[1])
			if err != nil {
				return cli.Usagef(cmd, "%s", err)
			}
			return changeVip(cmd, r, &out, func(c *cli.Controller) (*api.Vip, error) {
				before, err := c.ListVips(c.Ctx, &api.ListVipsRequest{Name: args[0]})
				if err != nil {
					return nil, err
				}
				v, err := c.DeleteMember(c.Ctx, &api.DeleteMemberRequest{Vip: args[0], Address: m.Address, Port: m.Port})
				if err == nil && len(before.Vips) == 1 && len(before.Vips[0].Pool) == len(v.Pool) {
					err = fmt.Errorf("virtual IP %s had no member %s; weft balancer list %s shows those that it has", args[0], args[1], args[0])
				}
				return v, err
			})
		},
	}
	out.Flag(cmd)
	return cmd
}

func balancerDrainCommand(r *cli.Remote) *cobra.Command {
	var undo bool
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "drain VIP ADDRESS[:PORT]",
		Short: "Give a member no new connections and leave it those that it has",
		Long: `Give a member no new connections and leave it those that it has; when weft
balancer list shows none any more it may be switched off.`,
		Example: `  weft balancer drain web 10.0.0.1:8080
  weft balancer drain web 10.0.0.1:8080 --undo`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := parseMember(args[1])
			if err != nil {
				return cli.Usagef(cmd, "%s", err)
			}
			return changeVip(cmd, r, &out, func(c *cli.Controller) (*api.Vip, error) {
				return c.DrainMember(c.Ctx, &api.DrainMemberRequest{Vip: args[0], Address: m.Address, Port: m.Port, Undo: undo})
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "give it new connections again")
	out.Flag(cmd)
	return cmd
}

// knowsVip fails if there is no virtual IP of that name.
func knowsVip(c *cli.Controller, name string) error {
	m, err := c.ListVips(c.Ctx, &api.ListVipsRequest{Name: name})
	if err == nil && len(m.Vips) == 0 {
		err = fmt.Errorf("there is no virtual IP %q; weft balancer list shows them all", name)
	}
	return err
}

func balancerConnectionsCommand(r *cli.Remote) *cobra.Command {
	var limit uint32
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "connections [VIP]",
		Short: "Show the connections and their members",
		Example: `  weft balancer connections
  weft balancer connections web --limit 20`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			req := &api.ListConnectionsRequest{Limit: limit}
			if len(args) > 0 {
				req.Vip = args[0]
			}
			m, err := c.ListConnections(c.Ctx, req)
			if err == nil && req.Vip != "" && len(m.Connections) == 0 {
				err = knowsVip(c, req.Vip)
			}
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) {
				t.Row("VIP", "PROTOCOL", "CLIENT", "PORT", "MEMBER", "PORT", "AT", "SINCE")
				for _, b := range m.Connections {
					t.Row(b.Vip, b.Protocol, b.Client, b.ClientPort, b.Member, b.MemberPort, b.At.Flow().String(), cli.When(b.Since))
				}
				if int(m.Total) > len(m.Connections) {
					fmt.Fprintf(t, "\n%d of %d; --limit shows more\n", len(m.Connections), m.Total)
				}
			})
		},
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "how many to show; 0 is 1000, at most 10000")
	out.Flag(cmd)
	return cmd
}
