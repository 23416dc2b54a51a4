package paths

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/flow"
)

// Unreachable is the distance between switches that no usable links connect.
const Unreachable = 1<<32 - 1

// Topology is one state of the network: the switches that were present and the
// links that were usable. It never changes, and any number of goroutines may
// use it at once; what it computes it keeps. Results depend only on the
// switches and links, not on the history that led to them.
//
// Distances are computed per destination when first asked for, 4 bytes per
// switch and destination.
type Topology struct {
	version uint64
	ids     []flow.DPID         // by slot; a slot without a switch keeps an old one
	index   map[flow.DPID]int32 // slots of present switches
	order   []int32             // slots of present switches, by DPID
	adj     [][]edge            // by slot: usable links that leave, by port
	links   int                 // how many those are
	uniform uint32              // the weight of all of them; 0: they differ
	rows    []atomic.Pointer[row]

	tree     atomic.Pointer[Tree]
	lastTree *Tree // an earlier snapshot's, returned again if it is still right

	scratch *sync.Pool // of *scratch, shared by all snapshots of a graph
}

// edge is a usable link from the switch that lists it. A port has at most one.
type edge struct {
	to      int32
	out, in flow.Port // port of this switch, port of the other
	w, back uint32    // weight of this direction and of the other
}

// row is the distances from every slot to one; slots past its end are
// unreachable.
type row struct{ dist []uint32 }

// at reads a row that may be shorter than the topology has slots.
func at(dist []uint32, slot int32) uint32 {
	if int(slot) < len(dist) {
		return dist[slot]
	}
	return Unreachable
}

// Version numbers the snapshots of one graph: a later one has a higher number.
func (t *Topology) Version() uint64 { return t.version }

// Has reports whether a switch is present.
func (t *Topology) Has(d flow.DPID) bool {
	_, ok := t.index[d]
	return ok
}

// Len is the number of switches.
func (t *Topology) Len() int { return len(t.order) }

// Afresh returns the topology as if nothing had been computed for it yet, with
// the same version: to measure the computation, and to check what was repaired.
func (t *Topology) Afresh() *Topology {
	return &Topology{
		version: t.version, ids: t.ids, index: t.index, order: t.order, adj: t.adj, links: t.links, uniform: t.uniform,
		rows: make([]atomic.Pointer[row], len(t.adj)), scratch: t.scratch,
	}
}

// Switches lists the switches that are present, in order.
func (t *Topology) Switches() []flow.DPID {
	list := make([]flow.DPID, len(t.order))
	for i, slot := range t.order {
		list[i] = t.ids[slot]
	}
	return list
}

// Links lists the usable links, both directions of each, by Src.
func (t *Topology) Links() []Link {
	list := make([]Link, 0, t.links)
	for _, slot := range t.order {
		for _, e := range t.adj[slot] {
			list = append(list, Link{
				Src:    flow.Location{Switch: t.ids[slot], Port: e.out},
				Dst:    flow.Location{Switch: t.ids[e.to], Port: e.in},
				Weight: e.w,
			})
		}
	}
	return list
}

// Peer returns the port at the other end of the usable link at a port.
func (t *Topology) Peer(at flow.Location) (flow.Location, bool) {
	slot, ok := t.index[at.Switch]
	if !ok {
		return flow.Location{}, false
	}
	e, ok := t.edge(slot, at.Port)
	if !ok {
		return flow.Location{}, false
	}
	return flow.Location{Switch: t.ids[e.to], Port: e.in}, true
}

// edge finds the usable link that leaves a slot by a port.
func (t *Topology) edge(slot int32, out flow.Port) (edge, bool) {
	i, ok := t.edgeIndex(slot, out)
	if !ok {
		return edge{}, false
	}
	return t.adj[slot][i], true
}

func (t *Topology) edgeIndex(slot int32, out flow.Port) (int, bool) {
	return slices.BinarySearchFunc(t.adj[slot], out, func(e edge, p flow.Port) int { return cmp.Compare(e.out, p) })
}

// Distance is the least total weight of a path from src to dst; false if there
// is none or a switch is unknown.
func (t *Topology) Distance(src, dst flow.DPID) (uint32, bool) {
	s, ok := t.index[src]
	d, ok2 := t.index[dst]
	if !ok || !ok2 {
		return Unreachable, false
	}
	w := at(t.row(d), s)
	return w, w != Unreachable
}

// Components lists the sets of switches that usable links connect, each set in
// order, the sets by their first switch.
func (t *Topology) Components() [][]flow.DPID {
	seen := make([]bool, len(t.adj))
	var list [][]flow.DPID
	var queue []int32
	for _, root := range t.order {
		if seen[root] {
			continue
		}
		seen[root] = true
		queue = append(queue[:0], root)
		var set []flow.DPID
		for i := 0; i < len(queue); i++ {
			set = append(set, t.ids[queue[i]])
			for _, e := range t.adj[queue[i]] {
				if !seen[e.to] {
					seen[e.to] = true
					queue = append(queue, e.to)
				}
			}
		}
		slices.Sort(set)
		list = append(list, set)
	}
	return list
}
