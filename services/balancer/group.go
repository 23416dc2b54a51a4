package balancer

import (
	"net/netip"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	kit "github.com/weft-sdn/weft/policy"
)

// groupFits reports whether a switch may choose members of a VIP by itself. A
// select group keeps no memory: when the pool changes, packets of one connection
// go elsewhere, which only a VIP declared stateless can bear. The group chooses
// by the packet's addresses and ports, in proportion to weights. A bucket sends a
// packet straight out, so all members that serve must be attached to this switch.
func (n *network) groupFits(v *vip, sw flow.DPID) bool {
	d := n.switches[sw]
	if !v.stateless || v.policy != weighted || v.sticky != 0 || v.at.proto == 0 || v.at.host.VLAN != 0 || v.group == 0 ||
		d == nil || !d.connected || !d.rewrites {
		return false
	}
	list := v.serving()
	for _, m := range list {
		if s, ok := n.reach(m); !ok || s.At.Switch != sw {
			return false
		}
	}
	return len(list) > 0
}

// serving returns the members among which a group chooses: those of the lowest
// priority that are not known to be down.
func (v *vip) serving() (list []*member) {
	for _, m := range v.pool {
		if !m.serves() {
			continue
		}
		if len(list) > 0 && m.tier < list[0].tier {
			list = nil
		}
		if len(list) == 0 || m.tier == list[0].tier {
			list = append(list, m)
		}
	}
	return list
}

// rules returns what a switch should have whatever the traffic: the groups of the VIPs whose members it
// chooses, the entries that lead there, and those that make the answers come from
// the VIP; and those by which what is said to VIPs, or claims their addresses, comes
// to the controller.
func (b *balancer) rules(info *api.Switch) (r kit.Rules) {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	owned := map[place]bool{}
	in := func(table uint8, priority uint16, m flow.Match, next uint8, actions ...flow.Action) {
		r.Flows = append(r.Flows, flow.Entry{Table: table, Goto: next, Priority: priority, Match: m, Apply: actions})
	}
	add := func(priority uint16, m flow.Match, next uint8, actions ...flow.Action) {
		in(flow.TableTranslate, priority, m, next, actions...)
	}
	for _, v := range b.vips.List() {
		switch {
		case v.host != nil:
			b.net.traps(v, sw, in)
		case b.net.rewrites(sw) && !owned[v.at.host]:
			owned[v.at.host] = true // several VIPs may have one address
			r.Flows = append(r.Flows, flow.OwnNeighbour(flow.OwnerBalancer, flow.PriorityNeighbourVIP, v.at.host.VLAN, v.mac, v.at.host.Addr)...)
		}
		if !b.net.groupFits(v, sw) {
			continue
		}
		g := flow.Group{Kind: flow.GroupKindSelect, ID: v.group}
		vipAt := netip.AddrPortFrom(v.at.host.Addr, v.at.port)
		for _, m := range v.serving() {
			s, _ := b.net.reach(m)
			g.Buckets = append(g.Buckets, flow.Bucket{
				Weight: uint16(m.weight), WatchPort: flow.PortAny, WatchGroup: flow.GroupAny,
				Actions: append(toMember(nil, s.MAC, m.key(), v.at.port, v.at.proto), flow.Output(s.At.Port)),
			})
		}
		r.Groups = append(r.Groups, g)
		to := flow.Match{}.WithIPDst(prefixOf(v.at.host.Addr)).WithoutVLAN()
		add(flow.PriorityBalancerGroup, ports(to, 0, v.at.port, v.at.proto), 0, flow.ToGroup(v.group))
		for _, m := range v.pool {
			from := flow.Match{}.WithIPSrc(prefixOf(m.addr.Addr)).WithoutVLAN()
			add(flow.PriorityBalancerGroup, ports(from, m.port, 0, v.at.proto), flow.TableForward, fromVip(nil, vipAt, m.port, v.at.proto)...)
			add(flow.PriorityBalancerProbe, ports(from.WithIPDst(prefixOf(v.at.host.Addr)), m.port, 0, v.at.proto), 0, flow.Output(flow.PortController))
		}
	}
	return r
}
