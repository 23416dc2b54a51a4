package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func l2vpnCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "l2vpn",
		Short: "Keep layer-2 circuits between ports",
		Long: `Keep circuits: leased lines for Ethernet frames (RFC 4664's VPWS) from one customer's
port to another, and LANs between several (VPLS), over tunnels that the controller keeps. An end is SWITCH:PORT, a
port with all its frames; SWITCH:PORT.VLAN, those of a VLAN; or
SWITCH:PORT.VLAN.INNER, those with a second tag behind. Tags are taken off or changed
on the way as the other end has them. A circuit keeps its labels and counters when its
ends change, and over restarts.`,
		Example: `  weft l2vpn add red 1:3 3:3 --protect
  weft l2vpn get red -o json
  weft l2vpn set red --rate 10M
  weft l2vpn history red
  weft l2vpn delete red`,
	}
	r.Flags(cmd)
	cmd.AddCommand(l2vpnAddCommand(&r), l2vpnSetCommand(&r), l2vpnPreviewCommand(&r), l2vpnApplyCommand(&r), l2vpnHistoryCommand(&r), l2vpnGetCommand(&r), l2vpnPingCommand(&r), l2vpnMacsCommand(&r), l2vpnLoopCommand(&r), l2vpnValidateCommand(&r),
		circuits().lists(&r, &cobra.Command{
			Use:     "list [NAME]",
			Short:   "List circuits, their states and ways",
			Example: "  weft l2vpn list",
		}), circuits().delete(&r, &cobra.Command{
			Use:     "delete NAME",
			Short:   "Delete a circuit",
			Example: "  weft l2vpn delete red",
		}, func(args []string) *api.Circuit { return &api.Circuit{Name: args[0]} }))
	return cmd
}

// circuits is the circuits.
func circuits() *typedKind[*api.Circuit] {
	return &typedKind[*api.Circuit]{
		known: "weft l2vpn list", one: "circuit", key: "circuits",
		name: (*api.Circuit).GetName,
		list: func(c *cli.Controller) (proto.Message, error) {
			return c.ListCircuits(c.Ctx, &api.ListCircuitsRequest{})
		},
		set: func(c *cli.Controller, m *api.Circuit) (*api.Circuit, error) {
			r, err := c.SetCircuits(c.Ctx, &api.SetCircuitsRequest{Circuits: []*api.Circuit{m}})
			if err != nil {
				return nil, err
			}
			return r.Outcomes[0].Circuit, nil
		},
		remove: func(c *cli.Controller, m *api.Circuit) (cli.Deletion, error) {
			return c.DeleteCircuit(c.Ctx, &api.DeleteCircuitRequest{Name: m.Name})
		},
		table: circuitTable,
		tidy:  func(*api.Circuit) {},
	}
}

// circuitFlags are the flags that say what a circuit should be.
type circuitFlags struct {
	ends                     []string
	kind, payload, transport string
	rate                     cli.Bandwidth
	protect                  bool
	tree                     string
	maxMACs                  uint32
	storm                    cli.Bandwidth
	revert                   int32
	delay                    time.Duration
	minMTU                   uint32
	diverse                  string
	any, all, none, pin      []string
	priority                 uint32
	from, until              string
}

func (c *circuitFlags) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&c.ends, "end", nil, "an end, SWITCH:PORT[.VLAN[.INNER]]; may be repeated, and be an argument behind NAME")
	f.StringVar(&c.kind, "type", "vpws", "vpws: two ends; vpls: two or more, among which addresses are learnt")
	f.StringVar(&c.payload, "payload", "ethernet", "what it carries: ethernet, every frame, or ip: IPv4, ARP and IPv6 only")
	f.StringVar(&c.transport, "transport", "mpls", "of its tunnels: mpls, vxlan or gre")
	f.Var(&c.rate, "rate", "what each end may send, and what is booked; 0: no limit")
	f.BoolVar(&c.protect, "protect", false, "have a second way, which shares as little with the first as can be")
	f.StringVar(&c.tree, "tree", "", "of a vpls: steiner, branching points by Kou, Markowsky and Berman, or random, one point by chance; steiner if not given")
	f.Uint32Var(&c.maxMACs, "max-macs", 0, "of a vpls: addresses that each end may have, frames to more go to all ends; 0: l2vpn.macs")
	f.Var(&c.storm, "storm", "what each end may send to all others: broadcast, multicast and, in a vpls, unknown; 0: l2vpn.storm_kbps")
	f.Int32Var(&c.revert, "revert", 0, "seconds after which it goes back to a better way; 0: 60; -1: it does when it must only")
	f.DurationVar(&c.delay, "max-delay", 0, "the longest delay that its way may have, such as 5ms; 0: any")
	f.Uint32Var(&c.minMTU, "min-mtu", 0, "the largest IP packet that it must carry, octets: it is down where less is known to fit; 0: any")
	f.StringVar(&c.diverse, "diverse-from", "", "a circuit with whose way its own shares no link and no risk group")
	f.StringSliceVar(&c.any, "affinity", nil, "colours, of which each link of its way has at least one")
	f.StringSliceVar(&c.all, "affinity-all", nil, "colours that each link of its way has")
	f.StringSliceVar(&c.none, "affinity-none", nil, "colours that no link of its way has")
	f.StringSliceVar(&c.pin, "pin", nil, "switches that its way passes, from the first end to the second")
	f.StringVar(&c.from, "from", "", "when it begins, such as 2026-12-01T08:00:00Z, or +2h: two hours from now; empty: at once")
	f.StringVar(&c.until, "until", "", "when it ends, likewise; +2h: two hours after its beginning; empty: never")
	f.Uint32Var(&c.priority, "priority", 7, "0 to 7: one with a lower number may take bandwidth of one with a higher")
}

