package nat

import (
	"net/netip"

	"weft/api"
	"weft/flow"
)

// tableCommitted is where packets go on that the gateway's own ct has tracked,
// with the translation that the switch chose, or without: no free port.
const tableCommitted uint8 = flow.PipelineTables

// The priorities in flow.TableTranslate; higher than the balancer's.
const (
	priorityForward = 30050 // in, by a rule
	priorityIn      = 30040 // in, answers
	priorityStray   = 30030 // everything else from outside to the gateway or inside
	priorityOwn     = 30020 // to the gateway itself, or not to be translated
	priorityOut     = 30010 // out, TCP and UDP
	priorityOutICMP = 30009 // out, what has no ports
)

// kind says, in the low octet of cookies, what an entry counts.
type kind uint8

const (
	kindOther kind = iota
	kindIn
	kindOut
	kindExhausted
	kindInvalid
)

// cookie returns the cookie of a gateway's entries of a kind.
func (g *gateway) cookie(k kind) flow.Cookie {
	return flow.NewCookie(flow.OwnerNAT, 0, uint32(g.zone)<<8|uint32(k))
}

// track is the action that begins, or goes on with, a connection from inside.
func (g *gateway) track(ports bool) flow.Action {
	n := flow.NAT{Src: true, Min: g.first}
	if g.last != g.first {
		n.Max = g.last
	}
	if ports {
		n.MinPort = g.ports[0]
		if g.ports[1] != g.ports[0] {
			n.MaxPort = g.ports[1]
		}
	}
	return flow.CT{Commit: true, Zone: g.zone, Table: tableCommitted, HasNAT: true, NAT: n}.Action()
}

// entries returns the entries of a gateway. reach is the hosts inside that are
// known.
func (g *gateway) entries(reach map[netip.Addr]flow.MAC) []*api.FlowEntry {
	var list []flow.Entry
	add := func(table uint8, priority uint16, k kind, m flow.Match, actions ...flow.Action) *flow.Entry {
		list = append(list, flow.Entry{Table: table, Priority: priority, Cookie: g.cookie(k), Match: m, Apply: actions})
		return &list[len(list)-1]
	}
	ip := flow.Match{}.WithEthType(flow.EthTypeIPv4)
	untracked := ip.WithoutVLAN().WithCTState(0, flow.CTTracked)
	outside := untracked.WithInPort(g.at.Port).WithEthDst(g.mac)
	again := flow.CT{Zone: g.zone, Table: flow.TableTranslate, HasNAT: true}.Action()
	for _, f := range g.forwards {
		m := outside.WithIPv4Dst(netip.PrefixFrom(f.at.Addr(), 32))
		if f.proto == flow.IPProtoTCP {
			m = m.WithTCPDst(f.at.Port())
		} else {
			m = m.WithUDPDst(f.at.Port())
		}
		add(flow.TableTranslate, priorityForward, kindOther, m, flow.CT{Commit: true, Zone: g.zone, Table: flow.TableTranslate, HasNAT: true,
			NAT: flow.NAT{Dst: true, Min: f.to.Addr(), MinPort: f.to.Port()}}.Action())
	}
	for _, p := range prefixes(g.first, g.last) {
		add(flow.TableTranslate, priorityIn, kindOther, outside.WithIPv4Dst(p), again)
		add(flow.TableTranslate, priorityOwn, kindOther, ip.WithEthDst(g.mac).WithIPv4Dst(p))
	}
	for a, mac := range reach {
		m := ip.WithInPort(g.at.Port).WithIPv4Dst(netip.PrefixFrom(a, 32)).WithCTZone(g.zone).WithCTState(flow.CTTracked, flow.CTTracked|flow.CTInvalid)
		add(flow.TableTranslate, priorityIn, kindIn, m, flow.SetEthSrc(g.mac), flow.SetEthDst(mac), flow.Action{Kind: flow.ActionDecNwTTL}).Goto = flow.TableForward
	}
	add(flow.TableTranslate, priorityStray, kindOther, ip.WithInPort(g.at.Port).WithEthDst(g.mac))
	for _, p := range g.inside {
		add(flow.TableTranslate, priorityStray, kindOther, ip.WithInPort(g.at.Port).WithIPv4Dst(p))
		add(flow.TableTranslate, priorityOwn, kindOther, ip.WithEthDst(g.mac).WithIPv4Dst(p))
	}
	add(flow.TableTranslate, priorityOwn+1, kindOther, ip.WithEthDst(g.mac).WithIPv4Dst(netip.PrefixFrom(g.addr, 32)), flow.Output(flow.PortController))
	if g.hopMAC != (flow.MAC{}) {
		for _, p := range g.inside {
			m := untracked.WithEthDst(g.mac).WithIPv4Src(p)
			add(flow.TableTranslate, priorityOut, kindOther, m.WithIPProto(flow.IPProtoTCP), g.track(true))
			add(flow.TableTranslate, priorityOut, kindOther, m.WithIPProto(flow.IPProtoUDP), g.track(true))
			add(flow.TableTranslate, priorityOutICMP, kindOther, m, g.track(false))
		}
		m := ip.WithEthDst(g.mac).WithCTZone(g.zone)
		state := func(set, of uint32) flow.Match { return m.WithCTState(set|flow.CTTracked, of|flow.CTTracked) }
		add(tableCommitted, 30, kindInvalid, state(flow.CTInvalid, flow.CTInvalid))
		add(tableCommitted, 20, kindExhausted, state(flow.CTNew, flow.CTNew|flow.CTSrcNAT))
		add(tableCommitted, 10, kindOut, state(0, 0), flow.SetEthSrc(g.mac), flow.SetEthDst(g.hopMAC), flow.Action{Kind: flow.ActionDecNwTTL}, flow.Output(g.at.Port))
	}
	out := make([]*api.FlowEntry, len(list))
	for i := range list {
		out[i] = api.NewFlowEntry(g.at.Switch, &list[i])
	}
	return out
}

// prefixes returns the networks that make up a range of addresses.
func prefixes(first, last netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for a, z := uint64(number(first)), uint64(number(last)); a <= z; {
		bits := 32
		for bits > 0 && a&(1<<(33-bits)-1) == 0 && a+1<<(33-bits)-1 <= z {
			bits--
		}
		out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}), bits))
		a += 1 << (32 - bits)
	}
	return out
}
