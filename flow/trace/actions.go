package trace

import (
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// execution is what a switch does with one packet (OpenFlow 1.3.5 §5.9 to
// §5.12).
type execution struct {
	walk     *walk
	at       flow.Location // where the packet came in
	frame    []byte
	metadata uint64
	set      []flow.Action // the action set
	step     *api.TraceStep
	out      []emission
}

// emission is one copy of the packet on its way out.
type emission struct {
	port  flow.Port
	frame []byte
	step  *api.TraceStep
}

func (x *execution) note(format string, args ...any) {
	x.step.Notes = append(x.step.Notes, fmt.Sprintf(format, args...))
}

// run carries out a list of actions in its order.
func (x *execution) run(list []flow.Action, depth int) error {
	for _, a := range list {
		switch a.Kind {
		case flow.ActionOutput:
			x.output(flow.Port(a.Arg))
		case flow.ActionGroup:
			if err := x.group(a.Arg, depth); err != nil {
				return err
			}
		case flow.ActionSetQueue:
		case flow.ActionExperimenter:
			if c, ok := flow.ParseController(a); ok {
				x.toController(c.String())
				continue
			}
			x.note("%v is not followed", a)
		default:
			frame, ok := packet.Apply(x.frame, a)
			if !ok {
				x.note("%v does not apply to this packet", a)
			}
			x.frame = frame
		}
	}
	return nil
}

// write puts an action into the action set, which holds one of each kind, and
// of set-field one for each field (§5.10).
func (x *execution) write(a flow.Action) {
	x.set = slices.DeleteFunc(x.set, func(o flow.Action) bool { return o.Kind == a.Kind && o.Field == a.Field })
	x.set = append(x.set, a)
}

// actionSet returns the actions of the set in the order of §5.10. With a group,
// an output is not carried out.
func (x *execution) actionSet() []flow.Action {
	return setOrder(x.set)
}

func setOrder(set []flow.Action) []flow.Action {
	order := []flow.ActionKind{
		flow.ActionCopyTTLIn, flow.ActionPopVLAN, flow.ActionPopMPLS, flow.ActionPopPBB,
		flow.ActionPushMPLS, flow.ActionPushPBB, flow.ActionPushVLAN, flow.ActionCopyTTLOut,
		flow.ActionDecMPLSTTL, flow.ActionDecNwTTL, flow.ActionSetMPLSTTL, flow.ActionSetNwTTL, flow.ActionSetField,
		flow.ActionExperimenter, flow.ActionSetQueue, flow.ActionGroup, flow.ActionOutput,
	}
	list := slices.Clone(set)
	slices.SortStableFunc(list, func(a, b flow.Action) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	if slices.ContainsFunc(list, func(a flow.Action) bool { return a.Kind == flow.ActionGroup }) {
		list = slices.DeleteFunc(list, func(a flow.Action) bool { return a.Kind == flow.ActionOutput })
	}
	return list
}

// output sends a copy of the packet to a port, numbered or reserved (§4.5).
func (x *execution) output(p flow.Port) {
	w, sw := x.walk, x.at.Switch
	switch {
	case p == flow.PortController:
		x.toController("controller")
	case p == flow.PortNormal || p == flow.PortLocal || p == flow.PortTable:
		x.step.Next = append(x.step.Next, p.String())
		w.end(fateElsewhere, "handed to %q of %v, which is not OpenFlow's", p, sw)
	case p == flow.PortIn:
		x.emit(x.at.Port)
	case p == flow.PortFlood || p == flow.PortAll:
		slices.Sort(w.ports[sw])
		for _, port := range w.ports[sw] {
			if port != x.at.Port {
				x.emit(port)
			}
		}
	case p == x.at.Port:
		x.step.Next = append(x.step.Next, "dropped")
		x.note("output to the port that it came in by is left out (OpenFlow asks for in_port)")
		w.end(fateDropped, "dropped by %v: it would leave by port %v, where it came in", sw, p)
	default:
		x.emit(p)
	}
}

// toController sends the packet to the controllers that an action names.
func (x *execution) toController(name string) {
	x.step.Next = append(x.step.Next, name)
	if e := x.step.Entry; e != nil && e.Priority == 0 && len(e.Match) == 0 {
		x.walk.end(fateController, "sent to the %s by the table miss of %v: nothing is programmed for it there (the controller does so when the first packet comes)", name, x.at.Switch)
	} else {
		x.walk.end(fateController, "sent to the %s by %v", name, x.at.Switch)
	}
}

func (x *execution) emit(p flow.Port) {
	if !x.walk.worked() {
		return
	}
	x.out = append(x.out, emission{p, slices.Clone(x.frame), x.step})
}

// forward sends all copies on.
func (x *execution) forward() error {
	for _, e := range x.out {
		if err := x.walk.send(flow.Location{Switch: x.at.Switch, Port: e.port}, e.frame, e.step); err != nil {
			return err
		}
	}
	return nil
}

// live reports whether a bucket of a group that fails over is live: what it watches is
// (§5.6.1). A group is by any bucket of its own, as by one that watches nothing.
func (x *execution) live(b *api.Bucket, depth int) (bool, error) {
	if x.walk.net.up[flow.Location{Switch: x.at.Switch, Port: flow.Port(b.WatchPort)}] {
		return true, nil
	}
	if b.WatchGroup == 0 || depth > 8 {
		return false, nil
	}
	g, err := x.walk.groupOf(x.at.Switch, b.WatchGroup)
	if err != nil {
		return false, err
	}
	for _, k := range g.GetBuckets() {
		live, err := x.live(k, depth+1)
		if live = live || k.WatchPort == 0 && k.WatchGroup == 0; live || err != nil {
			return live, err
		}
	}
	return false, nil
}

func watched(b *api.Bucket) string {
	if b.WatchPort == 0 {
		return fmt.Sprintf("group %d is live", b.WatchGroup)
	}
	return fmt.Sprintf("port %v is up", flow.Port(b.WatchPort))
}

// group sends the packet through a group (§5.6.1).
func (x *execution) group(id uint32, depth int) error {
	g, err := x.walk.groupOf(x.at.Switch, id)
	if err != nil {
		return err
	}
	if g == nil || depth > 8 {
		x.note("group %d does not exist", id)
		return nil
	}
	x.step.Groups = append(x.step.Groups, id)
	var chosen []*api.Bucket
	switch g.Type {
	case "fast_failover":
		for i, b := range g.Buckets {
			live, err := x.live(b, depth)
			if err != nil {
				return err
			}
			if live {
				chosen = append(chosen, b)
				x.note("group %d: bucket %d, whose %s", id, i, watched(b))
				break
			}
		}
	case "select":
		for i, b := range g.Buckets {
			if b.Weight > 0 || len(g.Buckets) == 1 {
				chosen = append(chosen, b)
				x.note("group %d: the switch chooses one of %d buckets by a hash of its own; bucket %d is followed", id, len(g.Buckets), i)
				break
			}
		}
	default: // all, and indirect, which has one
		chosen = g.Buckets
	}
	if len(chosen) == 0 {
		x.note("group %d has no bucket that can send", id)
	}
	for _, b := range chosen {
		if !x.walk.worked() {
			return nil
		}
		actions, err := flow.ParseActionStrings(b.Actions)
		if err != nil {
			return fmt.Errorf("group %d of switch %v: %w", id, x.at.Switch, err)
		}
		copied := *x
		copied.frame = slices.Clone(x.frame)
		if err := copied.run(setOrder(actions), depth+1); err != nil {
			return err
		}
		x.out = copied.out
	}
	return nil
}

// groupOf returns a group of a switch, nil if it has none of that number.
func (w *walk) groupOf(sw flow.DPID, id uint32) (*api.Group, error) {
	if w.buckets[sw] == nil {
		list, err := w.net.groups(sw)
		if err != nil {
			return nil, fmt.Errorf("read the groups of switch %v: %w", sw, err)
		}
		w.buckets[sw] = map[uint32]*api.Group{}
		for _, g := range list {
			w.buckets[sw][g.Id] = g
		}
	}
	return w.buckets[sw][id], nil
}
