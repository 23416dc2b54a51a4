package balancer

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
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
	d := &flow.Decision{}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.net.datapath(sw)
	at.read, at.told = session{e.GetSince(), e.GetAddress()}, true
	if at.read.since == "" {
		at.read = at.now // former builds give no session
	}
	late := false
	type half struct {
		c    *conn
		part part
	}
	seen := map[half]bool{}
	type read struct {
		seenEntry
		entry flow.Entry
	}
	var list []read
	guards := map[uint32]seenEntry{}
	for _, f := range e.GetFlows() {
		_, entry, err := f.Entry()
		if err != nil || entry.IdleTimeout == 0 {
			continue
		}
		if o, ok := readEntry(&entry); ok {
			if o.part == guard {
				guards[o.id] = o
			}
			list = append(list, read{o, entry})
		}
	}
	slices.SortStableFunc(list, func(x, y read) int { return int(x.part) - int(y.part) }) // guards last
	lapsed := map[place]bool{}
	for _, v := range b.vips.List() {
		if v.lapsedAt(sw, at.now, e.GetFlows(), now) {
			lapsed[v.at.host] = true
			b.count.lapsed.Add(float64(v.cutAt(&b.table, d, sw, now)))
		}
	}
	for i := range list {
		o, entry := list[i].seenEntry, &list[i].entry
		var c *conn
		if entry.Table != flow.TableProxy || o.kind == through || !lapsed[object.In(o.key.to.Addr(), o.key.vlan)] {
			c = b.adopt(sw, &o, guards, now)
		}
		moved := c != nil && entry.Table != c.table(o.part)
		if c == nil && (b.damage() != "" || o.later) {
			continue // its virtual address may be one that the state has lost
		}
		if c == nil || moved {
			entry.Match.Normalize()
			removeEntry(d, sw, entry.Table, entry.Priority, entry.Match, entry.Cookie)
		}
		switch {
		case c == nil:
			b.count.dropped.Add(1)
			continue
		case moved && o.part == back: // of a former version, which used another table
			c.addBack(d)
		case moved:
			c.addThere(d)
		}
		seen[half{c, o.part}] = true
	}
	for c := range b.table.at[sw] {
		isThere, isBack := c.there, c.back
		if isThere && c.ingress.Switch == sw && !seen[half{c, there}] {
			isThere = false
		}
		if isBack && c.egress == sw && !seen[half{c, back}] {
			isBack = false
		}
		_, has := c.guardMatch()
		unguarded := has && isThere && c.ingress.Switch == sw && !seen[half{c, guard}]
		if now-c.sent < young {
			late = late || unguarded || isThere != c.there || isBack != c.back
			continue
		}
		if unguarded {
			c.addGuard(d)
			c.sent = now
		}
		if isThere == c.there && isBack == c.back {
			continue
		}
		c.mark(isThere, isBack)
		if isThere && !isBack && c.kind != through {
			c.addBack(d)
			c.sent = now
			c.mark(true, true)
		}
		if !isThere && !isBack {
			c.until = now + int64(c.idle)*int64(time.Second)
		}
	}
	if at.again = 0; late {
		at.again = now + young<<at.doubts
		at.doubts = min(at.doubts+1, 4)
	} else {
		at.doubts = 0
	}
	b.out.post(d)
}

