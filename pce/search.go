package pce

import (
	"container/heap"
	"math"
	"math/bits"
	"slices"
)

// obstacle is why a link cannot carry a demand.
type obstacle uint8

const (
	usable obstacle = iota
	drained
	excluded
	risky
	shared
	coloured
	booked
	obstacles
)

// judge returns, for each link, whether it can carry a demand.
func (g *Graph) judge(d *Demand) []obstacle {
	nodes, cables := make([]bool, g.Nodes), make([]bool, g.cables)
	sharedNodes, sharedCables := make([]bool, g.Nodes), make([]bool, g.cables)
	mark := func(set []bool, list []int) {
		for _, n := range list {
			if n >= 0 && n < len(set) {
				set[n] = true
			}
		}
	}
	mark(nodes, d.ExcludeNodes)
	mark(cables, d.ExcludeCables)
	risks, sharedRisks := map[int]bool{}, map[int]bool{}
	for _, r := range d.ExcludeRisks {
		risks[r] = true
	}
	for _, a := range d.Apart {
		for i, n := range a.From {
			l := &g.Links[n]
			sharedCables[l.Cable] = sharedCables[l.Cable] || a.Cables
			sharedNodes[l.From] = sharedNodes[l.From] || a.Nodes && i > 0
			for _, r := range l.Risks {
				sharedRisks[r] = sharedRisks[r] || a.Risks
			}
		}
	}
	sharedNodes[d.From], sharedNodes[d.To] = false, false
	list := make([]obstacle, len(g.Links))
	for i := range g.Links {
		l := &g.Links[i]
		why := usable
		switch {
		case l.Drained:
			why = drained
		case nodes[l.From] || nodes[l.To] || cables[l.Cable]:
			why = excluded
		case sharedNodes[l.From] || sharedNodes[l.To] || sharedCables[l.Cable]:
			why = shared
		case l.Colours&d.ExcludeAny != 0 || l.Colours&d.IncludeAll != d.IncludeAll || d.IncludeAny != 0 && l.Colours&d.IncludeAny == 0:
			why = coloured
		case d.Bandwidth > 0 && l.Free(d.Setup) < d.Bandwidth:
			why = booked
		}
		for _, r := range l.Risks {
			if why != usable {
				break
			}
			if risks[r] {
				why = risky
			} else if sharedRisks[r] {
				why = shared
			}
		}
		list[i] = why
	}
	return list
}

// Find returns the best path that meets a demand; the error is an *Infeasible, or that of
// Check. If there is a path that takes no bandwidth from others, it is one of these.
//
// It finds a path if there is one, and the best one, except with Via: there it gives up
// after some 100,000 partial paths, in graphs where the best way along them would visit a node twice.
func (g *Graph) Find(d *Demand) (Route, error) {
	if err := d.Check(g); err != nil {
		return Route{}, err
	}
	if d.Minimise == Widest {
		return widest(g, d, g.Find, func(r Route) Route { return g.route(d, r.Path) })
	}
	if d.Bandwidth > 0 && d.Setup < Priorities-1 {
		polite := *d
		polite.Setup, polite.Hold = Priorities-1, min(d.Hold, Priorities-1)
		if p := newSearch(g, &polite).best(); p != nil {
			return g.route(d, p), nil
		}
	}
	s := newSearch(g, d)
	if p := s.best(); p != nil {
		return g.route(d, p), nil
	}
	return Route{}, g.why(d, s)
}

// A metric of links that add up along a path.
const (
	byCost = iota
	byDelay
	byHops
	metrics
)

func (l *Link) metric(m int) uint64 {
	switch m {
	case byCost:
		return uint64(l.Cost)
	case byDelay:
		return uint64(l.Delay)
	}
	return 1
}

// far is the distance of what cannot be reached.
const far = math.MaxUint64

// labelsMax bounds the partial paths of one search.
const labelsMax = 100_000

