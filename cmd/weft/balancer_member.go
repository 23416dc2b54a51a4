package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
)

func balancerMemberCommand(r *remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Add, change and delete members of a pool",
		Example: `  weft balancer member add web 10.0.0.3:8080@2
  weft balancer member delete web 10.0.0.3:8080`,
	}
	cmd.AddCommand(balancerMemberAddCommand(r), balancerMemberDeleteCommand(r))
	return cmd
}

func balancerMemberAddCommand(r *remote) *cobra.Command {
	var state string
	var out output
	cmd := &cobra.Command{
		Use:   "add VIP ADDRESS[:PORT][@WEIGHT]",
		Short: "Add a member to a pool, or change its weight or state",
		Example: `  weft balancer member add web 10.0.0.3:8080@2
  weft balancer member add web 10.0.0.3:8080 --state down`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := parseMember(args[1])
			if err != nil {
				return wrongly(cmd, "%s", err)
			}
			m.State = state
			return changeVip(cmd, r, &out, func(c *controller) (*api.Vip, error) {
				return c.SetMember(c.ctx, &api.SetMemberRequest{Vip: args[0], Member: m})
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "up", "up, draining (no new connections) or down (no connections)")
	out.flag(cmd)
	return cmd
}

func balancerMemberDeleteCommand(r *remote) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "delete VIP ADDRESS[:PORT]",
		Short:   "Delete a member from a pool; its connections end",
		Example: "  weft balancer member delete web 10.0.0.3:8080",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := parseMember(args[1])
			if err != nil {
				return wrongly(cmd, "%s", err)
			}
			return changeVip(cmd, r, &out, func(c *controller) (*api.Vip, error) {
				before, err := c.ListVips(c.ctx, &api.ListVipsRequest{Name: args[0]})
				if err != nil {
					return nil, err
				}
				v, err := c.DeleteMember(c.ctx, &api.DeleteMemberRequest{Vip: args[0], Address: m.Address, Port: m.Port})
				if err == nil && len(before.Vips) == 1 && len(before.Vips[0].Pool) == len(v.Pool) {
					err = fmt.Errorf("virtual IP %s had no member %s; weft balancer list %s shows those that it has", args[0], args[1], args[0])
				}
				return v, err
			})
		},
	}
	out.flag(cmd)
	return cmd
}

func balancerDrainCommand(r *remote) *cobra.Command {
	var undo bool
	var out output
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
				return wrongly(cmd, "%s", err)
			}
			return changeVip(cmd, r, &out, func(c *controller) (*api.Vip, error) {
				return c.DrainMember(c.ctx, &api.DrainMemberRequest{Vip: args[0], Address: m.Address, Port: m.Port, Undo: undo})
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "give it new connections again")
	out.flag(cmd)
	return cmd
}

// knowsVip fails if there is no virtual IP of that name.
func knowsVip(c *controller, name string) error {
	m, err := c.ListVips(c.ctx, &api.ListVipsRequest{Name: name})
	if err == nil && len(m.Vips) == 0 {
		err = fmt.Errorf("there is no virtual IP %q; weft balancer list shows them all", name)
	}
	return err
}

func balancerConnectionsCommand(r *remote) *cobra.Command {
	var limit uint32
	var out output
	cmd := &cobra.Command{
		Use:   "connections [VIP]",
		Short: "Show the connections and their members",
		Example: `  weft balancer connections
  weft balancer connections web --limit 20`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, done, err := r.dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			req := &api.ListConnectionsRequest{Limit: limit}
			if len(args) > 0 {
				req.Vip = args[0]
			}
			m, err := c.ListConnections(c.ctx, req)
			if err == nil && req.Vip != "" && len(m.Connections) == 0 {
				err = knowsVip(c, req.Vip)
			}
			if err != nil {
				return err
			}
			return out.print(cmd, m, func(t *table) {
				t.row("VIP", "PROTOCOL", "CLIENT", "PORT", "MEMBER", "PORT", "AT", "SINCE")
				for _, b := range m.Connections {
					t.row(b.Vip, b.Protocol, b.Client, b.ClientPort, b.Member, b.MemberPort, b.At.Flow().String(), when(b.Since))
				}
				if int(m.Total) > len(m.Connections) {
					fmt.Fprintf(t, "\n%d of %d; --limit shows more\n", len(m.Connections), m.Total)
				}
			})
		},
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "how many to show; 0 is 1000, at most 10000")
	out.flag(cmd)
	return cmd
}
