package nat

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Bounds of one gateway.
const (
	poolMax     = 256    // IPv4 addresses
	poolMax6    = 65_536 // IPv6 addresses
	insideMax   = 16
	forwardsMax = 256
)

// gateway is a parsed NatGateway. It never changes once it is in the store.
type gateway struct {
	said        *api.NatGateway // as it is kept: what is found is left out, but for zone and next_hop_mac
	name        string
	at          flow.Location // the outside port
	first, last netip.Addr    // the pool
	ports       [2]uint16     // that connections get, first and last
	hop         netip.Addr
	addr        netip.Addr // inside
	inside      []netip.Prefix
	forwards    []forward
	mac         flow.MAC
	hopMAC      flow.MAC // zero: not known yet
	zone        uint16
}

// forward is a parsed NatForward.
type forward struct {
	proto  uint8
	at, to netip.AddrPort
}

// readGateway returns the gateway that a message describes.
func readGateway(m *api.NatGateway, cfg *Config) (*gateway, error) {
	g := &gateway{name: m.GetName()}
	sw, err := flow.ParseDPID(m.Dpid)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if g.at = (flow.Location{Switch: sw, Port: flow.Port(m.Port)}); !g.at.Port.Physical() {
		return nil, fmt.Errorf("port %d: want the number of the port outside", m.Port)
	}
	if g.first, g.last, err = readPool(m.Pool); err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if m.FirstPort > 0xffff || m.LastPort > 0xffff {
		return nil, fmt.Errorf("ports %d to %d: want 1 to 65535", m.FirstPort, m.LastPort)
	}
	g.ports = [2]uint16{uint16(m.FirstPort), uint16(m.LastPort)}
	if g.ports[0] == 0 {
		g.ports[0] = 1024
	}
	if g.ports[1] == 0 {
		g.ports[1] = 65535
	}
	if g.ports[1] < g.ports[0] {
		return nil, fmt.Errorf("ports %d to %d: the last is before the first", g.ports[0], g.ports[1])
	}
	if g.hop, err = g.address(m.NextHop); err != nil {
		return nil, fmt.Errorf("next hop: %w", err)
	}
	if g.addr, err = g.address(m.Gateway); err != nil {
		return nil, fmt.Errorf("gateway address: %w", err)
	}
	if err := g.readInside(m.Inside); err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if g.pooled(g.hop) || g.within(g.hop) || g.within(g.first) || g.within(g.last) || g.pooled(g.addr) {
		return nil, fmt.Errorf("pool and next hop must be outside of %v, and the pool apart from next hop and gateway address", g.inside)
	}
	if err := g.readForwards(m.Forwards); err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(g.name + "/" + g.addr.String()))
	g.mac, _ = flow.ParseMAC(cfg.MACPrefix + ":00:00:00")
	g.mac[3], g.mac[4], g.mac[5] = byte(h.Sum32()>>16), byte(h.Sum32()>>8), byte(h.Sum32())
	g.said = &api.NatGateway{Name: g.name, Dpid: sw.String(), Port: m.Port, Pool: g.first.String(), FirstPort: uint32(g.ports[0]),
		LastPort: uint32(g.ports[1]), NextHop: g.hop.String(), Gateway: g.addr.String(), Mac: g.mac.String()}
	if g.last != g.first {
		g.said.Pool += "-" + g.last.String()
	}
	for _, p := range g.inside {
		g.said.Inside = append(g.said.Inside, p.String())
	}
	for _, f := range g.forwards {
		g.said.Forwards = append(g.said.Forwards, f.message())
	}
	return g, nil
}

func (g *gateway) readInside(list []string) error {
	if len(list) == 0 || len(list) > insideMax {
		return fmt.Errorf("%d networks inside: want 1 to %d", len(list), insideMax)
	}
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is6() != g.v6() || p.Addr().Is4In6() || p.Bits() == 0 {
			return fmt.Errorf("inside %q: want an %s network, such as %s, as the pool is %[2]s; the other version takes a gateway of its own", text, g.version(), g.example())
		}
		p = p.Masked()
		for _, o := range g.inside {
			if o.Overlaps(p) {
				return fmt.Errorf("inside: %v and %v overlap", o, p)
			}
		}
		g.inside = append(g.inside, p)
	}
	if !g.within(g.addr) {
		return fmt.Errorf("gateway address %v is in no network inside", g.addr)
	}
	slices.SortFunc(g.inside, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return nil
}

func (g *gateway) readForwards(list []*api.NatForward) error {
	if len(list) > forwardsMax {
		return fmt.Errorf("%d forwards: want at most %d", len(list), forwardsMax)
	}
	type door struct {
		proto uint8
		at    netip.AddrPort
	}
	seen := map[door]bool{}
	for _, m := range list {
		f := forward{}
		switch strings.ToLower(m.GetProtocol()) {
		case "tcp":
			f.proto = flow.IPProtoTCP
		case "udp":
			f.proto = flow.IPProtoUDP
		default:
			return fmt.Errorf("forward of protocol %q: want tcp or udp", m.GetProtocol())
		}
		from := g.first
		if m.Address != "" {
			var err error
			if from, err = g.address(m.Address); err != nil || !g.pooled(from) {
				return fmt.Errorf("forward from %q: want an address of the pool", m.Address)
			}
		}
		to, err := g.address(m.To)
		if err != nil || !g.within(to) || to == g.addr {
			return fmt.Errorf("forward to %q: want the address of a host inside", m.To)
		}
		port := m.ToPort
		if port == 0 {
			port = m.Port
		}
		if m.Port == 0 || m.Port > 0xffff || port > 0xffff {
			return fmt.Errorf("forward of port %d to port %d: want 1 to 65535", m.Port, port)
		}
		f.at, f.to = netip.AddrPortFrom(from, uint16(m.Port)), netip.AddrPortFrom(to, uint16(port))
		if seen[door{f.proto, f.at}] {
			return fmt.Errorf("two forwards of %s %v", m.Protocol, f.at)
		}
		seen[door{f.proto, f.at}] = true
		g.forwards = append(g.forwards, f)
	}
	return nil
}

// message returns the forward with its defaults filled in.
func (f forward) message() *api.NatForward {
	m := &api.NatForward{Protocol: "tcp", Address: f.at.Addr().String(), Port: uint32(f.at.Port()), To: f.to.Addr().String(), ToPort: uint32(f.to.Port())}
	if f.proto == flow.IPProtoUDP {
		m.Protocol = "udp"
	}
	return m
}

// pooled reports whether an address is in the pool.
func (g *gateway) pooled(a netip.Addr) bool {
	return a.Is6() == g.v6() && !a.Less(g.first) && !g.last.Less(a)
}

// within reports whether an address is inside.
func (g *gateway) within(a netip.Addr) bool {
	return slices.ContainsFunc(g.inside, func(p netip.Prefix) bool { return p.Contains(a) })
}

// conflict returns why two gateways cannot coexist.
func (g *gateway) conflict(o *gateway) error {
	switch {
	case g.at == o.at && g.v6() == o.v6():
		return fmt.Errorf("gateway %s has the port %v for %s already", o.name, o.at, o.version())
	case g.mac == o.mac:
		return fmt.Errorf("gateway %s has the same Ethernet address %v by chance: choose another name", o.name, o.mac)
	case g.addr == o.addr:
		return fmt.Errorf("gateway %s has the gateway address %v already", o.name, o.addr)
	case g.v6() == o.v6() && !g.last.Less(o.first) && !o.last.Less(g.first):
		return fmt.Errorf("gateway %s has addresses of this pool: %v-%v", o.name, o.first, o.last)
	}
	return nil
}