// apply sets in a circuit what flags say: those that are given, or all.
func (c *circuitFlags) apply(m *api.Circuit, f *pflag.FlagSet, args []string, all bool) error {
	say := func(name string, set func()) {
		if all || f.Changed(name) {
			set()
		}
	}
	m.Name = args[0]
	if ends := slices.Concat(args[1:], c.ends); all || len(ends) > 0 {
		m.Ends = ends
	}
	say("type", func() { m.Type = c.kind })
	say("payload", func() { m.Payload = c.payload })
	say("transport", func() { m.Transport = c.transport })
	say("rate", func() { m.RateKbps = uint64(c.rate) })
	say("protect", func() { m.Protect = c.protect })
	say("tree", func() { m.Tree = c.tree })
	say("max-macs", func() { m.MaxMacs = c.maxMACs })
	say("storm", func() { m.StormKbps = uint64(c.storm) })
	say("revert", func() { m.RevertAfterS = c.revert })
	say("max-delay", func() { m.MaxDelayUs = uint32(min(uint64(c.delay.Microseconds()), math.MaxUint32)) }) // too much if it is less than 0
	say("min-mtu", func() { m.MinMtu = c.minMTU })
	say("diverse-from", func() { m.DiverseFrom = c.diverse })
	say("affinity", func() { m.IncludeAny = c.any })
	say("affinity-all", func() { m.IncludeAll = c.all })
	say("affinity-none", func() { m.ExcludeAny = c.none })
	say("pin", func() { m.Pin = c.pin })
	if f.Changed("priority") {
		m.Priority = &c.priority
	}
	return c.times(m, f, time.Now())
}

// times sets when a circuit begins and ends, where flags say so.
func (c *circuitFlags) times(m *api.Circuit, f *pflag.FlagSet, now time.Time) (err error) {
	if f.Changed("from") {
		if m.From, err = instant(c.from, now); err != nil {
			return fmt.Errorf("--from %w", err)
		}
	}
	if !f.Changed("until") {
		return nil
	}
	if at, err := time.Parse(time.RFC3339, m.From); err == nil && at.After(now) {
		now = at
	}
	if m.Until, err = instant(c.until, now); err != nil {
		return fmt.Errorf("--until %w", err)
	}
	return nil
}

// instant returns a time as RFC 3339 has it, which is given so, or by a + and how long
// it is after another. An empty text stays empty.
func instant(text string, after time.Time) (string, error) {
	if ago, is := strings.CutPrefix(text, "+"); is {
		d, err := time.ParseDuration(ago)
		if err != nil || d < 0 {
			return "", fmt.Errorf("%q: want a + and a duration, such as +2h30m", text)
		}
		return after.Add(d).UTC().Format(time.RFC3339), nil
	}
	if text == "" {
		return "", nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", fmt.Errorf("%q: want a time, such as 2026-12-01T08:00:00Z, or +2h", text)
	}
	return at.UTC().Format(time.RFC3339), nil
}

func l2vpnAddCommand(r *cli.Remote) *cobra.Command {
	var c circuitFlags
	cmd := &cobra.Command{
		Use:   "add NAME END END...",
		Short: "Add a circuit, or replace the one of that name",
		Example: `  weft l2vpn add red 1:3 3:3
  weft l2vpn add blue 1:4.100 3:4.200 --rate 10M --protect
  weft l2vpn add night 1:6 3:6 --rate 400M --from 2026-12-01T20:00:00Z --until +10h
  weft l2vpn add office 1:5 2:5 3:5.7 --type vpls --max-macs 100`,
		Args: cobra.MinimumNArgs(1),
	}
	c.flags(cmd.Flags())
	return circuits().add(r, cmd, func(cmd *cobra.Command, args []string) (*api.Circuit, error) {
		m := &api.Circuit{}
		return m, c.apply(m, cmd.Flags(), args, true)
	})
}

