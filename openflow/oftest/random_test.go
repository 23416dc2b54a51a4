package oftest

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// chance makes rules and packets that have to do with each other: their values
// come from the same few. No packet ever has more than two VLAN tags: what
// it comes with, and where rules may push another, is chosen together.
type chance struct {
	*rand.Rand
	tags                 int // that frames come with at most
	apply, write, bucket bool
}

func newChance(seed uint64) chance {
	c := chance{Rand: rand.New(rand.NewPCG(seed, 7))}
	switch seed % 4 {
	case 0:
		c.tags = 2
	case 1:
		c.tags, c.apply = 1, true
	case 2:
		c.apply, c.write = true, true
	case 3:
		c.apply, c.bucket = true, true
	}
	return c
}

func pick[T any](c chance, list ...T) T { return list[c.IntN(len(list))] }

func (c chance) in(n int) bool { return c.IntN(n) == 0 } // one in n

func (c chance) mac() flow.MAC { return mac(byte(1 + c.IntN(4))) }
func (c chance) ip4() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(c.IntN(2)), byte(1 + c.IntN(4))})
}
func (c chance) ip6() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 13: byte(c.IntN(2)), 15: byte(1 + c.IntN(4))})
}
func (c chance) l4() uint16      { return pick(c, uint16(1000), 1001, 2000, 4096) }
func (c chance) vid() uint16     { return pick(c, uint16(0), 5, 6, 100) }
func (c chance) port() flow.Port { return flow.Port(1 + c.IntN(ovsPorts)) }

// frame returns a frame that carries an identifier behind its end.
func (c chance) frame(id uint32) []byte {
	e := packet.Ether{Dst: c.mac(), Src: c.mac()}
	if c.in(8) {
		e.Dst = flow.Broadcast
	}
	if c.tags > 0 && c.in(2) {
		e.VLAN, e.PCP = flow.VLANPresent|c.vid(), uint8(c.IntN(8))
	}
	ttl := pick(c, uint8(1), 2, 64, 64)
	v4 := packet.IP{Src: c.ip4(), Dst: c.ip4(), TTL: ttl, DSCP: pick(c, uint8(0), 10, 46)}
	v6 := packet.IP{Src: c.ip6(), Dst: c.ip6(), TTL: ttl, DSCP: v4.DSCP}
	payload := []byte("0123456789")[:c.IntN(10)]
	tcp := packet.TCPFields{SrcPort: c.l4(), DstPort: c.l4(), Flags: packet.TCPSyn}
	arp := packet.ARPFields{SenderMAC: e.Src, SenderIP: c.ip4(), TargetMAC: c.mac(), TargetIP: c.ip4()}
	nd := packet.NDFields{SrcMAC: e.Src, SrcIP: v6.Src, DstMAC: e.Dst, DstIP: v6.Dst, Target: c.ip6(), TargetMAC: c.mac()}
	var f []byte
	switch c.IntN(13) {
	case 0, 1:
		f = packet.AppendUDP(nil, e, v4, c.l4(), c.l4(), payload)
	case 2:
		f = packet.AppendUDP(nil, e, v6, c.l4(), c.l4(), payload)
	case 3:
		f = packet.AppendTCP(nil, e, v4, tcp, payload)
	case 4:
		f = packet.AppendTCP(nil, e, v6, tcp, payload)
	case 5:
		f = packet.AppendICMPEcho(nil, e, v4, packet.Echo{Reply: c.in(2), Data: payload})
	case 6:
		f = packet.AppendICMPEcho(nil, e, v6, packet.Echo{Reply: c.in(2), Data: payload})
	case 7:
		f = packet.AppendARPRequest(nil, e.VLAN, arp)
	case 8:
		f = packet.AppendARPReply(nil, e.VLAN, arp)
	case 9:
		f = packet.AppendNDSolicit(nil, e.VLAN, nd)
	case 10:
		f = packet.AppendNDAdvert(nil, e.VLAN, nd)
	case 11:
		f = packet.AppendEthernet(nil, e, flow.EthTypeMPLS)
		f = binary.BigEndian.AppendUint32(f, uint32(16+c.IntN(2))<<12|uint32(c.IntN(8))<<9|1<<8|uint32(ttl))
		f = append(f, packet.AppendUDP(nil, e, packet.IP{Src: v4.Src, Dst: v4.Dst, TTL: 64}, 1000, 2000, payload)[14:]...)
		if e.VLAN != 0 { // the tag that the inner frame had, too
			f = append(f[:22], f[26:]...)
		}
	default:
		f = packet.AppendEthernet(nil, e, 0x88b5)
		f = append(f, payload...)
	}
	if e.VLAN != 0 && c.tags > 1 && c.in(3) { // a second tag
		f, _ = packet.Apply(f, flow.PushVLAN(pick(c, flow.EthTypeVLAN, flow.EthTypeQinQ)))
	}
	return binary.BigEndian.AppendUint32(packet.Pad(f), id)
}

