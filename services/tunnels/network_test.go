package tunnels

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/pce"
)

// network answers ComputePaths for the rig's cables, as paths does.
func (g *rig) network(_ context.Context, req *api.ComputePathsRequest) (*api.ComputePathsResponse, error) {
	node := map[flow.DPID]int{}
	var switches []flow.DPID
	ports := slices.SortedFunc(maps.Keys(g.cables), func(a, b flow.Location) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	for _, at := range ports {
		if _, ok := node[at.Switch]; !ok {
			node[at.Switch] = len(switches)
			switches = append(switches, at.Switch)
		}
	}
	link := map[flow.Location]int{}
	var links []pce.Link
	var srcs []flow.Location
	for _, at := range ports {
		if g.down[at] {
			continue
		}
		far := g.cables[at]
		l := pce.Link{From: node[at.Switch], To: node[far.Switch], Cable: len(links), Cost: 10, Capacity: g.capacity(at), Drained: g.set[at].GetDrained()}
		l.Delay = g.set[at].GetDelayUs()
		if m := g.set[at].GetMetric(); m > 0 {
			l.Cost = m
		}
		for _, r := range g.set[at].GetRiskGroups() {
			l.Risks = append(l.Risks, int(r[0]))
		}
		if back, ok := link[far]; ok {
			l.Cable = links[back].Cable
		}
		link[at] = len(links)
		links, srcs = append(links, l), append(srcs, at)
	}
	for _, b := range req.Bookings {
		if i, ok := link[b.Src.Flow()]; ok {
			links[i].Booked[b.Priority] += b.Kbps
		}
	}
	graph, err := pce.NewGraph(len(switches), links)
	if err != nil {
		return nil, err
	}
	resp := &api.ComputePathsResponse{}
	var demands []pce.Demand
	var of []int
	at := func(text string) (int, bool) {
		sw, _ := flow.ParseDPID(text)
		n, ok := node[sw]
		return n, ok
	}
	for i, m := range req.Demands {
		resp.Answers = append(resp.Answers, &api.PathAnswer{Name: m.Name})
		d := pce.Demand{Bandwidth: m.BandwidthKbps, Setup: uint8(m.GetSetupPriority()), Hold: uint8(m.GetHoldPriority()), MaxHops: int(m.MaxHops), MaxDelay: m.MaxDelayUs,
			Minimise: map[string]pce.Objective{"delay": pce.LeastDelay, "narrowness": pce.Widest}[m.Minimise]}
		var ok, ok2 bool
		d.From, ok = at(m.Src)
		d.To, ok2 = at(m.Dst)
		if !ok || !ok2 {
			resp.Answers[i].Reason = "a switch is not connected"
			continue
		}
		for _, sw := range m.ExcludeSwitches {
			if n, ok := at(sw); ok {
				d.ExcludeNodes = append(d.ExcludeNodes, n)
			}
		}
		for _, risk := range m.ExcludeRiskGroups {
			d.ExcludeRisks = append(d.ExcludeRisks, int(risk[0]))
		}
		lacks := false
		for _, l := range m.ExcludeLinks {
			if n, ok := link[l.Flow()]; ok {
				d.ExcludeCables = append(d.ExcludeCables, links[n].Cable)
			}
		}
		for _, v := range m.Via {
			if v.Link != nil {
				n, ok := link[v.Link.Flow()]
				lacks = lacks || !ok
				if ok {
					d.Via = append(d.Via, pce.Via{IsCable: true, ID: links[n].Cable})
				}
			} else if n, ok := at(v.Dpid); ok {
				d.Via = append(d.Via, pce.Via{ID: n})
			}
		}
		if lacks {
			resp.Answers[i].Reason = "a link is down"
			continue
		}
		apart := func(kinds []string) pce.Apart {
			return pce.Apart{Cables: true, Nodes: slices.Contains(kinds, "switches"), Risks: slices.Contains(kinds, "risk_groups")}
		}
		for _, a := range m.Apart {
			x := apart(a.Kinds)
			for _, h := range a.Path.Hops {
				sw, _ := flow.ParseDPID(h.Dpid)
				if n, ok := link[flow.Location{Switch: sw, Port: flow.Port(h.OutPort)}]; ok {
					x.From = append(x.From, n)
				}
			}
			d.Apart = append(d.Apart, x)
		}
		if len(m.Disjoint) > 0 {
			x := apart(m.Disjoint)
			d.Pair = &x
		}
		demands, of = append(demands, d), append(of, i)
	}
	results, _ := graph.Place(demands, false)
	for k, r := range results {
		a := resp.Answers[of[k]]
		if r.Err != nil {
			a.Reason = "no path: " + r.Err.Error()
		}
		for _, route := range r.Routes {
			p := &api.Path{Cost: route.Cost, DelayUs: route.Delay}
			var in flow.Port
			for _, i := range route.Path {
				p.Hops = append(p.Hops, &api.Hop{Dpid: srcs[i].Switch.String(), InPort: uint32(in), OutPort: uint32(srcs[i].Port)})
				in = g.cables[srcs[i]].Port
			}
			p.Hops = append(p.Hops, &api.Hop{Dpid: switches[demands[k].To].String(), InPort: uint32(in)})
			a.Paths = append(a.Paths, p)
			for _, x := range route.Preempts {
				a.Preempts = append(a.Preempts, &api.PathPreemption{Src: api.NewLocation(srcs[x.Link]), Priority: uint32(x.Priority), Kbps: x.Bandwidth})
			}
		}
	}
	return resp, nil
}

// capacity returns what may be booked on a link: 1000 unless it is set.
func (g *rig) capacity(at flow.Location) uint64 {
	if c := g.set[at].GetCapacityKbps(); c > 0 {
		return c
	}
	return 1000
}

// setLink sets what the operator says of the link between two switches.
func (g *rig) setLink(x, y flow.DPID, m *api.LinkSettings) {
	a, b := flow.Location{Switch: x, Port: flow.Port(y)}, flow.Location{Switch: y, Port: flow.Port(x)}
	g.set[a], g.set[b] = m, m
	g.link(a, b)
	g.link(b, a)
	g.b.converged()
}

// want sets a tunnel, and returns it.
func (g *rig) want(m *api.Tunnel) *api.Tunnel {
	g.t.Helper()
	if _, err := g.repairer.set(context.Background(), m); err != nil {
		g.t.Fatal(err)
	}
	g.repair(context.Background())
	g.repair(context.Background()) // bypasses
	return g.b.get(m.Name)
}

// overbooked returns a link on which tunnels have booked more than it has.
func (g *rig) overbooked() (flow.Location, bool) {
	sums := map[flow.Location]uint64{}
	for _, s := range g.b.status {
		seen := map[flow.Location]bool{}
		for _, p := range s.tunnel.paths(onPrimary) {
			if !g.b.whole(p) {
				continue
			}
			for _, at := range p.via() {
				if !seen[at] {
					seen[at] = true
					sums[at] += s.tunnel.wanted.ReservedKbps
				}
			}
		}
	}
	for at, sum := range sums {
		if sum > g.capacity(at) {
			return at, true
		}
	}
	return flow.Location{}, false
}
