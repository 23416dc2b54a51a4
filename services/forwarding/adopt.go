package forwarding

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// adoption makes routes of what others have programmed, an earlier run or
// another instance: the entries that switches have are put together, hop by hop
// over the links that discovery has found, and what makes a whole route is kept
// as it is. What does not is mended, or removed, once it is clear that nothing
// more is coming.
type adoption struct {
	pending atomic.Int64 // len(pools), for the packet path

	mu       sync.Mutex // guards all below
	changed  time.Time  // when a link or an observation came last
	pools    map[pair]*pool
	switches map[flow.DPID]*told // those that are connected
	reports  []report            // not audited yet
	leaving  map[flow.DPID]leaving
	askAll   bool
	asked    time.Time
}

// told is what is known of a connected switch's telling its entries.
type told struct {
	began   time.Time // its session; zero if that has not been told
	address string    // of that
	noticed time.Time // here
	at      time.Time // it told last; zero if never
}

// pool is the entries of one route that have been seen so far.
type pool struct {
	since   time.Time
	age     time.Duration // of the first entry
	hops    map[hop]hop   // by switch and ingress port
	groups  []flow.DPID   // where the route has a group
	rewrite []flow.Action
}

const (
	adoptQuiet  = 1500 * time.Millisecond // no news for so long: try, although switches have not told
	adoptWithin = 15 * time.Second        // then give up
	oneRound    = 5 * time.Second         // what switches tell within it, they tell of the same time
	roundQuiet  = 500 * time.Millisecond  // no news for so long: the round is over
)

func newAdoption() *adoption {
	return &adoption{pools: map[pair]*pool{}, switches: map[flow.DPID]*told{}, leaving: map[flow.DPID]leaving{}}
}

// news defers the judgement on what has been seen: more may be coming.
func (a *adoption) news(now time.Time) {
	a.mu.Lock()
	a.changed = now
	a.mu.Unlock()
}

// switchChanged expects a switch that has connected to tell its entries.
func (a *adoption) switchChanged(sw flow.DPID, m *api.Switch, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !m.Connected {
		delete(a.switches, sw)
		return
	}
	began, err := time.Parse(time.RFC3339, m.Since)
	if err != nil {
		began = now
	}
	if t := a.switches[sw]; t != nil && t.began.Equal(began) && t.address == m.Address {
		return // the same session, told once more
	}
	a.switches[sw] = &told{began: began, address: m.Address, noticed: now}
}

// expect expects switches to tell their entries that have been asked to.
func (a *adoption) expect(dpids []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.askAll = false
	for _, dpid := range dpids {
		if sw, err := flow.ParseDPID(dpid); err == nil && a.switches[sw] == nil {
			a.switches[sw] = &told{noticed: now}
		}
	}
}

// settled reports whether it is known what the switches have, and what it is.
func (a *adoption) settled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.askAll && len(a.pools) == 0 && (len(a.switches) == 0 || !a.oldest().IsZero())
}

// oldest returns since when every connected switch has told its entries; zero
// if there is none, or one has not.
func (a *adoption) oldest() (at time.Time) {
	first := true
	for _, t := range a.switches {
		if first || t.at.Before(at) {
			at, first = t.at, false
		}
	}
	return at
}

// take leaves a pair to the route that has just been programmed. It returns
// what has been seen of the pair, nil if nothing, for it to be replaced.
func (a *adoption) take(p pair) *route {
	if a.pending.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pl := a.pools[p]
	if pl == nil {
		return nil
	}
	a.drop(p)
	return pl.route(p)
}

// drop forgets a pool.
func (a *adoption) drop(p pair) {
	delete(a.pools, p)
	a.pending.Store(int64(len(a.pools)))
}

// route returns the entries of a pool, in no order, as far as they are to be
// removed.
func (pl *pool) route(p pair) *route {
	r := &route{pair: p, rewrite: pl.rewrite}
	for _, h := range pl.hops {
		r.hops = append(r.hops, h)
	}
	for _, sw := range pl.groups {
		for i, h := range r.hops {
			if h.sw != sw {
				continue
			}
			if r.detours == nil {
				r.detours = make([]detour, len(r.hops))
			}
			r.detours[i].out = flow.PortAny // whichever: there is a group
			break
		}
	}
	return r
}

