// Package pce computes paths under constraints: with bandwidth that is free at a
// priority, bounds on delay and hops, colours (RFC 3209 §4.7.4), nodes, links and risk groups to
// be left out or passed, and apart from other paths; disjoint pairs; and trees that join several nodes.
//
// It is pure: a Graph is one state of the network, and nothing here changes or keeps it, nor
// knows what switches are. Nodes and links are numbers from 0 on. Calls may run at the
// same time. It imports the standard library only; package services/paths answers calls with it.
package pce

import (
	"fmt"
	"slices"
)

// The bounds of what a link may say: that of OSPF's metric, and ten seconds. With
// them no sum over a path of 4,096 links overflows.
const (
	MaxCost  = 1<<16 - 1
	MaxDelay = 10_000_000
)

// Priorities are those of RFC 3209 §4.7.1: 0 is the most important, 7 the least.
const Priorities = 8

// Link is one direction of a physical link.
type Link struct {
	From, To int
	Cable    int    // the physical link, from 0 on: both directions have the same
	Cost     uint32 // 1 to MaxCost
	Delay    uint32 // microseconds, at most MaxDelay
	// Capacity is what may be booked in this direction, and Booked what is, by holding priority;
	// kbit/s. Bookings that hold for a while only are for the caller to sum up: for a demand
	// from one time until another, the most that is booked at any moment between.
	Capacity uint64
	Booked   [Priorities]uint64
	Colours  uint64 // a bit each
	Risks    []int  // the groups of links that fail together to which it belongs
	Drained  bool   // carries nothing new
}

// Free returns what a demand of a setup priority may book, kbit/s: all but what is
// held by the same or more important priorities.
func (l *Link) Free(setup uint8) uint64 {
	free := l.Capacity
	for _, b := range l.Booked[:min(int(setup)+1, Priorities)] {
		if b >= free {
			return 0
		}
		free -= b
	}
	return free
}

// Graph is nodes and links. It does not change.
type Graph struct {
	Nodes int
	Links []Link

	out    [][]int32 // links that leave a node
	in     [][]int32 // links that arrive at a node
	cables int
}

// NewGraph returns a graph, or an error that names the link that cannot be. It keeps
// links.
func NewGraph(nodes int, links []Link) (*Graph, error) {
	g := &Graph{Nodes: nodes, Links: links, out: make([][]int32, nodes), in: make([][]int32, nodes)}
	for i := range links {
		l := &links[i]
		switch {
		case l.From < 0 || l.From >= nodes || l.To < 0 || l.To >= nodes || l.From == l.To:
			return nil, fmt.Errorf("link %d: from %d to %d: want two of %d nodes", i, l.From, l.To, nodes)
		case l.Cable < 0 || l.Cable >= max(len(links), 1):
			return nil, fmt.Errorf("link %d: cable %d: want 0 to %d", i, l.Cable, len(links)-1)
		case l.Cost < 1 || l.Cost > MaxCost:
			return nil, fmt.Errorf("link %d: cost %d: want 1 to %d", i, l.Cost, MaxCost)
		case l.Delay > MaxDelay:
			return nil, fmt.Errorf("link %d: delay %d µs: want at most %d", i, l.Delay, MaxDelay)
		}
		g.out[l.From] = append(g.out[l.From], int32(i))
		g.in[l.To] = append(g.in[l.To], int32(i))
		g.cables = max(g.cables, l.Cable+1)
	}
	return g, nil
}

// Path is links, each beginning where the one before ends. It visits no node twice.
type Path []int

// Cost is the sum of the costs of the path's links, Delay that of their delays.
func (p Path) Cost(g *Graph) (cost uint64) {
	for _, l := range p {
		cost += uint64(g.Links[l].Cost)
	}
	return cost
}

// Delay is the sum of the delays of the path's links, microseconds.
func (p Path) Delay(g *Graph) (us uint64) {
	for _, l := range p {
		us += uint64(g.Links[l].Delay)
	}
	return us
}

