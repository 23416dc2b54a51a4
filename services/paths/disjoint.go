package paths

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Disjoint lists up to k paths from src to dst, all different, that share as
// few links as any k paths do, then as few switches, then have the least total
// weight; the lightest first. So if k link-disjoint paths exist it returns k
// such paths, and switch-disjoint ones if there are. When the network forces
// paths to be the same, it returns fewer than k. Time grows with k times the links.
//
// It is a flow of k units of least cost, where a link or switch beyond its first
// unit costs more than any detour, found by successive shortest paths; for k = 2
// that is Bhandari's algorithm ("Survivable networks", 1999).
func (t *Topology) Disjoint(src, dst flow.DPID, k int) []Path {
	s, ok := t.index[src]
	d, ok2 := t.index[dst]
	if !ok || !ok2 || k < 1 {
		return nil
	}
	if s == d {
		return []Path{{{Switch: src}}}
	}
	if at(t.row(d), s) == Unreachable {
		return nil
	}
	routes := t.disjoint(s, d, k)
	var list []Path
	for i, r := range routes {
		if i == 0 || compareRoutes(routes[i-1], r) != 0 {
			list = append(list, t.path(r))
		}
	}
	return list
}

// disjoint is Disjoint before equal routes are dropped, for slots that are
// connected and different.
func (t *Topology) disjoint(src, dst int32, k int) []route {
	f := newCirculation(t, src, dst)
	for range k {
		f.augment()
	}
	routes := make([]route, k)
	for i := range routes {
		routes[i] = f.take()
	}
	slices.SortFunc(routes, compareRoutes)
	return routes
}

// penalty is the cost of a unit of flow: how many links it shares (upper 32 bits)
// and switches (lower 32), then weight. Negative where it takes flow back.
type penalty struct{ shared, weight int64 }

const (
	sharedLink   = 1 << 32
	sharedSwitch = 1
)

func (c penalty) less(d penalty) bool {
	return cmp.Or(cmp.Compare(c.shared, d.shared), cmp.Compare(c.weight, d.weight)) < 0
}

// circulation is a flow from src to dst. Every slot is two vertices, 2·slot
// where links enter and 2·slot+1 where they leave, so that passing through
// a switch has a cost.
type circulation struct {
	t        *Topology
	src, dst int32
	base     []int32 // by slot: the number of its first link
	out      []int32 // by link: the flow on it
	in       []int32 // by link: the flow on its other direction
	through  []int32 // by slot: the flow through it

	cost   []penalty // by vertex: from src, in the residual network
	known  []bool
	queued []bool
	via    []step // by vertex: the last step of the cheapest way there
}

// step is a move between vertices: along a link of the slot at from, against
// one, or through a slot in either direction.
type step struct {
	from int32
	link int32 // of the slot of from; -1: through the slot
	back bool  // takes flow back
}

func newCirculation(t *Topology, src, dst int32) *circulation {
	n := len(t.adj)
	f := &circulation{
		t: t, src: src, dst: dst,
		base: make([]int32, n+1), out: make([]int32, t.links), in: make([]int32, t.links), through: make([]int32, n),
		cost: make([]penalty, 2*n), known: make([]bool, 2*n), queued: make([]bool, 2*n), via: make([]step, 2*n),
	}
	for slot, adj := range t.adj {
		f.base[slot+1] = f.base[slot] + int32(len(adj))
	}
	return f
}

// augment adds a unit of flow along the cheapest way of the residual network,
// which exists because src and dst are connected and links can be shared.
// The order in which ways are tried depends on ports only.
func (f *circulation) augment() {
	clear(f.known)
	start, end := 2*f.src+1, 2*f.dst
	f.known[start], f.cost[start] = true, penalty{}
	queue := []int32{start}
	reach := func(v int32, c penalty, by step) {
		if f.known[v] && !c.less(f.cost[v]) {
			return
		}
		f.known[v], f.cost[v], f.via[v] = true, c, by
		if !f.queued[v] && v != end {
			f.queued[v] = true
			queue = append(queue, v)
		}
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		f.queued[v] = false
		f.expand(v, reach)
	}
	for v := end; v != start; {
		by := f.via[v]
		f.apply(by)
		v = by.from
	}
}

// expand calls reach for each vertex one step from v.
func (f *circulation) expand(v int32, reach func(int32, penalty, step)) {
	u, c := v/2, f.cost[v]
	base, adj := f.base[u], f.t.adj[u]
	if v%2 == 1 { // where links leave
		if n := f.through[u]; n > 0 {
			reach(v-1, penalty{c.shared - passing(n-1), c.weight}, step{v, -1, true})
		}
		for j := range adj {
			e := &adj[j]
			if e.to == f.src {
				continue
			}
			reach(2*e.to, penalty{c.shared + crossing(f.out[base+int32(j)]), c.weight + int64(e.w)}, step{v, int32(j), false})
		}
		return
	}
	reach(v+1, penalty{c.shared + passing(f.through[u]), c.weight}, step{v, -1, false})
	for j := range adj {
		if n := f.in[base+int32(j)]; n > 0 {
			e := &adj[j]
			reach(2*e.to+1, penalty{c.shared - crossing(n-1), c.weight - int64(e.back)}, step{v, int32(j), true})
		}
	}
}

// crossing is what one more unit costs on a link that carries n.
func crossing(n int32) int64 {
	if n > 0 {
		return sharedLink
	}
	return 0
}

// passing is what one more unit costs through a switch that n pass through.
func passing(n int32) int64 {
	if n > 0 {
		return sharedSwitch
	}
	return 0
}

// apply moves one unit by a step.
func (f *circulation) apply(by step) {
	u, n := by.from/2, int32(1)
	if by.back {
		n = -1
	}
	switch {
	case by.link < 0:
		f.through[u] += n
	case by.back:
		e := f.t.adj[u][by.link]
		f.push(e.to, e.in, n)
	default:
		f.push(u, f.t.adj[u][by.link].out, n)
	}
}

// push adds n units to the link that leaves a slot by a port.
func (f *circulation) push(u int32, out flow.Port, n int32) {
	j, _ := f.t.edgeIndex(u, out)
	e := f.t.adj[u][j]
	i, _ := f.t.edgeIndex(e.to, e.in)
	f.out[f.base[u]+int32(j)] += n
	f.in[f.base[e.to]+int32(i)] += n
}

// take removes one unit from the flow and returns its route. Of least cost, the
// flow has no cycles, so the route has no loop.
func (f *circulation) take() route {
	r := route{from: f.src}
	for u := f.src; u != f.dst; {
		base := f.base[u]
		j := slices.IndexFunc(f.out[base:f.base[u+1]], func(n int32) bool { return n > 0 })
		e := f.t.adj[u][j]
		f.push(u, e.out, -1)
		r.links = append(r.links, e)
		r.weight += uint64(e.w)
		u = e.to
	}
	return r
}
