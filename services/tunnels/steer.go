package tunnels

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A steer is IP packets of customers that go through a tunnel. Nobody writes to one
// that is in the store.
type steer struct {
	name, tunnel string
	at           flow.DPID // the tunnel's head; 0 before it is admitted
	match        flow.Match
	id           uint32 // in the cookies of its entries
}

// steerFields are those that a steer may match.
var steerFields = []flow.Field{
	flow.FieldInPort, flow.FieldEthSrc, flow.FieldEthType, flow.FieldIPDSCP, flow.FieldIPProto,
	flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldIPv6Src, flow.FieldIPv6Dst,
	flow.FieldTCPSrc, flow.FieldTCPDst, flow.FieldUDPSrc, flow.FieldUDPDst, flow.FieldSCTPSrc, flow.FieldSCTPDst,
}

// readSteer returns what a client wants.
func readSteer(m *api.Steer) (*steer, error) {
	s := &steer{name: m.GetName(), tunnel: m.GetTunnel()}
	if err := api.CheckName("tunnel", s.tunnel); err != nil {
		return nil, err
	}
	var err error
	if m.At != "" {
		if s.at, err = flow.ParseDPID(m.At); err != nil {
			return nil, fmt.Errorf("at: %w", err)
		}
	}
	if s.match, err = flow.ParseMatch(m.Match); err != nil {
		return nil, err
	}
	s.match.Normalize()
	if s.match.Set == 0 {
		return nil, fmt.Errorf("match: empty: say which packets, such as eth_type=0x0800,ipv4_dst=10.64.2.0/24")
	}
	for f := range flow.NumFields {
		if s.match.Set.Has(f) && !slices.Contains(steerFields, f) {
			return nil, fmt.Errorf("match %v: a steer matches in_port, eth_src, eth_type, ip_dscp, ip_proto, addresses, and ports of TCP, UDP and SCTP", f)
		}
	}
	if t := s.match.Key.EthType; s.match.Set.Has(flow.FieldEthType) && t != flow.EthTypeIPv4 && t != flow.EthTypeIPv6 {
		return nil, fmt.Errorf("match eth_type: %#04x: want 0x0800, IPv4, or 0x86dd, IPv6: the node at the end of the tunnel routes nothing else", t)
	}
	return s, nil
}

// parseSteer returns a stored steer.
func parseSteer(m *api.Steer) (*steer, error) {
	s, err := readSteer(m)
	if err == nil && (s.at == 0 || m.Id == 0) {
		err = fmt.Errorf("it has no head or no number")
	}
	if err != nil {
		return nil, err
	}
	s.id = m.Id
	return s, nil
}

// message returns the steer as it is stored.
func (s *steer) message() *api.Steer {
	return &api.Steer{Name: s.name, Tunnel: s.tunnel, At: s.at.String(), Match: s.match.Text(), Id: s.id}
}

// overlaps reports whether some packet is of both steers.
func (s *steer) overlaps(o *steer) bool { return s.at == o.at && s.match.Overlaps(&o.match) }

// A routedPort is a port of a hybrid node, with the way to the node's routing.
type routedPort struct {
	port, internal flow.Port
	mac            flow.MAC // of the routing's interface
}

// routedPorts returns the ports of a node that have one role and whose way to the routing is known, by number.
func routedPorts(node *api.NodeReport, role flow.PortRole) (list []routedPort) {
	for _, p := range node.GetPorts() {
		mac, err := flow.ParseMAC(p.RoutedMac)
		if p.Role == role.String() && p.Internal != 0 && err == nil {
			list = append(list, routedPort{flow.Port(p.Port), flow.Port(p.Internal), mac})
		}
	}
	slices.SortFunc(list, func(a, b routedPort) int { return cmp.Compare(a.port, b.port) })
	return list
}

// The kinds of packets that are steered, and what the tail knows them by.
var nulls = [...]struct {
	etherType uint16
	label     uint32
}{{flow.EthTypeIPv4, flow.ExplicitNullIPv4}, {flow.EthTypeIPv6, flow.ExplicitNullIPv6}}

// entering returns the entries by which the packets of a steer enter the group of its tunnel. Labels of the
// tunnel take over the time to live of this label and count down; that of the packet itself stays, so that
// a tunnel is one hop of the packet's way (the pipe model of RFC 3443).
func (s *steer) entering(ports []routedPort, group uint32) (list []flow.Entry) {
	for _, p := range ports {
		if s.match.Set.Has(flow.FieldInPort) && s.match.Key.InPort != p.port {
			continue
		}
		for _, null := range nulls {
			if s.match.Set.Has(flow.FieldEthType) && s.match.Key.EthType != null.etherType {
				continue
			}
			list = append(list, flow.Entry{Table: flow.TableIngress, Priority: flow.PrioritySteer, Cookie: flow.NewCookie(flow.OwnerSteers, 0, s.id),
				Match: s.match.WithInPort(p.port).WithEthDst(p.mac).WithoutVLAN().WithEthType(null.etherType),
				Apply: []flow.Action{flow.PushMPLS(), flow.SetMPLSLabel(null.label), flow.SetMPLSTTL(flow.CarriedTTL), flow.ToGroup(group)}})
		}
	}
	return list
}

// linkLocal are the IPv6 addresses that are of a link only (RFC 4291 §2.5.6).
var linkLocal = netip.MustParsePrefix("fe80::/10")

// Of neighbour discovery (RFC 4861 §4.3, 4.4).
const (
	neighbourSolicitation  = 135
	neighbourAdvertisement = 136
)

// unsteered returns the entries by which IPv6 packets get to the node of a link that are for that link only.
func unsteered(ports []routedPort) (list []flow.Entry) {
	for _, p := range ports {
		at := flow.Match{}.WithInPort(p.port)
		for _, m := range []flow.Match{
			at.WithICMPv6Type(neighbourSolicitation), at.WithICMPv6Type(neighbourAdvertisement), at.WithEthType(flow.EthTypeIPv6).WithIPDst(linkLocal),
		} {
			list = append(list, flow.Entry{Table: flow.TableIngress, Priority: flow.PrioritySteerNot, Cookie: flow.NewCookie(flow.OwnerSteers, 0, 0),
				Match: m, Apply: []flow.Action{flow.Output(p.internal)}})
		}
	}
	return list
}

// leaving returns the entries by which a node's routing gets steered packets, at the interface of the link by
// which they have come, as if the node before had sent them to it.
func leaving(ports []routedPort) (list []flow.Entry) {
	for _, p := range ports {
		for _, null := range nulls {
			list = append(list, flow.Entry{Table: flow.TableLabels, Priority: flow.PrioritySteered, Cookie: flow.NewCookie(flow.OwnerSteers, 0, 0),
				Match: flow.Match{}.WithInPort(p.port).WithEthType(flow.EthTypeMPLS).WithMPLSLabel(null.label).WithMPLSBOS(1),
				Apply: []flow.Action{flow.SetEthDst(p.mac), flow.PopMPLS(null.etherType), flow.Output(p.internal)}})
		}
	}
	return list
}

// sortedSteers returns steers by name.
func sortedSteers(list []*steer) []*steer {
	return slices.SortedFunc(slices.Values(list), func(a, b *steer) int { return cmp.Compare(a.name, b.name) })
}
