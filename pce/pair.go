package pce

import (
	"cmp"
	"container/heap"
	"slices"
)

// The bounds of what Pair tries where a flow does not give the answer.
const (
	firstsMax   = 64     // paths that it looks for a partner for
	partialsMax = 20_000 // partial paths by which it finds those
)

// Pair returns two paths that meet a demand and are apart from each other as kinds says,
// whose From is ignored, and always by cables; the better one first. Each has the demand's bandwidth
// to itself.
// The error is an *Infeasible, or that of Check.
//
// Of pairs apart by cables or nodes it returns one of least sum (Suurballe; Bhandari, Survivable
// Networks, 1999), if that keeps the demand's bounds. Where bounds or Via count for each path, or risk groups, for which
// the problem is NP-hard, it looks for partners of the best 64 paths, and returns the best
// pair of these: another may be better, and in large networks one may be missed.
func (g *Graph) Pair(d *Demand, kinds Apart) ([2]Route, error) {
	var none [2]Route
	kinds.Cables = true
	if d.Minimise == Widest {
		return widest(g, d, func(d *Demand) ([2]Route, error) { return g.Pair(d, kinds) },
			func(r [2]Route) [2]Route { return [2]Route{g.route(d, r[0].Path), g.route(d, r[1].Path)} })
	}
	first, err := g.Find(d)
	if err != nil {
		return none, err
	}
	if d.Bandwidth > 0 && d.Setup < Priorities-1 {
		polite := *d
		polite.Setup, polite.Hold = Priorities-1, min(d.Hold, Priorities-1)
		if pair, ok := g.pair(&polite, kinds); ok {
			return [2]Route{g.route(d, pair[0]), g.route(d, pair[1])}, nil
		}
	}
	if pair, ok := g.pair(d, kinds); ok {
		return [2]Route{g.route(d, pair[0]), g.route(d, pair[1])}, nil
	}
	kinds.From = first.Path
	next := *d
	next.Apart = append(slices.Clone(d.Apart), kinds)
	e := &Infeasible{Demand: *d, Reason: ReasonPair}
	if cut, ok := g.why(&next, newSearch(g, &next)).(*Infeasible); ok {
		e.Cut = cut.Cut
	}
	return none, e
}

// pair returns the two paths, the better one first.
func (g *Graph) pair(d *Demand, kinds Apart) (pair [2]Path, ok bool) {
	s := newSearch(g, d)
	fits := func(p, q Path) bool {
		other := *d
		kinds.From = p
		other.Apart = append(slices.Clone(d.Apart), kinds)
		return d.Verify(g, p) == nil && other.Verify(g, q) == nil
	}
	p, q, found := g.flow(s, kinds.Nodes)
	if !found {
		return pair, false
	}
	if fits(p, q) {
		return g.ordered(s, p, q), true
	}
	var best [metrics]uint64
	for _, p := range s.firsts() {
		other := *d
		kinds.From = p
		other.Apart = append(slices.Clone(d.Apart), kinds)
		q := newSearch(g, &other).best()
		if q == nil {
			continue
		}
		sum := s.weigh(p)
		for m, v := range s.weigh(q) {
			sum[m] += v
		}
		if !ok || slices.Compare(sum[:], best[:]) < 0 {
			pair, best, ok = g.ordered(s, p, q), sum, true
		}
	}
	return pair, ok
}

// weigh returns the sums along a path by which paths are compared, the more important first.
func (s *search) weigh(p Path) [metrics]uint64 {
	sums := [metrics]uint64{byCost: p.Cost(s.g), byDelay: p.Delay(s.g), byHops: uint64(len(p))}
	return [metrics]uint64{sums[s.order[0]], sums[s.order[1]], sums[byHops]}
}

func (g *Graph) ordered(s *search, p, q Path) [2]Path {
	a, b := s.weigh(p), s.weigh(q)
	if slices.Compare(a[:], b[:]) > 0 {
		p, q = q, p
	}
	return [2]Path{p, q}
}

// firsts returns the best paths of a demand, some at least.
func (s *search) firsts() (list []Path) {
	s.simple = true
	s.labels, s.queue = s.labels[:0], s.queue[:0]
	first := label{node: int32(s.d.From), link: -1, prev: -1, visited: make([]uint64, (s.g.Nodes+63)/64)}
	first.stage = s.pass(0, first.node, -1)
	first.visited[first.node/64] |= 1 << (first.node % 64)
	s.push(first)
	for len(s.queue) > 0 && len(list) < firstsMax && len(s.labels) < partialsMax {
		at := heap.Pop(s).(int32)
		l := s.labels[at]
		switch {
		case int(l.node) != s.d.To:
			s.prolong(at, &l)
		case int(l.stage) == len(s.d.Via):
			list = append(list, s.path(at))
		}
	}
	return list
}

// arc is an arc of the network in which a flow of two units is two paths: each node is an arc
// of its own from where links arrive, 2n, to where they leave, 2n+1.
type arc struct {
	to       int32
	room     int8
	weight   int64
	link     int32 // -1 is a node
	opposite int32
}