// value returns a value that packets may have in a field.
func (c chance) value(f flow.Field) [16]byte {
	var k flow.Key
	k.InPort, k.Metadata, k.EthDst, k.EthSrc = c.port(), uint64(c.IntN(4)), c.mac(), c.mac()
	k.VLAN, k.VLANPCP = flow.VLANPresent|c.vid(), uint8(c.IntN(8))
	k.IPDSCP, k.IPECN, k.IPv6Label = pick(c, uint8(0), 10, 46), 0, 0
	k.IPv4Src, k.IPv4Dst, k.IPv6Src, k.IPv6Dst = c.ip4().As4(), c.ip4().As4(), c.ip6().As16(), c.ip6().As16()
	k.TPSrc, k.TPDst = c.l4(), c.l4()
	k.ICMPCode, k.ARPOp = 0, uint16(1+c.IntN(2))
	k.ICMPType = pick(c, uint8(0), 8)
	if f == flow.FieldICMPv6Type {
		k.ICMPType = pick(c, uint8(128), 129, 135, 136)
	}
	k.ARPSPA, k.ARPTPA, k.ARPSHA, k.ARPTHA = c.ip4().As4(), c.ip4().As4(), c.mac(), c.mac()
	k.NDTarget, k.NDSLL, k.NDTLL = c.ip6().As16(), c.mac(), c.mac()
	k.MPLSLabel, k.MPLSTC, k.MPLSBOS, k.MPLSTTL = uint32(16+c.IntN(2)), uint8(c.IntN(8)), 1, pick(c, uint8(1), 33, 64)
	k.IPProto = pick(c, flow.IPProtoUDP, flow.IPProtoTCP)
	return k.Get(f)
}

