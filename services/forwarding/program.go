package forwarding

import "github.com/weft-sdn/weft/flow"

// programmer turns routes into flow-mods. It is plain data.
type programmer struct {
	idle  uint16                // seconds
	table func(flow.DPID) uint8 // table of a switch for routes
}

// cookie returns the cookie of a route's entries. Its number is derived from
// the pair, so it is the same for all instances and in every run: an instance
// that programs a pair overwrites the entries of another one, and adds none
// beside them.
func (p pair) cookie() flow.Cookie { return flow.NewCookie(flow.OwnerRoutes, 0, p.id()) }

// entry appends the entry of one hop. The last hop rewrites; the first asks for
// a flow-removed message, so that an idle route is forgotten.
func (g programmer) entry(d *flow.Decision, r, old *route, i int) {
	h := r.hops[i]
	if len(r.detours) > i && r.detours[i].out != 0 {
		command := flow.Add
		if old.hasGroup(h.sw) {
			command = flow.Modify
		} else { // the switch may have an unknown one and refuse ours
			d.Group(h.sw, flow.GroupMod{Command: flow.Delete, Group: flow.Group{ID: r.id()}})
		}
		d.Group(h.sw, flow.GroupMod{Command: command, Group: r.group(i)})
	}
	e := &d.AddFlow(h.sw).Entry
	g.fill(e, r, h)
	if i == 0 {
		e.Flags = flow.FlagSendRem
	}
	var actions [8]flow.Action
	e.Apply = d.Actions(append(actions[:0], r.actions(i)...)...)
}

func (g programmer) fill(e *flow.Entry, r *route, h hop) {
	e.Table, e.Priority, e.IdleTimeout, e.Cookie, e.Match = g.table(h.sw), flow.PriorityRoute, g.idle, r.cookie(), r.match(h.in)
}

// actions returns the actions of hop i.
func (r *route) actions(i int) []flow.Action {
	h := r.hops[i]
	if i == len(r.hops)-1 {
		return append(append([]flow.Action(nil), r.rewrite...), output(h))
	}
	if len(r.detours) > i && r.detours[i].out != 0 {
		return []flow.Action{flow.ToGroup(r.id())}
	}
	return []flow.Action{output(h)}
}

// output returns the action that sends a packet on. To send it out of its
// ingress port takes a reserved port (OpenFlow 1.3.5 §4.5).
func output(h hop) flow.Action {
	if h.in == h.out {
		return flow.Output(flow.PortIn)
	}
	return flow.Output(h.out)
}

// group returns the fast-failover group of hop i: the next link while it is
// live, else the detour.
func (r *route) group(i int) flow.Group {
	h, alt := r.hops[i], r.detours[i]
	return flow.Group{Kind: flow.GroupKindFastFailover, ID: r.id(), Buckets: []flow.Bucket{
		{WatchPort: h.out, WatchGroup: flow.GroupAny, Actions: []flow.Action{output(h)}},
		{WatchPort: alt.out, WatchGroup: flow.GroupAny, Actions: []flow.Action{output(hop{h.sw, h.in, alt.out})}},
	}}
}

// hasGroup reports whether r, which may be nil, has a group at a switch.
func (r *route) hasGroup(sw flow.DPID) bool {
	if r == nil {
		return false
	}
	for i, alt := range r.detours {
		if alt.out != 0 && r.hops[i].sw == sw {
			return true
		}
	}
	return false
}

// add appends a whole route, egress first; old, which may be nil, is the route
// that it replaces. If release is not nil, add calls it after the egress entry,
// so that the first packet leaves before a second can.
func (g programmer) add(d *flow.Decision, r, old *route, release func()) {
	for i := range r.detours {
		g.addDetour(d, r, i)
	}
	for i := len(r.hops) - 1; i >= 0; i-- {
		g.entry(d, r, old, i)
		if i == len(r.hops)-1 && release != nil {
			release()
		}
	}
}

func (g programmer) addDetour(d *flow.Decision, r *route, i int) {
	hops := r.detours[i].hops
	for k := len(hops) - 1; k >= 0; k-- {
		e := &d.AddFlow(hops[k].sw).Entry
		g.fill(e, r, hops[k])
		if k == len(hops)-1 && hops[k].sw == r.last().sw && hops[k].out == r.last().out {
			e.Apply = d.Actions(append(append([]flow.Action(nil), r.rewrite...), output(hops[k]))...)
		} else {
			e.Apply = d.Actions(output(hops[k]))
		}
	}
}

// keys returns the switches and ports at which r has entries.
func (r *route) keys() map[hop]bool {
	keys := make(map[hop]bool, len(r.hops))
	for _, h := range r.hops {
		keys[hop{sw: h.sw, in: h.in}] = true
	}
	for _, alt := range r.detours {
		for _, h := range alt.hops {
			keys[hop{sw: h.sw, in: h.in}] = true
		}
	}
	return keys
}

// remove appends the deletion of the entries that old has and r, which may be
// nil, does not have, and of groups that are no longer needed.
func (g programmer) remove(d *flow.Decision, old, r *route) {
	var kept map[hop]bool
	groups := map[flow.DPID]bool{}
	if r != nil {
		kept = r.keys()
		for i, alt := range r.detours {
			if alt.out != 0 {
				groups[r.hops[i].sw] = true
			}
		}
	}
	for k := range old.keys() {
		if !kept[k] {
			g.removeHop(d, old.pair, k)
		}
	}
	for i, alt := range old.detours {
		if alt.out != 0 && !groups[old.hops[i].sw] {
			d.Group(old.hops[i].sw, flow.GroupMod{Command: flow.Delete, Group: flow.Group{ID: old.id()}})
		}
	}
}

// removeHops appends the deletion of entries of a pair, except those that r,
// which may be nil, needs.
func (g programmer) removeHops(d *flow.Decision, p pair, list []hop, r *route) {
	var kept map[hop]bool
	if r != nil {
		kept = r.keys()
	}
	for _, h := range list {
		if !kept[hop{sw: h.sw, in: h.in}] {
			g.removeHop(d, p, h)
		}
	}
}

func (g programmer) removeHop(d *flow.Decision, p pair, h hop) {
	m := d.AddFlow(h.sw)
	m.Command = flow.DeleteStrict
	m.Entry.Table, m.Entry.Priority, m.Entry.Cookie, m.Entry.Match = g.table(h.sw), flow.PriorityRoute, p.cookie(), p.match(h.in)
}
