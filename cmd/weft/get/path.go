package get

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// Endpoint is one end of a path: a host, or a switch.
type Endpoint struct {
	Text string
	Dpid string
	Host *api.Host // nil if it is a switch
}

// HostEndpoint finds out what an argument names: a host by Ethernet or IP address,
// or a switch by DPID.
func HostEndpoint(c *cli.Controller, text string) (Endpoint, error) {
	_, ipErr := netip.ParseAddr(text)
	_, macErr := flow.ParseMAC(text)
	if ipErr == nil || macErr == nil {
		h, err := c.FindHost(c.Ctx, &api.FindHostRequest{Address: text, Vlan: -1})
		if err != nil {
			return Endpoint{}, err
		}
		return Endpoint{text, h.GetAt().GetDpid(), h}, nil
	}
	d, err := c.Switch(text)
	if err != nil {
		return Endpoint{}, api.Errorf(codes.InvalidArgument, "%.80q: want a host by Ethernet or IP address, or a switch by name or DPID", text)
	}
	return Endpoint{text, d.String(), nil}, nil
}

func PathCommand() *cobra.Command {
	var r cli.Remote
	var count uint32
	var disjoint bool
	var o constraints
	var names []string
	var cmd *cobra.Command
	cmd = cli.Query(&r, &cobra.Command{
		Use:   "path A B",
		Short: "Compute the paths between two hosts or switches",
		Long: `Compute the shortest paths from A to B over the links that are up: hosts by
Ethernet or IP address, or switches by name or DPID. This is what could be used;
weft get routes shows what is programmed, weft trace what packets meet.

With a constraint (--bandwidth to --pair) the path is one for circuits: it heeds
capacity, delay, metric, colours, risk groups and drained links (weft link set), and
if there is none, the answer says why. Nothing is booked.`,
		Example: `  weft path 10.0.0.1 10.0.0.8
  weft path 1 7 --bandwidth 100M --max-delay 5ms --exclude 3,4:2
  weft path 1 7 --include-any gold --pair switches,risk-groups
  weft path 1 7 -k 3
  weft path 02:00:00:00:00:01 02:00:00:00:00:08 -k 2 --disjoint`,
		Args: cobra.ExactArgs(2),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		if count == 0 {
			return cli.View{}, api.Errorf(codes.InvalidArgument, "--count 0: want 1 to 64 paths, best first")
		}
		a, err := HostEndpoint(c, args[0])
		if err != nil {
			return cli.View{}, err
		}
		b, err := HostEndpoint(c, args[1])
		if err != nil {
			return cli.View{}, err
		}
		var m *api.FindPathResponse
		if slices.ContainsFunc(names, cmd.Flags().Changed) {
			if cmd.Flags().Changed("count") || disjoint {
				return cli.View{}, cli.Usagef(cmd, "--count and --disjoint are for paths without constraints; --pair asks for two")
			}
			m, err = o.compute(cmd, c, a, b)
		} else {
			req := &api.FindPathRequest{Src: a.Dpid, Dst: b.Dpid, Count: count}
			if disjoint {
				req.Kind = "disjoint"
			}
			m, err = c.FindPath(c.Ctx, req)
		}
		if err != nil {
			return cli.View{}, err
		}
		if len(m.Paths) == 0 {
			return cli.View{}, fmt.Errorf("there is no path from %s to %s: no links that are up connect switches %s and %s", a.Text, b.Text, a.Dpid, b.Dpid)
		}
		for _, p := range m.Paths {
			attach(p, a, b)
		}
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("PATH", "COST", "HOP", "IN", "SWITCH", "OUT")
			for i, p := range m.Paths {
				for j, h := range p.Hops {
					t.Row(i+1, p.Cost, j+1, portOr(h.InPort), h.Dpid, portOr(h.OutPort))
				}
			}
		}}, nil
	})
	r.Flags(cmd)
	cmd.Flags().Uint32VarP(&count, "count", "k", 1, "how many paths, best first")
	cmd.Flags().BoolVar(&disjoint, "disjoint", false, "paths that share as few links and switches as can be")
	names = o.flags(cmd)
	return cmd
}

// attach completes a path with the ports of the hosts at its ends.
func attach(p *api.Path, a, b Endpoint) {
	if len(p.Hops) == 0 {
		return
	}
	if a.Host != nil {
		p.Hops[0].InPort = a.Host.GetAt().GetPort()
	}
	if b.Host != nil {
		p.Hops[len(p.Hops)-1].OutPort = b.Host.GetAt().GetPort()
	}
}

func portOr(p uint32) string {
	if p == 0 {
		return ""
	}
	return cli.Port(p)
}

// pathRow is the shortest path between two switches.
type pathRow struct {
	Src  string        `json:"src"`
	Dst  string        `json:"dst"`
	Cost uint64        `json:"cost"`
	Hops []cli.Message `json:"hops"` // none if there is no path
	path string        // as a table has it
}

func getPaths(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	return switchFlag(cli.Query(r, &cobra.Command{
		Use:   "paths",
		Short: "List the shortest path between every two switches",
		Example: `  weft get paths
  weft get paths --switch 1       # from switch 1 to all others`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		all, err := switchIDs(c, cli.DPIDFlag{})
		if err != nil {
			return cli.View{}, err
		}
		from := all
		if only.Text != "" {
			from = []string{only.Text}
		}
		rows := []pathRow{}
		for _, src := range from {
			for _, dst := range all {
				if src == dst {
					continue
				}
				m, err := c.FindPath(c.Ctx, &api.FindPathRequest{Src: src, Dst: dst})
				if err != nil {
					return cli.View{}, err
				}
				row := pathRow{Src: src, Dst: dst, Hops: []cli.Message{}, path: "none"}
				if len(m.Paths) > 0 {
					row.Cost, row.path = m.Paths[0].Cost, cli.Hops(m.Paths[0].Hops)
					for _, h := range m.Paths[0].Hops {
						row.Hops = append(row.Hops, cli.Message{Message: h})
					}
				}
				rows = append(rows, row)
			}
		}
		return cli.View{Value: map[string]any{"paths": rows}, Text: func(t *cli.Table) {
			t.Row("FROM", "TO", "COST", "PATH")
			for _, p := range rows {
				cost := ""
				if len(p.Hops) > 0 {
					cost = fmt.Sprint(p.Cost)
				}
				t.Row(p.Src, p.Dst, cost, p.path)
			}
		}}, nil
	}), &only)
}
