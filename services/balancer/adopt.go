package balancer

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// young is the least age of a connection, in nanoseconds, at which missing
// entries count as gone: a switch's report may be older than they are.
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
	type half struct {
		c    *conn
		back bool
	}
	seen := map[half]bool{}
	for _, f := range e.GetFlows() {
		_, entry, err := f.Entry()
		if err != nil || entry.IdleTimeout == 0 {
			continue
		}
		o, ok := readEntry(&entry)
		if !ok {
			continue
		}
		c, moved := b.adopt(sw, &o, now), entry.Table != flow.TableTranslate
		if c == nil && b.damage() != "" {
			continue // its virtual address may be one that the state has lost
		}
		if c == nil || moved {
			entry.Match.Normalize()
			removeEntry(d, sw, entry.Table, entry.Match, entry.Cookie)
		}
		switch {
		case c == nil:
			b.count.dropped.Add(1)
			continue
		case moved && o.back: // of a former version, which used another table
			c.addBack(d)
		case moved:
			c.addThere(d)
		}
		seen[half{c, o.back}] = true
	}
	for c := range b.table.at[sw] {
		if now-c.sent < young {
			continue
		}
		there, back := c.there, c.back
		if there && c.ingress.Switch == sw && !seen[half{c, false}] {
			there = false
		}
		if back && c.egress == sw && !seen[half{c, true}] {
			back = false
		}
		if there == c.there && back == c.back {
			continue
		}
		c.mark(there, back)
		if there && !back {
			c.addBack(d)
			c.sent = now
			c.mark(true, true)
		}
		if !there && !back {
			c.until = now + int64(c.idle)*int64(time.Second)
		}
	}
	b.out.post(d)
}

// seenEntry is a connection's entry, as read back.
type seenEntry struct {
	key  connKey
	to   netip.AddrPort // the member's
	mac  flow.MAC
	back bool
	id   uint32
}

// readEntry reads an entry that the balancer has made for a connection: of the
// way there if it rewrites the destination, of the way back if the source.
func readEntry(e *flow.Entry) (o seenEntry, ok bool) {
	src, dst, proto, vlan, ok := ends(&e.Match)
	if !ok {
		return o, false
	}
	o.id = e.Cookie.ID()
	addr, port := netip.Addr{}, uint16(0)
	for i := range e.Apply {
		a := &e.Apply[i]
		if a.Kind != flow.ActionSetField {
			return o, false
		}
		switch a.Field {
		case flow.FieldEthDst:
			o.mac = flow.MAC(a.Value[:6])
		case flow.FieldIPv4Dst, flow.FieldIPv4Src:
			addr = netip.AddrFrom4([4]byte(a.Value[:4]))
		case flow.FieldIPv6Dst, flow.FieldIPv6Src:
			addr = netip.AddrFrom16(a.Value)
		case flow.FieldTCPDst, flow.FieldTCPSrc, flow.FieldUDPDst, flow.FieldUDPSrc:
			port = binary.BigEndian.Uint16(a.Value[:])
		}
		o.back = o.back || a.Field == flow.FieldIPv4Src || a.Field == flow.FieldIPv6Src
	}
	if !addr.IsValid() {
		return o, false
	}
	if o.back {
		if port == 0 {
			port = src.Port()
		}
		o.key, o.to = connKey{client: dst, to: netip.AddrPortFrom(addr, port), proto: proto, vlan: vlan}, src
		return o, true
	}
	if port == 0 {
		port = dst.Port()
	}
	o.key, o.to = connKey{client: src, to: dst, proto: proto, vlan: vlan}, netip.AddrPortFrom(addr, port)
	return o, true
}