// adopt assigns an entry on a switch to its connection. It returns nil if the
// connection cannot continue. It is called with mu held.
func (b *balancer) adopt(sw flow.DPID, o *seenEntry, guards map[uint32]seenEntry, now int64) *conn {
	c := b.table.by[o.key]
	switch {
	case o.part == guard:
		return b.adoptGuard(sw, o)
	case o.kind == direct && c == nil:
		if r := b.table.backs[backKey{o.key.client, o.key.to, o.key.proto, o.key.vlan}]; r != nil && r.kind == direct && r.id == o.id {
			c, o.part, o.to = r, back, r.to
		} else if c = b.adoptDirect(o, guards, now); c == nil {
			o.later = true
			return nil
		}
	case o.kind == aliased && c == nil:
		if c = b.adoptAliased(o, now); c == nil {
			return nil
		}
	case c == nil && o.split:
		o.later = true
		return nil
	case c == nil:
		if c = b.adoptNew(o, now); c == nil {
			return nil
		}
	}
	switch {
	case c.id != o.id || c.to != o.to && !o.split || c.kind != o.kind:
		return nil
	case o.part == back:
		if c.back && c.egress != sw && c.egress != 0 {
			return nil
		}
		b.table.place(c, c.ingress, sw)
		c.mark(c.there, true)
	default:
		if c.there && c.ingress.Switch != sw && c.ingress.Switch != 0 {
			return nil
		}
		b.table.place(c, flow.Location{Switch: sw, Port: c.ingress.Port}, c.egress)
		if !o.split {
			c.mac = o.mac
		}
		c.mark(true, c.back)
	}
	return c
}

// adoptNew makes the connection of an entry of an earlier run, nil if it cannot
// continue. It is called with mu held.
func (b *balancer) adoptNew(o *seenEntry, now int64) *conn {
	v := b.index.Load().vip(o.key.service())
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
		o.kind != through && b.table.backs[backKey{o.to, o.key.client, o.key.proto, o.key.vlan}] != nil {
		return nil
	}
	b.stick(v, o.key.client.Addr(), m, now)
	c := b.resume(o, m, now)
	c.split = o.kind == paired && m.wish == drain
	return c
}

// resume makes the connection of an entry. It is called with mu held.
func (b *balancer) resume(o *seenEntry, m *member, now int64) *conn {
	c := b.table.add(o.kind, o.key, m, o.to, o.id, now)
	c.sent = now
	b.table.last = max(b.table.last, o.id)
	b.count.adopted.Add(1)
	return c
}

// adoptDirect makes the direct connection of an entry there; its guard says which
// VIP it is of. It is called with mu held.
func (b *balancer) adoptDirect(o *seenEntry, guards map[uint32]seenEntry, now int64) *conn {
	g := guards[o.id]
	v := b.index.Load().vip(g.key.service())
	if g.kind != direct || g.key.client != o.key.client || v == nil || v.member(o.to) == nil || b.table.backs[backKey{o.to, o.key.client, o.key.proto, o.key.vlan}] != nil {
		return nil
	}
	return b.resume(o, v.member(o.to), now)
}

// adoptAliased makes the connection of an entry to the own address of a VIP's member.
// It is called with mu held.
func (b *balancer) adoptAliased(o *seenEntry, now int64) *conn {
	if b.table.backs[backKey{o.to, o.kind.source(o.key.client), o.key.proto, o.key.vlan}] != nil {
		return nil
	}
	for _, v := range b.vips.List() {
		if m := v.member(o.to); m != nil && v.paired && v.at.proto == o.key.proto && v.at.host.VLAN == o.key.vlan {
			return b.resume(o, m, now)
		}
	}
	return nil
}

// adoptGuard returns the conn of a guard; one that is not known may have ended: its
// guard ends, too. It is called with mu held.
func (b *balancer) adoptGuard(sw flow.DPID, o *seenEntry) *conn {
	o.later = true
	holds := func(c *conn) bool {
		return c != nil && c.id == o.id && c.kind == o.kind && c.ingress.Switch == sw
	}
	k := o.key
	if o.kind == paired {
		if c := b.table.backs[backKey{k.to, k.client, k.proto, k.vlan}]; holds(c) {
			return c
		}
		return nil
	}
	if v := b.index.Load().vip(k.service()); v != nil {
		for _, m := range v.pool {
			if c := b.table.by[connKey{k.client, m.key(), k.proto, k.vlan}]; holds(c) {
				return c
			}
		}
	}
	return nil
}

