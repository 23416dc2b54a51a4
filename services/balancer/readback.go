package balancer

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// seenEntry is a connection's entry, as read back.
type seenEntry struct {
	kind  kind
	part  part
	split bool
	key   connKey
	to    netip.AddrPort // the member's; not known of what leads to the controller
	mac   flow.MAC
	id    uint32
	bye   bool  // it leads to the controller, for the member retires; the part is not known
	watch watch // of an entry back; there, on says that it copies
	later bool  // it stays where it is though its conn is not known: that may yet be read, or the entry ends by itself
}

// readEntry reads an entry that the balancer has made for a connection or a pair:
// of the way there if it rewrites the destination, of the way back if the source;
// the cookie says what else it may be.
func readEntry(e *flow.Entry) (o seenEntry, ok bool) {
	src, dst, proto, vlan, ok := ends(&e.Match)
	gen := e.Cookie.Generation()
	if o.kind = kind(gen &^ (genGuard | genSeal | genBye | genBound | genWatch)); !ok || !ofConn(e.Cookie) || gen&genSeal != 0 || o.kind >= kinds || (o.kind == paired) != (src.Port() == 0 || dst.Port() == 0) {
		return o, false
	}
	o.id, o.key = e.Cookie.ID(), connKey{client: src, to: dst, proto: proto, vlan: vlan}
	if gen&genGuard != 0 {
		o.part = guard
		return o, o.kind == paired || o.kind == direct
	}
	if o.bye = gen&genBye != 0; o.bye {
		return o, o.kind == tracked || o.kind == redirected
	}
	o.watch = watch{on: gen&genWatch != 0, bound: gen&genBound != 0, left: watchCopies}
	if o.kind == redirected {
		return o, o.readRedirected(e.Apply)
	}
	addr, port := netip.Addr{}, uint16(0)
	for i := range e.Apply {
		a := &e.Apply[i]
		if a.Kind == flow.ActionOutput && flow.Port(a.Arg) == flow.PortController && o.kind == paired && dst.Port() != 0 && !o.watch.on {
			o.split = true
			return o, true
		}
		if a.Kind == flow.ActionOutput && flow.Port(a.Arg) == flow.PortController && o.watch.on {
			continue
		}
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
		if a.Field == flow.FieldIPv4Src || a.Field == flow.FieldIPv6Src || o.kind == aliased && (a.Field == flow.FieldTCPDst || a.Field == flow.FieldUDPDst) {
			o.part = back
		}
	}
	switch {
	case o.kind == aliased && o.part == back:
		o.key, o.to = connKey{netip.AddrPortFrom(dst.Addr(), port), src, proto, vlan}, src
		return o, true
	case o.kind == aliased:
		o.to = dst
		return o, port != 0
	case o.kind == direct || o.kind == through:
		o.to = dst
		return o, true
	case !addr.IsValid():
		return o, false
	case o.part == back:
		if port == 0 {
			port = src.Port()
		}
		o.key, o.to = connKey{client: dst, to: netip.AddrPortFrom(addr, port), proto: proto, vlan: vlan}, src
		return o, true
	}
	if port == 0 {
		port = dst.Port()
	}
	o.to = netip.AddrPortFrom(addr, port)
	return o, true
}

// readRedirected reads the actions of an entry of a redirected connection. Only that of the way
// there gives the client another port, and only that of the way back gives it its own.
func (o *seenEntry) readRedirected(apply []flow.Action) bool {
	src, dst := o.key.client, o.key.to // as they will be
	set := func(a netip.AddrPort, addr netip.Addr, port uint16) netip.AddrPort {
		if addr.IsValid() {
			a = netip.AddrPortFrom(addr, a.Port())
		}
		if port != 0 {
			a = netip.AddrPortFrom(a.Addr(), port)
		}
		return a
	}
	for i := range apply {
		a := &apply[i]
		port := binary.BigEndian.Uint16(a.Value[:])
		switch {
		case a.Kind != flow.ActionSetField:
			return false
		case a.Field == flow.FieldEthDst:
			o.mac = flow.MAC(a.Value[:6])
		case a.Field == flow.FieldIPv4Dst:
			dst = set(dst, netip.AddrFrom4([4]byte(a.Value[:4])), 0)
		case a.Field == flow.FieldIPv4Src:
			src = set(src, netip.AddrFrom4([4]byte(a.Value[:4])), 0)
		case a.Field == flow.FieldIPv6Dst:
			dst = set(dst, netip.AddrFrom16(a.Value), 0)
		case a.Field == flow.FieldIPv6Src:
			src = set(src, netip.AddrFrom16(a.Value), 0)
		case a.Field == flow.FieldTCPDst:
			dst = set(dst, netip.Addr{}, port)
		case a.Field == flow.FieldTCPSrc:
			src = set(src, netip.Addr{}, port)
		}
	}
	switch {
	case redirected.source(o.key.client) == src:
		o.to = dst
	case redirected.source(dst) == o.key.to:
		o.part, o.to = back, o.key.client
		o.key.client, o.key.to = dst, src
	default:
		return false
	}
	return true
}

// ends reads the addresses and ports of a match; of a pair's, one port is 0.
func ends(m *flow.Match) (src, dst netip.AddrPort, proto uint8, vlan uint16, ok bool) {
	k := &m.Key
	tcp, udp := flow.FieldTCPSrc.Bit()|flow.FieldTCPDst.Bit(), flow.FieldUDPSrc.Bit()|flow.FieldUDPDst.Bit()
	v4, v6 := flow.FieldIPv4Src.Bit()|flow.FieldIPv4Dst.Bit(), flow.FieldIPv6Src.Bit()|flow.FieldIPv6Dst.Bit()
	if m.Masked != 0 || m.Set&(tcp|udp) == 0 {
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