// match returns a match that keeps the rules.
func (c chance) match(table uint8) flow.Match {
	var m flow.Match
	some := func(n int, fields ...flow.Field) {
		for _, f := range fields {
			if !c.in(n) {
				continue
			}
			v := c.value(f)
			if f.Maskable() && c.in(3) {
				m.PutMasked(f, v, c.mask(f))
			} else {
				m.Put(f, v)
			}
		}
	}
	some(3, flow.FieldInPort)
	some(5, flow.FieldEthDst, flow.FieldEthSrc)
	if table > 0 {
		some(3, flow.FieldMetadata)
	}
	switch c.IntN(6) {
	case 0:
		m = m.WithoutVLAN()
	case 1:
		m = m.WithAnyVLAN()
		some(4, flow.FieldVLANPCP)
	case 2:
		m = m.WithVLAN(c.vid())
	}
	switch c.IntN(6) {
	case 0:
		m = m.WithEthType(flow.EthTypeARP)
		some(4, flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldARPSHA, flow.FieldARPTHA)
	case 1:
		m = m.WithEthType(flow.EthTypeMPLS)
		some(3, flow.FieldMPLSLabel, flow.FieldMPLSTC, flow.FieldMPLSBOS, flow.FieldMPLSTTL)
	case 2, 3:
		m = m.WithEthType(flow.EthTypeIPv4)
		some(4, flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldIPDSCP)
		switch c.IntN(4) {
		case 0:
			m = m.WithIPProto(flow.IPProtoUDP)
			some(3, flow.FieldUDPSrc, flow.FieldUDPDst)
		case 1:
			m = m.WithIPProto(flow.IPProtoTCP)
			some(3, flow.FieldTCPSrc, flow.FieldTCPDst)
		case 2:
			m = m.WithIPProto(flow.IPProtoICMP)
			some(3, flow.FieldICMPv4Type, flow.FieldICMPv4Code)
		}
	case 4:
		m = m.WithEthType(flow.EthTypeIPv6)
		some(4, flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldIPDSCP, flow.FieldIPv6FLabel)
		switch c.IntN(4) {
		case 0:
			m = m.WithIPProto(flow.IPProtoUDP)
			some(3, flow.FieldUDPSrc, flow.FieldUDPDst)
		case 1:
			m = m.WithIPProto(flow.IPProtoTCP)
			some(3, flow.FieldTCPSrc, flow.FieldTCPDst)
		case 2:
			m = m.WithIPProto(flow.IPProtoICMPv6)
			switch c.IntN(3) {
			case 0:
				m = m.WithICMPv6Type(flow.ICMPv6Solicit)
				some(3, flow.FieldNDTarget, flow.FieldNDSLL)
			case 1:
				m = m.WithICMPv6Type(flow.ICMPv6Advert)
				some(3, flow.FieldNDTarget, flow.FieldNDTLL)
			}
		}
	}
	return m
}

// mask returns a mask for a field, of a prefix or of any bits.
func (c chance) mask(f flow.Field) (m [16]byte) {
	n := f.Len()
	for i := range m[:n] {
		m[i] = pick(c, byte(0xff), 0xff, 0xff, 0xf0, 0, byte(c.IntN(256)))
	}
	if spare := 8*n - f.Bits(); spare > 0 {
		m[0] &= 0xff >> (spare % 8)
		for i := range spare / 8 {
			m[i] = 0
		}
	}
	return m
}

// rewriting are the fields that actions set.
var rewriting = []flow.Field{
	flow.FieldEthDst, flow.FieldEthSrc, flow.FieldVLAN, flow.FieldVLANPCP, flow.FieldIPDSCP, flow.FieldIPECN,
	flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldTCPSrc, flow.FieldTCPDst, flow.FieldUDPSrc, flow.FieldUDPDst,
	flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldIPv6FLabel, flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA,
	flow.FieldARPSHA, flow.FieldARPTHA, flow.FieldMPLSLabel, flow.FieldMPLSTC,
	flow.FieldICMPv4Type, flow.FieldICMPv6Type, flow.FieldNDTarget, flow.FieldNDSLL, flow.FieldNDTLL,
}

func set(f flow.Field, v [16]byte) flow.Action {
	return flow.Action{Kind: flow.ActionSetField, Field: f, Value: v}
}

