package paths

import (
	"maps"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Tree is the part of a topology on which broadcasts travel without looping: a
// spanning tree of each component, rooted at its lowest DPID, in which every
// switch is as near to the root as it can be; among parents equally near, the
// one with the lowest DPID, by its child's lowest port.
type Tree struct {
	ports map[flow.DPID][]flow.Port
}

// Ports lists the ports of a switch that belong to the tree, in order. A
// broadcast that enters by one of them, or from a host, leaves by the others.
// The caller must not write to it.
func (t *Tree) Ports(d flow.DPID) []flow.Port { return t.ports[d] }

// Has reports whether a port belongs to the tree.
func (t *Tree) Has(at flow.Location) bool {
	_, ok := slices.BinarySearch(t.ports[at.Switch], at.Port)
	return ok
}

// Switches lists the switches of the tree in order, those without ports
// included.
func (t *Tree) Switches() []flow.DPID { return slices.Sorted(maps.Keys(t.ports)) }

// Changed lists the switches whose ports differ between an older tree, which
// may be nil, and this one, in order, those that came or went included.
func (t *Tree) Changed(old *Tree) []flow.DPID {
	if t == old {
		return nil
	}
	var list []flow.DPID
	for d, ports := range t.ports {
		was, ok := old.lookup(d)
		if !ok || !slices.Equal(ports, was) {
			list = append(list, d)
		}
	}
	if old != nil {
		for d := range old.ports {
			if _, ok := t.ports[d]; !ok {
				list = append(list, d)
			}
		}
	}
	slices.Sort(list)
	return list
}

func (t *Tree) lookup(d flow.DPID) ([]flow.Port, bool) {
	if t == nil {
		return nil, false
	}
	ports, ok := t.ports[d]
	return ports, ok
}

// Tree returns the broadcast tree. If it is that of an earlier snapshot whose
// tree was asked for, it is the same pointer.
func (t *Topology) Tree() *Tree {
	if tree := t.tree.Load(); tree != nil {
		return tree
	}
	tree := t.span()
	if last := t.lastTree; last != nil && len(tree.Changed(last)) == 0 {
		tree = last
	}
	if !t.tree.CompareAndSwap(nil, tree) {
		return t.tree.Load()
	}
	return tree
}

// knownTree is the last tree that this snapshot or an earlier one returned.
func (t *Topology) knownTree() *Tree {
	if tree := t.tree.Load(); tree != nil {
		return tree
	}
	return t.lastTree
}

func (t *Topology) span() *Tree {
	roots := make([]int32, 0, 1)
	for _, set := range t.Components() {
		roots = append(roots, t.index[set[0]])
	}
	s := t.scratch.Get().(*scratch)
	defer t.scratch.Put(s)
	dist := make([]uint32, len(t.adj))
	t.measure(s, dist, roots...)

	tree := &Tree{ports: make(map[flow.DPID][]flow.Port, len(t.order))}
	for _, u := range t.order {
		d := t.ids[u]
		if _, ok := tree.ports[d]; !ok {
			tree.ports[d] = nil
		}
		up := t.parent(u, dist)
		if up == nil {
			continue
		}
		tree.ports[d] = append(tree.ports[d], up.out)
		tree.ports[t.ids[up.to]] = append(tree.ports[t.ids[up.to]], up.in)
	}
	for _, ports := range tree.ports {
		slices.Sort(ports)
	}
	return tree
}

// parent returns the link from u towards its root; nil at a root.
func (t *Topology) parent(u int32, dist []uint32) *edge {
	var best *edge
	for i := range t.adj[u] {
		e := &t.adj[u][i]
		if dist[e.to]+e.w == dist[u] && (best == nil || t.ids[e.to] < t.ids[best.to]) {
			best = e
		}
	}
	return best
}
