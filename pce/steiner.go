package pce

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Tree is cables that join nodes without a loop.
type Tree struct {
	Cables []int // in order
	Cost   uint64
}

// branch is a cable whose both directions can carry the traffic of a tree.
type branch struct {
	a, b, cable int
	cost        uint64
}

// forest is the branches of a graph and which of them meet at each node.
type forest struct {
	branches []branch
	at       [][]int32
}

// branches returns the cables that can carry a demand in both directions. A cable costs what
// the dearer of its directions does.
func (g *Graph) branches(d *Demand, terminals []int) (*forest, error) {
	if len(terminals) < 2 {
		return nil, fmt.Errorf("%d ends: want two or more", len(terminals))
	}
	for i, n := range terminals {
		if n < 0 || n >= g.Nodes || slices.Contains(terminals[:i], n) {
			return nil, fmt.Errorf("end %d: want different ones of %d nodes", n, g.Nodes)
		}
	}
	filter := *d
	filter.From, filter.To = terminals[0], terminals[1]
	if err := filter.Check(g); err != nil {
		return nil, err
	}
	why := g.judge(&filter)
	f := &forest{at: make([][]int32, g.Nodes)}
	half := make([]int, g.cables)
	for i := range half {
		half[i] = -1
	}
	for i := range g.Links {
		l := &g.Links[i]
		if why[i] != usable {
			continue
		}
		o := half[l.Cable]
		if o < 0 || g.Links[o].From != l.To {
			half[l.Cable] = i
			continue
		}
		n := int32(len(f.branches))
		f.branches = append(f.branches, branch{l.From, l.To, l.Cable, uint64(max(l.Cost, g.Links[o].Cost))})
		f.at[l.From] = append(f.at[l.From], n)
		f.at[l.To] = append(f.at[l.To], n)
	}
	return f, nil
}

// errSevered is the error that a tree cannot join two ends.
func errSevered(a, b int) error {
	return fmt.Errorf("no tree: no links that can carry it in both directions join %d and %d", a, b)
}

// SteinerTree returns a tree that joins terminals and costs at most 2(1-1/l) times the least, where l
// is the number of leaves of that (Kou, Markowsky and Berman, A fast algorithm for
// Steiner trees, 1981). Of the demand, bandwidth, priorities, colours, Apart and what is excluded
// count, in both directions of each cable.
func (g *Graph) SteinerTree(d *Demand, terminals []int) (Tree, error) {
	f, err := g.branches(d, terminals)
	if err != nil {
		return Tree{}, err
	}
	// The distances between terminals, and of those a least spanning tree.
	type edge struct {
		a, b int
		cost uint64
	}
	var closure []edge
	ways := make([][]int32, len(terminals))
	for i, t := range terminals {
		dist, by := f.from(t)
		ways[i] = by
		for j := range i {
			if dist[terminals[j]] == far {
				return Tree{}, errSevered(t, terminals[j])
			}
			closure = append(closure, edge{i, j, dist[terminals[j]]})
		}
	}
	slices.SortStableFunc(closure, func(x, y edge) int { return cmp.Compare(x.cost, y.cost) })
	sets := newSets(len(terminals))
	var list []int32 // the branches of the ways between them
	for _, e := range closure {
		if sets.join(e.a, e.b) {
			list = append(list, f.way(ways[e.a], terminals[e.a], terminals[e.b])...)
		}
	}
	return f.spanning(list, terminals), nil
}

// StarTree returns the tree of least-cost ways from one node, the hub, to the
// terminals: that of OSHI's virtual switches where it does not optimise, whose hub is any inner node. A hub
// that is negative is drawn by chance among nodes that are no terminals and reach them all, or among the
// terminals if there are none. What of the demand counts is as with SteinerTree.
func (g *Graph) StarTree(d *Demand, terminals []int, hub int, chance *rand.Rand) (Tree, error) {
	f, err := g.branches(d, terminals)
	if err != nil {
		return Tree{}, err
	}
	dist, _ := f.from(terminals[0])
	if hub < 0 {
		var inner []int
		for n := range g.Nodes {
			if dist[n] < far && !slices.Contains(terminals, n) {
				inner = append(inner, n)
			}
		}
		if len(inner) == 0 {
			inner = terminals
		}
		hub = inner[chance.IntN(len(inner))]
	} else if hub >= g.Nodes {
		return Tree{}, fmt.Errorf("hub %d: want one of %d nodes", hub, g.Nodes)
	}
	dist, by := f.from(hub)
	var list []int32
	for _, t := range terminals {
		if dist[t] == far {
			return Tree{}, errSevered(hub, t)
		}
		list = append(list, f.way(by, hub, t)...)
	}
	return f.spanning(list, append(slices.Clone(terminals), hub)), nil
}

// from returns the least cost from a node to each, and the branch by which it is reached.
func (f *forest) from(node int) (dist []uint64, by []int32) {
	dist, by = make([]uint64, len(f.at)), make([]int32, len(f.at))
	for i := range dist {
		dist[i], by[i] = far, -1
	}
	dist[node] = 0
	q := nearest{{0, int32(node)}}
	for q.Len() > 0 {
		r := heap.Pop(&q).(reached)
		if r.dist > dist[r.node] {
			continue
		}
		for _, n := range f.at[r.node] {
			b := &f.branches[n]
			to := b.other(int(r.node))
			if d := r.dist + b.cost; d < dist[to] {
				dist[to], by[to] = d, n
				heap.Push(&q, reached{d, int32(to)})
			}
		}
	}
	return dist, by
}

func (b *branch) other(n int) int { return b.a + b.b - n }

// way returns the branches between two nodes, by being those from which nodes were reached.
func (f *forest) way(by []int32, from, to int) (list []int32) {
	for n := to; n != from; n = f.branches[by[n]].other(n) {
		list = append(list, by[n])
	}
	return list
}

// spanning returns a least spanning tree of some branches without the ends that join nothing.
func (f *forest) spanning(list []int32, terminals []int) Tree {
	slices.SortFunc(list, func(x, y int32) int {
		return cmp.Or(cmp.Compare(f.branches[x].cost, f.branches[y].cost), cmp.Compare(x, y))
	})
	list = slices.Compact(list)
	sets := newSets(len(f.at))
	degree := make([]int, len(f.at))
	list = slices.DeleteFunc(list, func(n int32) bool {
		b := &f.branches[n]
		if !sets.join(b.a, b.b) {
			return true
		}
		degree[b.a]++
		degree[b.b]++
		return false
	})
	for pruned := true; pruned; {
		pruned = false
		list = slices.DeleteFunc(list, func(n int32) bool {
			b := &f.branches[n]
			for _, end := range [2]int{b.a, b.b} {
				if degree[end] == 1 && !slices.Contains(terminals, end) {
					degree[b.a]--
					degree[b.b]--
					pruned = true
					return true
				}
			}
			return false
		})
	}
	var t Tree
	for _, n := range list {
		t.Cables = append(t.Cables, f.branches[n].cable)
		t.Cost += f.branches[n].cost
	}
	slices.Sort(t.Cables)
	return t
}

// sets are disjoint sets of numbers.
type sets []int

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func (s sets) root(n int) int {
	for s[n] != n {
		s[n] = s[s[n]]
		n = s[n]
	}
	return n
}

// join unites the sets of two numbers, and reports whether they were two.
func (s sets) join(a, b int) bool {
	a, b = s.root(a), s.root(b)
	s[a] = b
	return a != b
}
