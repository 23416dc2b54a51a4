package command

import (
	"context"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"

	"github.com/weft-sdn/weft/lab/layout"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/lab/testbed"
)

func labShowCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show a lab's hosts and what runs in them",
		Long: `Show the hosts of a lab that is up: their addresses, that of the interface by
which they reach this machine (manage: true in the topology file; -o json has
the machine's address, too), and the programs that the lab has started in them (run: in its topology file), each with its state:
starting, running, waiting to be started again, finished or failed, or unknown
if nobody watches it.`,
		Example: `  weft lab show
  weft lab show --name 5gc-3 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			var shown labShow
			if far == nil {
				shown = labShown(ctx, l)
			} else if shown, err = labShownFar(ctx, far); err != nil {
				return err
			}
			return labPrint(cmd.OutOrStdout(), output, shown, func(w *labTable) {
				w.row("HOST", "SWITCH", "IPV4", "IPV6", "MANAGE", "PROGRAM", "STATE", "PID", "STARTS", "LAST END")
				for _, h := range shown.Hosts {
					host := []any{h.Name, h.Switch, labAddress(h.IPv4), labAddress(h.IPv6), ""}
					if h.Manage != nil {
						host[4] = h.Manage.Address
					}
					for _, p := range h.Programs {
						pid := any(p.PID)
						if p.PID == 0 {
							pid = ""
						}
						w.row(append(host, p.Name, p.State, pid, p.Starts, p.End)...)
						host = []any{h.Name, "", "", "", ""}
					}
					if len(h.Programs) == 0 {
						w.row(append(host, "", "", "", "", "")...)
					}
				}
			})
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	return cmd
}

// labShow is a lab as `weft lab show` shows it.
type labShow struct {
	Name     string        `json:"name"`
	Switches int           `json:"switches"`
	Hosts    []labShowHost `json:"hosts"`
}

type labShowHost struct {
	Name      string                 `json:"name"`
	Switch    string                 `json:"switch"`
	MAC       topology.MAC           `json:"mac"`
	IPv4      netip.Prefix           `json:"ipv4"`
	IPv6      netip.Prefix           `json:"ipv6"`
	Namespace string                 `json:"namespace"`
	Manage    *layout.Management     `json:"manage,omitempty"`
	Programs  []keeper.ProgramStatus `json:"programs"`
	Machine   string                 `json:"machine,omitempty"` // of a lab on several
}

// labShownFar is what the machines of a lab say of their parts.
func labShownFar(ctx context.Context, far *testbed.Lab) (labShow, error) {
	parts := map[string]*labShow{}
	err := far.Show(ctx, func(machine string) any {
		parts[machine] = &labShow{}
		return parts[machine]
	})
	if err != nil {
		return labShow{}, err
	}
	all := labShow{Name: far.Name, Switches: len(far.Topology.Switches), Hosts: []labShowHost{}}
	for _, h := range far.Topology.Hosts {
		machine := far.Mapping.MachineOf(h.Name)
		for _, shown := range parts[machine].Hosts {
			if shown.Name == h.Name {
				shown.Machine = machine
				all.Hosts = append(all.Hosts, shown)
			}
		}
	}
	return all, nil
}

func labShown(ctx context.Context, l *lab.Lab) labShow {
	programs := map[string][]keeper.ProgramStatus{}
	for _, p := range l.Programs(ctx) {
		programs[p.Host] = append(programs[p.Host], p)
	}
	shown := labShow{Name: l.Name(), Switches: len(l.Topology().Switches), Hosts: []labShowHost{}}
	for _, h := range l.Topology().Hosts {
		host := labShowHost{
			Name: h.Name, Switch: h.Switch, MAC: h.MAC, IPv4: h.IPv4, IPv6: h.IPv6, Namespace: l.HostNetns(h.Name),
			Programs: append([]keeper.ProgramStatus{}, programs[h.Name]...),
		}
		if m, ok := l.Management(h.Name); ok {
			host.Manage = &m
		}
		shown.Hosts = append(shown.Hosts, host)
	}
	return shown
}

// labAddress is an address of a host for a table.
func labAddress(p netip.Prefix) string {
	return strings.TrimSuffix(strings.TrimSuffix(p.String(), "0.0.0.0/0"), "::/0")
}
