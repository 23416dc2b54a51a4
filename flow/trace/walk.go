package trace

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

const (
	maxDepth = 64     // switches that a packet may cross
	maxSteps = 1000   // entries in all, for packets that are flooded
	maxWork  = 10_000 // copies and buckets in all, for groups that lead to groups
)

// network is the network that a trace runs through. flows and groups read the
// current state of a switch.
type network struct {
	ctx    context.Context // of the call
	flows  func(flow.DPID) ([]*api.FlowEntry, error)
	groups func(flow.DPID) ([]*api.Group, error)
	links  map[flow.Location]flow.Location // far ends
	up     map[flow.Location]bool          // ports that can send
	hosts  map[flow.Location][]*api.Host
}

// fate is an end of the packet, or of one copy of it; a better one counts.
type fate int

const (
	fateNone fate = iota
	fateDropped
	fateElsewhere
	fateLoop
	fateController
	fateArrives
)

// walk is one trace under way.
type walk struct {
	net     *network
	to      *api.Host
	tables  map[flow.DPID][]tracedEntry
	buckets map[flow.DPID]map[uint32]*api.Group
	ports   map[flow.DPID][]flow.Port // that are up, for floods
	work    int                       // copies and buckets so far
	result  *api.PacketTrace
	best    fate
	path    []visit // of the copy that is followed now
}

type tracedEntry struct {
	text  *api.FlowEntry
	entry flow.Entry
}

// visit is a packet at a port.
type visit struct {
	at    flow.Location
	frame []byte
}

// trace follows a frame, which host from sends, to host to.
func (n *network) trace(frame []byte, from, to *api.Host) (*api.PacketTrace, error) {
	w := &walk{
		net: n, to: to, ports: map[flow.DPID][]flow.Port{}, tables: map[flow.DPID][]tracedEntry{}, buckets: map[flow.DPID]map[uint32]*api.Group{},
		result: &api.PacketTrace{Enters: from.At.Flow().String()},
	}
	for l, up := range n.up {
		if up && l.Port.Physical() {
			w.ports[l.Switch] = append(w.ports[l.Switch], l.Port)
		}
	}
	if err := w.enter(visit{from.At.Flow(), frame}); err != nil {
		return nil, err
	}
	w.result.Arrives = w.best == fateArrives
	return w.result, nil
}

// worked counts copies and buckets; false once there are too many.
func (w *walk) worked() bool {
	if w.work++; w.work == maxWork {
		w.end(fateLoop, "given up after %d copies of the packet and buckets of groups", maxWork)
	}
	return w.work < maxWork
}

// end records what became of a copy of the packet.
func (w *walk) end(f fate, format string, args ...any) {
	if f > w.best {
		w.best, w.result.Verdict = f, fmt.Sprintf(format, args...)
	}
}

// enter takes the packet into a switch, through its tables and on.
func (w *walk) enter(v visit) error {
	if err := w.net.ctx.Err(); err != nil {
		return fmt.Errorf("follow the packet at %v: %w", v.at, err)
	}
	sw, in := v.at.Switch, v.at.Port
	for i, earlier := range w.path {
		if earlier.at == v.at && bytes.Equal(earlier.frame, v.frame) {
			w.end(fateLoop, "a loop: the packet comes back to %v, where it was %d switches before", v.at, len(w.path)-i)
			return nil
		}
	}
	if len(w.path) >= maxDepth || len(w.result.Steps) >= maxSteps {
		w.end(fateLoop, "given up at %v after %d switches and %d entries", v.at, len(w.path), len(w.result.Steps))
		return nil
	}
	w.path = append(w.path, v)
	defer func() { w.path = w.path[:len(w.path)-1] }()

	table, err := w.table(sw)
	if err != nil {
		return err
	}
	x := &execution{walk: w, at: v.at, frame: slices.Clone(v.frame)}
	for number := uint8(0); ; {
		key := flow.Key{InPort: in, Metadata: x.metadata}
		packet.Parse(x.frame, &key)
		hit := lookup(table, number, &key)
		x.step = &api.TraceStep{
			Hop: uint32(len(w.path)), Switch: sw.String(), InPort: uint32(in), Table: uint32(number),
		}
		w.result.Steps = append(w.result.Steps, x.step)
		if hit == nil {
			x.step.Next = append(x.step.Next, "dropped")
			w.end(fateDropped, "dropped by %v: no entry of table %d matches", sw, number)
			return x.forward()
		}
		x.step.Entry, x.step.Actions = hit.text, hit.text.Instructions()
		e := &hit.entry
		if e.Meter != 0 {
			x.note("meter %d may drop it", e.Meter)
		}
		if err := x.run(e.Apply, 0); err != nil {
			return err
		}
		if e.Clear {
			x.set = nil
		}
		for _, a := range e.Write {
			x.write(a)
		}
		x.metadata = x.metadata&^e.MetaMask | e.Metadata&e.MetaMask
		if e.Goto != 0 {
			x.step.Next = append(x.step.Next, fmt.Sprintf("table %d", e.Goto))
			number = e.Goto // one further on: Entry has looked
			continue
		}
		if err := x.run(x.actionSet(), 0); err != nil {
			return err
		}
		if len(x.out) == 0 && len(x.step.Next) == 0 {
			x.step.Next = append(x.step.Next, "dropped")
			w.end(fateDropped, "dropped by %v: its entry of priority %d%s has no action that sends it on", sw, hit.text.Priority, ofOwner(hit.text.Owner))
		}
		return x.forward()
	}
}

