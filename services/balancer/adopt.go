package balancer

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// young is the least age of a connection, in nanoseconds, at which missing
// entries count as gone: a switch's report may be older than they are. A switch whose
// report lacks entries that are younger is asked again, the next times later: where
// connections begin all the time, some are always young.
const young = int64(5 * time.Second)

// awayMax is how long the entries of a switch that is away count, in nanoseconds.
const awayMax = int64(10 * time.Minute)

// observed handles a switch's report of the balancer's entries: connections of an
// earlier run continue, and missing entries of this run are found.
func (b *balancer) observed(e *api.FlowsObserved, now int64) {
	if e.GetOwner() != flow.OwnerBalancer.String() {
		return
	}
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.net.datapath(sw)
	at.read, at.told = session{e.GetSince(), e.GetAddress()}, true
	if at.read.since == "" {
		at.read = at.now // former builds give no session
	}
	r := newReport(b.tracker, sw, e.GetFlows(), now)
	r.damaged = b.damaged()
	for _, v := range b.vips.List() {
		if v.lapsedAt(sw, at.now, e.GetFlows(), now) {
			r.lapsed[v.at.host] = true
			b.count.lapsed.Add(float64(v.cutAt(b.tracker, &r.d, sw, now)))
		}
	}
	r.takeEntries()
	if at.again = 0; r.findMissing() {
		at.again = now + young<<at.doubts
		at.doubts = min(at.doubts+1, 4)
	} else {
		at.doubts = 0
	}
	b.out.post(&r.d)
}

// report is a switch's report of the balancer's entries, as it is compared with the
// connections that are known.
type report struct {
	*tracker
	sw      flow.DPID
	now     int64
	entries []reported           // guards last
	guards  map[uint32]seenEntry // by the number of their connection
	seen    map[half]bool
	lapsed  map[place]bool // whose VIPs have lapsed at the switch
	damaged bool           // VIPs may be missing
	d       flow.Decision  // what is to be mended
}

// reported is one entry of a report.
type reported struct {
	seenEntry
	entry flow.Entry
}

// half is one of the entries of a connection.
type half struct {
	c    *conn
	part part
}

func newReport(t *tracker, sw flow.DPID, flows []*api.FlowEntry, now int64) *report {
	r := &report{tracker: t, sw: sw, now: now, guards: map[uint32]seenEntry{}, seen: map[half]bool{}, lapsed: map[place]bool{}}
	for _, f := range flows {
		_, entry, err := f.Entry()
		if err != nil || entry.IdleTimeout == 0 {
			continue
		}
		if o, ok := readEntry(&entry); ok {
			if o.part == guard {
				r.guards[o.id] = o
			}
			r.entries = append(r.entries, reported{o, entry})
		}
	}
	slices.SortStableFunc(r.entries, func(x, y reported) int { return int(x.part) - int(y.part) })
	return r
}

// takeEntries assigns the entries to their connections, and removes those of none.
func (r *report) takeEntries() {
	for i := range r.entries {
		o, entry := r.entries[i].seenEntry, &r.entries[i].entry
		var c *conn
		if entry.Table != flow.TableProxy || o.kind == through || !r.lapsed[o.key.service().host] {
			c = r.adopt(&o)
		}
		moved := c != nil && entry.Table != c.table(o.part)
		if c == nil && (r.damaged || o.later) {
			continue // its virtual address may be one that the state has lost
		}
		if c == nil || moved {
			entry.Match.Normalize()
			removeEntry(&r.d, r.sw, entry.Table, entry.Priority, entry.Match, entry.Cookie)
		}
		switch {
		case c == nil:
			r.count.dropped.Add(1)
			continue
		case moved && o.part == back: // of a former version, which used another table
			c.addBack(&r.d)
		case moved:
			c.addThere(&r.d)
		}
		r.seen[half{c, o.part}] = true
	}
}

// findMissing mends the connections that lack entries here. It reports whether some are too
// young to tell.
func (r *report) findMissing() (late bool) {
	for c := range r.at[r.sw] {
		isThere, isBack := c.there, c.back
		if isThere && c.ingress.Switch == r.sw && !r.seen[half{c, there}] {
			isThere = false
		}
		if isBack && c.egress == r.sw && !r.seen[half{c, back}] {
			isBack = false
		}
		_, has := c.guardMatch()
		unguarded := has && isThere && c.ingress.Switch == r.sw && !r.seen[half{c, guard}]
		if r.now-c.sent < young {
			late = late || unguarded || isThere != c.there || isBack != c.back
			continue
		}
		if unguarded {
			c.addGuard(&r.d)
			c.sent = r.now
		}
		if isThere == c.there && isBack == c.back {
			continue
		}
		c.mark(isThere, isBack)
		if isThere && !isBack && c.kind != through {
			c.addBack(&r.d)
			c.sent = r.now
			c.mark(true, true)
		}
		if !isThere && !isBack {
			c.until = r.now + int64(c.idle)*int64(time.Second)
		}
	}
	return late
}