// actions returns a list of actions. Those that packets with the headers of h
// cannot have applied are left out but for one in 40 lists; h nil leaves none
// out. At most one pushes a VLAN tag, and that only if push says so.
func (c chance) actions(h *headers, groups []uint32, push bool) (list []flow.Action) {
	strict := h != nil && !c.in(40)
	for range c.IntN(5) {
		var more []flow.Action
		switch c.IntN(12) {
		case 0:
			if !push {
				continue
			}
			// what the new tag says is for the specification to copy, for Open
			// vSwitch to leave zero: both are told
			more = []flow.Action{flow.PushVLAN(pick(c, flow.EthTypeVLAN, flow.EthTypeQinQ)),
				set(flow.FieldVLAN, c.value(flow.FieldVLAN)), set(flow.FieldVLANPCP, c.value(flow.FieldVLANPCP))}
		case 1:
			more = []flow.Action{flow.PopVLAN()}
		case 2:
			// likewise label, class and time to live of a new label
			more = []flow.Action{{Kind: flow.ActionPushMPLS, Arg: uint32(flow.EthTypeMPLS)}, set(flow.FieldMPLSLabel, c.value(flow.FieldMPLSLabel)),
				set(flow.FieldMPLSTC, c.value(flow.FieldMPLSTC)), {Kind: flow.ActionSetMPLSTTL, Arg: 33}}
		case 3:
			more = []flow.Action{{Kind: flow.ActionDecNwTTL}}
			if h != nil && h.mpls() { // in a bucket, Open vSwitch takes it for used up where there is no label
				more[0].Kind = flow.ActionDecMPLSTTL
			}
		case 4:
			more = []flow.Action{{Kind: flow.ActionSetNwTTL, Arg: 9}}
		case 5, 6, 7:
			f := pick(c, rewriting...)
			if h == nil && f == flow.FieldVLAN { // in a bucket, Open vSwitch tags an untagged frame for it
				f = flow.FieldVLANPCP
			}
			more = []flow.Action{set(f, c.value(f))}
		case 8:
			if len(groups) > 0 {
				more = []flow.Action{flow.ToGroup(pick(c, groups...))}
			}
		default:
			more = []flow.Action{flow.Output(pick(c, c.port(), c.port(), c.port(), flow.PortIn, flow.PortFlood, flow.PortAll, flow.PortController))}
		}
		push = push && (len(more) == 0 || more[0].Kind != flow.ActionPushVLAN)
		if strict {
			trial := *h
			ok := true
			for i := range more {
				ok = ok && trial.apply(&more[i])
			}
			if !ok {
				continue
			}
			*h = trial
		}
		list = append(list, more...)
	}
	return list
}

// once makes an action set of a list: it leaves of each kind of action, and of set-fields of each field, the first.
func once(list []flow.Action) (out []flow.Action) {
	seen := map[[2]int]bool{}
	for _, a := range list {
		k := [2]int{int(a.Kind), 0}
		if a.Kind == flow.ActionSetField {
			k[1] = int(a.Field)
		}
		// of a packet-in out of an action set Open vSwitch says table and cookie
		// of the first table, not of the last
		if !seen[k] && a != flow.Output(flow.PortController) {
			out = append(out, a)
		}
		seen[k] = true
	}
	return out
}

// entry returns an entry for one of the first tables; no two are given the
// same priority, for then either might match.
func (c chance) entry(n int, groups []uint32) flow.Entry {
	e := flow.Entry{Table: uint8(c.IntN(4)), Priority: uint16(10 + n), Cookie: flow.Cookie(n)}
	if !c.in(10) {
		e.Match = c.match(e.Table)
	}
	h := matchedHeaders(&e.Match)
	if c.in(2) {
		e.Apply = c.actions(h, groups, c.apply && e.Table == 0)
	}
	if c.in(4) {
		e.Write = once(c.actions(h, groups, c.write))
		e.HasWrite = len(e.Write) > 0
	}
	if len(e.Apply)+len(e.Write) == 0 {
		e.Apply = []flow.Action{flow.Output(c.port())}
	}
	e.Clear = c.in(10)
	if c.in(6) {
		e.Metadata, e.MetaMask = uint64(c.IntN(4)), 3
	}
	if c.in(2) && e.Table < 3 {
		e.Goto = e.Table + 1 + uint8(c.IntN(int(3-e.Table)))
	}
	return e
}

// group returns a group whose buckets lead to ports.
func (c chance) group(id uint32) flow.Group {
	g := flow.Group{ID: id, Kind: pick(c, flow.GroupKindAll, flow.GroupKindIndirect)}
	n := 1
	if g.Kind == flow.GroupKindAll {
		n = c.IntN(4)
	}
	for range n {
		list := append(once(c.actions(nil, nil, c.bucket)), flow.Output(c.port()))
		g.Buckets = append(g.Buckets, flow.Bucket{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: once(list)})
	}
	return g
}

// mustMod encodes a flow-mod.
func mustMod(v openflow.Version, xid uint32, m flow.Mod) []byte {
	return must(v.AppendFlowMod(nil, xid, &m))
}

// fields returns how many fields a match has.
func fields(m *flow.Match) int { return bits.OnesCount64(uint64(m.Set)) }
