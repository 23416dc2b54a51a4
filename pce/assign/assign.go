// Package assign distributes demands that have a rate over links that have a capacity, one
// path each, so that the mean delay of the network is small, and says how far from the least
// possible one the result is at most.
//
// The objective is the mean delay of a network of M/M/1 queues. L. Fratta, M. Gerla and
// L. Kleinrock, The flow deviation method, Networks 3, 1973, eq. (1) to (3), have, with f the
// load of a link, C its capacity and d its propagation delay, γ the sum of all rates and B the
// mean length of a packet:
//
//	T = 1/γ · Σ f·(B/(C−f) + d)                    (1)
//	∂(γT)/∂f = B·C/(C−f)² + d                      (2)
//
// Above fullShare·C a parabola with the same value, slope and curvature goes on, so that a link
// may be full: γT stays finite and convex.
//
// Place finds paths one after the other, each over links with enough left. Optimise moves
// demands as long as the mean delay falls, single ones and, where there are few, two at a time;
// splits demands over several paths by flow deviation, which has a lower bound by its duality gap;
// and, where that is far below, tries paths that follow the split ones.
//
// It is pure: it knows no switches, and imports the standard library only. Package
// services/tunnels and the benchmarks import it.
package assign

import (
	"fmt"
	"math"
)

// Link is one direction of a physical link.
type Link struct {
	From, To int     // nodes
	Cable    int     // the physical link, from 0 on: both directions have the same
	Capacity float64 // what demands may take, bit/s; 0: it is not known, and bounds nothing
	Delay    float64 // propagation, s
	Latency  float64 // what counts towards MaxDelay, s
	Risks    []int   // the groups of links that fail together to which it belongs
	Closed   bool    // no path is moved onto it
}

// Demand is traffic from one node to another, which takes one path.
type Demand struct {
	From, To int
	Rate     float64 // bit/s, above 0
	Priority int     // the smaller is placed first
	MaxDelay float64 // the most latency of its path, s; 0: no bound
	MaxHops  int     // the most links of its path; 0: no bound
	// Avoid has true for each link that its path may not use; nil: it may use all. Demands with
	// the same slice are computed together.
	Avoid []bool
	Apart []Apart
	Path  []int // links, as it is now; empty: it has none
	Fixed bool  // it stays as it is
}

// Apart is another demand with whose path a demand's own shares no cable, and no node
// between its ends or no risk group either. It holds in both directions.
type Apart struct {
	Demand       int
	Nodes, Risks bool
}

// Problem is a network and the demands on it. Nothing here changes it.
type Problem struct {
	Nodes      int
	Links      []Link
	Demands    []Demand
	PacketBits float64 // mean length of a packet, bits
}

// Check returns an error that names the link or demand that cannot be.
func (p *Problem) Check() error {
	if !(p.PacketBits > 0) || math.IsInf(p.PacketBits, 0) {
		return fmt.Errorf("packets of %v bits: want more than 0", p.PacketBits)
	}
	node := func(n int) bool { return n >= 0 && n < p.Nodes }
	size := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	for i, l := range p.Links {
		switch {
		case !node(l.From) || !node(l.To) || l.From == l.To:
			return fmt.Errorf("link %d: from %d to %d: want two of %d nodes", i, l.From, l.To, p.Nodes)
		case l.Cable < 0 || l.Cable >= len(p.Links):
			return fmt.Errorf("link %d: cable %d: want 0 to %d", i, l.Cable, len(p.Links)-1)
		case !size(l.Capacity) || !size(l.Delay) || !size(l.Latency):
			return fmt.Errorf("link %d: capacity %v bit/s, delay %v s, latency %v s: want finite numbers, at least 0", i, l.Capacity, l.Delay, l.Latency)
		}
	}
	for i := range p.Demands {
		d := &p.Demands[i]
		switch {
		case !node(d.From) || !node(d.To) || d.From == d.To:
			return fmt.Errorf("demand %d: from %d to %d: want two of %d nodes", i, d.From, d.To, p.Nodes)
		case !size(d.Rate) || d.Rate == 0:
			return fmt.Errorf("demand %d: rate %v bit/s: want more than 0", i, d.Rate)
		case !size(d.MaxDelay) || d.MaxHops < 0:
			return fmt.Errorf("demand %d: at most %v s and %d links: want 0, no bound, or more", i, d.MaxDelay, d.MaxHops)
		case d.Avoid != nil && len(d.Avoid) != len(p.Links):
			return fmt.Errorf("demand %d: avoid has %d of %d links", i, len(d.Avoid), len(p.Links))
		}
		for _, a := range d.Apart {
			if a.Demand < 0 || a.Demand >= len(p.Demands) || a.Demand == i {
				return fmt.Errorf("demand %d: apart from %d: want another of %d demands", i, a.Demand, len(p.Demands))
			}
		}
		at := d.From
		for _, l := range d.Path {
			if l < 0 || l >= len(p.Links) || p.Links[l].From != at {
				return fmt.Errorf("demand %d: its path breaks off at node %d", i, at)
			}
			at = p.Links[l].To
		}
		if len(d.Path) > 0 && at != d.To {
			return fmt.Errorf("demand %d: its path ends at node %d, not %d", i, at, d.To)
		}
	}
	return nil
}