// removed handles the event: an entry of a connection has ended. The connection
// is over when both have ended for lack of packets; the entry of the way back is
// put again while the client still sends.
func (b *balancer) removed(e *api.FlowRemoved, now int64) {
	if e.GetFlow().GetOwner() != flow.OwnerBalancer.String() || e.Flow.GetIdleTimeout() == 0 {
		return
	}
	sw, entry, err := e.Flow.Entry()
	if err != nil || entry.Table != flow.TableTranslate && entry.Table != flow.TableProxy {
		return
	}
	src, dst, proto, vlan, ok := ends(&entry.Match)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	idle := e.GetReason() == "idle_timeout"
	if entry.Cookie.Generation()&genGuard != 0 {
		b.unguarded(sw, &entry, now)
		return
	}
	if c := b.table.by[connKey{client: src, to: dst, proto: proto, vlan: vlan}]; c != nil && c.id == entry.Cookie.ID() {
		if c.there && entry.Table == c.table(there) && c.ingress.Switch == sw {
			c.mark(false, c.back)
			c.idled = idle
			b.ended(c, idle, now)
		}
		return
	}
	c := b.table.backs[backKey{src, dst, proto, vlan}]
	if c == nil || c.id != entry.Cookie.ID() || !c.back || c.egress != sw {
		return
	}
	c.mark(c.there, false)
	if c.there {
		d := &flow.Decision{}
		c.addBack(d)
		c.sent = now
		c.mark(true, true)
		b.out.post(d)
		return
	}
	b.ended(c, idle, now)
}

// unguarded puts the guard of a connection or a pair that goes on back. It is
// called with mu held.
func (b *balancer) unguarded(sw flow.DPID, e *flow.Entry, now int64) {
	if o, ok := readEntry(e); ok {
		if c := b.adoptGuard(sw, &o); c != nil && c.there {
			d := &flow.Decision{}
			c.addGuard(d)
			c.sent = now
			b.out.post(d)
		}
	}
}

// ended forgets a connection without entries: at once if they ended for lack of
// packets, else after its idle time. It is called with mu held.
func (b *balancer) ended(c *conn, idle bool, now int64) {
	switch {
	case c.there || c.back:
	case idle:
		b.bindings.remember(c, b.cfg.Load().Connections, now)
		b.table.end(c)
		if c.kind == through && c.m.vip.leaves(c.key, now) {
			d := &flow.Decision{}
			b.provoke(d, c)
			b.out.post(d)
		}
	default:
		c.until = now + int64(c.idle)*int64(time.Second)
	}
}

// tidyTick is how often connections are looked through.
const tidyTick = 3 * time.Second

// tidy forgets what is over: connections without entries, those of switches that
// have been away for long, clients' stays. It also puts the way back of an
// earlier run's connections where no switch has reported it.
func (b *balancer) tidy(now int64) {
	d := &flow.Decision{}
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := func(sw flow.DPID) bool {
		s := b.net.switches[sw]
		return s != nil && !s.connected && now-s.away > awayMax
	}
	for _, c := range b.table.by { // what is ended meanwhile may be met, or not
		if c.there && lost(c.ingress.Switch) || c.back && lost(c.egress) {
			c.mark(c.there && !lost(c.ingress.Switch), c.back && !lost(c.egress))
		}
		if c.there && !c.back && c.kind != through && now-c.sent > young {
			if s, ok := b.net.reach(c.m); ok {
				b.table.place(c, c.ingress, s.At.Switch)
				c.sent = now
				c.addBack(d)
				c.mark(true, true)
			}
		}
		if c.kind == through && c.m.vip.takeover && c.m.vip.closed != 0 && now-c.m.vip.closed >= takeoverTime {
			b.table.cut(d, c)
			continue
		}
		if !c.there && !c.back {
			if c.until == 0 {
				c.until = now + int64(c.idle)*int64(time.Second)
			} else if now >= c.until {
				b.bindings.remember(c, b.cfg.Load().Connections, now)
				b.table.end(c)
			}
		} else if c.split {
			b.part(d, c, now)
		}
	}
	b.bindings.expire(now)
	b.seals.expire(now)
	for _, v := range b.vips.List() {
		for a, s := range v.stuck {
			if now >= s.until {
				delete(v.stuck, a)
			}
		}
	}
	b.prober.expire(now)
	b.out.post(d)
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