// search is the way to one demand's path: a label-setting search among partial paths,
// led by what remains at least.
type search struct {
	g       *Graph
	d       *Demand
	why     []obstacle
	remains [][metrics][]uint64 // by stage, the number of Via that are passed: from each node, at least
	labels  []label
	queue   []int32
	fronts  map[[2]int32][]int32 // by node and stage: labels that none of the others beats
	simple  bool                 // labels know which nodes they have visited
	order   [2]int               // the metrics of the objective
	gaveUp  bool
}

// label is a partial path: the link by which it has come and the label that it prolongs.
type label struct {
	sum         [metrics]uint64
	least       uint64 // of the first metric, with what remains
	node, stage int32
	link, prev  int32
	visited     []uint64
}

func newSearch(g *Graph, d *Demand) *search {
	s := &search{g: g, d: d, why: g.judge(d), order: [2]int{byCost, byDelay}}
	if d.Minimise == LeastDelay {
		s.order = [2]int{byDelay, byCost}
	}
	s.remains = make([][metrics][]uint64, len(d.Via)+1)
	for stage := len(d.Via); stage >= 0; stage-- {
		for m := range metrics {
			if m == s.order[0] || s.bound(m) < far {
				s.remains[stage][m] = s.remaining(stage, m)
			}
		}
	}
	return s
}

// bound is the most that the demand allows of a metric.
func (s *search) bound(m int) uint64 {
	switch {
	case m == byDelay && s.d.MaxDelay > 0:
		return s.d.MaxDelay
	case m == byHops && s.d.MaxHops > 0:
		return uint64(s.d.MaxHops)
	}
	return far
}

// remaining returns the least of a metric from each node to the destination by way of
// what has to be passed from a stage on.
func (s *search) remaining(stage, m int) []uint64 {
	dist := make([]uint64, s.g.Nodes)
	for i := range dist {
		dist[i] = far
	}
	var q nearest
	start := func(node int, d uint64) {
		if d < dist[node] {
			dist[node] = d
			heap.Push(&q, reached{d, int32(node)})
		}
	}
	if stage == len(s.d.Via) {
		start(s.d.To, 0)
	} else if v := s.d.Via[stage]; !v.IsCable {
		start(v.ID, s.remains[stage+1][m][v.ID])
	} else {
		for i := range s.g.Links {
			l := &s.g.Links[i]
			if rest := s.remains[stage+1][m][l.To]; l.Cable == v.ID && s.why[i] == usable && rest < far {
				start(l.From, rest+l.metric(m))
			}
		}
	}
	for q.Len() > 0 {
		r := heap.Pop(&q).(reached)
		if r.dist > dist[r.node] {
			continue
		}
		for _, i := range s.g.in[r.node] {
			if l := &s.g.Links[i]; s.why[i] == usable {
				start(l.From, r.dist+l.metric(m))
			}
		}
	}
	return dist
}

// best returns the best path, nil if there is none.
func (s *search) best() Path {
	p := s.run()
	if p != nil && !s.g.visitsOnce(p) {
		s.simple = true
		p = s.run()
	}
	return p
}

func (s *search) run() Path {
	s.labels, s.queue, s.fronts = s.labels[:0], s.queue[:0], map[[2]int32][]int32{}
	first := label{node: int32(s.d.From), link: -1, prev: -1}
	first.stage = s.pass(0, first.node, -1)
	if s.simple {
		first.visited = make([]uint64, (s.g.Nodes+63)/64)
		first.visited[first.node/64] |= 1 << (first.node % 64)
	}
	s.push(first)
	for len(s.queue) > 0 {
		at := heap.Pop(s).(int32)
		l := s.labels[at]
		if int(l.node) == s.d.To {
			if int(l.stage) == len(s.d.Via) {
				return s.path(at)
			}
			if s.simple {
				continue
			}
		}
		if s.beaten(at, &l) {
			continue
		}
		if len(s.labels) > labelsMax {
			s.gaveUp = true
			return nil
		}
		s.prolong(at, &l)
	}
	return nil
}

