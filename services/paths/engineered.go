package paths

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/pce"
)

// direction is one direction of a link.
type direction struct{ src, dst flow.Location }

// statements are what discovery says of links beyond that they are there: capacity and delay, and the
// operator's settings. The convergence's lock guards them.
type statements struct {
	links   map[direction]*api.Link
	version uint64
	last    *engineered // as last made of them
}

// note keeps what an event says of a link.
func (s *statements) note(e *api.LinkChanged) {
	if s.links == nil {
		s.links = map[direction]*api.Link{}
	}
	at := direction{e.Link.Src.Flow(), e.Link.Dst.Flow()}
	s.version++
	if e.Removed {
		delete(s.links, at)
		return
	}
	s.links[at] = e.Link
}

// kbpsMax bounds bandwidths, so that no sum of them overflows.
const kbpsMax = 1_000_000_000_000

// unknownBit stands, in demands, for colours that no link has.
const unknownBit = 63

// engineered is the usable links of one topology with what is said of them, by numbers.
type engineered struct {
	topology uint64
	said     uint64
	graph    *pce.Graph
	nodes    []flow.DPID
	node     map[flow.DPID]int
	links    []Link
	link     map[flow.Location]int // by the port that it leaves by
	colours  map[string]uint
	risks    map[string]int
}

// of returns the network of a topology. The caller holds the convergence's lock.
func (s *statements) of(t *Topology) (*engineered, error) {
	if n := s.last; n != nil && n.topology == t.Version() && n.said == s.version {
		return n, nil
	}
	n := &engineered{
		topology: t.Version(), said: s.version, nodes: t.Switches(), links: t.Links(),
		node: map[flow.DPID]int{}, link: map[flow.Location]int{}, colours: map[string]uint{}, risks: map[string]int{},
	}
	for i, d := range n.nodes {
		n.node[d] = i
	}
	list := make([]pce.Link, len(n.links))
	cables := 0
	for i, l := range n.links {
		n.link[l.Src] = i
		list[i] = pce.Link{From: n.node[l.Src.Switch], To: n.node[l.Dst.Switch], Cost: l.Weight}
		if back, ok := n.link[l.Dst]; ok {
			list[i].Cable = list[back].Cable
		} else {
			list[i].Cable = cables
			cables++
		}
		m := s.links[direction{l.Src, l.Dst}]
		set := m.GetSettings()
		list[i].Capacity, list[i].Drained = m.GetCapacityKbps(), set.GetDrained()
		list[i].Delay = uint32(min(m.GetLatencyUs(), pce.MaxDelay))
		if d := set.GetDelayUs(); d > 0 {
			list[i].Delay = min(d, pce.MaxDelay)
		}
		if c := set.GetMetric(); c > 0 {
			list[i].Cost = min(c, pce.MaxCost)
		}
		for _, c := range set.GetColours() {
			bit, ok := n.colours[c]
			if !ok {
				if bit = uint(len(n.colours)); bit >= unknownBit {
					return nil, fmt.Errorf("links have more than %d colours", unknownBit)
				}
				n.colours[c] = bit
			}
			list[i].Colours |= 1 << bit
		}
		for _, r := range set.GetRiskGroups() {
			if _, ok := n.risks[r]; !ok {
				n.risks[r] = len(n.risks)
			}
			list[i].Risks = append(list[i].Risks, n.risks[r])
		}
	}
	var err error
	if n.graph, err = pce.NewGraph(len(n.nodes), list); err != nil {
		return nil, fmt.Errorf("links as discovered: %w", err)
	}
	s.last = n
	return n, nil
}

