package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func tunnelCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "tunnel",
		Short: "Keep label-switched paths between switches",
		Long: `Keep tunnels: label-switched paths (MPLS) from one switch to another. Frames with
the label of a circuit enter by the group that the tunnel has at its first switch,
and come out of its last one with that label outermost. The controller chooses
the path, and another where a link fails; with --protect there is a second one
all the time. A tunnel keeps its group and its labels over restarts.`,
		Example: `  weft tunnel add pe1-pe2 --from 1 --to 4 --protect
  weft tunnel list -o json
  weft tunnel delete pe1-pe2`,
	}
	r.Flags(cmd)
	cmd.AddCommand(tunnelAddCommand(&r), tunnelPreviewCommand(&r), tunnels().lists(&r, &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List tunnels, their paths and labels",
		Example: "  weft tunnel list",
	}), tunnels().delete(&r, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a tunnel",
		Example: "  weft tunnel delete pe1-pe2",
		Args:    cobra.ExactArgs(1),
	}, func(args []string) *api.Tunnel { return &api.Tunnel{Name: args[0]} }),
		tunnels().get(&r, "weft tunnel get pe1-pe2"), applyTyped(&r, "weft tunnel", "tunnels", func() []declared { return []declared{&typedDesired[*api.Tunnel]{typedKind: tunnels()}} }))
	return cmd
}

// tunnels is the tunnels.
func tunnels() *typedKind[*api.Tunnel] {
	return &typedKind[*api.Tunnel]{
		known: "weft tunnel list", one: "tunnel", key: "tunnels",
		name: (*api.Tunnel).GetName,
		list: func(c *cli.Controller) (proto.Message, error) {
			return c.ListTunnels(c.Ctx, &api.ListTunnelsRequest{})
		},
		set: func(c *cli.Controller, m *api.Tunnel) (*api.Tunnel, error) {
			return c.SetTunnel(c.Ctx, &api.SetTunnelRequest{Tunnel: m})
		},
		remove: func(c *cli.Controller, m *api.Tunnel) (cli.Deletion, error) {
			return c.DeleteTunnel(c.Ctx, &api.DeleteTunnelRequest{Name: m.Name})
		},
		table: tunnelTable,
		tidy: func(m *api.Tunnel) {
			m.Group, m.State, m.Reason, m.Since, m.Active = 0, "", "", "", ""
			m.Path, m.Labels, m.Primary, m.Standby, m.DelayUs = nil, nil, nil, nil, 0
		},
		given:   []string{"transport"},
		foreign: func(m *api.Tunnel) bool { return m.User != "" },
	}
}

func tunnelTable(t *cli.Table, list []*api.Tunnel) {
	t.Row("NAME", "FROM", "TO", "GROUP", "PATH", "LABELS", "ACTIVE", "STATE")
	for _, m := range list {
		state := m.State
		if m.Reason != "" {
			state += ": " + m.Reason
		}
		t.Row(m.Name, m.From, m.To, fmt.Sprintf("%#x", m.Group), strings.Join(m.Path, " "), strings.Trim(fmt.Sprint(m.Labels), "[]"), m.Active, state)
	}
}
