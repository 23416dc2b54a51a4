package l2vpn

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// validate answers ValidateCircuits: it asks the switches for their entries.
func (s *server) validate(ctx context.Context, q *api.ValidateCircuitsRequest,
	read func(context.Context, flow.DPID) ([]*api.FlowEntry, error)) (*api.ValidateCircuitsResponse, error) {
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
	have := map[flow.DPID]map[string]bool{}
	unread := map[flow.DPID]error{}
	for _, sw := range slices.Sorted(maps.Keys(switches)) {
		list, err := read(ctx, sw)
		if err != nil {
			unread[sw] = err
			continue
		}
		have[sw] = map[string]bool{}
		for _, m := range list {
			if _, e, err := m.Entry(); err == nil {
				have[sw][textOf(&e)] = true
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &api.ValidateCircuitsResponse{}
	slices.Sort(names)
	for _, name := range names {
		if st := b.status[name]; st != nil {
			r.Circuits++
			r.Faults = append(r.Faults, b.faults(st, have, unread)...)
		}
	}
	return r, nil
}

// textOf returns an entry as text, by which what is wanted is compared with what a
// switch has.
func textOf(e *flow.Entry) string {
	return fmt.Sprint(e.Table, " ", e.Priority, " ", e.Match.Text(), " ", flow.FormatActions(e.Apply), " ", e.Goto)
}

// faults returns what is wrong with a circuit. It is called with mu held.
func (b *store) faults(s *status, have map[flow.DPID]map[string]bool, unread map[flow.DPID]error) (list []*api.CircuitFault) {
	c := s.circuit
	fault := func(kind, at, format string, args ...any) {
		list = append(list, &api.CircuitFault{Name: c.Name, Kind: kind, At: at, Text: fmt.Sprintf(format, args...)})
	}
	if s.phase != inForce {
		return nil
	}
	for _, e := range c.ends {
		if why := b.unusable(e.at); why != "" {
			fault("port", e.String(), "%s", why)
		}
	}
	for _, w := range b.wishesOf(c) {
		switch t := b.tunnels[w.Name]; {
		case t == nil && w.err != nil:
			fault("tunnel", w.Name, "%v", w.err)
		case t == nil:
			fault("tunnel", w.Name, "there is no such tunnel yet")
		case t.State != "up":
			fault("tunnel", w.Name, "it is %s: %s", t.State, t.Reason)
		}
	}
	for _, sw := range c.switches() {
		switch {
		case unread[sw] != nil:
			fault("entries", sw.String(), "the switch's entries cannot be read: %v", unread[sw])
		case s.has[sw] != s.version:
			fault("entries", sw.String(), "the switch has not confirmed them yet")
		default:
			var all set
			b.entries(&all, c, sw)
			lacking := slices.DeleteFunc(all.entries, func(e flow.Entry) bool { return have[sw][textOf(&e)] })
			for i := range lacking {
				fault("entries", sw.String(), "the switch lacks, or has otherwise: table %d, priority %d, %s: %s",
					lacking[i].Table, lacking[i].Priority, lacking[i].Match.Text(), flow.FormatActions(lacking[i].Apply))
			}
		}
	}
	if m := s.measured; m != nil && m.down != "" {
		fault("probes", "", "%s", m.down)
	} else if m != nil && m.bound != "" {
		fault("bound", "", "%s", m.bound)
	}
	return list
}
