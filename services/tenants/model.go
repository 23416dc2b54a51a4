package tenants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Bounds of segments and of tenants with a meter.
const (
	segmentMin = 2
	segmentMax = 4094
	metersMax  = 1 << 16
	hostsMax   = 4096 // largest limit of a tenant
)

// network is a parsed and checked virtual network.
type network struct {
	said    *api.TenantNetwork // as stored and listed; read-only
	segment uint16
	ports   []member   // in order
	macs    []flow.MAC // in order
}

// member is a port of a virtual network, and the VLAN of its frames on the wire
// there; 0 is untagged.
type member struct {
	at   flow.Location
	vlan uint16
}

func (m member) String() string {
	if m.vlan == 0 {
		return m.at.String()
	}
	return fmt.Sprintf("%v, VLAN %d", m.at, m.vlan)
}

func (n *network) key() string { return n.said.Tenant + "/" + n.said.Name }

// networkName returns the key of the network of a message, or what is wrong with it.
func networkName(m *api.TenantNetwork) (string, error) {
	return m.GetTenant() + "/" + m.GetName(), cmp.Or(api.CheckName("tenant", m.GetTenant()), api.CheckName("network", m.GetName()))
}

func (n *network) members() int { return len(n.ports) + len(n.macs) }

// readTenant checks a tenant.
func readTenant(m *api.Tenant) (*api.Tenant, error) {
	if m.MaxHosts > hostsMax {
		return nil, fmt.Errorf("max_hosts %d: want at most %d, or 0 for no limit", m.MaxHosts, hostsMax)
	}
	if m.BurstKbit != 0 && m.RateKbps == 0 {
		return nil, fmt.Errorf("burst_kbit %d: needs rate_kbps", m.BurstKbit)
	}
	return m, nil
}

// readNetwork reads and checks a virtual network, and returns it in one form.
func readNetwork(m *api.TenantNetwork) (*network, error) {
	n := &network{said: m}
	if m.Segment != 0 && (m.Segment < segmentMin || m.Segment > segmentMax) {
		return nil, fmt.Errorf("segment %d: want %d to %d, or 0 to have one given", m.Segment, segmentMin, segmentMax)
	}
	n.segment = uint16(m.Segment)
	for _, member := range m.Members {
		if err := n.read(member); err != nil {
			return nil, fmt.Errorf("member %w", err)
		}
	}
	slices.SortFunc(n.ports, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.at.Switch, b.at.Switch), cmp.Compare(a.at.Port, b.at.Port), cmp.Compare(a.vlan, b.vlan))
	})
	slices.SortFunc(n.macs, compareMACs)
	n.ports, n.macs = slices.Compact(n.ports), slices.Compact(n.macs)
	m.Members = nil
	for _, p := range n.ports {
		m.Members = append(m.Members, &api.TenantMember{Dpid: p.at.Switch.String(), Port: uint32(p.at.Port), Vlan: uint32(p.vlan)})
	}
	for _, mac := range n.macs {
		m.Members = append(m.Members, &api.TenantMember{Mac: mac.String()})
	}
	return n, nil
}

// read reads one member.
func (n *network) read(m *api.TenantMember) error {
	if m.GetMac() != "" {
		mac, err := flow.ParseMAC(strings.ToLower(m.Mac))
		if err != nil || mac.Multicast() || mac == (flow.MAC{}) {
			return fmt.Errorf("%q: want the Ethernet address of a host", m.Mac)
		}
		if m.Dpid != "" || m.Port != 0 || m.Vlan != 0 {
			return fmt.Errorf("%s: a member is a host or a port; make them two", mac)
		}
		n.macs = append(n.macs, mac)
		return nil
	}
	sw, err := flow.ParseDPID(m.GetDpid())
	if err != nil {
		return err
	}
	p := member{flow.Location{Switch: sw, Port: flow.Port(m.Port)}, uint16(m.Vlan)}
	if !p.at.Port.Physical() {
		return fmt.Errorf("port %d of switch %v: want 1 to %d", m.Port, sw, uint32(flow.PortMax))
	}
	if m.Vlan > segmentMax {
		return fmt.Errorf("%v: vlan %d: want 1 to %d, or 0 for untagged", p.at, m.Vlan, segmentMax)
	}
	n.ports = append(n.ports, p)
	return nil
}

// clash returns why two networks cannot coexist, nil if they can.
func (n *network) clash(o *network) error {
	if n.segment != 0 && n.segment == o.segment {
		return fmt.Errorf("VLAN %d carries network %s already; leave segment out to have another given", n.segment, o.key())
	}
	for _, mac := range n.macs {
		if slices.Contains(o.macs, mac) {
			return fmt.Errorf("host %v is a member of network %s already; use its ports to tell the two apart", mac, o.key())
		}
	}
	return clashing(n.ports, o.ports, o.key())
}

// clashing returns the conflict between two lists of ports, one of a network and
// one of another: a port has one untagged network, or tagged ones of different
// VLANs.
func clashing(ours, theirs []member, of string) error {
	tagged, untagged := map[member]bool{}, map[flow.Location]bool{}
	any := map[flow.Location]bool{}
	for _, m := range theirs {
		tagged[m], any[m.at] = true, true
		if m.vlan == 0 {
			untagged[m.at] = true
		}
	}
	for _, m := range ours {
		switch {
		case tagged[m]:
			return fmt.Errorf("port %v is a member of network %s already", m, of)
		case untagged[m.at]:
			return fmt.Errorf("port %v is an untagged member of network %s already, and takes no other frames", m.at, of)
		case m.vlan == 0 && any[m.at]:
			return fmt.Errorf("port %v is a tagged member of network %s already, and takes no untagged frames", m.at, of)
		}
	}
	return nil
}

// itself returns what is wrong with the ports of one network.
func (n *network) itself() error {
	for i, m := range n.ports {
		if i > 0 && n.ports[i-1].at == m.at {
			return fmt.Errorf("port %v is a member twice, with different tags; a network has one tag at a port", m.at)
		}
	}
	return nil
}
