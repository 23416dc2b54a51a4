package get

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// switchFlag adds --switch, which narrows a command to one switch.
func switchFlag(cmd *cobra.Command, only *cli.DPIDFlag) *cobra.Command {
	cmd.Flags().VarP(only, "switch", "s", "only this switch")
	return cmd
}

// switchIDs returns the DPIDs of a switch, or of all that are connected.
func switchIDs(c *cli.Controller, only cli.DPIDFlag) ([]string, error) {
	if only.Text != "" {
		return []string{only.Text}, nil
	}
	m, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
	var list []string
	for _, s := range m.GetSwitches() {
		if s.Connected {
			list = append(list, s.Dpid)
		}
	}
	return list, err
}

// portList is what weft get ports prints.
type portList struct {
	Ports      []portRow `json:"ports"`
	Incomplete []string  `json:"incomplete,omitempty"`
}

// GetIncomplete says what is missing, and why.
func (p portList) GetIncomplete() []string { return p.Incomplete }

// portRow is a port with what is behind it.
type portRow struct {
	Switch  string `json:"dpid"`
	Port    uint32 `json:"port"`
	Name    string `json:"name"`
	MAC     string `json:"mac"`
	Up      bool   `json:"up"`
	Speed   uint32 `json:"speed_kbps"`
	Role    string `json:"role"`
	Refused uint64 `json:"refused"`
	Cause   string `json:"cause,omitempty"`
}

func getPorts(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	return switchFlag(cli.Query(r, &cobra.Command{
		Use:   "ports",
		Short: "List the ports of the switches, and what is behind them",
		Long: `List the ports of the switches, and what is behind them (ROLE): an edge, where
hosts are, or a link. REFUSED counts the discovery probes that came in there and
were forged, old, replayed or not ours. CAUSE is why no traffic or no link is
there, in a word (refuses: the switch itself refuses packets for the port); weft
explain port says it in full.`,
		Example: "  weft get ports --switch 1",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListPorts(c.Ctx, &api.ListPortsRequest{Dpid: only.Text})
		if err != nil {
			return cli.View{}, err
		}
		roles, err := c.ListPortRoles(c.Ctx, &api.ListPortRolesRequest{})
		if err = cli.Unless(err, codes.Unavailable); err != nil {
			return cli.View{}, err
		}
		behind := map[flow.Location]*api.PortRole{}
		for _, p := range roles.GetPorts() {
			behind[p.At.Flow()] = p
		}
		rows := []portRow{}
		for _, p := range m.Ports {
			at := behind[(&api.Location{Dpid: p.Dpid, Port: p.Port}).Flow()]
			rows = append(rows, portRow{p.Dpid, p.Port, p.Name, p.Mac, p.Up, p.SpeedKbps, at.GetRole(), at.GetRefused(), at.GetCause()})
		}
		return cli.View{Value: portList{rows, m.Incomplete}, Text: func(t *cli.Table) {
			t.Row("SWITCH", "PORT", "NAME", "MAC", "STATE", "SPEED", "ROLE", "REFUSED", "CAUSE")
			for _, p := range rows {
				state, speed := "down", ""
				if p.Up {
					state = "up"
				}
				if p.Speed != 0 {
					speed = cli.Rate(float64(p.Speed)*1000) + "bit/s"
				}
				t.Row(p.Switch, cli.Port(p.Port), p.Name, p.MAC, state, speed, p.Role, p.Refused, p.Cause)
			}
		}}, nil
	}), &only)
}

