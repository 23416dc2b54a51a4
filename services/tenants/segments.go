package tenants

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// segment returns the VLAN of a network and where it is reached: its ports on
// capable switches, and the ports of hosts that are members by their addresses.
// It is called with mu held.
func (b *store) segment(n *network) *api.Segment {
	m := &api.Segment{Vlan: uint32(n.segment), Tenant: n.said.Tenant, Network: n.said.Name}
	there := map[flow.Location]bool{}
	for _, p := range n.ports {
		if b.links.has(p.at) || b.net.Info(p.at.Switch).Lack(api.NeedTables) != "" {
			continue
		}
		there[p.at] = true
		m.Ports = append(m.Ports, &api.SegmentPort{Dpid: p.at.Switch.String(), Port: uint32(p.at.Port), Tag: uint32(p.vlan)})
	}
	closed := b.closed()
	for _, mac := range n.macs {
		m.Hosts = append(m.Hosts, mac.String())
		host := b.net.Host(nib.HostKey{VLAN: n.segment, MAC: mac})
		if host == nil {
			continue
		}
		h := seenOf(host)
		if there[h.at] || closed[h.at] || b.links.has(h.at) || b.net.Info(h.at.Switch).Lack(api.NeedTables) != "" {
			continue
		}
		there[h.at] = true
		m.Ports = append(m.Ports, &api.SegmentPort{Dpid: h.at.Switch.String(), Port: uint32(h.at.Port), Shared: true})
	}
	slices.SortFunc(m.Ports, func(x, y *api.SegmentPort) int {
		return cmp.Or(cmp.Compare(x.Dpid, y.Dpid), cmp.Compare(x.Port, y.Port))
	})
	return m
}

// closed returns the ports that are members themselves: hosts attached there
// belong to these networks only. It is called with mu held.
func (b *store) closed() map[flow.Location]bool {
	closed := map[flow.Location]bool{}
	for n := range b.networks.All() {
		for _, p := range n.ports {
			closed[p.at] = true
		}
	}
	return closed
}

// segmentsChanged returns the changes of segments since its last call.
func (b *store) segmentsChanged() (list []*api.SegmentChanged) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[uint16]*api.Segment{}
	for n := range b.networks.All() {
		next[n.segment] = b.segment(n)
	}
	for _, v := range slices.Sorted(maps.Keys(b.announced)) {
		if next[v] == nil {
			list = append(list, &api.SegmentChanged{Segment: b.announced[v], Removed: true})
		}
	}
	for _, v := range slices.Sorted(maps.Keys(next)) {
		if old := b.announced[v]; old == nil || !proto.Equal(old, next[v]) {
			list = append(list, &api.SegmentChanged{Segment: next[v]})
		}
	}
	b.announced = next
	return list
}
