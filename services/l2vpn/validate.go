package l2vpn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// held is what a switch says that it has of circuits, as text.
type held struct {
	entries        map[string]bool
	groups, meters map[uint32]string
	err            error // why it is not known
}

// switchReader reads what switches have.
type switchReader struct {
	flows  func(context.Context, flow.DPID) ([]*api.FlowEntry, error)
	groups func(context.Context, flow.DPID) ([]*api.Group, error)
	meters func(context.Context, flow.DPID) ([]*api.Meter, error)
}

// read returns what a switch has.
func (r *switchReader) read(ctx context.Context, sw flow.DPID) *held {
	h := &held{entries: map[string]bool{}, groups: map[uint32]string{}, meters: map[uint32]string{}}
	flows, err := r.flows(ctx, sw)
	groups, err2 := r.groups(ctx, sw)
	meters, err3 := r.meters(ctx, sw)
	h.err = cmp.Or(err, err2, err3)
	for _, m := range flows {
		if _, e, err := m.Entry(); err == nil {
			h.entries[entryText(&e)] = true
		}
	}
	for _, m := range groups {
		if _, g, err := m.Group(); err == nil {
			h.groups[g.ID] = groupText(&g)
		}
	}
	for _, m := range meters {
		if _, t, err := m.Meter(); err == nil {
			h.meters[t.ID] = meterText(&t)
		}
	}
	return h
}

// validate answers ValidateCircuits: it asks the switches for what they have.
func (s *server) validate(ctx context.Context, q *api.ValidateCircuitsRequest, from *switchReader) (*api.ValidateCircuitsResponse, error) {
	b := s.b
	b.mu.Lock()
	var names []string
	for name := range b.status {
		if q.GetName() == "" || q.Name == name {
			names = append(names, name)
		}
	}
	switches := map[flow.DPID]bool{}
	for _, name := range names {
		for _, sw := range b.status[name].circuit.switches() {
			switches[sw] = true
		}
	}
	b.mu.Unlock()
	if q.GetName() != "" && len(names) == 0 {
		return nil, missing(q.Name)
	}
	have := map[flow.DPID]*held{}
	for _, sw := range slices.Sorted(maps.Keys(switches)) {
		have[sw] = from.read(ctx, sw)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &api.ValidateCircuitsResponse{}
	slices.Sort(names)
	for _, name := range names {
		if st := b.status[name]; st != nil {
			r.Circuits++
			r.Faults = append(r.Faults, s.faults(st, have)...)
		}
	}
	return r, nil
}

// entryText returns an entry as text, by which what is wanted is compared with what
// a switch has.
func entryText(e *flow.Entry) string {
	text := fmt.Sprintf("table %d, priority %d, %s: %s", e.Table, e.Priority, e.Match.Text(), flow.FormatActions(e.Apply))
	if e.Meter != 0 {
		text += fmt.Sprintf(", meter %d", e.Meter)
	}
	if e.MetaMask != 0 {
		text += fmt.Sprintf(", metadata %#x/%#x", e.Metadata&e.MetaMask, e.MetaMask)
	}
	if e.Goto != 0 {
		text += fmt.Sprintf(", goto table %d", e.Goto)
	}
	return text
}

// groupText returns a group as text, without what has no meaning in those that
// circuits have (OpenFlow 1.3.5 §7.3.4.2).
func groupText(g *flow.Group) string {
	var buckets []string
	for i := range g.Buckets {
		buckets = append(buckets, "["+flow.FormatActions(g.Buckets[i].Actions)+"]")
	}
	return fmt.Sprintf("%v %s", g.Kind, strings.Join(buckets, " "))
}

// meterText returns a meter as text.
func meterText(m *flow.Meter) string {
	var bands []string
	for _, x := range m.Bands {
		bands = append(bands, fmt.Sprintf("kind %d, rate %d, burst %d", x.Kind, x.Rate, x.BurstSize))
	}
	return fmt.Sprintf("flags %#x [%s]", m.Flags, strings.Join(bands, "] ["))
}

// faults returns what is wrong with a circuit. It is called with the store's mu held.
func (s *server) faults(st *status, have map[flow.DPID]*held) (list []*api.CircuitFault) {
	b, c := s.b, st.circuit
	fault := func(kind, at, format string, args ...any) {
		list = append(list, &api.CircuitFault{Name: c.Name, Kind: kind, At: at, Text: fmt.Sprintf(format, args...)})
	}
	if st.phase != inForce {
		return nil
	}
	for _, e := range c.ends {
		if why := b.net.unusable(e.at); why != "" {
			fault("port", e.String(), "%s", why)
		}
	}
	for _, at := range c.sinks() {
		if why := b.net.unusable(at); why != "" {
			fault("port", at.String(), "copies do not leave: %s", why)
		}
	}
	for _, w := range b.tunnels.wishesOf(c) {
		switch t := b.tunnels.known[w.Name]; {
		case t == nil && w.err != nil:
			fault("tunnel", w.Name, "%v", w.err)
		case t == nil:
			fault("tunnel", w.Name, "there is no such tunnel yet")
		case t.State != "up":
			fault("tunnel", w.Name, "it is %s: %s", t.State, t.Reason)
		}
	}
	for _, sw := range c.switches() {
		h := have[sw]
		switch {
		case h == nil:
			continue // the circuit has got here meanwhile
		case h.err != nil:
			fault("entries", sw.String(), "what the switch has cannot be read: %v", h.err)
			continue
		case !st.confirmed(sw):
			fault("entries", sw.String(), "the switch has not confirmed them yet")
			continue
		}
		var all set
		st.entries(&all, sw, b.cfg, &b.tunnels)
		for i := range all.entries {
			if text := entryText(&all.entries[i]); !h.entries[text] {
				fault("entries", sw.String(), "the switch lacks, or has otherwise: %s", text)
			}
		}
		differs := func(kind string, id uint32, have map[uint32]string, want string) {
			switch text, is := have[id]; {
			case !is:
				fault(kind+"s", sw.String(), "the switch lacks %s %d: %s", kind, id, want)
			case text != want:
				fault(kind+"s", sw.String(), "%s %d is %s; it should be %s", kind, id, text, want)
			}
		}
		for i := range all.groups {
			differs("group", all.groups[i].ID, h.groups, groupText(&all.groups[i]))
		}
		for i := range all.meters {
			differs("meter", all.meters[i].ID, h.meters, meterText(&all.meters[i]))
		}
	}
	if m := st.measured; m != nil && m.down != "" {
		fault("probes", "", "%s", m.down)
	} else if m != nil && m.bound != "" {
		fault("bound", "", "%s", m.bound)
	}
	return list
}
