package hosts

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// readBinding parses and checks a binding.
func readBinding(m *api.HostBinding) (*binding, error) {
	mac, err := flow.ParseMAC(strings.ToLower(m.GetMac()))
	if err != nil || mac.Multicast() || mac == (flow.MAC{}) {
		return nil, fmt.Errorf("mac %.40q: want the Ethernet address of a host, such as 02:00:00:00:00:01", m.GetMac())
	}
	if m.Vlan > 4094 {
		return nil, fmt.Errorf("vlan %d: want 1 to 4094, or 0 for untagged", m.Vlan)
	}
	if len(m.At) == 0 && len(m.Ips) == 0 {
		return nil, fmt.Errorf("host %v: want a port or an IP address to bind it to", mac)
	}
	if len(m.At) > boundPorts || len(m.Ips) > boundAddresses {
		return nil, fmt.Errorf("host %v: %d ports and %d addresses; want at most %d and %d", mac, len(m.At), len(m.Ips), boundPorts, boundAddresses)
	}
	one := &binding{who: newID(mac, uint16(m.Vlan)), origin: byOperator}
	for _, l := range m.At {
		at, err := readPort(l.GetDpid(), l.GetPort())
		if err != nil {
			return nil, err
		}
		one.at = append(one.at, at)
	}
	for _, s := range m.Ips {
		ip, err := netip.ParseAddr(s)
		e := add(nil, evidence{ip: ip.WithZone("")})
		if err != nil || len(e) == 0 {
			return nil, fmt.Errorf("ip %.40q: want the IPv4 or IPv6 address of a host", s)
		}
		one.ips = append(one.ips, e[0].ip)
	}
	slices.SortFunc(one.at, compareLocations)
	slices.SortFunc(one.ips, netip.Addr.Compare)
	one.at, one.ips = slices.Compact(one.at), slices.Compact(one.ips)
	return one, nil
}

// readPort parses and checks a port of a switch.
func readPort(dpid string, port uint32) (flow.Location, error) {
	sw, err := flow.ParseDPID(dpid)
	if err != nil {
		return flow.Location{}, err
	}
	if at := (flow.Location{Switch: sw, Port: flow.Port(port)}); at.Port.Physical() {
		return at, nil
	}
	return flow.Location{}, fmt.Errorf("port %d of switch %v: want 1 to %d", port, sw, uint32(flow.PortMax))
}

func compareLocations(a, b flow.Location) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
}

// bindHost adds or replaces a binding.
func (t *table) bindHost(now int64, m *api.HostBinding) (*api.HostBinding, error) {
	one, err := readBinding(m)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.bindings.of[one.who]
	switch {
	case old != nil && old.origin == byConfig:
		return nil, api.Errorf(codes.FailedPrecondition, "host %v: hosts.bindings of the configuration has it; change it there", one.who.mac())
	case old == nil && len(t.bindings.of) >= maxBindings:
		return nil, api.Errorf(codes.ResourceExhausted, "there are %d bindings already; delete some", maxBindings)
	}
	if t.owned.macs[one.who.mac()] {
		return nil, api.Errorf(codes.InvalidArgument, "host %v: the address is the network's own", one.who.mac())
	}
	for _, ip := range one.ips {
		if owner, ok := t.bindings.owners.of(ip, one.who.vlan()); ok && owner != one.who {
			return nil, api.Errorf(codes.InvalidArgument, "ip %v: bound to %v already; unbind that first", ip, owner.mac())
		}
		if t.owned.ips[ip] {
			return nil, api.Errorf(codes.InvalidArgument, "ip %v: the address is the network's own", ip)
		}
	}
	same := old != nil && !old.sticky && slices.Equal(old.at, one.at) && slices.Equal(old.ips, one.ips)
	if !same {
		if err := t.enforcement.keepable("the binding of host " + one.who.mac().String()); err != nil {
			return nil, err
		}
	}
	one.since = now
	if same {
		one.since = old.since // the same call again
	}
	t.bindings.put(one)
	t.enforceBinding(one)
	return one.message(), nil
}

// unbind deletes a binding, or the sticky ones of a port.
func (b *bindings) unbind(r *api.UnbindHostRequest) (*api.UnbindHostResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.GetMac() == "" {
		at, err := readPort(r.GetDpid(), r.GetPort())
		if err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "want mac, or dpid and port: %w", err)
		}
		n := uint32(0)
		for who := range b.naming[at] {
			if b.of[who].sticky {
				b.drop(who)
				n++
			}
		}
		return &api.UnbindHostResponse{Deleted: n}, nil
	}
	mac, err := flow.ParseMAC(strings.ToLower(r.Mac))
	if err != nil || r.Vlan > 4094 {
		return nil, api.Errorf(codes.InvalidArgument, "host %.40q, VLAN %d: want an Ethernet address, and a VLAN up to 4094", r.Mac, r.Vlan)
	}
	one := b.of[newID(mac, uint16(r.Vlan))]
	switch {
	case one == nil:
		return &api.UnbindHostResponse{}, nil
	case one.origin == byConfig:
		return nil, api.Errorf(codes.FailedPrecondition, "host %v: hosts.bindings of the configuration has it; remove it there", mac)
	}
	b.drop(one.who)
	return &api.UnbindHostResponse{Deleted: 1}, nil
}