// observed takes the routes' entries that a switch has.
func (e *engine) observed(ev *api.FlowsObserved) {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil || ev.Owner != flow.OwnerRoutes.String() {
		return
	}
	now := e.now()
	rep := report{sw: sw, at: now, entries: map[entryAt]bool{}}
	var groups map[uint32]flow.Port
	var old, copies []flow.Entry // in a table that a former version used, and those of routes that are not known
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
		rep.entries[entryAt{p, in}] = true
		if known {
			continue // the audit compares
		}
		if misplaced {
			copies = append(copies, entry)
		}
		last := entry.Apply[len(entry.Apply)-1]
		out := flow.Port(last.Arg)
		switch {
		case last.Kind == flow.ActionGroup:
			if groups == nil {
				groups = e.firstBuckets(ev.Dpid)
			}
			out = groups[last.Arg]
		case last.Kind != flow.ActionOutput:
			continue
		case out == flow.PortIn:
			out = in
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
		if len(entry.Apply) > 1 {
			pl.rewrite = entry.Apply[:len(entry.Apply)-1]
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

// adopt makes routes of the pools. As soon as all switches have told what they
// have, and a pool's ports are settled, what is not whole will not become so.
func (e *engine) adopt(now time.Time) {
	a := e.adoption
	a.mu.Lock()
	if len(a.pools) == 0 {
		a.mu.Unlock()
		return
	}
	oldest, quiet := a.oldest(), now.Sub(a.changed)
	var kept []*route
	broken := map[pair]*pool{}
	for p, pl := range a.pools {
		complete := !oldest.IsZero() && oldest.After(pl.since.Add(-oneRound))
		if !complete && quiet < adoptQuiet {
			continue
		}
		hops, whole := e.chain(pl)
		overdue := now.Sub(pl.since) >= adoptWithin
		settled := overdue || quiet >= roundQuiet && e.judged(pl, now)
		switch {
		case e.hosts.holds(p, pl.rewrite):
			broken[p] = pl // to be removed
		case whole && (settled || !e.cfg.FastFailover): // detours are those of all links
			kept = append(kept, &route{pair: p, hops: hops, rewrite: pl.rewrite, since: now.Add(-pl.age).UnixNano()})
		case overdue || complete && settled:
			broken[p] = pl
		default:
			continue
		}
		a.drop(p)
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

// mend programs routes of which something is missing anew, if it is known
// where they lead, and removes what remains of others. It is the owner's.
func (e *engine) mend(broken map[pair]*pool, now time.Time) {
	d := &flow.Decision{}
	var events []*api.RouteChanged
	for p, pl := range broken {
		if !e.replicas.owns(p) {
			continue
		}
		remains := pl.route(p)
		var r *route
		if from, to, known := e.endsOf(p, pl); known && !e.hosts.holds(p, pl.rewrite) {
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
			continue // a packet was faster, or a host is held since
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
	if _, err := e.send(d); err != nil {
		e.log.Error("routes not mended", "error", err)
	}
	for _, ev := range events {
		ev.TookUs = uint64(e.now().Sub(now).Microseconds())
		e.publish(ev)
	}
}

// chain orders the hops of a pool from an edge port to an edge port, each
// connected to the next by a link that is up.
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
		next, linked := e.links.far(out)
		if !linked {
			// All hops must be in use, but for those of detours.
			return hops, e.isEdge(out) && (len(hops) == len(pl.hops) || e.cfg.FastFailover)
		}
		at = hop{sw: next.Switch, in: next.Port}
	}
}

// ingress returns the one hop of a pool that begins at an edge port.
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

// endsOf returns between which ports a route led of which something is
// missing: packets still come in by the first entry; the last may be gone, then
// it is where the receiver is.
func (e *engine) endsOf(p pair, pl *pool) (from, to flow.Location, known bool) {
	at, one := e.ingress(pl)
	if !one || p.ip.IsValid() && len(pl.rewrite) == 0 {
		return from, to, false
	}
	from = flow.Location{Switch: at.sw, Port: at.in}
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

// judged reports whether all that could still become known of the links of a
// pool is known: each of its ports is down, an edge port, or one whose link is
// there; or its switch has been connected for so long that all links had been
// found before this instance was started. It is called with the lock.
func (e *engine) judged(pl *pool, now time.Time) bool {
	for _, h := range pl.hops {
		if t := e.adoption.switches[h.sw]; t != nil && !t.began.IsZero() && now.Sub(t.began) > adoptWithin {
			continue
		}
		for _, port := range []flow.Port{h.in, h.out} {
			at := flow.Location{Switch: h.sw, Port: port}
			p := e.edge(at.Switch)
			p.mu.Lock()
			up, role := p.up[port], p.role[port]
			p.mu.Unlock()
			if !up || role == flow.RoleEdge.String() || role == flow.RoleBlocked.String() {
				continue
			}
			if _, linked := e.links.far(at); !linked {
				return false
			}
		}
	}
	return true
}

// isEdge reports whether a port is an edge port that is up.
func (e *engine) isEdge(at flow.Location) bool {
	p := e.edge(at.Switch)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isEdge(at.Port)
}