// booked returns the network's graph with bookings on its links.
func (n *engineered) booked(list []*api.LinkBooking) (*pce.Graph, error) {
	if len(list) == 0 {
		return n.graph, nil
	}
	links := slices.Clone(n.graph.Links)
	for i, b := range list {
		if b.GetPriority() >= pce.Priorities || b.GetKbps() > kbpsMax {
			return nil, fmt.Errorf("booking %d: %d kbit/s at priority %d: want at most %d, at priorities 0 to %d", i+1, b.GetKbps(), b.GetPriority(), uint64(kbpsMax), pce.Priorities-1)
		}
		if l, ok := n.link[b.GetSrc().Flow()]; ok {
			links[l].Booked[b.GetPriority()] += b.GetKbps()
		}
	}
	return pce.NewGraph(n.graph.Nodes, links)
}

// mask returns the bits of colours.
func (n *engineered) mask(names []string, unknown uint64) (bits uint64) {
	for _, c := range names {
		if bit, ok := n.colours[c]; ok {
			bits |= 1 << bit
		} else {
			bits |= unknown
		}
	}
	return bits
}

// absent is an error that a demand cannot be met because something that it names is not there.
type absent struct{ text string }

func (a absent) Error() string { return a.text }

// demand returns what a demand asks of the graph. An error that is absent is its answer; another one
// says what is wrong with it.
func (n *engineered) demand(m *api.PathDemand) (*pce.Demand, error) {
	d := &pce.Demand{
		Bandwidth: m.GetBandwidthKbps(), MaxDelay: m.GetMaxDelayUs(), MaxHops: int(m.GetMaxHops()), Setup: pce.Priorities - 1,
		IncludeAny: n.mask(m.GetIncludeAny(), 1<<unknownBit), IncludeAll: n.mask(m.GetIncludeAll(), 1<<unknownBit), ExcludeAny: n.mask(m.GetExcludeAny(), 0),
	}
	if m.SetupPriority != nil {
		d.Setup = uint8(min(m.GetSetupPriority(), math.MaxUint8))
	}
	if d.Hold = d.Setup; m.HoldPriority != nil {
		d.Hold = uint8(min(m.GetHoldPriority(), math.MaxUint8))
	}
	if d.Bandwidth > kbpsMax {
		return nil, fmt.Errorf("bandwidth_kbps %d: want at most %d", d.Bandwidth, uint64(kbpsMax))
	}
	switch m.GetMinimise() {
	case "", "cost":
	case "delay":
		d.Minimise = pce.LeastDelay
	case "narrowness":
		d.Minimise = pce.Widest
	default:
		return nil, fmt.Errorf("minimise %.80q: want cost, delay or narrowness", m.GetMinimise())
	}
	var lacking error
	at := func(what, text string) int {
		sw, err := flow.ParseDPID(text)
		if err != nil {
			lacking = fmt.Errorf("%s: %w", what, err)
			return 0
		}
		i, ok := n.node[sw]
		if !ok && lacking == nil {
			lacking = absent{fmt.Sprintf("%s: switch %v is not connected", what, sw)}
		}
		return i
	}
	d.From, d.To = at("src", m.GetSrc()), at("dst", m.GetDst())
	for i, m := range m.GetVia() {
		v := pce.Via{IsCable: m.GetDpid() == ""}
		if !v.IsCable {
			v.ID = at("via", m.GetDpid())
		} else if c, ok := n.cable(m.GetLink()); ok {
			v.ID = c
		} else if lacking == nil {
			lacking = absent{fmt.Sprintf("via: no link is up at port %v", m.GetLink().Flow())}
		}
		if lacking == nil && slices.Contains(d.Via, v) {
			return nil, fmt.Errorf("via: the switch or link at place %d is given twice", i+1)
		}
		d.Via = append(d.Via, v)
	}
	if lacking != nil {
		return nil, lacking
	}
	if d.From == d.To {
		return nil, fmt.Errorf("src and dst are both %s: want two switches", m.GetSrc())
	}
	for _, text := range m.GetExcludeSwitches() {
		sw, err := flow.ParseDPID(text)
		if err != nil {
			return nil, fmt.Errorf("exclude_switches: %w", err)
		}
		if i, ok := n.node[sw]; ok {
			d.ExcludeNodes = append(d.ExcludeNodes, i)
		}
	}
	for _, l := range m.GetExcludeLinks() {
		if c, ok := n.cable(l); ok {
			d.ExcludeCables = append(d.ExcludeCables, c)
		}
	}
	for _, r := range m.GetExcludeRiskGroups() {
		if i, ok := n.risks[r]; ok {
			d.ExcludeRisks = append(d.ExcludeRisks, i)
		}
	}
	for _, a := range m.GetApart() {
		kinds, err := apart("apart.kinds", a.GetKinds())
		if err != nil {
			return nil, err
		}
		kinds.From = n.path(a.GetPath())
		if hops := a.GetPath().GetHops(); kinds.Nodes && len(kinds.From) < len(hops)-1 { // part of it is there no more
			for _, h := range hops[1 : len(hops)-1] {
				sw, _ := flow.ParseDPID(h.GetDpid())
				if i, ok := n.node[sw]; ok && i != d.From && i != d.To {
					d.ExcludeNodes = append(d.ExcludeNodes, i)
				}
			}
		}
		d.Apart = append(d.Apart, kinds)
	}
	if len(m.GetDisjoint()) > 0 {
		kinds, err := apart("disjoint", m.GetDisjoint())
		if err != nil {
			return nil, err
		}
		d.Pair = &kinds
	}
	return d, d.Check(n.graph)
}