func l2vpnSetCommand(r *cli.Remote) *cobra.Command {
	var c circuitFlags
	cmd := &cobra.Command{
		Use:   "set NAME [END...]",
		Short: "Change a circuit",
		Long:  `Change of a circuit what flags say, and nothing else. Ends, if any are given, are all of its ends.`,
		Example: `  weft l2vpn set red --rate 20M
  weft l2vpn set red 1:3 4:3`,
		Args: cobra.MinimumNArgs(1),
	}
	c.flags(cmd.Flags())
	return cli.Query(r, cmd, func(remote *cli.Controller, args []string) (cli.View, error) {
		m, err := remote.GetCircuit(remote.Ctx, &api.GetCircuitRequest{Name: args[0]})
		if err != nil {
			return cli.View{}, err
		}
		if err := c.apply(m, cmd.Flags(), args, false); err != nil {
			return cli.View{}, err
		}
		if m, err = circuits().set(remote, m); err != nil {
			return cli.View{}, err
		}
		return cli.View{Value: m, Text: func(t *cli.Table) { circuitTable(t, []*api.Circuit{m}) }}, nil
	})
}

func l2vpnGetCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "get NAME",
		Short:   "Show one circuit, with its counters",
		Example: "  weft l2vpn get red -o json",
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.GetCircuit(c.Ctx, &api.GetCircuitRequest{Name: args[0]})
		return cli.View{Value: m, Text: func(t *cli.Table) { circuitTable(t, []*api.Circuit{m}) }}, err
	})
}

func l2vpnPreviewCommand(r *cli.Remote) *cobra.Command {
	var f circuitFlags
	cmd := &cobra.Command{
		Use:     "preview NAME END END...",
		Short:   "Show what a circuit would be",
		Long:    `Show what a circuit would be if it were added: whether it could be up, its way, its labels and how many entries. Nothing is changed.`,
		Example: "  weft l2vpn preview red 1:3 3:3 --protect",
		Args:    cobra.MinimumNArgs(1),
	}
	f.flags(cmd.Flags())
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m := &api.Circuit{}
		if err := f.apply(m, cmd.Flags(), args, true); err != nil {
			return cli.View{}, err
		}
		p, err := c.PreviewCircuit(c.Ctx, &api.PreviewCircuitRequest{Circuit: m})
		return cli.View{Value: p, Text: func(t *cli.Table) {
			t.Row("FEASIBLE", "PATH", "STANDBY", "LABELS", "ENTRIES", "REASON")
			t.Row(p.Feasible, strings.Join(p.Path, " "), strings.Join(p.Standby, " "), listed(p.Labels), p.Entries, p.Reason)
		}}, err
	})
}

func l2vpnApplyCommand(r *cli.Remote) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Have exactly the circuits of a file",
		Long: `Have exactly the circuits of a file, all or none: those that it names are added, or
changed to what it says, and all others are deleted. The file is YAML or JSON, as
weft l2vpn list -o yaml prints it; - is standard input.`,
		Example: "  weft l2vpn apply FILE.yaml --dry-run\n  weft l2vpn apply FILE.yaml",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would change")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		want := &typedDesired[*api.Circuit]{typedKind: circuits()}
		if err := readTyped(args[0], cmd, []declared{want}); err != nil {
			return cli.View{}, err
		}
		a, err := c.SetCircuits(c.Ctx, &api.SetCircuitsRequest{Circuits: want.want, Exactly: true, DryRun: dry})
		return cli.View{Value: a, Text: func(t *cli.Table) {
			for _, o := range a.Outcomes {
				if sign := map[string]string{"added": "+", "changed": "~", "deleted": "-", "refused": "!"}[o.Outcome]; sign != "" {
					fmt.Fprintln(t, cli.Plain(strings.TrimSuffix(fmt.Sprintf("%s circuit %s: %s", sign, o.Name, o.Error), ": ")))
				}
			}
			fmt.Fprintf(t, "%d added, %d changed, %d deleted, %d unchanged; %d entries\n", len(a.Added), len(a.Changed), len(a.Deleted), len(a.Unchanged), a.EntriesChanged)
		}}, err
	})
}

