package tenants

import (
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/policy"
)

// crossMax bounds the entries for every guest at every port of a narrowed network
// on one switch; beyond it, guests are let in only where they are.
const crossMax = 4096

// rules returns the entries and meters that a switch should have.
func (b *store) rules(info *api.Switch) policy.Rules {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return policy.Rules{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.compile(sw, info)
}

// compile returns the entries and meters of a switch. It is called with mu held.
func (b *store) compile(sw flow.DPID, info *api.Switch) policy.Rules {
	if b.networks.Len() == 0 {
		return policy.Rules{}
	}
	if info.Lack(api.NeedTables) != "" {
		return policy.Rules{Flows: b.guards(sw)}
	}
	c := &compiler{store: b, sw: sw, meters: map[uint32]flow.Meter{}, there: map[flow.EntryKey]bool{}}
	closed := map[flow.Port]bool{}
	for _, n := range b.networks.List() {
		guests, narrowed := b.guests(n)
		ours := c.portsOf(n)
		cross := len(ours)*len(guests) <= crossMax
		for _, p := range ours {
			closed[p.at.Port] = true
			if !narrowed {
				c.member(n, p, flow.Match{})
			}
			for _, h := range guests {
				if cross || h.at == p.at {
					c.member(n, p, flow.Match{}.WithEthSrc(h.mac))
				}
			}
		}
		for _, mac := range n.macs {
			c.host(n, mac, !narrowed || among(guests, mac))
		}
		c.add(flow.PriorityTenantGuard, flow.Match{}.WithVLAN(n.segment))
	}
	for _, port := range slices.Sorted(maps.Keys(closed)) {
		c.add(flow.PriorityTenantPort, flow.Match{}.WithInPort(port))
	}
	for _, port := range b.links.of(sw) {
		c.pass(flow.PriorityTenantLink, flow.Match{}.WithInPort(port), 0)
	}
	meters := slices.SortedFunc(maps.Values(c.meters), func(x, y flow.Meter) int { return int(x.ID) - int(y.ID) })
	return policy.Rules{Flows: c.entries, Meters: meters}
}

// guards returns the entries that stop the tags of networks at the edge ports of
// a switch with one table.
func (b *store) guards(sw flow.DPID) (list []flow.Entry) {
	for _, n := range b.networks.List() {
		for _, port := range b.net.PortsWith(sw, flow.RoleEdge) {
			list = append(list, flow.Entry{Priority: flow.PriorityTenantGuard, Match: flow.Match{}.WithInPort(port).WithVLAN(n.segment)})
		}
	}
	return list
}

// compiler makes the entries of one switch.
type compiler struct {
	store   *store
	sw      flow.DPID
	entries []flow.Entry
	meters  map[uint32]flow.Meter
	there   map[flow.EntryKey]bool
}

// portsOf returns the members of a network on the switch, without ports that are
// links.
func (c *compiler) portsOf(n *network) (list []member) {
	for _, p := range n.ports {
		if p.at.Switch == c.sw && !c.store.links.has(p.at) {
			list = append(list, p)
		}
	}
	return list
}

// member lets frames in by a port of a network if they meet narrow.
func (c *compiler) member(n *network, p member, narrow flow.Match) {
	m := narrow.WithInPort(p.at.Port)
	if p.vlan == 0 {
		c.enter(n, flow.PriorityTenantMember, m.WithoutVLAN(), flow.PushVLAN(uint16(flow.EthTypeVLAN)), flow.SetVLAN(n.segment))
		return
	}
	m = m.WithVLAN(p.vlan)
	for _, second := range []uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
		c.add(flow.PriorityTenantDouble, flow.Match{}.WithInPort(p.at.Port).WithVLAN(p.vlan).WithEthType(second))
	}
	if p.vlan == n.segment {
		c.enter(n, flow.PriorityTenantMember, m)
		return
	}
	c.enter(n, flow.PriorityTenantMember, m, flow.SetVLAN(n.segment))
}

// host lets in a host that is a member by its address, or keeps it out.
func (c *compiler) host(n *network, mac flow.MAC, let bool) {
	m := flow.Match{}.WithEthSrc(mac)
	if let {
		c.enter(n, flow.PriorityTenantHost, m.WithoutVLAN(), flow.PushVLAN(uint16(flow.EthTypeVLAN)), flow.SetVLAN(n.segment))
	} else {
		c.add(flow.PriorityTenantHost, m.WithoutVLAN())
	}
	c.add(flow.PriorityTenantOther, m)
}

// enter adds the entry that lets frames into a network, with its tenant's rate.
func (c *compiler) enter(n *network, priority uint16, m flow.Match, actions ...flow.Action) {
	t, meter := c.store.tenants.Get(n.said.Tenant), uint32(0)
	if t.GetRateKbps() != 0 { // nil: another instance is just deleting it
		meter = t.Meter
		c.meters[meter] = meterOf(t)
	}
	c.pass(priority, m, meter, actions...)
}

// meterOf returns the meter of a tenant with a rate; its flags are OFPMF_KBPS,
// OFPMF_BURST and OFPMF_STATS (OpenFlow 1.3.5 §7.3.4.4).
func meterOf(t *api.Tenant) flow.Meter {
	m := flow.Meter{ID: t.Meter, Flags: 1 | 8, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: t.RateKbps, BurstSize: t.BurstKbit}}}
	if t.BurstKbit != 0 {
		m.Flags |= 4
	}
	return m
}

// pass adds an entry that passes packets on to the next table.
func (c *compiler) pass(priority uint16, m flow.Match, meter uint32, actions ...flow.Action) {
	c.put(flow.Entry{Table: flow.TableIngress, Goto: flow.TableFirewall, Priority: priority, Match: m, Meter: meter, Apply: actions})
}

// add adds an entry that drops.
func (c *compiler) add(priority uint16, m flow.Match) {
	c.put(flow.Entry{Table: flow.TableIngress, Priority: priority, Match: m})
}

// put adds an entry unless it is already there.
func (c *compiler) put(e flow.Entry) {
	if !c.there[e.Key()] {
		c.there[e.Key()] = true
		c.entries = append(c.entries, e)
	}
}
