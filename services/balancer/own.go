package balancer

import (
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Clients may have members' own addresses. Connections there that scp leads here, by a cookie
// that names a VIP of the member (flow.OwnAddressCookie), are given to the members of that VIP as
// those to the VIP are, and switches rewrite their packets both ways. A client has one member for
// all of them if the VIP has pairs; yet each connection has entries of its own, for the client may
// have several own addresses, or the VIP, by which it reaches the same member.

// servedTime is how long it counts that a client has had a member.
const servedTime = int64(24 * time.Hour)

// served is a client that has had a member by way of a VIP of scp's.
type served struct {
	client netip.Addr
	member netip.AddrPort
}

// mostServed bounds what is known of that.
const mostServed = 100_000

// serves notes that a client has a member.
func (t *connections) serves(x served, now int64) {
	if _, known := t.served[x]; !known && len(t.served) >= mostServed {
		for old := range t.served { // any
			delete(t.served, old)
			break
		}
	}
	t.served[x] = now + servedTime
}

// ownAddress handles what a client sends to the own address of a member of a VIP. What is not for a
// member goes on, as do connections that are older.
func ownAddress(b *balancer, vip string, in *flow.PacketIn, d *flow.Decision, key connKey) flow.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, t := b.vips.Get(vip), b.tracker
	if v == nil || v.at.proto != key.proto || v.member(key.to) == nil || !b.net.rewrites(in.Switch) {
		return flow.Next
	}
	c, first, opening := t.by[key], false, opens(in)
	if c != nil && opening && (c.kind == direct || c.bye != nil) { // the client has ended it, and uses its port again
		t.cut(d, c)
		c = nil
	}
	if c == nil {
		switch known := t.bindings[key]; {
		case opening:
			c, first = t.give(v, key, in), true
		case in.Time < known.until:
			if c = t.giveAgain(v, key, known.to, in.Time); c == nil {
				t.count.stray.Add(1)
				b.net.refuse(in, d)
				return flow.Drop
			}
		default:
			c = t.addTo(direct, key, v.member(key.to), key.to, in.Time)
		}
		if c == nil {
			return flow.Next
		}
	}
	return t.redirect(c, in, d, first)
}

// give returns the connection of a client with the member that it gets in place of the one to
// whose own address it connects. That is one with this itself if there is no other; nil if there
// is no room.
func (t *tracker) give(v *vip, key connKey, in *flow.PacketIn) *conn {
	if !t.hasRoom(v, in.Time) {
		return nil
	}
	client, own := key.client.Addr(), v.member(key.to)
	fits := func(m *member) bool {
		s, ok := t.net.reach(m)
		beside := s.At == flow.Location{Switch: in.Switch, Port: in.Key.InPort} // whose answers need not come to the switch
		return ok && !beside && m.addr.Addr != client && t.backs[backKey{m.key(), redirected.source(key.client), key.proto, key.vlan}] == nil
	}
	m := t.keptBy(v, own, key, in.Time)
	if m == nil || !fits(m) {
		m = v.choose(client, in.Time, fits)
	}
	if m == nil {
		return t.addTo(direct, key, own, key.to, in.Time)
	}
	m.total++
	t.count.begun.Add(1)
	if pair := v.pairKey(key); v.paired && t.by[pair] == nil {
		x := t.bindings[pair]
		if x.to != m.key() {
			x = binding{to: m.key()}
		}
		x.until = max(x.until, in.Time+lasting*int64(v.idle)*int64(time.Second))
		t.bindings.put(pair, x, t.cfg.Load().Connections)
	}
	return t.add(redirected, key, m, m.key(), t.nextID(), in.Time)
}

// keptBy returns the member that a client has already: the one to whose own address it connects, if
// it has had that, for it may follow a Location; else that of its pair. It returns nil if there is
// none that serves.
func (t *tracker) keptBy(v *vip, own *member, key connKey, now int64) *member {
	if now < t.served[served{key.client.Addr(), own.key()}] && own.serves() {
		return own
	}
	pair := v.pairKey(key)
	if p := t.by[pair]; p != nil {
		if !p.split && p.m.serves() {
			return p.m
		}
		return nil
	}
	x := t.bindings[pair]
	busy := now < x.until-(lasting-1)*int64(v.idle)*int64(time.Second)
	if m := v.memberAt(x.to); m != nil && v.paired && now < x.until && (busy || v.keeps(x.bound)) && m.serves() {
		return m
	}
	return nil
}

// giveAgain returns a connection whose entries have ended, with the member that it was with; nil if
// that does not serve any more.
func (t *tracker) giveAgain(v *vip, key connKey, to netip.AddrPort, now int64) *conn {
	m := v.member(to)
	if m == nil || m.wish == rest || m.grade() == bad {
		return nil
	}
	if _, ok := t.net.reach(m); !ok {
		return nil
	}
	c := t.addTo(redirected, key, m, to, now)
	if c != nil {
		t.count.recalled.Add(1)
		delete(t.bindings, key)
	}
	return c
}

// redirect sends a packet for a member's own address to the member of its connection; first says
// that it is the connection's first.
func (t *tracker) redirect(c *conn, in *flow.PacketIn, d *flow.Decision, first bool) flow.Verdict {
	at, ok := t.net.reach(c.m)
	switch {
	case !ok && c.to == c.key.to:
		return flow.Next
	case !ok:
		t.count.unreachable.Add(1)
		return flow.Drop
	case c.kind == direct:
		t.install(c, at, in, d)
		return flow.Next
	}
	p := t.backs[c.backKey().pair()]
	if first = first && p != nil && p.kind == paired; first {
		c.addShield(d, in.Switch)
	}
	if !opens(in) {
		c.retiring(t, in, d)
	}
	t.install(c, at, in, d)
	c.rewrite(in, at)
	if first {
		t.again(in, c.m)
	}
	if c.attended() {
		return c.fromClient(t, in, d)
	}
	return flow.Next
}

// abandon cuts a connection whose member serves it no more. What the client of one to a member's own
// address sends next is reset, for it would be taken for one that is older.
func (t *tracker) abandon(d *flow.Decision, c *conn, now int64) {
	if c.kind == redirected {
		t.bindings.put(c.key, binding{until: now + lasting*int64(c.idle)*int64(time.Second)}, t.cfg.Load().Connections)
	}
	t.cut(d, c)
}

// pairKey returns the key of the pair of a client with a VIP.
func (v *vip) pairKey(k connKey) connKey {
	return connKey{netip.AddrPortFrom(k.client.Addr(), 0), netip.AddrPortFrom(v.at.host.Addr, v.at.port), k.proto, k.vlan}
}