// apart returns what words ask not to be shared; none are links.
func apart(field string, words []string) (a pce.Apart, err error) {
	a.Cables = len(words) == 0
	for _, w := range words {
		switch w {
		case "links":
			a.Cables = true
		case "switches":
			a.Cables, a.Nodes = true, true
		case "risk_groups":
			a.Risks = true
		default:
			return a, fmt.Errorf("%s: %.80q: want links, switches or risk_groups", field, w)
		}
	}
	return a, nil
}

// cable returns the cable at a port.
func (n *engineered) cable(at *api.Location) (int, bool) {
	i, ok := n.link[at.Flow()]
	if !ok {
		return 0, false
	}
	return n.graph.Links[i].Cable, true
}

// path returns the links of a path that are there.
func (n *engineered) path(m *api.Path) (p pce.Path) {
	for _, h := range m.GetHops() {
		sw, err := flow.ParseDPID(h.GetDpid())
		if i, ok := n.link[flow.Location{Switch: sw, Port: flow.Port(h.GetOutPort())}]; err == nil && ok {
			p = append(p, i)
		}
	}
	return p
}

// message returns the API's form of a route.
func (n *engineered) message(r *pce.Route) *api.Path {
	m := &api.Path{Cost: r.Cost, DelayUs: r.Delay, Hops: make([]*api.Hop, 0, len(r.Path)+1)}
	var in flow.Port
	for _, i := range r.Path {
		l := n.links[i]
		m.Hops = append(m.Hops, &api.Hop{Dpid: l.Src.Switch.String(), InPort: uint32(in), OutPort: uint32(l.Src.Port)})
		in = l.Dst.Port
	}
	last := n.links[r.Path[len(r.Path)-1]].Dst
	m.Hops = append(m.Hops, &api.Hop{Dpid: last.Switch.String(), InPort: uint32(in)})
	return m
}

// reason returns why a demand is not met, with the names of switches and ports.
func (n *engineered) reason(err error) string {
	e, ok := err.(*pce.Infeasible)
	if !ok {
		return err.Error()
	}
	short := func(d flow.DPID) string {
		if s := strings.TrimLeft(d.String(), "0"); s != "" {
			return s
		}
		return "0"
	}
	return e.Text(
		func(node int) string { return short(n.nodes[node]) },
		func(link int) string {
			l := n.links[link]
			return fmt.Sprintf("%s:%d to %s:%d", short(l.Src.Switch), uint32(l.Src.Port), short(l.Dst.Switch), uint32(l.Dst.Port))
		})
}