func l2vpnHistoryCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "history NAME",
		Short:   "Show the states that a circuit has had",
		Example: "  weft l2vpn history red",
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		h, err := c.GetCircuitHistory(c.Ctx, &api.GetCircuitHistoryRequest{Name: args[0]})
		return cli.View{Value: h, Text: func(t *cli.Table) {
			t.Row("SINCE", "STATE", "REASON")
			for _, s := range h.GetStates() {
				t.Row(s.Since, s.State, s.Reason)
			}
		}}, err
	})
}

func circuitTable(t *cli.Table, list []*api.Circuit) {
	t.Row("NAME", "TYPE", "ENDS", "RATE", "PATH", "LABELS", "RX", "TX", "STATE")
	for _, m := range list {
		rate := cli.Bandwidth(m.RateKbps)
		t.Row(m.Name, m.Type, strings.Join(m.Ends, " "), rate.String(), strings.Join(m.Path, " "), listed(m.Labels),
			m.RxPackets, m.TxPackets, strings.TrimSuffix(m.State+": "+m.Reason, ": "))
	}
}

func listed(labels []uint32) string { return strings.Trim(fmt.Sprint(labels), "[]") }

func l2vpnPingCommand(r *cli.Remote) *cobra.Command {
	var q api.PingCircuitRequest
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "ping NAME [END END]",
		Short: "Send probes through a circuit, both ways",
		Long: `Send probes the way that the circuit's frames go, both ways, and show how long they take
from one switch to the other, and how many are lost: between two ends, or between all. Customers do not see them. The way
from the controller to the switches and back is measured and taken off. Exit status 1
if any does not come back.`,
		Example: "  weft l2vpn ping red\n  weft l2vpn ping red --size 1500 -c 3\n  weft l2vpn ping office 1:5 2:5",
		Args:    cobra.RangeArgs(1, 3),
	}
	cmd.Flags().Uint32VarP(&q.Count, "count", "c", 5, "how many probes each way, at most 100")
	cmd.Flags().DurationVarP(&interval, "interval", "i", 100*time.Millisecond, "time between two of them")
	cmd.Flags().Uint32Var(&q.Size, "size", 0, "the IP packet that they are as long as, octets; 0: as short as can be")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		if interval < time.Millisecond || interval > 10*time.Second {
			return cli.View{}, fmt.Errorf("--interval %v: want 1ms to 10s", interval)
		}
		q.Name, q.Ends, q.IntervalUs = args[0], args[1:], uint32(interval.Microseconds())
		p, err := c.PingCircuit(c.Ctx, &q)
		var failed error
		if slices.ContainsFunc(p.GetWays(), func(w *api.CircuitPing) bool { return w.Received < w.Sent }) {
			failed = errors.New("probes have not come back: weft l2vpn validate says what else is wrong")
		}
		return cli.View{Value: p, Failed: failed, Text: func(t *cli.Table) {
			t.Row("FROM", "TO", "SENT", "RECEIVED", "LEAST", "MEDIAN", "MOST")
			for _, w := range p.Ways {
				row := []any{w.From, w.To, w.Sent, w.Received, "", "", ""}
				if list := slices.Sorted(slices.Values(w.DelaysUs)); len(list) > 0 {
					for i, us := range []uint32{list[0], list[(len(list)-1)/2], list[len(list)-1]} {
						row[4+i] = (time.Duration(us) * time.Microsecond).String()
					}
				}
				t.Row(row...)
			}
		}}, err
	})
}

func l2vpnValidateCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "validate [NAME]",
		Short: "Compare circuits with what switches have and probes say",
		Long: `Compare what circuits should be with the entries that switches have now, with tunnels and
ports, and with what probes say, and name what is wrong. Exit status 1 if anything is.`,
		Example: "  weft l2vpn validate\n  weft l2vpn validate red -o json",
		Args:    cobra.MaximumNArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		q := &api.ValidateCircuitsRequest{}
		if len(args) > 0 {
			q.Name = args[0]
		}
		v, err := c.ValidateCircuits(c.Ctx, q)
		var failed error
		if n := len(v.GetFaults()); n > 0 {
			failed = fmt.Errorf("%d faults", n)
		}
		return cli.View{Value: v, Failed: failed, Text: func(t *cli.Table) {
			if len(v.Faults) == 0 {
				fmt.Fprintf(t, "%d circuits are as they should be\n", v.Circuits)
				return
			}
			t.Row("CIRCUIT", "WHAT", "AT", "FAULT")
			for _, f := range v.Faults {
				t.Row(f.Name, f.Kind, f.At, f.Text)
			}
		}}, err
	})
}
