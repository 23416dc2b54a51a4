package nat

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
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

// track is the action that begins or continues a connection from inside.
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
	return flow.CT{Commit: true, Zone: g.zone, Table: flow.TableTracked, HasNAT: true, NAT: n}.Action()
}

// guards returns the entries that keep packets from passing a gateway untranslated: of
// hosts inside to those outside, by their Ethernet addresses or in frames to groups, and of
// hosts outside, to all or to link-local addresses. outside is the Ethernet addresses of
// hosts at the port.
func (g *gateway) guards(outside []flow.MAC) (list []flow.Entry) {
	ip, from := g.ip(), g.ip().WithInPort(g.at.Port)
	add := func(priority uint16, next uint8, m flow.Match) {
		list = append(list, flow.Entry{Table: flow.TableTranslate, Priority: priority, Cookie: g.cookie(kindOther), Match: m, Goto: next})
	}
	group := flow.MAC{1}
	groups, local := []netip.Prefix{netip.MustParsePrefix("224.0.0.0/4"), alone(netip.AddrFrom4([4]byte{255, 255, 255, 255}))}, netip.MustParsePrefix("169.254.0.0/16")
	if g.v6() {
		groups, local = []netip.Prefix{netip.MustParsePrefix("ff00::/8")}, netip.MustParsePrefix("fe80::/10")
		for _, t := range []uint8{flow.ICMPv6Solicit, flow.ICMPv6Advert} {
			add(flow.PriorityNATNeighbour, flow.TableForward, from.WithEthDstMasked(group, group).WithICMPv6Type(t))
		}
	}
	add(flow.PriorityNATStray, 0, from.WithEthDstMasked(group, group))
	add(flow.PriorityNATStray, 0, from.WithIPDst(local))
	for _, p := range append(groups, g.inside...) {
		add(flow.PriorityNATGroup, flow.TableForward, ip.WithEthDstMasked(group, group).WithIPDst(p))
	}
	for _, p := range g.inside {
		add(flow.PriorityNATLeak, 0, ip.WithEthDstMasked(group, group).WithIPSrc(p))
		for _, mac := range outside {
			add(flow.PriorityNATLeak, 0, ip.WithEthDst(mac).WithIPSrc(p))
		}
	}
	return list
}

// entries returns the entries of a gateway. reach is the known hosts inside, outside the
// Ethernet addresses of those at its port.
func (g *gateway) entries(reach map[netip.Addr]flow.MAC, outside []flow.MAC) (list []flow.Entry) {
	add := func(table uint8, priority uint16, k kind, m flow.Match, actions ...flow.Action) *flow.Entry {
		list = append(list, flow.Entry{Table: table, Priority: priority, Cookie: g.cookie(k), Match: m, Apply: actions})
		return &list[len(list)-1]
	}
	list = append(list, g.guards(outside)...)
	ip := g.ip()
	untracked := ip.WithoutVLAN().WithCTState(0, flow.CTTracked)
	incoming := untracked.WithInPort(g.at.Port).WithEthDst(g.mac)
	if g.v6() {
		// Neighbours that check whether the gateway is still there are no traffic
		// to translate: the trap in the table of neighbours takes them.
		for _, t := range []uint8{flow.ICMPv6Solicit, flow.ICMPv6Advert} {
			add(flow.TableTranslate, flow.PriorityNATNeighbour, kindOther, ip.WithoutVLAN().WithEthDst(g.mac).WithICMPv6Type(t)).Goto = flow.TableNeighbours
		}
	}
	again := flow.CT{Zone: g.zone, Table: flow.TableTranslate, HasNAT: true}.Action()
	for _, f := range g.forwards {
		m := incoming.WithIPDst(alone(f.at.Addr()))
		if f.proto == flow.IPProtoTCP {
			m = m.WithTCPDst(f.at.Port())
		} else {
			m = m.WithUDPDst(f.at.Port())
		}
		add(flow.TableTranslate, flow.PriorityNATForward, kindOther, m, flow.CT{Commit: true, Zone: g.zone, Table: flow.TableTranslate, HasNAT: true,
			NAT: flow.NAT{Dst: true, Min: f.to.Addr(), MinPort: f.to.Port()}}.Action())
	}
	for _, p := range prefixes(g.first, g.last) {
		add(flow.TableTranslate, flow.PriorityNATIn, kindOther, incoming.WithIPDst(p), again)
		add(flow.TableTranslate, flow.PriorityNATOwn, kindOther, ip.WithEthDst(g.mac).WithIPDst(p))
	}
	for a, mac := range reach {
		m := ip.WithInPort(g.at.Port).WithIPDst(alone(a)).WithCTZone(g.zone).WithCTState(flow.CTTracked, flow.CTTracked|flow.CTInvalid)
		add(flow.TableTranslate, flow.PriorityNATIn, kindIn, m, flow.SetEthSrc(g.mac), flow.SetEthDst(mac), flow.Action{Kind: flow.ActionDecNwTTL}).Goto = flow.TableForward
	}
	add(flow.TableTranslate, flow.PriorityNATStray, kindOther, ip.WithInPort(g.at.Port).WithEthDst(g.mac))
	for _, p := range g.inside {
		add(flow.TableTranslate, flow.PriorityNATStray, kindOther, ip.WithInPort(g.at.Port).WithIPDst(p))
		add(flow.TableTranslate, flow.PriorityNATOwn, kindOther, ip.WithEthDst(g.mac).WithIPDst(p))
	}
	add(flow.TableTranslate, flow.PriorityNATSelf, kindOther, ip.WithEthDst(g.mac).WithIPDst(alone(g.addr)), flow.Output(flow.PortController))
	if g.hopMAC != (flow.MAC{}) {
		for _, p := range g.inside {
			m := untracked.WithEthDst(g.mac).WithIPSrc(p)
			add(flow.TableTranslate, flow.PriorityNATOut, kindOther, m.WithIPProto(flow.IPProtoTCP), g.track(true))
			add(flow.TableTranslate, flow.PriorityNATOut, kindOther, m.WithIPProto(flow.IPProtoUDP), g.track(true))
			add(flow.TableTranslate, flow.PriorityNATOutICMP, kindOther, m, g.track(false))
		}
		m := ip.WithEthDst(g.mac).WithCTZone(g.zone)
		state := func(set, of uint32) flow.Match { return m.WithCTState(set|flow.CTTracked, of|flow.CTTracked) }
		add(flow.TableTracked, flow.PriorityTrackedInvalid, kindInvalid, state(flow.CTInvalid, flow.CTInvalid))
		add(flow.TableTracked, flow.PriorityTrackedExhausted, kindExhausted, state(flow.CTNew, flow.CTNew|flow.CTSrcNAT))
		add(flow.TableTracked, flow.PriorityTrackedOut, kindOut, state(0, 0), flow.SetEthSrc(g.mac), flow.SetEthDst(g.hopMAC), flow.Action{Kind: flow.ActionDecNwTTL}, flow.Output(g.at.Port))
	}
	return list
}