// Assignment is a path for each demand, or none.
type Assignment struct {
	Paths [][]int   // of links, by demand; empty: it has none
	Load  []float64 // the sum of the rates on each link, bit/s

	p     *Problem
	find  *finder
	apart [][]Apart              // by demand, in both directions
	ahead func(link int) float64 // load that is to come, by which paths are chosen; nil: none
}

// Present returns the paths that the demands have now. The problem has passed Check.
func (p *Problem) Present() *Assignment {
	a := &Assignment{Paths: make([][]int, len(p.Demands)), Load: make([]float64, len(p.Links)), p: p, find: newFinder(p),
		apart: make([][]Apart, len(p.Demands))}
	for i := range p.Demands {
		a.put(i, p.Demands[i].Path)
		for _, x := range p.Demands[i].Apart {
			a.apart[i] = append(a.apart[i], x)
			a.apart[x.Demand] = append(a.apart[x.Demand], Apart{i, x.Nodes, x.Risks})
		}
	}
	return a
}

// put gives a demand, which has none, a path.
func (a *Assignment) put(i int, path []int) {
	a.Paths[i] = path
	for _, l := range path {
		a.Load[l] += a.p.Demands[i].Rate
	}
}

// Set gives a demand another path, whatever it may have.
func (a *Assignment) Set(i int, path []int) {
	a.take(i)
	a.put(i, path)
}

// take takes the path of a demand away, and returns it.
func (a *Assignment) take(i int) (path []int) {
	path, a.Paths[i] = a.Paths[i], nil
	for _, l := range path {
		a.Load[l] = max(0, a.Load[l]-a.p.Demands[i].Rate)
	}
	return path
}

// Placed returns the sum of the rates of demands that have a path, bit/s.
func (a *Assignment) Placed() (rate float64) {
	for i, path := range a.Paths {
		if len(path) > 0 {
			rate += a.p.Demands[i].Rate
		}
	}
	return rate
}

// MeanDelay returns the mean delay of what is placed by eq. (1), s; 0 if nothing is.
func (a *Assignment) MeanDelay() float64 { return a.p.perRate(a.p.total(a.Load), a.Placed()) }

// WorstLoad returns the largest share of its capacity that a link carries, and which one; -1
// if the capacity of none is known.
func (a *Assignment) WorstLoad() (share float64, link int) {
	link = -1
	for i, l := range a.p.Links {
		if s := a.Load[i] / l.Capacity; l.Capacity > 0 && (link < 0 || s > share) {
			share, link = s, i
		}
	}
	return share, link
}

// MeanLoad returns the mean of these shares; 0 if the capacity of no link is known.
func (a *Assignment) MeanLoad() (share float64) {
	n := 0
	for i, l := range a.p.Links {
		if l.Capacity > 0 {
			share += a.Load[i] / l.Capacity
			n++
		}
	}
	return share / float64(max(n, 1))
}