// ends reads the addresses and ports of a match.
func ends(m *flow.Match) (src, dst netip.AddrPort, proto uint8, vlan uint16, ok bool) {
	k := &m.Key
	tcp, udp := flow.FieldTCPSrc.Bit()|flow.FieldTCPDst.Bit(), flow.FieldUDPSrc.Bit()|flow.FieldUDPDst.Bit()
	v4, v6 := flow.FieldIPv4Src.Bit()|flow.FieldIPv4Dst.Bit(), flow.FieldIPv6Src.Bit()|flow.FieldIPv6Dst.Bit()
	if m.Masked != 0 || m.Set&tcp != tcp && m.Set&udp != udp {
		return src, dst, 0, 0, false
	}
	switch {
	case m.Set&v4 == v4:
		src, dst = netip.AddrPortFrom(netip.AddrFrom4(k.IPv4Src), k.TPSrc), netip.AddrPortFrom(netip.AddrFrom4(k.IPv4Dst), k.TPDst)
	case m.Set&v6 == v6:
		src, dst = netip.AddrPortFrom(netip.AddrFrom16(k.IPv6Src), k.TPSrc), netip.AddrPortFrom(netip.AddrFrom16(k.IPv6Dst), k.TPDst)
	default:
		return src, dst, 0, 0, false
	}
	return src, dst, k.IPProto, k.VLAN, true
}

// adopt assigns an entry on a switch to its connection. It returns nil if the
// connection cannot continue. It is called with mu held.
func (b *balancer) adopt(sw flow.DPID, o *seenEntry, now int64) *conn {
	c := b.table.by[o.key]
	if c == nil {
		x := b.index.Load()
		if x == nil || x.fronts[object.In(o.key.to.Addr(), o.key.vlan)] == nil {
			return nil
		}
		at := object.In(o.key.to.Addr(), o.key.vlan)
		v := x.fronts[at].vip(service{at, o.key.to.Port(), o.key.proto})
		if v == nil {
			return nil
		}
		m := v.member(o.to)
		if m == nil && v.at.proto == 0 {
			m = v.member(netip.AddrPortFrom(o.to.Addr(), 0))
		}
		if m == nil || m.wish == rest || b.table.backs[backKey{o.to, o.key.client, o.key.proto, o.key.vlan}] != nil {
			return nil
		}
		c = b.table.add(o.key, m, o.to, o.id, now)
		c.sent = now
		b.table.last = max(b.table.last, o.id)
		b.count.adopted.Add(1)
		b.stick(v, o.key.client.Addr(), m, now)
	}
	switch {
	case c.id != o.id || c.to != o.to:
		return nil
	case o.back:
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
		c.mac = o.mac
		c.mark(true, c.back)
	}
	return c
}

// removed handles the event: an entry of a connection has ended. The connection
// is over when both have ended for lack of packets; the entry of the way back is
// put again while the client still sends.
func (b *balancer) removed(e *api.FlowRemoved, now int64) {
	if e.GetFlow().GetOwner() != flow.OwnerBalancer.String() || e.Flow.GetIdleTimeout() == 0 {
		return
	}
	sw, entry, err := e.Flow.Entry()
	if err != nil || entry.Table != flow.TableTranslate {
		return
	}
	src, dst, proto, vlan, ok := ends(&entry.Match)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	idle := e.GetReason() == "idle_timeout"
	if c := b.table.by[connKey{client: src, to: dst, proto: proto, vlan: vlan}]; c != nil && c.id == entry.Cookie.ID() {
		if c.there && c.ingress.Switch == sw {
			c.mark(false, c.back)
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

// ended forgets a connection without entries: at once if they ended for lack of
// packets, else after its idle time. It is called with mu held.
func (b *balancer) ended(c *conn, idle bool, now int64) {
	switch {
	case c.there || c.back:
	case idle:
		b.table.end(c)
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
		s := b.switches[sw]
		return s != nil && !s.connected && now-s.away > awayMax
	}
	for _, c := range b.table.by {
		if c.there && lost(c.ingress.Switch) || c.back && lost(c.egress) {
			c.mark(c.there && !lost(c.ingress.Switch), c.back && !lost(c.egress))
		}
		if c.there && !c.back && now-c.sent > young {
			if s, ok := b.reach(c.m); ok {
				b.table.place(c, c.ingress, s.At.Switch)
				c.sent = now
				c.addBack(d)
				c.mark(true, true)
			}
		}
		if !c.there && !c.back {
			if c.until == 0 {
				c.until = now + int64(c.idle)*int64(time.Second)
			} else if now >= c.until {
				b.table.end(c)
			}
		}
	}
	for _, v := range b.vips.List() {
		for a, s := range v.stuck {
			if now >= s.until {
				delete(v.stuck, a)
			}
		}
	}
	for p, at := range b.asked {
		if now-at > 2*int64(b.cfg.Load().AskInterval) {
			delete(b.asked, p)
		}
	}
	b.out.post(d)
}
