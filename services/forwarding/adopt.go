package forwarding

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// adoption rebuilds the routes that an earlier run or another instance
// programmed. It joins the entries that switches report, hop by hop, over the
// links that discovery has found. It keeps entries that form a whole route as
// they are. It mends or removes the others once no more reports are expected.
type adoption struct {
	pending atomic.Int64 // len(pools), for the packet path

	mu       sync.Mutex // guards all below
	changed  time.Time  // time of the last link or report
	pools    map[pair]*pool
	switches map[flow.DPID]*switchReport // the connected switches
	reports  []report                    // not audited yet
	former   map[flow.DPID]formerEntries
	again    map[flow.DPID]time.Time // when to ask a switch once more
	askAll   bool
	asked    time.Time
}

// switchReport records when a connected switch reported its entries.
type switchReport struct {
	began   time.Time // begin of its session; zero if unknown
	address string    // address of that session
	noticed time.Time // when this instance noticed the session
	at      time.Time // time of its last report; zero if there is none
}

// pool holds the entries of one route seen so far.
type pool struct {
	since   time.Time
	age     time.Duration // of the first entry
	hops    map[hop]hop   // by switch and ingress port
	groups  []flow.DPID   // where the route has a group
	rewrite []flow.Action
}

const (
	adoptQuiet  = 1500 * time.Millisecond // no news for so long: try, even if reports are missing
	adoptWithin = 15 * time.Second        // then give up
	oneRound    = 5 * time.Second         // reports within it count as of the same time
	roundQuiet  = 500 * time.Millisecond  // no news for so long: the round is over
)

func newAdoption() *adoption {
	return &adoption{pools: map[pair]*pool{}, switches: map[flow.DPID]*switchReport{}, former: map[flow.DPID]formerEntries{}, again: map[flow.DPID]time.Time{}}
}

// notePending restarts the quiet period, because more reports may follow.
func (a *adoption) notePending(now time.Time) {
	a.mu.Lock()
	a.changed = now
	a.mu.Unlock()
}

// expectReport expects a report from a switch that has connected.
func (a *adoption) expectReport(sw flow.DPID, m *api.Switch, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !m.Connected {
		delete(a.switches, sw)
		delete(a.again, sw)
		return
	}
	began, err := time.Parse(time.RFC3339, m.Since)
	if err != nil {
		began = now
	}
	if t := a.switches[sw]; t != nil && t.began.Equal(began) && t.address == m.Address {
		return // the same session, published again: by a new master, which reads nothing
	}
	delete(a.again, sw) // it reports after it has connected
	a.switches[sw] = &switchReport{began: began, address: m.Address, noticed: now}
}

// expectReports expects reports from switches that were asked for one.
func (a *adoption) expectReports(dpids []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.askAll = false
	for _, dpid := range dpids {
		if sw, err := flow.ParseDPID(dpid); err == nil && a.switches[sw] == nil {
			a.switches[sw] = &switchReport{noticed: now}
		}
	}
}

// isSettled reports whether the contents of all switches are known and stable.
func (a *adoption) isSettled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.askAll && len(a.pools) == 0 && (len(a.switches) == 0 || !a.oldestReport().IsZero())
}

// oldestReport returns the time since which every connected switch has reported its
// entries; zero if there is none, or one has not.
func (a *adoption) oldestReport() (at time.Time) {
	first := true
	for _, t := range a.switches {
		if first || t.at.Before(at) {
			at, first = t.at, false
		}
	}
	return at
}

// takePool drops the pool of a pair whose route was just programmed. It returns
// the entries of the pool, which that route replaces, or nil if there are none.
func (a *adoption) takePool(p pair) *route {
	if a.pending.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pl := a.pools[p]
	if pl == nil {
		return nil
	}
	a.dropPool(p)
	return pl.route(p)
}

// yieldPair drops the pool of a pair that another instance programmed or removed.
// It asks the switches that reported entries of the pair again, because some may
// remain.
func (a *adoption) yieldPair(p pair, now time.Time) {
	remains := a.takePool(p)
	if remains == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range remains.hops {
		a.askSwitchAt(h.sw, now.Add(unsure))
	}
}

// askSwitchesAgain asks the switches of a pool once more, after a pause.
func (a *adoption) askSwitchesAgain(pl *pool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range pl.hops {
		a.askSwitchAt(h.sw, now.Add(unsure))
	}
}

// askSwitchAt asks a switch once more at a time, because its report was
// inconclusive. The caller holds the lock.
func (a *adoption) askSwitchAt(sw flow.DPID, at time.Time) {
	if at.After(a.again[sw]) {
		a.again[sw] = at
	}
}

// dropPool forgets a pool.
func (a *adoption) dropPool(p pair) {
	delete(a.pools, p)
	a.pending.Store(int64(len(a.pools)))
}

// route returns the entries of a pool, in no order, insofar as they must be
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
			r.detours[i].out = flow.PortAny // any port: there is a group
			break
		}
	}
	return r
}

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