// ofOwner returns whose an entry is, as a sentence says it.
func ofOwner(owner string) string {
	if owner == "" {
		return ""
	}
	return " (owner " + owner + ")"
}

// table returns the entries of a switch, read once.
func (w *walk) table(sw flow.DPID) ([]tracedEntry, error) {
	if t, ok := w.tables[sw]; ok {
		return t, nil
	}
	list, err := w.net.flows(sw)
	if err != nil {
		return nil, fmt.Errorf("read the entries of switch %v: %w", sw, err)
	}
	table := []tracedEntry{}
	for _, f := range list {
		_, e, err := f.Entry()
		if err != nil {
			return nil, fmt.Errorf("switch %v has an entry that is not understood: %w", sw, err)
		}
		table = append(table, tracedEntry{f, e})
	}
	w.tables[sw] = table
	return table, nil
}

// lookup returns the entry of the highest priority that matches, nil if none
// does.
func lookup(table []tracedEntry, number uint8, k *flow.Key) *tracedEntry {
	var best *tracedEntry
	for i := range table {
		t := &table[i]
		if t.entry.Table == number && t.entry.Match.Matches(k) && (best == nil || t.entry.Priority > best.entry.Priority) {
			best = t
		}
	}
	return best
}

// send takes the packet out of a port.
func (w *walk) send(from flow.Location, frame []byte, step *api.TraceStep) error {
	out := &api.TraceOut{Port: uint32(from.Port)}
	step.Out = append(step.Out, out)
	next := func(format string, args ...any) {
		step.Next = append(step.Next, fmt.Sprintf(format, args...))
	}
	if up, known := w.net.up[from]; !known {
		next("%v: no such port", from)
		w.end(fateDropped, "dropped: switch %v has no port %v", from.Switch, from.Port)
		return nil
	} else if !up {
		next("%v: down", from)
		w.end(fateDropped, "dropped: port %v is down", from)
		return nil
	}
	if far, ok := w.net.links[from]; ok {
		next("%v", far)
		out.To = api.NewLocation(far)
		return w.enter(visit{far, frame})
	}
	for _, h := range w.net.hosts[from] {
		out.Hosts = append(out.Hosts, h.Mac)
	}
	var key flow.Key
	packet.Parse(frame, &key)
	to, _ := flow.ParseMAC(w.to.GetMac())
	if w.to.At.Flow() == from {
		if key.EthDst != to && !key.EthDst.Multicast() {
			next("%v: for another", from)
			w.end(fateElsewhere, "it reaches the port of host %s, %v, but is addressed to %v, so the host ignores it", w.to.Mac, from, key.EthDst)
			return nil
		}
		next("host %s", w.to.Mac)
		w.end(fateArrives, "arrives at host %s, port %v, after %d switches", w.to.Mac, from, len(w.path))
		return nil
	}
	for _, h := range w.net.hosts[from] {
		next("host %s", h.Mac)
		w.end(fateElsewhere, "it goes to host %s at port %v instead", h.Mac, from)
	}
	if len(w.net.hosts[from]) == 0 {
		next("%v: nothing known there", from)
		w.end(fateElsewhere, "it leaves by port %v, behind which neither a switch nor a host is known", from)
	}
	return nil
}