// flow returns two paths without a common cable, or node, of least sum: a flow of least cost,
// by two shortest augmentations (Bhandari's algorithm, with Suurballe's potentials). No unit uses a
// cable against the other: the two would cancel each other out.
func (g *Graph) flow(s *search, nodes bool) (p, q Path, ok bool) {
	var arcs []arc
	out := make([][]int32, 2*g.Nodes)
	join := func(from, to int, room int8, weight int64, link int32) {
		n := int32(len(arcs))
		arcs = append(arcs, arc{int32(to), room, weight, link, n + 1}, arc{int32(from), 0, -weight, link, n})
		out[from] = append(out[from], n)
		out[to] = append(out[to], n+1)
	}
	for n := range g.Nodes {
		room := int8(2)
		if nodes && n != s.d.From && n != s.d.To {
			room = 1
		}
		join(2*n, 2*n+1, room, 0, -1)
	}
	for i := range g.Links {
		if l := &g.Links[i]; s.why[i] == usable {
			join(2*l.From+1, 2*l.To, 1, s.weight(l), int32(i))
		}
	}
	potential := make([]int64, 2*g.Nodes)
	for range 2 {
		if !augment(arcs, out, potential, 2*s.d.From+1, 2*s.d.To) {
			return nil, nil, false
		}
	}
	return g.unravel(s, arcs, out), g.unravel(s, arcs, out), true
}

// weight joins both metrics of the objective in one number. The second, which decides
// between equal ones, does so up to a sum of 2^24 over a path.
func (s *search) weight(l *Link) int64 {
	const shift = 24
	return int64(l.metric(s.order[0]))<<shift + int64(l.metric(s.order[1]))
}

// augment sends one unit along a shortest path of what is left.
func augment(arcs []arc, out [][]int32, potential []int64, from, to int) bool {
	const unknown = int64(1) << 62
	dist := make([]int64, len(potential))
	by := make([]int32, len(potential))
	for i := range dist {
		dist[i], by[i] = unknown, -1
	}
	dist[from] = 0
	q := nearest{{0, int32(from)}}
	for q.Len() > 0 {
		r := heap.Pop(&q).(reached)
		if int64(r.dist) > dist[r.node] {
			continue
		}
		for _, n := range out[r.node] {
			a := &arcs[n]
			if a.room == 0 {
				continue
			}
			if d := dist[r.node] + a.weight + potential[r.node] - potential[a.to]; d < dist[a.to] {
				dist[a.to], by[a.to] = d, n
				heap.Push(&q, reached{uint64(d), a.to})
			}
		}
	}
	if by[to] < 0 {
		return false
	}
	for i := range potential {
		potential[i] += min(dist[i], dist[to])
	}
	for n := to; n != from; n = int(arcs[arcs[by[n]].opposite].to) {
		arcs[by[n]].room--
		arcs[arcs[by[n]].opposite].room++
	}
	return true
}

// unravel takes one path out of a flow, which has no cycles: they would cost.
func (g *Graph) unravel(s *search, arcs []arc, out [][]int32) (p Path) {
	for n := s.d.From; n != s.d.To; {
		i := slices.IndexFunc(out[2*n+1], func(i int32) bool { return i%2 == 0 && arcs[i].link >= 0 && arcs[i].room == 0 })
		a := &arcs[out[2*n+1][i]]
		a.room = 1
		p = append(p, int(a.link))
		n = g.Links[a.link].To
	}
	return p
}

// Result is what became of one of several demands: its path, or pair, or why there is none.
type Result struct {
	Routes []Route
	Err    error
}

// Place finds paths for several demands that share the network: what one books is not free for the
// next. Those of more important setup priority come first, of equal ones in their order. If all is
// set, a demand that finds no path is tried again before the others, as long as that leads to
// new orders, and if one is left without, none is placed: ok is false then, and only the
// results of the last trial's demands up to that one are filled in. Without it ok is true, and each demand is met or not by itself.
//
// Bookings that a demand preempts are no longer held against later ones; Route.Preempts says
// what they were. The graph stays as it is.
func (g *Graph) Place(demands []Demand, all bool) (results []Result, ok bool) {
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(demands[a].Setup, demands[b].Setup) })
	moved := make([]bool, len(demands))
	for {
		results = make([]Result, len(demands))
		state := &Graph{Nodes: g.Nodes, Links: slices.Clone(g.Links), out: g.out, in: g.in, cables: g.cables}
		failed := -1
		for at, i := range order {
			d := &demands[i]
			results[i] = state.result(d)
			if results[i].Err != nil && all {
				failed = at
				break
			}
			for r := range results[i].Routes {
				state.Book(d, &results[i].Routes[r])
			}
		}
		if failed < 0 {
			return results, true
		}
		i := order[failed]
		first := slices.IndexFunc(order, func(o int) bool { return demands[o].Setup == demands[i].Setup })
		if moved[i] || first == failed {
			return results, false
		}
		moved[i] = true
		order = slices.Insert(slices.Delete(order, failed, failed+1), first, i)
	}
}

func (g *Graph) result(d *Demand) Result {
	if d.Pair != nil {
		pair, err := g.Pair(d, *d.Pair)
		if err != nil {
			return Result{Err: err}
		}
		return Result{Routes: pair[:]}
	}
	r, err := g.Find(d)
	if err != nil {
		return Result{Err: err}
	}
	return Result{Routes: []Route{r}}
}

// Book changes the links of a graph that the caller owns as if the route of a demand had been set up:
// its bandwidth is booked at its holding priority, and what it preempts is not any more.
func (g *Graph) Book(d *Demand, r *Route) {
	for _, p := range r.Preempts {
		g.Links[p.Link].Booked[p.Priority] -= p.Bandwidth
	}
	for _, i := range r.Path {
		g.Links[i].Booked[d.Hold] += d.Bandwidth
	}
}
