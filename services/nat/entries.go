package nat

import (
	"net/netip"

	"github.com/weft-sdn/weft/api"
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

// entries returns the entries of a gateway. reach is the known hosts inside.
func (g *gateway) entries(reach map[netip.Addr]flow.MAC) []*api.FlowEntry {
	var list []flow.Entry
	add := func(table uint8, priority uint16, k kind, m flow.Match, actions ...flow.Action) *flow.Entry {
		list = append(list, flow.Entry{Table: table, Priority: priority, Cookie: g.cookie(k), Match: m, Apply: actions})
		return &list[len(list)-1]
	}
	ip := g.ip()
	untracked := ip.WithoutVLAN().WithCTState(0, flow.CTTracked)
	outside := untracked.WithInPort(g.at.Port).WithEthDst(g.mac)
	if g.v6() {
		// Neighbours that check whether the gateway is still there are no traffic
		// to translate: the trap in the table of routes takes them.
		for _, t := range []uint8{flow.ICMPv6Solicit, flow.ICMPv6Advert} {
			add(flow.TableTranslate, flow.PriorityNATNeighbour, kindOther, ip.WithoutVLAN().WithEthDst(g.mac).WithICMPv6Type(t)).Goto = flow.TableForward
		}
	}
	again := flow.CT{Zone: g.zone, Table: flow.TableTranslate, HasNAT: true}.Action()
	for _, f := range g.forwards {
		m := outside.WithIPDst(alone(f.at.Addr()))
		if f.proto == flow.IPProtoTCP {
			m = m.WithTCPDst(f.at.Port())
		} else {
			m = m.WithUDPDst(f.at.Port())
		}
		add(flow.TableTranslate, flow.PriorityNATForward, kindOther, m, flow.CT{Commit: true, Zone: g.zone, Table: flow.TableTranslate, HasNAT: true,
			NAT: flow.NAT{Dst: true, Min: f.to.Addr(), MinPort: f.to.Port()}}.Action())
	}
	for _, p := range prefixes(g.first, g.last) {
		add(flow.TableTranslate, flow.PriorityNATIn, kindOther, outside.WithIPDst(p), again)
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
	out := make([]*api.FlowEntry, len(list))
	for i := range list {
		out[i] = api.NewFlowEntry(g.at.Switch, &list[i])
	}
	return out
}
