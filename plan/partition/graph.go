// Package partition cuts a network into partitions: sets of switches, each
// under a mastership of its own. Fat trees are cut by their pods, networks of
// hubs by their spokes, any other by a balanced cut of little weight, and what
// administrators demand is kept. Check tells, by a way of its own, whether a
// partitioning is what it says.
//
// It is pure: no input, no output, no clocks; the same seed gives the same
// result. Anyone who plans may import it; it imports the standard library and
// package flow.
package partition

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// The largest graph.
const (
	MaxSwitches = 1 << 16
	MaxLinks    = 1 << 21
	// MaxWeight is the largest weight of a switch or link: with it no sum of
	// them overflows.
	MaxWeight = 1 << 36
)

// Graph is a network to be cut: switches and the links between them. New makes
// one; nobody writes to it after that.
type Graph struct {
	Switches []Switch // sorted by DPID, each once
	Links    []Link   // in the order in which they were given
}

// Switch is a node of a Graph.
type Switch struct {
	DPID flow.DPID
	Name string // as people know it; empty if it has none
	// Load is the work it makes for its controller, in any unit, the same for
	// all: switches, or packet-ins a second. 0 is a switch that makes none.
	Load int64
}

// String is the name, or the DPID of a switch without one.
func (s Switch) String() string { return cmp.Or(s.Name, s.DPID.String()) }

// Link joins two switches. Several may join the same two; a link of a switch to
// itself is kept, and means nothing.
type Link struct {
	A, B int // indices in Graph.Switches
	// Weight is what it costs if the link's ends are in different partitions, in
	// any unit, the same for all. 0 costs nothing.
	Weight int64
}

// New returns the graph of switches, in any order, and of links between them by
// their indices in that list. It keeps neither. Its errors name what is wrong: no
// switches, a DPID given twice, an end that does not exist, a weight below 0,
// more than fits.
func New(switches []Switch, links []Link) (*Graph, error) {
	switch {
	case len(switches) == 0:
		return nil, fmt.Errorf("the network has no switches: want at least one")
	case len(switches) > MaxSwitches:
		return nil, fmt.Errorf("%d switches: want at most %d", len(switches), MaxSwitches)
	case len(links) > MaxLinks:
		return nil, fmt.Errorf("%d links: want at most %d", len(links), MaxLinks)
	}
	order := make([]int, len(switches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(switches[a].DPID, switches[b].DPID) })
	g := &Graph{Switches: make([]Switch, len(switches)), Links: make([]Link, len(links))}
	place := make([]int, len(switches))
	for i, from := range order {
		s := switches[from]
		if s.Load < 0 || s.Load > MaxWeight {
			return nil, fmt.Errorf("switch %v: load %d: want 0 to %d", s, s.Load, int64(MaxWeight))
		}
		if i > 0 && g.Switches[i-1].DPID == s.DPID {
			return nil, fmt.Errorf("switch %v: DPID %v is given twice", s, s.DPID)
		}
		g.Switches[i], place[from] = s, i
	}
	for i, l := range links {
		if min(l.A, l.B) < 0 || max(l.A, l.B) >= len(switches) {
			return nil, fmt.Errorf("link %d joins switches number %d and %d: there are numbers 0 to %d", i, l.A, l.B, len(switches)-1)
		}
		if l.Weight < 0 || l.Weight > MaxWeight {
			return nil, fmt.Errorf("link %d, of %v and %v: weight %d: want 0 to %d", i, switches[l.A], switches[l.B], l.Weight, int64(MaxWeight))
		}
		g.Links[i] = Link{place[l.A], place[l.B], l.Weight}
	}
	return g, nil
}

// Index returns where a switch is in Switches; false if there is none.
func (g *Graph) Index(d flow.DPID) (int, bool) {
	return slices.BinarySearchFunc(g.Switches, d, func(s Switch, d flow.DPID) int { return cmp.Compare(s.DPID, d) })
}

// Load is that of all switches.
func (g *Graph) Load() int64 {
	var sum int64
	for _, s := range g.Switches {
		sum += s.Load
	}
	return sum
}

// Components returns the number of the connected component of every switch,
// numbered by their first switches, and how many there are.
func (g *Graph) Components() ([]int, int) { return g.adjacency().components(nil) }

// adjacency is a graph by its switches: parallel links are one, with their
// weights added, and links of a switch to itself are left out. Neighbours are in
// order.
type adjacency struct {
	first []int32 // by switch: its first in to; one more at the end
	to    []int32
	w     []int64
}

func (g *Graph) adjacency() *adjacency {
	n := len(g.Switches)
	return fold(n, func(add func(a, b int32, w int64)) {
		for _, l := range g.Links {
			if l.A != l.B {
				add(int32(l.A), int32(l.B), l.Weight)
			}
		}
	})
}

// fold makes the adjacency of n nodes of the links that each gives, which it
// does twice, the same both times.
func fold(n int, each func(add func(a, b int32, w int64))) *adjacency {
	first := make([]int32, n+1)
	each(func(a, b int32, _ int64) { first[a+1]++; first[b+1]++ })
	for i := range n {
		first[i+1] += first[i]
	}
	type end struct {
		to int32
		w  int64
	}
	ends, next := make([]end, first[n]), slices.Clone(first)
	each(func(a, b int32, w int64) {
		ends[next[a]], ends[next[b]] = end{b, w}, end{a, w}
		next[a]++
		next[b]++
	})
	x := &adjacency{first: make([]int32, n+1)}
	for i := range n {
		mine := ends[first[i]:first[i+1]]
		slices.SortFunc(mine, func(p, q end) int { return cmp.Compare(p.to, q.to) })
		for j, e := range mine {
			if j > 0 && mine[j-1].to == e.to {
				x.w[len(x.w)-1] += e.w
				continue
			}
			x.to, x.w = append(x.to, e.to), append(x.w, e.w)
		}
		x.first[i+1] = int32(len(x.to))
	}
	return x
}

func (x *adjacency) len() int { return len(x.first) - 1 }

// of returns the neighbours of a switch and the weights of what joins them.
func (x *adjacency) of(i int) ([]int32, []int64) {
	return x.to[x.first[i]:x.first[i+1]], x.w[x.first[i]:x.first[i+1]]
}

// components numbers the connected components of the switches that are not left
// out, by their first switches; those left out have -1.
func (x *adjacency) components(without []bool) ([]int, int) {
	of := make([]int, x.len())
	for i := range of {
		of[i] = -1
	}
	count := 0
	var queue []int32
	for root := range of {
		if of[root] >= 0 || without != nil && without[root] {
			continue
		}
		of[root] = count
		queue = append(queue[:0], int32(root))
		for i := 0; i < len(queue); i++ {
			to, _ := x.of(int(queue[i]))
			for _, v := range to {
				if of[v] < 0 && (without == nil || !without[v]) {
					of[v] = count
					queue = append(queue, v)
				}
			}
		}
		count++
	}
	return of, count
}
