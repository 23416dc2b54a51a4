package balancer

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// opens reports whether a packet may be the first of a connection: of TCP only a
// SYN is.
func opens(in *flow.PacketIn) bool {
	if in.Key.IPProto != flow.IPProtoTCP {
		return true
	}
	t, ok := packet.ParseTCP(in.Data)
	return ok && t.Flags()&(packet.TCPSyn|packet.TCPAck) == packet.TCPSyn
}

// assign returns what a packet for a VIP belongs to: its connection or pair, or
// one that begins with it; nil if the packet is refused.
func (t *tracker) assign(v *vip, key connKey, in *flow.PacketIn) *conn {
	opening := opens(in)
	if c := t.by[key]; c != nil {
		if c.bye == nil || !opening {
			return c
		}
		d := &flow.Decision{} // the client has ended it, and uses its port again
		t.cut(d, c)
		t.out.post(d)
	}
	if !v.allow.has(key.client.Addr()) {
		t.count.notAllowed.Add(1)
		return t.respond(v, key, opening, in.Time)
	}
	if p := t.by[key.pair()]; p != nil {
		taken := t.backs[key.with(p.to)] != nil // by a direct connection from the same port
		switch {
		case opening && (p.split && key.proto == flow.IPProtoTCP || !p.split && taken):
			if c := t.begin(v, tracked, key, in.Time); c != nil {
				return c
			}
			return t.unserved(v, key, opening, in.Time)
		case p.split:
			return t.addTo(tracked, key, p.m, p.to, in.Time)
		case taken:
			t.count.stray.Add(1)
			return nil
		case p.idled && opening && !v.keeps(p.watch.bound) && !p.there:
			d := &flow.Decision{}
			t.retire(d, p, in.Time)
			t.out.post(d)
		default:
			return p
		}
	}
	if c := t.recall(v, key, opening, in.Time); c != nil {
		return c
	}
	as := tracked
	if v.pairsNow(in.Time) && t.net.rewrites(in.Switch) {
		as = paired
	}
	switch {
	case opening:
		if c := t.begin(v, as, key, in.Time); c != nil {
			return c
		}
	case v.policy == hashed || v.stays(key.client.Addr(), in.Time):
		if c := t.begin(v, as, key, in.Time); c != nil { // with the member as before
			return c
		}
	case v.host == nil:
		t.count.stray.Add(1)
		return nil
	}
	if v.takeover && !opening && !t.net.open(v) {
		if !v.goesOn(key, in.Time) {
			t.count.stray.Add(1)
			return nil
		}
		c := t.addTo(through, key, v.host, key.to, in.Time)
		if c != nil {
			c.idle = takeoverIdle
		}
		return c
	}
	return t.unserved(v, key, opening, in.Time)
}

// unserved returns the connection of a client for which no member serves: with the host
// that has the VIP's address, or with the responder; nil if it is refused.
func (t *tracker) unserved(v *vip, key connKey, opening bool, now int64) *conn {
	if v.host != nil {
		return t.addTo(through, key, v.host, key.to, now)
	}
	t.count.refused.Add(1)
	return t.respond(v, key, opening, now)
}

// stays reports whether a client stays with a member that serves.
func (v *vip) stays(client netip.Addr, now int64) bool {
	s, ok := v.stuck[client]
	return ok && now < s.until && s.m.serves()
}

// respond gives the connection of a client that is not served to the responder,
// if there is one; nil is that it is refused.
func (t *tracker) respond(v *vip, key connKey, opening bool, now int64) *conn {
	v.refused++
	if m := v.responder; m != nil && opening && m.addr.Addr != key.client.Addr() {
		if _, ok := t.net.reach(m); ok {
			return t.addTo(tracked, key, m, m.key(), now)
		}
	}
	return nil
}

// addTo makes a connection to a member, nil if there is no room or the member has
// one from the same port of the client.
func (t *tracker) addTo(as kind, key connKey, m *member, to netip.AddrPort, now int64) *conn {
	if !t.hasRoom(m.vip, now) || as != through && t.backs[backKey{to, as.source(key.client), key.proto, key.vlan}] != nil {
		return nil
	}
	return t.add(as, key, m, to, t.nextID(), now)
}

// begin makes a connection or a pair with a chosen member, nil if there is none or
// no room. A client that has another VIP's pair with that member has a connection
// instead: one entry back cannot serve both VIPs.
func (t *tracker) begin(v *vip, as kind, key connKey, now int64) *conn {
	if !t.hasRoom(v, now) {
		return nil
	}
	client := key.client.Addr()
	to := func(m *member) netip.AddrPort {
		if m.port == 0 {
			return netip.AddrPortFrom(m.addr.Addr, key.to.Port())
		}
		return m.key()
	}
	m := v.choose(client, now, func(m *member) bool {
		if m.addr.Addr == client || t.backs[key.with(to(m))] != nil {
			return false
		}
		_, ok := t.net.reach(m)
		return ok
	})
	if m == nil {
		return nil
	}
	m.total++
	t.count.begun.Add(1)
	t.stick(v, client, m, now)
	if as == paired {
		if t.backs[key.with(to(m)).pair()] != nil {
			as = tracked
		} else {
			key = key.pair()
		}
	}
	return t.add(as, key, m, to(m), t.nextID(), now)
}

// recall returns a connection or a pair whose entries have ended, begun again with
// the member that it was with; nil if that is not known or does not serve.
func (t *tracker) recall(v *vip, key connKey, opening bool, now int64) *conn {
	k, known := key, binding{}
	if !opening {
		known = t.bindings[key]
	}
	if v.paired && !known.to.IsValid() {
		k = key.pair()
		if known = t.bindings[k]; opening && !v.keeps(known.bound) {
			return nil
		}
	}
	if !known.to.IsValid() || now >= known.until {
		return nil
	}
	m := v.memberAt(known.to)
	if m == nil || m.wish == rest || opening && m.wish != serve || m.grade() == bad {
		return nil
	}
	if _, ok := t.net.reach(m); !ok || len(t.by) >= t.cfg.Load().Connections {
		return nil
	}
	as := tracked
	if k != key && m.wish == serve && t.backs[key.with(known.to).pair()] == nil {
		as, key = paired, k
	}
	if t.backs[key.with(known.to)] != nil {
		return nil
	}
	delete(t.bindings, k)
	t.count.recalled.Add(1)
	c := t.add(as, key, m, known.to, t.nextID(), now)
	c.watch.bound = known.bound
	return c
}
