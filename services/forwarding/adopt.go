package forwarding

import (
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// handleRouteReport handles a switch's report of the routes' entries that it has.
func (e *engine) handleRouteReport(ev *api.FlowsObserved) {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil || ev.Owner != flow.OwnerRoutes.String() {
		return
	}
	now := e.now()
	rep := report{sw: sw, at: now, entries: map[entryAt]action{}}
	var groups map[uint32]flow.Port
	var old, copies []flow.Entry // in a table of a former version, and those of unknown routes
	a := e.adoption
	for _, f := range ev.Flows {
		_, entry, err := f.Entry()
		if err != nil {
			continue
		}
		p, in, ok := pairOf(&entry.Match)
		if !ok || len(entry.Apply) == 0 {
			continue
		}
		known, table := false, e.edge(sw).table.Load()
		e.routes.with(p, func(s *routeShard) { known = s.m[p] != nil })
		misplaced := table >= 0 && entry.Table != uint8(table)
		if misplaced {
			old = append(old, entry)
		}
		if known && misplaced {
			continue
		}
		rewrite, last := entry.Apply[:len(entry.Apply)-1], entry.Apply[len(entry.Apply)-1]
		out := flow.Port(last.Arg)
		switch {
		case last.Kind == flow.ActionGroup:
			if groups == nil {
				groups = e.firstBuckets(ev.Dpid)
			}
			out = groups[last.Arg]
		case last.Kind != flow.ActionOutput:
			out = 0
		case out == flow.PortIn:
			out = in
		}
		rep.entries[entryAt{p, in}] = action{rewrite, out}
		if known {
			rep.known = append(rep.known, p)
			continue // left to the audit
		}
		if misplaced {
			copies = append(copies, entry)
		}
		if last.Kind != flow.ActionGroup && last.Kind != flow.ActionOutput {
			continue
		}
		a.mu.Lock()
		pl := a.pools[p]
		if pl == nil {
			pl = &pool{since: now, hops: map[hop]hop{}}
			a.pools[p] = pl
			a.pending.Store(int64(len(a.pools)))
		}
		pl.hops[hop{sw: sw, in: in}] = hop{sw, in, out}
		pl.age = max(pl.age, time.Duration(f.Duration*float64(time.Second)))
		if last.Kind == flow.ActionGroup {
			pl.groups = append(pl.groups, sw)
		}
		if len(rewrite) > 0 {
			pl.rewrite = rewrite
		}
		a.mu.Unlock()
	}
	e.copyFormer(sw, old, copies, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.switches[sw]; t != nil {
		t.at = now
	}
	a.changed = now
	a.reports = append(a.reports, rep)
}

// firstBuckets returns the port of the first bucket of each group of a switch.
func (e *engine) firstBuckets(dpid string) map[uint32]flow.Port {
	ports := map[uint32]flow.Port{}
	resp, err := e.readGroups(dpid)
	if err != nil {
		e.log.Warn("groups not read", "dpid", dpid, "error", err)
		return ports
	}
	for _, g := range resp.Groups {
		if len(g.Buckets) == 0 || len(g.Buckets[0].Actions) == 0 {
			continue
		}
		if p, err := flow.ParsePort(strings.TrimPrefix(g.Buckets[0].Actions[0], "output:")); err == nil {
			ports[g.Id] = p
		}
	}
	return ports
}

// adopt makes routes of the pools. Once all switches have reported, and the
// ports of a pool are settled, an incomplete pool stays incomplete.
func (e *engine) adopt(now time.Time) {
	a := e.adoption
	a.mu.Lock()
	if len(a.pools) == 0 {
		a.mu.Unlock()
		return
	}
	oldest, quiet := a.oldestReport(), now.Sub(a.changed)
	var kept []*route
	broken := map[pair]*pool{}
	for p, pl := range a.pools {
		complete := !oldest.IsZero() && oldest.After(pl.since.Add(-oneRound))
		if !complete && quiet < adoptQuiet {
			continue
		}
		hops, whole := e.chain(pl)
		r := &route{pair: p, hops: hops, rewrite: pl.rewrite, since: now.Add(-pl.age).UnixNano()}
		astray := whole && !e.hosts.agreeOnEnds(r) // its host moved, or a link was replaced by a host, unseen
		overdue := now.Sub(pl.since) >= adoptWithin
		settled := overdue || quiet >= roundQuiet && e.linksSettled(pl, now)
		switch {
		case e.hosts.holds(p, pl.rewrite) || e.hosts.lacks(p, pl.rewrite) || astray:
			broken[p] = pl // must be removed
		case whole && (settled || !e.cfg.FastFailover): // detours depend on all links
			kept = append(kept, r)
		case overdue || complete && settled:
			broken[p] = pl
		default:
			continue
		}
		a.dropPool(p)
	}
	a.mu.Unlock()
	for _, r := range kept {
		if e.cfg.FastFailover {
			e.protect(e.findPath, r)
		}
		e.routes.with(r.pair, func(s *routeShard) {
			if s.m[r.pair] == nil && !e.hosts.holds(r.pair, r.rewrite) {
				s.put(r)
				e.count.adopted.Add(1)
			}
		})
	}
	if len(kept) > 0 {
		e.log.Info("routes of others adopted", "routes", len(kept))
	}
	e.mend(broken, now)
}

// mend reprograms incomplete routes if it knows where they lead, and removes
// what remains of others. Only the owner of a pair does so; it may know better
// than another that a route is whole, which then looks at it again.
func (e *engine) mend(broken map[pair]*pool, now time.Time) {
	d := &flow.Decision{}
	var events []*api.RouteChanged
	for p, pl := range broken {
		if !e.replicas.owns(p) {
			e.adoption.askSwitchesAgain(pl, now)
			continue
		}
		remains := pl.route(p)
		var r *route
		if from, to, known := e.endsOf(p, pl); known && !e.hosts.holds(p, pl.rewrite) && !e.hosts.lacks(p, pl.rewrite) {
			r, _ = e.compute(e.findPath, p, from, to, pl.rewrite)
		}
		if r == nil {
			e.count.stale.Add(1)
			e.program.remove(d, remains, nil)
			continue
		}
		r.since, r.sent, r.moved = now.Add(-pl.age).UnixNano(), now.UnixNano(), 1
		r.among = e.replicas.changes.Load()
		stored := false
		e.routes.with(p, func(s *routeShard) {
			if stored = s.m[p] == nil && !e.hosts.holds(p, r.rewrite); stored {
				s.put(r)
			}
		})
		if !stored {
			continue // a packet was faster, or a stage now holds a host
		}
		e.count.rerouted.Add(1)
		e.program.add(d, r, nil, nil)
		e.program.remove(d, remains, r)
		e.share(r)
		events = append(events, &api.RouteChanged{Route: r.message(), Change: "rerouted", Reason: "not whole"})
	}
	if d.Empty() {
		return
	}
	e.log.Info("routes of others mended", "mended", len(events), "removed", len(broken)-len(events))
	if err := e.execute(e.send, d); err != nil {
		e.log.Error("routes not mended", "error", err)
	}
	for _, ev := range events {
		ev.TookUs = uint64(e.now().Sub(now).Microseconds())
		e.publish(ev)
	}
}

// chain orders the hops of a pool from one edge port to another; a link that is
// up connects each hop to the next.
func (e *engine) chain(pl *pool) (hops []hop, whole bool) {
	at, one := e.ingress(pl)
	if !one {
		return nil, false
	}
	for {
		h, ok := pl.hops[at]
		if !ok || len(hops) > len(pl.hops) {
			return nil, false
		}
		hops = append(hops, h)
		out := flow.Location{Switch: h.sw, Port: h.out}
		next, linked := e.links.peerOf(out)
		if !linked {
			// All hops must be in use, except those of detours.
			return hops, e.isEdge(out) && (len(hops) == len(pl.hops) || e.cfg.FastFailover)
		}
		at = hop{sw: next.Switch, in: next.Port}
	}
}

// ingress returns the only hop of a pool that begins at an edge port.
func (e *engine) ingress(pl *pool) (at hop, one bool) {
	for k := range pl.hops {
		if e.isEdge(flow.Location{Switch: k.sw, Port: k.in}) {
			if one {
				return hop{}, false
			}
			at, one = k, true
		}
	}
	return at, one
}

// endsOf returns the ports between which an incomplete route led. Packets still
// enter by the first entry, unless the sender is elsewhere; the route ends where
// the receiver is.
func (e *engine) endsOf(p pair, pl *pool) (from, to flow.Location, known bool) {
	at, one := e.ingress(pl)
	if !one || p.ip.IsValid() && len(pl.rewrite) == 0 {
		return from, to, false
	}
	from = flow.Location{Switch: at.sw, Port: at.in}
	if place, known := e.hosts.place(knownHost{p.src, p.vlan}); known && place != from {
		return from, to, false
	}
	for _, h := range pl.hops {
		if out := (flow.Location{Switch: h.sw, Port: h.out}); e.isEdge(out) {
			if to != (flow.Location{}) && to != out {
				return from, to, false
			}
			to = out
		}
	}
	if at, told := e.hosts.place(receiver(p, pl.rewrite)); told {
		to = at
	}
	return from, to, to != (flow.Location{}) && to != from
}

// linksSettled reports whether all links of a pool are known. They are if
// discovery has settled the role of each of its ports and each link port has a
// known link, or if the switch has been connected for so long that discovery had
// found all links before this instance started. The caller holds the lock.
func (e *engine) linksSettled(pl *pool, now time.Time) bool {
	for _, h := range pl.hops {
		t := e.adoption.switches[h.sw]
		found := t != nil && !t.began.IsZero() && now.Sub(t.began) > adoptWithin
		for _, port := range []flow.Port{h.in, h.out} {
			at := flow.Location{Switch: h.sw, Port: port}
			p := e.edge(at.Switch)
			p.mu.Lock()
			connected, up, role := p.connected, p.up[port], p.role[port]
			p.mu.Unlock()
			r, _ := flow.ParsePortRole(role)
			switch {
			case !connected:
				return false
			case !up || r == flow.RoleEdge || r == flow.RoleBlocked || r.OfHybrid():
				continue
			case r == flow.RoleUnsettled: // discovery may just have started
				return false
			case found:
				continue
			}
			if _, linked := e.links.peerOf(at); !linked {
				return false
			}
		}
	}
	return true
}