func getFlows(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	var owner string
	cmd := switchFlag(cli.Query(r, &cobra.Command{
		Use:   "flows",
		Short: "List the flow entries of the switches",
		Long: `List the flow entries of the switches, read from the switches now, with their
counters. STATE is what the controller knows of the entry: confirmed (the switch
has said that it has it), failed (it refused; the reason is shown), and so on;
entries that it wants and a switch does not have are shown, too.`,
		Example: `  weft get flows
  weft get flows --switch 1 --owner operator
  weft get flows -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		if owner != "" && !slices.Contains(owners(), owner) {
			return cli.View{}, &cli.UsageError{Err: fmt.Errorf("--owner %q: want one of %s", owner, strings.Join(owners(), ", ")), Command: "weft get flows"}
		}
		m, failed, err := listFlows(c, only, owner)
		return cli.View{Value: m, Text: func(t *cli.Table) { FlowsTable(t, m.GetFlows()) }, Failed: failed}, err
	}), &only)
	cmd.Flags().StringVar(&owner, "owner", "", "only entries of this writer: "+strings.Join(owners(), ", "))
	return cmd
}

// owners returns the names of those who write entries.
func owners() (names []string) {
	for o := flow.OwnerForeign; !strings.HasPrefix(o.String(), "owner-"); o++ {
		names = append(names, o.String())
	}
	return names
}

// listFlows returns the entries that switches have, with their states, and those
// that they should have; failed says which switches could not be read.
func listFlows(c *cli.Controller, only cli.DPIDFlag, owner string) (m *api.ListFlowsResponse, failed, err error) {
	switches, err := switchIDs(c, only)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := c.ListFlows(c.Ctx, &api.ListFlowsRequest{Dpid: only.Text})
	if err = cli.Unless(err, codes.Unavailable); err != nil {
		return nil, nil, err
	}
	type key struct {
		sw flow.DPID
		flow.EntryKey
	}
	states := map[key]*api.WantedFlow{}
	keyOf := func(f *api.FlowEntry) (key, bool) {
		sw, e, err := f.Entry()
		return key{sw, e.Key()}, err == nil
	}
	for _, w := range wanted.GetFlows() {
		if k, ok := keyOf(w.Flow); ok {
			states[k] = w
		}
	}
	all := &api.ListFlowsResponse{}
	lists, errs := readEach(switches, func(dpid string) ([]*api.FlowEntry, error) {
		m, err := c.ReadFlows(c.Ctx, &api.ReadFlowsRequest{Dpid: dpid, Owner: owner})
		return m.GetFlows(), err
	})
	for _, f := range slices.Concat(lists...) {
		w := &api.WantedFlow{Flow: f}
		if k, ok := keyOf(f); ok && states[k] != nil {
			w.State, w.Reason = states[k].State, states[k].Reason
			delete(states, k)
		}
		all.Flows = append(all.Flows, w)
	}
	unread := map[string]bool{}
	for i, dpid := range switches {
		unread[dpid] = errs[i] != nil
	}
	for _, w := range states {
		if (owner == "" || w.Flow.Owner == owner) && !unread[w.Flow.Dpid] {
			w.Reason = strings.TrimSuffix("not on the switch: "+w.Reason, ": ")
			all.Flows = append(all.Flows, w)
		}
	}
	matches := make(map[*api.WantedFlow]string, len(all.Flows))
	for _, w := range all.Flows {
		matches[w] = cli.MatchText(w.Flow.Match)
	}
	slices.SortStableFunc(all.Flows, func(a, b *api.WantedFlow) int {
		return cmp.Or(cmp.Compare(a.Flow.Dpid, b.Flow.Dpid), cmp.Compare(a.Flow.Table, b.Flow.Table),
			cmp.Compare(b.Flow.Priority, a.Flow.Priority), strings.Compare(matches[a], matches[b]))
	})
	return all, errors.Join(errs...), nil
}

// readEach reads something from each of several switches, some at a time. An
// error of one does not keep back what the others have.
func readEach[T any](switches []string, read func(dpid string) ([]T, error)) (lists [][]T, errs []error) {
	lists, errs = make([][]T, len(switches)), make([]error, len(switches))
	var group errgroup.Group
	group.SetLimit(16)
	for i, dpid := range switches {
		group.Go(func() (err error) {
			if lists[i], err = read(dpid); err != nil {
				errs[i] = ofSwitch(dpid, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return lists, errs
}

// ofSwitch returns the error of a switch with its name, unless it is in there.
func ofSwitch(dpid string, err error) error {
	if strings.Contains(err.Error(), "switch "+dpid) {
		return err
	}
	return fmt.Errorf("switch %s: %w", dpid, err)
}

func FlowsTable(t *cli.Table, list []*api.WantedFlow) {
	t.Row("SWITCH", "TABLE", "PRIORITY", "MATCH", "ACTIONS", "PACKETS", "BYTES", "DURATION", "TIMEOUT", "OWNER", "STATE")
	for _, w := range list {
		f, state := w.Flow, w.State
		if w.Reason != "" {
			state = strings.TrimPrefix(state+": "+w.Reason, ": ")
		}
		t.Row(f.Dpid, f.Table, f.Priority, cli.MatchText(f.Match), f.Instructions(), f.Packets, f.Bytes, cli.Seconds(f.Duration), timeouts(f), f.Owner, state)
	}
}

// timeouts writes when an entry goes by itself.
func timeouts(f *api.FlowEntry) string {
	var parts []string
	if f.IdleTimeout != 0 {
		parts = append(parts, fmt.Sprintf("idle %ds", f.IdleTimeout))
	}
	if f.HardTimeout != 0 {
		parts = append(parts, fmt.Sprintf("hard %ds", f.HardTimeout))
	}
	return strings.Join(parts, " ")
}

func getGroups(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	return switchFlag(cli.Query(r, &cobra.Command{
		Use:     "groups",
		Short:   "List the groups of the switches, read from the switches",
		Example: "  weft get groups --switch 1",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		switches, err := switchIDs(c, only)
		if err != nil {
			return cli.View{}, err
		}
		lists, errs := readEach(switches, func(dpid string) ([]*api.Group, error) {
			m, err := c.ReadGroups(c.Ctx, &api.ReadGroupsRequest{Dpid: dpid})
			return m.GetGroups(), err
		})
		all := &api.ReadGroupsResponse{Groups: slices.Concat(lists...)}
		return cli.View{Value: all, Text: func(t *cli.Table) {
			t.Row("SWITCH", "GROUP", "TYPE", "BUCKET", "WEIGHT", "WATCH", "ACTIONS", "PACKETS", "BYTES")
			for _, g := range all.Groups {
				for i, b := range g.Buckets {
					watch := ""
					if b.WatchPort != 0 {
						watch = cli.Port(b.WatchPort)
					}
					t.Row(g.Dpid, g.Id, g.Type, i, b.Weight, watch, strings.Join(b.Actions, ","), b.Packets, b.Bytes)
				}
				if len(g.Buckets) == 0 {
					t.Row(g.Dpid, g.Id, g.Type, "", "", "", "drop", g.Packets, g.Bytes)
				}
			}
		}, Failed: errors.Join(errs...)}, nil
	}), &only)
}

func getStats(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	kinds := []string{"ports", "tables", "flows"}
	return switchFlag(cli.Query(r, &cobra.Command{
		Use:   "stats [ports|tables|flows]",
		Short: "Show counters and rates of ports (default), tables or flows",
		Example: `  weft get stats
  weft get stats flows --switch 1`,
		ValidArgs: kinds,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		switch append(args, "ports")[0] {
		case "tables":
			m, err := c.ListTableStats(c.Ctx, &api.ListTableStatsRequest{Dpid: only.Text})
			return cli.View{Value: m, Text: func(t *cli.Table) {
				t.Row("SWITCH", "TABLE", "ENTRIES", "AT MOST", "LOOKUPS", "MATCHED")
				for _, s := range m.GetTables() {
					most := ""
					if s.MaxEntries != 0 {
						most = fmt.Sprint(s.MaxEntries)
					}
					t.Row(s.Dpid, s.Table, s.Active, most, s.Lookups, s.Matched)
				}
			}}, err
		case "flows":
			m, err := c.ListFlowStats(c.Ctx, &api.ListFlowStatsRequest{Dpid: only.Text})
			return cli.View{Value: m, Text: func(t *cli.Table) {
				t.Row("SWITCH", "OWNER", "ENTRIES", "PACKETS", "BYTES", "PACKETS/s", "BITS/s")
				for _, s := range m.GetFlows() {
					t.Row(s.Dpid, s.Owner, s.Entries, s.Packets, s.Bytes, cli.Rate(s.PacketsPerS), cli.Rate(s.BitsPerS))
				}
			}}, err
		}
		m, err := c.ListPortStats(c.Ctx, &api.ListPortStatsRequest{Dpid: only.Text})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("SWITCH", "PORT", "RX PACKETS", "TX PACKETS", "RX BYTES", "TX BYTES", "RX DROPPED", "TX DROPPED", "RX ERRORS", "TX ERRORS",
				"RX BITS/s", "TX BITS/s", "RX PACKETS/s", "TX PACKETS/s", "OVER")
			for _, s := range m.GetPorts() {
				t.Row(s.Dpid, cli.Port(s.Port), s.RxPackets, s.TxPackets, s.RxBytes, s.TxBytes, s.RxDropped, s.TxDropped, s.RxErrors, s.TxErrors,
					cli.Rate(s.RxBitsPerS), cli.Rate(s.TxBitsPerS), cli.Rate(s.RxPacketsPerS), cli.Rate(s.TxPacketsPerS), cli.Seconds(s.Interval))
			}
		}}, err
	}), &only)
}
