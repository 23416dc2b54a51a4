package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weft/api"
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
				return c.DeleteMember(c.ctx, &api.DeleteMemberRequest{Vip: args[0], Address: m.Address, Port: m.Port})
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
