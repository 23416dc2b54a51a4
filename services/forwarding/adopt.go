package forwarding

import (
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// An adopter compares the routes with what switches report of them: it adopts those of
// others, and mends what differs.
type adopter struct {
	*routing
	*portTable
}

// handleRouteReport handles a switch's report of the routes' entries that it has.
func (o *adopter) handleRouteReport(ev *api.FlowsObserved) {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil || ev.Owner != flow.OwnerRoutes.String() {
		return
	}
	now := o.now()
	rep := report{sw: sw, at: now, entries: map[entryAt]action{}}
	var groups map[uint32]flow.Port
	var old, copies []flow.Entry // in a table of a former version, and those of unknown routes
	a := o.adoption
	for _, f := range ev.Flows {
		_, entry, err := f.Entry()
		if err != nil {
			continue
		}
		p, in, ok := pairOf(&entry.Match)
		if !ok || len(entry.Apply) == 0 {
			continue
		}
		known, table := false, o.edge(sw).table.Load()
		o.routes.with(p, func(s *routeShard) { known = s.m[p] != nil })
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
				groups = o.firstBuckets(ev.Dpid)
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
	o.copyFormer(sw, old, copies, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.switches[sw]; t != nil {
		t.at = now
	}
	a.changed = now
	a.reports = append(a.reports, rep)
}

// firstBuckets returns the port of the first bucket of each group of a switch.
func (o *adopter) firstBuckets(dpid string) map[uint32]flow.Port {
	ports := map[uint32]flow.Port{}
	resp, err := o.readGroups(dpid)
	if err != nil {
		o.log.Warn("groups not read", "dpid", dpid, "error", err)
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
func (o *adopter) adopt(now time.Time) {
	a := o.adoption
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
		hops, whole := o.chain(pl)
		r := &route{pair: p, hops: hops, rewrite: pl.rewrite, since: now.Add(-pl.age).UnixNano()}
		astray := whole && !o.hosts.agreeOnEnds(r) // its host moved, or a link was replaced by a host, unseen
		overdue := now.Sub(pl.since) >= adoptWithin
		settled := overdue || quiet >= roundQuiet && o.linksSettled(pl, now)
		switch {
		case o.hosts.holds(p, pl.rewrite) || o.hosts.lacks(p, pl.rewrite) || astray:
			broken[p] = pl // must be removed
		case whole && (settled || !o.cfg.FastFailover): // detours depend on all links
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
		if o.cfg.FastFailover {
			o.protect(o.findPath, r)
		}
		o.routes.with(r.pair, func(s *routeShard) {
			if s.m[r.pair] == nil && !o.hosts.holds(r.pair, r.rewrite) {
				s.put(r)
				o.count.adopted.Add(1)
			}
		})
	}
	if len(kept) > 0 {
		o.log.Info("routes of others adopted", "routes", len(kept))
	}
	o.mend(broken, now)
}

// mend reprograms incomplete routes if it knows where they lead, and removes
// what remains of others. Only the owner of a pair does so; it may know better
// than another that a route is whole, which then looks at it again.
func (o *adopter) mend(broken map[pair]*pool, now time.Time) {
	d := &flow.Decision{}
	var events []*api.RouteChanged
	for p, pl := range broken {
		if !o.replicas.owns(p) {
			o.adoption.askSwitchesAgain(pl, now)
			continue
		}
		remains := pl.route(p)
		var r *route
		if from, to, known := o.endsOf(p, pl); known && !o.hosts.holds(p, pl.rewrite) && !o.hosts.lacks(p, pl.rewrite) {
			r, _ = o.compute(o.findPath, p, from, to, pl.rewrite)
		}
		if r == nil {
			o.count.stale.Add(1)
			o.program.remove(d, remains, nil)
			continue
		}
		r.since, r.sent, r.moved = now.Add(-pl.age).UnixNano(), now.UnixNano(), 1
		r.among = o.replicas.changes.Load()
		stored := false
		o.routes.with(p, func(s *routeShard) {
			if stored = s.m[p] == nil && !o.hosts.holds(p, r.rewrite); stored {
				s.put(r)
			}
		})
		if !stored {
			continue // a packet was faster, or a stage now holds a host
		}
		o.count.rerouted.Add(1)
		o.program.add(d, r, nil, nil)
		o.program.remove(d, remains, r)
		o.share(r)
		events = append(events, &api.RouteChanged{Route: r.message(), Change: "rerouted", Reason: "not whole"})
	}
	if d.Empty() {
		return
	}
	o.log.Info("routes of others mended", "mended", len(events), "removed", len(broken)-len(events))
	if err := o.execute(o.send, d); err != nil {
		o.log.Error("routes not mended", "error", err)
	}
	for _, ev := range events {
		ev.TookUs = uint64(o.now().Sub(now).Microseconds())
		o.publish(ev)
	}
}

// chain orders the hops of a pool from one edge port to another; a link that is
// up connects each hop to the next.
func (o *adopter) chain(pl *pool) (hops []hop, whole bool) {
	at, one := o.ingress(pl)
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
		next, linked := o.links.peerOf(out)
		if !linked {
			// All hops must be in use, except those of detours.
			return hops, o.isEdge(out) && (len(hops) == len(pl.hops) || o.cfg.FastFailover)
		}
		at = hop{sw: next.Switch, in: next.Port}
	}
}

// ingress returns the only hop of a pool that begins at an edge port.
func (o *adopter) ingress(pl *pool) (at hop, one bool) {
	for k := range pl.hops {
		if o.isEdge(flow.Location{Switch: k.sw, Port: k.in}) {
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
func (o *adopter) endsOf(p pair, pl *pool) (from, to flow.Location, known bool) {
	at, one := o.ingress(pl)
	if !one || p.ip.IsValid() && len(pl.rewrite) == 0 {
		return from, to, false
	}
	from = flow.Location{Switch: at.sw, Port: at.in}
	if place, known := o.hosts.place(knownHost{p.src, p.vlan}); known && place != from {
		return from, to, false
	}
	for _, h := range pl.hops {
		if out := (flow.Location{Switch: h.sw, Port: h.out}); o.isEdge(out) {
			if to != (flow.Location{}) && to != out {
				return from, to, false
			}
			to = out
		}
	}
	if at, told := o.hosts.place(receiver(p, pl.rewrite)); told {
		to = at
	}
	return from, to, to != (flow.Location{}) && to != from
}

// linksSettled reports whether all links of a pool are known. They are if
// discovery has settled the role of each of its ports and each link port has a
// known link, or if the switch has been connected for so long that discovery had
// found all links before this instance started. The caller holds the lock.
func (o *adopter) linksSettled(pl *pool, now time.Time) bool {
	for _, h := range pl.hops {
		t := o.adoption.switches[h.sw]
		found := t != nil && !t.began.IsZero() && now.Sub(t.began) > adoptWithin
		for _, port := range []flow.Port{h.in, h.out} {
			at := flow.Location{Switch: h.sw, Port: port}
			p := o.edge(at.Switch)
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
			if _, linked := o.links.peerOf(at); !linked {
				return false
			}
		}
	}
	return true
}
