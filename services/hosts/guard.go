package hosts

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// guard maintains the entries by which switches drop IP packets whose source is
// bound to another host or port: packets of established routes, and multicasts,
// do not come to the controller. These entries are the last of table 0, so that
// entries of operators and virtual networks come before them. They let through
// packets from ports that are known not to be edge ports, and from ports of routers.
type guard struct {
	mu    sync.Mutex // guards edges
	edges map[flow.DPID]map[flow.Port]edge
}

// edge says whether a port is an edge port.
type edge int

const (
	notKnown edge = iota // no role yet
	isEdge
	noEdge
)

// guardMost bounds the entries of a switch; the controller alone enforces
// bindings beyond it.
const guardMost = 10_000

func newGuard() *guard { return &guard{edges: map[flow.DPID]map[flow.Port]edge{}} }

// set records the role of a port, and reports whether that changes its entries. A port that
// is unsettled counts as what it was.
func (g *guard) set(at flow.Location, role string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	ports := g.edges[at.Switch]
	if ports == nil {
		ports = map[flow.Port]edge{}
		g.edges[at.Switch] = ports
	}
	was := ports[at.Port]
	switch role {
	case flow.RoleEdge.String():
		ports[at.Port] = isEdge
	case flow.RoleUnsettled.String():
		ports[at.Port] = was
	default:
		ports[at.Port] = noEdge
	}
	return ports[at.Port] != was
}

// drop forgets a port.
func (g *guard) drop(at flow.Location) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.edges[at.Switch], at.Port); len(g.edges[at.Switch]) == 0 {
		delete(g.edges, at.Switch)
	}
}

// switchChanged records the ports of a switch that has connected. What a new port is,
// discovery reports; that of the switch itself has no role.
func (g *guard) switchChanged(sw flow.DPID, list []*api.Port) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ports := g.edges[sw], make(map[flow.Port]edge, len(list))
	for _, p := range list {
		n := flow.Port(p.GetPort())
		if ports[n] = old[n]; !n.Physical() {
			ports[n] = noEdge
		}
	}
	g.edges[sw] = ports
}

// portChanged records that a port was added or removed, and reports whether
// that changed anything.
func (g *guard) portChanged(sw flow.DPID, p *api.Port, removed bool) bool {
	at := flow.Location{Switch: sw, Port: flow.Port(p.GetPort())}
	if removed {
		g.drop(at)
		return false
	}
	return !at.Port.Physical() && g.set(at, flow.RoleAccess.String())
}

// trusted returns the ports of a switch that are known not to be edge ports, in order.
func (g *guard) trusted(sw flow.DPID) (list []flow.Port) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for port, e := range g.edges[sw] {
		if e == noEdge {
			list = append(list, port)
		}
	}
	slices.Sort(list)
	return list
}

// entries returns the entries of a switch for the present bindings.
func (e *enforcement) entries(g *guard, sw flow.DPID) (list []flow.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.beyond, sw)
	if !e.cfg.Guard || len(e.bindings.of) == 0 {
		return nil
	}
	add := func(priority uint16, m flow.Match, next uint8) {
		list = append(list, flow.Entry{Table: flow.TableIngress, Priority: priority, Match: m, Goto: next, Cookie: flow.NewCookie(flow.OwnerBindings, 0, 0)})
	}
	pass := func(priority uint16, m flow.Match) { add(priority, m, flow.TableFirewall) }
	for _, port := range g.trusted(sw) {
		pass(flow.PriorityBindingTrusted, flow.Match{}.WithInPort(port))
	}
	for at := range *e.bindings.routers.Load() {
		if at.Switch == sw && g.isEdge(at) {
			pass(flow.PriorityBindingTrusted, flow.Match{}.WithInPort(at.Port))
		}
	}
	pass(flow.PriorityBindingTrusted, flow.Match{}.WithICMPv6Type(flow.ICMPv6Solicit))
	pass(flow.PriorityBindingTrusted, flow.Match{}.WithICMPv6Type(flow.ICMPv6Advert))
	drop := func(priority uint16, m flow.Match) { add(priority, m, 0) }
	tagged := map[uint16]bool{}
	for _, one := range e.bindings.inOrder() {
		before := len(list)
		if v := one.who.vlan(); v != 0 && !tagged[v] {
			tagged[v] = true // behind further tags a switch may not find the source
			for _, kind := range [...]uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
				drop(flow.PriorityBindingNotOwn, flow.Match{}.WithVLAN(v).WithEthType(kind))
			}
		}
		one.guard(sw, pass, drop)
		if len(list) > guardMost {
			e.beyond[sw] = one.who
			return list[:before]
		}
	}
	return list
}

// request returns the set of a switch. Switches with one table have none.
func (e *enforcement) request(g *guard, info *api.Switch) *api.SetStandingRequest {
	req := &api.SetStandingRequest{}
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || info.Lack(api.NeedTables) != "" {
		return req
	}
	list := e.entries(g, sw)
	for i := range list {
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &list[i]))
	}
	return req
}

// active reports whether switches have any entries for bindings.
func (e *enforcement) active() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cfg.Guard && len(e.bindings.of) > 0
}

// changes counts the changes that affect the entries.
func (b *bindings) changes() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// recordSent records that the entries for the first n changes have been sent.
func (e *enforcement) recordSent(n uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handed = n
}

// size returns how many bindings there are.
func (b *bindings) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.of)
}

// isEdge reports whether a port is known to be an edge port.
func (g *guard) isEdge(at flow.Location) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.edges[at.Switch][at.Port] == isEdge
}

// inOrder returns the bindings, in the order of VLAN and address.
func (b *bindings) inOrder() []*binding {
	list := make([]*binding, 0, len(b.of))
	for _, one := range b.of {
		list = append(list, one)
	}
	slices.SortFunc(list, func(x, y *binding) int {
		if x.who < y.who {
			return -1
		}
		return 1
	})
	return list
}

// guard passes the entries of one binding on a switch to pass and drop.
func (one *binding) guard(sw flow.DPID, pass, drop func(uint16, flow.Match)) {
	vlan := flow.Match{}.WithNoVLAN()
	if v := one.who.vlan(); v != 0 {
		vlan = flow.Match{}.WithVLAN(v)
	}
	own := func(priority uint16, m flow.Match) { // at the host's ports on this switch
		m = m.WithEthSrc(one.who.mac())
		if len(one.at) == 0 {
			pass(priority, m)
		}
		for _, at := range one.at {
			if at.Switch == sw {
				pass(priority, m.WithInPort(at.Port))
			}
		}
	}
	for _, ip := range one.ips {
		m := vlan.WithIPSrc(netip.PrefixFrom(ip, ip.BitLen()))
		own(flow.PriorityBindingSource, m)
		drop(flow.PriorityBindingNotOwn, m)
	}
	if len(one.at) == 0 {
		return
	}
	for _, kind := range [...]uint16{flow.EthTypeIPv4, flow.EthTypeIPv6} {
		m := vlan.WithEthType(kind)
		own(flow.PriorityBindingPort, m)
		drop(flow.PriorityBindingElsewhere, m.WithEthSrc(one.who.mac()))
	}
}