// Objective is what is made as small as can be.
type Objective uint8

// The objectives: the sum of costs, then of delays; of delays, then of costs; or what is not booked on the link
// that has the least of it, as much as can be, then the sum of costs. Of equal paths one with fewest links is returned.
const (
	LeastCost Objective = iota
	LeastDelay
	Widest
)

// Via is a node or a cable that a path has to pass.
type Via struct {
	IsCable bool
	ID      int
}

// Apart asks for a path that shares nothing of a kind with another: its cables, the nodes
// between its ends, or its links' risk groups. Nodes at the demand's own ends may be shared.
type Apart struct {
	From                 Path
	Cables, Nodes, Risks bool
}

// Demand is a path that is asked for.
type Demand struct {
	From, To  int
	Bandwidth uint64 // kbit/s, to be free on each link; 0 is none
	// Setup is the priority at which it takes bandwidth from others, Hold that at which others
	// may take it: at most Setup, so that no two displace each other by turns.
	Setup, Hold uint8
	MaxDelay    uint64 // microseconds; 0 is no bound
	MaxHops     int    // links; 0 is no bound
	Minimise    Objective

	ExcludeNodes, ExcludeCables, ExcludeRisks []int
	Via                                       []Via // in this order, a cable before the node to which it leads

	// The colours of each link (RFC 3209 §4.7.4): at least one of IncludeAny unless that is 0, all of
	// IncludeAll, and none of ExcludeAny.
	IncludeAny, IncludeAll, ExcludeAny uint64

	Apart []Apart
	Pair  *Apart // Place looks for two paths that are apart like this, see Graph.Pair; nil: for one
}

// Check returns an error if no graph of g's size can meet the demand.
func (d *Demand) Check(g *Graph) error {
	node := func(n int) bool { return n >= 0 && n < g.Nodes }
	switch {
	case !node(d.From) || !node(d.To):
		return fmt.Errorf("from %d to %d: want two of %d nodes", d.From, d.To, g.Nodes)
	case d.From == d.To:
		return fmt.Errorf("from %d to itself: want two nodes", d.From)
	case d.Setup >= Priorities || d.Hold >= Priorities:
		return fmt.Errorf("setup priority %d, holding priority %d: want 0, the highest, to %d", d.Setup, d.Hold, Priorities-1)
	case d.Hold > d.Setup:
		return fmt.Errorf("holding priority %d is below setup priority %d: want at most its number, so that paths do not displace each other by turns", d.Hold, d.Setup)
	case d.MaxHops < 0:
		return fmt.Errorf("at most %d hops: want 1 or more, or 0 for no bound", d.MaxHops)
	case d.Minimise > Widest:
		return fmt.Errorf("objective %d: want LeastCost, LeastDelay or Widest", d.Minimise)
	}
	for i, v := range d.Via {
		if slices.Contains(d.Via[:i], v) {
			return fmt.Errorf("via %+v: given twice", v)
		}
		if v.ID < 0 || v.IsCable && v.ID >= g.cables || !v.IsCable && v.ID >= g.Nodes {
			return fmt.Errorf("via %+v: no such node or cable", v)
		}
	}
	for _, a := range d.Apart {
		for _, l := range a.From {
			if l < 0 || l >= len(g.Links) {
				return fmt.Errorf("apart from a path with link %d: want 0 to %d", l, len(g.Links)-1)
			}
		}
	}
	return nil
}

// Preemption is bandwidth of a less important priority that a path takes.
type Preemption struct {
	Link      int
	Priority  uint8 // the holding priority of those who lose it
	Bandwidth uint64
}

// Route is a path that meets a demand.
type Route struct {
	Path     Path
	Cost     uint64
	Delay    uint64
	Preempts []Preemption // in the order of the path; of each link the least important first
}