// prolong adds the partial paths that go one link further.
func (s *search) prolong(at int32, l *label) {
	for _, i := range s.g.out[l.node] {
		link := &s.g.Links[i]
		if s.why[i] != usable || s.simple && l.visited[link.To/64]&(1<<(link.To%64)) != 0 {
			continue
		}
		next := label{node: int32(link.To), link: i, prev: at, sum: l.sum}
		next.stage = s.pass(l.stage, next.node, int32(link.Cable))
		for m := range metrics {
			next.sum[m] += link.metric(m)
		}
		if s.simple {
			next.visited = slices.Clone(l.visited)
			next.visited[next.node/64] |= 1 << (next.node % 64)
		}
		s.push(next)
	}
}

// pass returns the stage of a path that has come to a node over a cable.
func (s *search) pass(stage, node, cable int32) int32 {
	for _, v := range [2]Via{{true, int(cable)}, {false, int(node)}} {
		if int(stage) < len(s.d.Via) && s.d.Via[stage] == v {
			stage++
		}
	}
	return stage
}

// push adds a label unless a bound forbids what it needs at least.
func (s *search) push(l label) {
	for m, rest := range s.remains[l.stage] {
		if rest == nil {
			continue
		}
		r := rest[l.node]
		if r == far || l.sum[m]+r > s.bound(m) {
			return
		}
		if m == s.order[0] {
			l.least = l.sum[m] + r
		}
	}
	s.labels = append(s.labels, l)
	heap.Push(s, int32(len(s.labels)-1))
}

// beaten reports whether another label at the same node is at least as good in all that
// counts, and keeps this one if not.
func (s *search) beaten(at int32, l *label) bool {
	key := [2]int32{l.node, l.stage}
	for _, i := range s.fronts[key] {
		o := &s.labels[i]
		better := o.sum[s.order[0]] <= l.sum[s.order[0]]
		for m := range metrics {
			better = better && (s.bound(m) == far || o.sum[m] <= l.sum[m])
		}
		for w := range o.visited {
			better = better && o.visited[w]&^l.visited[w] == 0
		}
		if better {
			return true
		}
	}
	s.fronts[key] = append(s.fronts[key], at)
	return false
}

// path returns the links of a label.
func (s *search) path(at int32) Path {
	var p Path
	for ; s.labels[at].link >= 0; at = s.labels[at].prev {
		p = append(p, int(s.labels[at].link))
	}
	slices.Reverse(p)
	return p
}

// visitsOnce reports whether a path visits no node twice.
func (g *Graph) visitsOnce(p Path) bool {
	seen := make([]uint64, (g.Nodes+63)/64)
	count := 0
	for _, i := range p {
		for _, n := range [2]int{g.Links[i].From, g.Links[i].To} {
			seen[n/64] |= 1 << (n % 64)
		}
	}
	for _, w := range seen {
		count += bits.OnesCount64(w)
	}
	return count == len(p)+1
}

// Len, Less, Swap, Push and Pop make the queue a heap: the most promising label first.
func (s *search) Len() int { return len(s.queue) }

func (s *search) Less(i, j int) bool {
	a, b := &s.labels[s.queue[i]], &s.labels[s.queue[j]]
	if a.least != b.least {
		return a.least < b.least
	}
	if x, y := a.sum[s.order[1]], b.sum[s.order[1]]; x != y {
		return x < y
	}
	if a.sum[byHops] != b.sum[byHops] {
		return a.sum[byHops] < b.sum[byHops]
	}
	return s.queue[i] < s.queue[j]
}

func (s *search) Swap(i, j int) { s.queue[i], s.queue[j] = s.queue[j], s.queue[i] }

// Push adds a label's index.
func (s *search) Push(x any) { s.queue = append(s.queue, x.(int32)) }

// Pop removes the last.
func (s *search) Pop() any {
	x := s.queue[len(s.queue)-1]
	s.queue = s.queue[:len(s.queue)-1]
	return x
}

// reached is a node and its distance, nearest a heap of them.
type reached struct {
	dist uint64
	node int32
}

type nearest []reached

func (q nearest) Len() int           { return len(q) }
func (q nearest) Less(i, j int) bool { return q[i].dist < q[j].dist }
func (q nearest) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push adds a node.
func (q *nearest) Push(x any) { *q = append(*q, x.(reached)) }

// Pop removes the last.
func (q *nearest) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
