package paths

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// route is a path while it is being found: the links it takes from a slot.
type route struct {
	weight uint64
	links  []edge
	from   int32
	branch int // the hop at which it left the route it was made from
}

// path returns the route as hops.
func (t *Topology) path(r route) Path {
	p := make(Path, 0, len(r.links)+1)
	u, in := r.from, flow.Port(0)
	for _, e := range r.links {
		p = append(p, Hop{t.ids[u], in, e.out})
		u, in = e.to, e.in
	}
	return append(p, Hop{t.ids[u], in, 0})
}

// compareRoutes orders routes of the same source by weight, length, ports.
func compareRoutes(a, b route) int {
	return cmp.Or(
		cmp.Compare(a.weight, b.weight),
		cmp.Compare(len(a.links), len(b.links)),
		slices.CompareFunc(a.links, b.links, func(x, y edge) int { return cmp.Compare(x.out, y.out) }))
}

// KShortest lists up to k loopless paths from src to dst, the shortest first;
// paths over parallel links count as different. Yen, "Finding the k shortest
// loopless paths in a network" (1971), with Lawler's rule that a path branches
// only after the hop where it was itself made.
func (t *Topology) KShortest(src, dst flow.DPID, k int) []Path {
	s, ok := t.index[src]
	d, ok2 := t.index[dst]
	if !ok || !ok2 || k < 1 {
		return nil
	}
	if s == d {
		return []Path{{{Switch: src}}}
	}
	y := yen{t: t, dst: d, dist: t.row(d), work: t.scratch.Get().(*scratch)}
	defer t.scratch.Put(y.work)
	if at(y.dist, s) == Unreachable {
		return nil
	}
	y.work.unmark(len(t.adj))
	first, _ := y.spur(nil, s, nil)
	found := []route{first}
	list := []Path{t.path(first)}
	for len(list) < k {
		y.branches(found)
		if len(y.candidates) == 0 {
			break
		}
		i := 0
		for j := range y.candidates {
			if compareRoutes(y.candidates[j], y.candidates[i]) < 0 {
				i = j
			}
		}
		found = append(found, y.candidates[i])
		list = append(list, t.path(y.candidates[i]))
		y.candidates = slices.Delete(y.candidates, i, i+1)
	}
	return list
}

// yen is the state of one search.
type yen struct {
	t          *Topology
	dst        int32
	dist       []uint32 // to dst, over the whole topology
	work       *scratch // its marks are the slots of the part before the branch
	candidates []route
}

// branches adds, for each hop of the last route found, the shortest route that
// leaves there and by none of the links that routes with the same beginning take.
func (y *yen) branches(found []route) {
	last := found[len(found)-1]
	y.work.unmark(len(y.t.adj))
	u, weight := last.from, uint64(0)
	for i := range last.links {
		if i >= last.branch {
			var taken []flow.Port
			for _, r := range found {
				if len(r.links) > i && sameLinks(r.links[:i], last.links[:i]) {
					taken = append(taken, r.links[i].out)
				}
			}
			if r, ok := y.spur(last.links[:i], u, taken); ok {
				r.weight, r.from, r.branch = r.weight+weight, last.from, i
				y.candidates = append(y.candidates, r)
			}
		}
		y.work.mark[u] = y.work.round
		weight += uint64(last.links[i].w)
		u = last.links[i].to
	}
}

func sameLinks(a, b []edge) bool {
	return slices.EqualFunc(a, b, func(x, y edge) bool { return x.out == y.out })
}

// spur returns the shortest route that begins with links, and goes on from u
// by no taken port and no marked slot; of equal ones the first by ports. Its
// weight is that of the part from u.
func (y *yen) spur(links []edge, u int32, taken []flow.Port) (route, bool) {
	r := route{links: slices.Clone(links), from: u}
	if y.descend(&r, y.dist, u, taken) {
		return r, true
	}
	r.links = r.links[:len(links)]
	if !y.measure(u, taken) {
		return route{}, false
	}
	r.weight = 0
	return r, y.descend(&r, y.work.dist, u, taken)
}

// descend extends a route from u to the destination along falling distances,
// by the lowest port that does, and reports whether it got there.
func (y *yen) descend(r *route, dist []uint32, u int32, taken []flow.Port) bool {
	for first := true; u != y.dst; first = false {
		next := slices.IndexFunc(y.t.adj[u], func(e edge) bool {
			d := dist[e.to]
			return d != Unreachable && d+e.w == dist[u] && y.work.mark[e.to] != y.work.round &&
				!(first && slices.Contains(taken, e.out))
		})
		if next < 0 {
			return false
		}
		e := y.t.adj[u][next]
		r.links = append(r.links, e)
		r.weight += uint64(e.w)
		u = e.to
	}
	return true
}

// measure computes the distances to the destination that avoid marked slots
// and the taken ports of spur, until that of spur is known.
func (y *yen) measure(spur int32, taken []flow.Port) bool {
	s := y.work
	s.dist = slices.Grow(s.dist[:0], len(y.t.adj))[:len(y.t.adj)]
	fill(s.dist, Unreachable)
	s.queue.reset()
	s.dist[y.dst] = 0
	s.queue.push(0, y.dst)
	for len(s.queue) > 0 {
		d, u := s.queue.pop()
		if u == spur {
			return true
		}
		if d != s.dist[u] {
			continue
		}
		for i := range y.t.adj[u] {
			e := &y.t.adj[u][i]
			if d+e.back >= s.dist[e.to] || s.mark[e.to] == s.round || e.to == spur && slices.Contains(taken, e.in) {
				continue
			}
			s.dist[e.to] = d + e.back
			s.queue.push(s.dist[e.to], e.to)
		}
	}
	return false
}
