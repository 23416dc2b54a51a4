package balancer

import (
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// settling is how long a shadow has connections only, no pairs, in nanoseconds:
// connections that the host has are seen meanwhile, and let through.
const settling = int64(10 * time.Second)

// pairsNow reports whether a VIP has pairs now.
func (v *vip) pairsNow(now int64) bool {
	return v.paired && (v.host == nil || v.closed != 0 && now-v.closed > settling)
}

// shadowed handles packets for the address of a host that VIPs shadow.
func (b *balancer) shadowed(f *front, in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) flow.Verdict {
	k := &in.Key
	if k.IPProto == flow.IPProtoTCP && k.TPDst == probePortFirst && b.answered(in, d, src, dst) {
		return flow.Done
	}
	v := f.vip(service{object.In(dst, k.VLAN), k.TPDst, k.IPProto})
	if v == nil || k.IPProto != flow.IPProtoTCP && k.IPProto != flow.IPProtoUDP {
		return flow.Next
	}
	for _, m := range v.all() {
		if m.addr == object.In(src, k.VLAN) {
			return flow.Next
		}
	}
	b.mu.Lock()
	s, known := b.net.find(v.at.host)
	b.mu.Unlock()
	if known && s.MAC != k.EthDst && in.DstMAC == k.EthDst && in.Dst != (flow.Location{}) {
		return flow.Next // to a router, which sends it on to the host
	}
	return b.balance(in, d, connKey{
		client: netip.AddrPortFrom(src, k.TPSrc), to: netip.AddrPortFrom(dst, k.TPDst), proto: k.IPProto, vlan: k.VLAN,
	})
}

// traps appends a switch's entries of a shadow: what comes in by an edge port for
// the host leads to the controller, but for what its members send; so do the
// answers to checks of members. What has a tag of VLAN 0 is dropped.
func (n *network) traps(v *vip, sw flow.DPID, add func(table uint8, priority uint16, m flow.Match, next uint8, actions ...flow.Action)) {
	if !n.rewrites(sw) {
		return
	}
	to := inVLAN(flow.Match{}.WithIPDst(prefixOf(v.at.host.Addr)), v.at.host.VLAN)
	for _, m := range v.pool {
		if s, ok := n.reach(m); ok && s.At.Switch == sw && v.check.kind.connects() {
			add(flow.TableTranslate, flow.PriorityShadowMember, ports(to.WithIPSrc(prefixOf(m.addr.Addr)), m.checked().Port(), probePortFirst, flow.IPProtoTCP), 0, flow.Output(flow.PortController))
		}
	}
	if v.lapse {
		add(v.table(), flow.PriorityShadowRest, ports(to, 0, v.at.port, v.at.proto), flow.TableForward)
	}
	if n.open(v) {
		return
	}
	tagged := ports(flow.Match{}.WithIPDst(prefixOf(v.at.host.Addr)).WithVLAN(0), 0, v.at.port, v.at.proto)
	to = ports(to, 0, v.at.port, v.at.proto)
	for _, m := range v.all() {
		if m != v.host {
			add(flow.TableTranslate, flow.PriorityShadowMember, to.WithIPSrc(prefixOf(m.addr.Addr)), flow.TableForward)
		}
	}
	for _, p := range n.view.PortsWith(sw, flow.RoleEdge) {
		add(v.table(), flow.PriorityShadow, to.WithInPort(p), 0, flow.Output(flow.PortController))
		if v.at.host.VLAN == 0 { // which the host would get past the VIP
			add(flow.TableTranslate, flow.PriorityShadow, tagged.WithInPort(p), 0)
		}
	}
}