// route completes a path that meets a demand.
func (g *Graph) route(d *Demand, p Path) Route {
	r := Route{Path: p, Cost: p.Cost(g), Delay: p.Delay(g)}
	for _, i := range p {
		l := &g.Links[i]
		need := d.Bandwidth
		for _, b := range l.Booked {
			need += b
		}
		if d.Bandwidth == 0 || need <= l.Capacity {
			continue
		}
		need -= l.Capacity
		for q := Priorities - 1; q > int(d.Setup) && need > 0; q-- {
			if take := min(need, l.Booked[q]); take > 0 {
				r.Preempts = append(r.Preempts, Preemption{i, uint8(q), take})
				need -= take
			}
		}
	}
	return r
}

// Verify returns an error if a path does not meet a demand; it shares no code with the search.
func (d *Demand) Verify(g *Graph, p Path) error {
	if len(p) == 0 || g.Links[p[0]].From != d.From || g.Links[p[len(p)-1]].To != d.To {
		return fmt.Errorf("the path does not lead from %d to %d", d.From, d.To)
	}
	seen := map[int]bool{d.From: true}
	via := d.Via
	if len(via) > 0 && via[0] == (Via{false, d.From}) {
		via = via[1:]
	}
	for i, n := range p {
		l := &g.Links[n]
		switch {
		case i > 0 && g.Links[p[i-1]].To != l.From:
			return fmt.Errorf("link %d does not begin where link %d ends", n, p[i-1])
		case seen[l.To]:
			return fmt.Errorf("node %d is visited twice", l.To)
		case l.Drained:
			return fmt.Errorf("link %d is drained", n)
		case l.Free(d.Setup) < d.Bandwidth:
			return fmt.Errorf("link %d has %d kbit/s free", n, l.Free(d.Setup))
		case l.Colours&d.ExcludeAny != 0 || l.Colours&d.IncludeAll != d.IncludeAll || d.IncludeAny != 0 && l.Colours&d.IncludeAny == 0:
			return fmt.Errorf("link %d has colours %b", n, l.Colours)
		case slices.Contains(d.ExcludeCables, l.Cable) || slices.Contains(d.ExcludeNodes, l.From) || slices.Contains(d.ExcludeNodes, l.To):
			return fmt.Errorf("link %d is excluded", n)
		}
		for _, r := range l.Risks {
			if slices.Contains(d.ExcludeRisks, r) {
				return fmt.Errorf("link %d is of risk group %d", n, r)
			}
		}
		for _, a := range d.Apart {
			if err := a.verify(g, d, n); err != nil {
				return err
			}
		}
		seen[l.To] = true
		if len(via) > 0 && via[0] == (Via{true, l.Cable}) {
			via = via[1:]
		}
		if len(via) > 0 && via[0] == (Via{false, l.To}) {
			via = via[1:]
		}
	}
	switch {
	case len(via) > 0:
		return fmt.Errorf("%d nodes or cables are not passed", len(via))
	case d.MaxHops > 0 && len(p) > d.MaxHops:
		return fmt.Errorf("%d links, at most %d", len(p), d.MaxHops)
	case d.MaxDelay > 0 && p.Delay(g) > d.MaxDelay:
		return fmt.Errorf("%d µs, at most %d", p.Delay(g), d.MaxDelay)
	}
	return nil
}

func (a *Apart) verify(g *Graph, d *Demand, n int) error {
	l := &g.Links[n]
	for i, m := range a.From {
		o := &g.Links[m]
		if a.Cables && o.Cable == l.Cable {
			return fmt.Errorf("link %d is of the other path, too", n)
		}
		if a.Nodes && i > 0 && (o.From == l.To && l.To != d.To || o.From == l.From && l.From != d.From) {
			return fmt.Errorf("node %d is on the other path, too", o.From)
		}
		for _, r := range o.Risks {
			if a.Risks && slices.Contains(l.Risks, r) {
				return fmt.Errorf("link %d shares risk group %d with the other path", n, r)
			}
		}
	}
	return nil
}
