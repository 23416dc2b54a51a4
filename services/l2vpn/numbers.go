package l2vpn

import (
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// numbers are labels or meters in use, on each switch. A number that was given
// back is given out again only when all others were: frames with a label may still be
// under way.
type numbers struct {
	first, last uint32
	used        map[flow.DPID]map[uint32]bool
	next        map[flow.DPID]uint32
}

func newNumbers(first, last uint32) *numbers {
	return &numbers{first: first, last: last, used: map[flow.DPID]map[uint32]bool{}, next: map[flow.DPID]uint32{}}
}

// take takes a number of a switch; false if all are in use.
func (n *numbers) take(sw flow.DPID) (uint32, bool) {
	used := n.used[sw]
	at := n.next[sw]
	for range n.last - n.first + 1 {
		if len(used) > int(n.last-n.first) {
			break
		}
		if at < n.first || at > n.last {
			at = n.first
		}
		if !used[at] {
			n.mark(sw, at)
			n.next[sw] = at + 1
			return at, true
		}
		at++
	}
	return 0, false
}

// peek returns the number that take would take; 0 if all are in use.
func (n *numbers) peek(sw flow.DPID) uint32 {
	next, had := n.next[sw]
	number, ok := n.take(sw)
	if !ok {
		return 0
	}
	n.give(sw, number)
	if n.next[sw] = next; !had {
		delete(n.next, sw)
	}
	return number
}

// mark records that a number is in use.
func (n *numbers) mark(sw flow.DPID, number uint32) {
	if n.used[sw] == nil {
		n.used[sw] = map[uint32]bool{}
	}
	n.used[sw][number] = true
	n.next[sw] = max(n.next[sw], number+1)
}

// give gives a number back.
func (n *numbers) give(sw flow.DPID, number uint32) {
	if delete(n.used[sw], number); len(n.used[sw]) == 0 {
		delete(n.used, sw)
	}
}

// An allocator gives circuits their numbers, and their labels and meters at switches. What it
// does before a circuit is stored can be taken back by the calls in undo. The store's mu guards it.
type allocator struct {
	labels, meters *numbers
	lastID         uint32
}

func newAllocator(cfg *Config) allocator {
	return allocator{labels: newNumbers(cfg.FirstLabel, cfg.LastLabel), meters: newNumbers(flow.CircuitMeters, flow.CircuitMeters+1<<16-1)}
}

// ofMembers calls do for each number that the ends of a circuit have.
func (a *allocator) ofMembers(c *circuit, do func(n *numbers, sw flow.DPID, number uint32)) {
	for i, m := range c.Members {
		sw := c.ends[i].at.Switch
		for _, l := range c.labelsOf(m) {
			do(a.labels, sw, *l)
		}
		for _, meter := range []uint32{m.Meter, m.StormMeter, m.YellowMeter} {
			if meter != 0 {
				do(a.meters, sw, meter)
			}
		}
	}
}

// ofAll calls do for each number that a circuit has at a switch.
func (a *allocator) ofAll(c *circuit, do func(n *numbers, sw flow.DPID, number uint32)) {
	a.ofMembers(c, do)
	for _, arc := range c.arcs() {
		do(a.labels, arc.to, arc.label)
	}
}

// number gives a circuit its number, and its ends those that they had before, or new ones; stormy
// is whether the ends have a meter for what they send to all.
func (a *allocator) number(c, old *circuit, stormy bool, undo *[]func()) (*circuit, error) {
	n := c.copy()
	n.Planned = c.Planned
	had := map[end]*api.CircuitMember{}
	if old != nil {
		n.follow(old)
		n.Id = old.Id
		for i, e := range old.ends {
			had[e] = old.Members[i]
		}
	} else {
		a.lastID++ // for those that follow in the same batch
		n.Id = a.lastID
		*undo = append(*undo, func() { a.lastID = n.Id - 1 })
	}
	lack := func(what, key string, at flow.DPID, by *numbers) error {
		return api.Errorf(codes.ResourceExhausted, "circuit %s: no %s is free at switch %v: all of %d to %d are in use%s", c.Name, what, at, by.first, by.last, key)
	}
	for _, e := range n.ends {
		m := &api.CircuitMember{End: e.String()}
		if h := had[e]; h != nil {
			n.inherit(m, old, h)
		}
		sw := e.at.Switch
		for _, l := range n.labelsOf(m) {
			if *l != 0 {
				continue
			}
			label, ok := a.labels.take(sw)
			if !ok {
				return nil, lack("label", "; delete a circuit, or raise l2vpn.last_label", sw, a.labels)
			}
			*undo = append(*undo, func() { a.labels.give(sw, label) })
			*l = label
		}
		var before api.CircuitMember
		if h := had[e]; h != nil {
			before.Meter, before.StormMeter, before.YellowMeter = h.Meter, h.StormMeter, h.YellowMeter
		}
		for _, x := range []struct {
			wanted bool
			had    uint32
			is     *uint32
			remedy string
		}{
			{stormy, before.StormMeter, &m.StormMeter, ""},
			{n.RateKbps > 0, before.Meter, &m.Meter, "; delete a circuit with a rate"},
			{len(n.yellow) > 0, before.YellowMeter, &m.YellowMeter, "; delete a circuit with a rate"},
		} {
			if *x.is = x.had; !x.wanted {
				*x.is = 0
			} else if x.had == 0 {
				meter, ok := a.meters.take(sw)
				if !ok {
					return nil, lack("meter", x.remedy, sw, a.meters)
				}
				*undo = append(*undo, func() { a.meters.give(sw, meter) })
				*x.is = meter
			}
		}
		n.Members = append(n.Members, m)
	}
	return n, nil
}

// label gives arcs labels.
func (a *allocator) label(c *circuit, arcs []arc, undo *[]func()) (list []*api.CircuitLabel, err error) {
	for _, arc := range arcs {
		label, ok := a.labels.take(arc.to)
		if !ok {
			return nil, api.Errorf(codes.ResourceExhausted, "circuit %s: no label is free at switch %v: all of %d to %d are in use; delete a circuit, or raise l2vpn.last_label",
				c.Name, arc.to, a.labels.first, a.labels.last)
		}
		*undo = append(*undo, func() { a.labels.give(arc.to, label) })
		list = append(list, &api.CircuitLabel{Dpid: arc.to.String(), Label: label, From: arc.from.String(), Leaves: arc.leaves})
	}
	return list, nil
}

// free gives back the numbers of a circuit that its successor does not have, for those
// that follow in the same batch; not those of a tree, which stays until switches have
// another.
func (a *allocator) free(old, now *circuit, undo *[]func()) {
	if old == nil {
		return
	}
	type number struct {
		of *numbers
		sw flow.DPID
		n  uint32
	}
	kept := map[number]bool{}
	if now != nil {
		a.ofAll(now, func(of *numbers, sw flow.DPID, n uint32) { kept[number{of, sw, n}] = true })
		for _, arc := range old.arcs() {
			kept[number{a.labels, arc.to, arc.label}] = true
		}
	}
	a.ofAll(old, func(of *numbers, sw flow.DPID, n uint32) {
		if !kept[number{of, sw, n}] {
			of.give(sw, n)
			*undo = append(*undo, func() { of.mark(sw, n) })
		}
	})
}