// adopt assigns an entry on a switch to its connection. It returns nil if the
// connection cannot continue.
func (r *report) adopt(o *seenEntry) *conn {
	c := r.by[o.key]
	switch {
	case o.part == guard:
		return r.guarded(r.sw, o)
	case o.bye:
		return r.farewell(r.sw, o)
	case o.kind == direct && c == nil:
		if x := r.backs[backKey{o.key.client, o.key.to, o.key.proto, o.key.vlan}]; x != nil && x.kind == direct && x.id == o.id {
			c, o.part, o.to = x, back, x.to
		} else if c = r.adoptDirect(o); c == nil {
			o.later = true
			return nil
		}
	case o.kind == aliased && c == nil:
		if c = r.adoptAliased(o); c == nil {
			return nil
		}
	case o.kind == redirected && c == nil:
		if c = r.adoptRedirected(o); c == nil {
			return nil
		}
	case c == nil && o.split:
		o.later = true
		return nil
	case c == nil:
		if c = r.adoptNew(o); c == nil {
			return nil
		}
	}
	switch {
	case c.id != o.id || c.to != o.to && !o.split || c.kind != o.kind:
		return nil
	case o.part == back:
		if c.back && c.egress != r.sw && c.egress != 0 {
			return nil
		}
		if !c.back {
			c.watch = o.watch
		}
		r.place(c, c.ingress, r.sw)
		c.mark(c.there, true)
	default:
		if c.there && c.ingress.Switch != r.sw && c.ingress.Switch != 0 {
			return nil
		}
		r.place(c, flow.Location{Switch: r.sw, Port: c.ingress.Port}, c.egress)
		if !o.split {
			c.mac = o.mac
		}
		if o.watch.on && c.sampled == nil { // of an earlier run; it ends as any other
			c.sampled = &sampled{copies: true, left: max(1, c.m.vip.sample), since: r.now}
			r.samples++
		}
		c.mark(true, c.back)
	}
	return c
}

// adoptNew makes the connection of an entry of an earlier run, nil if it cannot
// continue.
func (r *report) adoptNew(o *seenEntry) *conn {
	v := r.index.Load().vip(o.key.service())
	if v == nil {
		return nil
	}
	m := v.memberAt(o.to)
	if o.kind == through {
		m = v.host
	} else if m == nil && v.responder != nil && v.responder.key() == o.to {
		m = v.responder
	}
	if v.lapse && o.part == back {
		o.later = true // whether its client came by it to the last, only the client's switch knows
		return nil
	}
	if m == nil || m.wish == rest || o.kind != through && m != v.responder && m.grade() == bad || m != v.responder && !v.allow.has(o.key.client.Addr()) || o.kind == paired && !v.paired ||
		o.kind != through && r.backs[o.key.with(o.to)] != nil {
		return nil
	}
	r.stick(v, o.key.client.Addr(), m, r.now)
	c := r.resume(o, m)
	c.split = o.kind == paired && m.wish.drains()
	return c
}

// resume makes the connection of an entry.
func (r *report) resume(o *seenEntry, m *member) *conn {
	c := r.add(o.kind, o.key, m, o.to, o.id, r.now)
	c.sent = r.now
	r.last = max(r.last, o.id)
	r.count.adopted.Add(1)
	return c
}

// adoptDirect makes the direct connection of an entry there; its guard says which
// VIP it is of.
func (r *report) adoptDirect(o *seenEntry) *conn {
	g := r.guards[o.id]
	v := r.index.Load().vip(g.key.service())
	if g.kind != direct || g.key.client != o.key.client || v == nil || v.member(o.to) == nil || r.backs[o.key.with(o.to)] != nil {
		return nil
	}
	return r.resume(o, v.member(o.to))
}

// adoptAliased makes the connection of an entry to the own address of a VIP's member.
func (r *report) adoptAliased(o *seenEntry) *conn {
	if r.backs[backKey{o.to, o.kind.source(o.key.client), o.key.proto, o.key.vlan}] != nil {
		return nil
	}
	for _, v := range r.index.Load().all() {
		if m := v.member(o.to); m != nil && v.paired && v.at.proto == o.key.proto && v.at.host.VLAN == o.key.vlan {
			return r.resume(o, m)
		}
	}
	return nil
}

// adoptRedirected makes the connection of an entry that takes a client from a member's own
// address to a member.
func (r *report) adoptRedirected(o *seenEntry) *conn {
	if r.backs[backKey{o.to, redirected.source(o.key.client), o.key.proto, o.key.vlan}] != nil {
		return nil
	}
	for _, v := range r.index.Load().all() {
		if m := v.member(o.to); m != nil && v.owner == bySCP && v.host == nil && v.at.proto == o.key.proto && v.at.host.VLAN == o.key.vlan {
			if m.wish == rest || m.grade() == bad {
				return nil
			}
			return r.resume(o, m)
		}
	}
	return nil
}

// missed records which switches did not take flow-mods of a decision, because they or
// their master were away: they are to report once more what they have. A new
// master may publish the session as it was, so waiting for a connection is not enough.
func (b *balancer) missed(d *flow.Decision, failures []*api.ApplyFailure, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ask := func(i int) {
		op := d.Ops[i]
		if at := b.net.switches[op.Switch]; at != nil && op.Kind == flow.OpFlow {
			at.again = 1
			if e := d.Flows[op.Index].Entry; e.HardTimeout == gateTime {
				for _, v := range b.vips.List() {
					v.missedGate(op.Switch, e)
				}
			}
		}
	}
	for i := range d.Ops {
		if err != nil {
			ask(i)
		}
	}
	for _, f := range failures {
		if i := int(f.GetOp()); f.GetTransient() && i < len(d.Ops) {
			ask(i)
		}
	}
}