// setPort sets how many hosts a port may have, and whether they are bound.
func (e *enforcement) setPort(now int64, m *api.PortSecurity) (*api.PortSecurity, error) {
	at, err := readPort(m.GetDpid(), m.GetPort())
	if err == nil && m.MaxHosts > 1_000_000 {
		err = fmt.Errorf("max_hosts %d: want up to 1000000, or 0 for hosts.port_limit", m.MaxHosts)
	}
	if err == nil && m.MaxHosts == 0 && !m.Sticky {
		err = fmt.Errorf("port %v: want max_hosts or sticky", at)
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old, ok := e.bindings.ports[at]
	switch {
	case old.origin == byConfig:
		return nil, api.Errorf(codes.FailedPrecondition, "port %v: hosts.ports of the configuration has it; change it there", at)
	case !ok && len(e.bindings.ports) >= maxPorts:
		return nil, api.Errorf(codes.ResourceExhausted, "%d ports have limits of their own already; delete some", maxPorts)
	}
	if m.Sticky && !old.sticky {
		if err := e.keepable("what a sticky port binds"); err != nil {
			return nil, err
		}
	}
	e.bindings.secure(now, at, portSettings{int(m.MaxHosts), m.Sticky, byOperator})
	return e.bindings.portMessage(at), nil
}

// secure applies the settings of a port. It binds hosts known there if the
// port's bindings are sticky.
func (b *bindings) secure(now int64, at flow.Location, set portSettings) {
	b.ports[at] = set
	b.note(portKey(at), set.origin)
	if p := b.places.placeAt(at); p != nil && set.sticky {
		for h := range p.hosts {
			if len(b.of) < maxBindings {
				b.stick(now, h)
			}
		}
	}
}

// unsetPort deletes the settings of a port.
func (b *bindings) unsetPort(r *api.DeletePortSecurityRequest) (*api.DeletePortSecurityResponse, error) {
	at, err := readPort(r.GetDpid(), r.GetPort())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.ports[at]
	if old.origin == byConfig {
		return nil, api.Errorf(codes.FailedPrecondition, "port %v: hosts.ports of the configuration has it; remove it there", at)
	}
	if ok {
		delete(b.ports, at)
		b.note(portKey(at), old.origin)
	}
	return &api.DeletePortSecurityResponse{Deleted: ok}, nil
}

// listBindings answers ListBindings; standing returns how the switches stand together.
func (e *enforcement) listBindings(standing func() (string, error)) *api.ListBindingsResponse {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &api.ListBindingsResponse{}
	state, err := standing()
	for _, one := range e.bindings.of {
		m := one.message()
		e.setState(m, one, state, err)
		r.Bindings = append(r.Bindings, m)
	}
	slices.SortFunc(r.Bindings, func(a, b *api.HostBinding) int {
		return cmp.Or(cmp.Compare(a.Vlan, b.Vlan), strings.Compare(a.Mac, b.Mac))
	})
	ports := make([]flow.Location, 0, len(e.bindings.ports))
	for at := range e.bindings.ports {
		ports = append(ports, at)
	}
	slices.SortFunc(ports, compareLocations)
	for _, at := range ports {
		r.Ports = append(r.Ports, e.bindings.portMessage(at))
	}
	return r
}

// message returns the API's form of a binding.
func (one *binding) message() *api.HostBinding {
	m := &api.HostBinding{Mac: one.who.mac().String(), Vlan: uint32(one.who.vlan()), Kind: one.kind(), Origin: one.origin}
	if one.since != 0 {
		m.Since = rfc3339(one.since)
	}
	for _, at := range one.at {
		m.At = append(m.At, api.NewLocation(at))
	}
	for _, ip := range one.ips {
		m.Ips = append(m.Ips, ip.String())
	}
	return m
}

func (one *binding) kind() string {
	if one.sticky {
		return "sticky"
	}
	return "static"
}

// portMessage returns the API's form of a port's settings.
func (b *bindings) portMessage(at flow.Location) *api.PortSecurity {
	set := b.ports[at]
	m := &api.PortSecurity{
		Dpid: at.Switch.String(), Port: uint32(at.Port), MaxHosts: uint32(set.most), Sticky: set.sticky, Origin: set.origin,
		Bound: uint32(len(b.naming[at])),
	}
	if p := b.places.placeAt(at); p != nil {
		m.Hosts = uint32(len(p.hosts))
	}
	return m
}
