package assign

import "math"

// finder finds shortest paths. It is for one call at a time.
type finder struct {
	p    *Problem
	at   []int32 // where the links of a node begin in out; one more than nodes
	out  []int32
	dist []float64
	via  []int32 // the link by which the shortest path comes; -1: none
	done []bool
	heap []entry
	seen []int32 // nodes in the order in which they were reached for good

	cables, nodes, risks marks
}

type entry struct {
	dist float64
	node int32
}

// marks is a set of small numbers that is emptied at once.
type marks struct {
	of  map[int]int
	now int
}

func newMarks() marks           { return marks{of: map[int]int{}, now: 1} }
func (m *marks) clear()         { m.now++ }
func (m *marks) add(n int)      { m.of[n] = m.now }
func (m *marks) has(n int) bool { return m.of[n] == m.now }

func newFinder(p *Problem) *finder {
	f := &finder{p: p, at: make([]int32, p.Nodes+1), out: make([]int32, len(p.Links)), dist: make([]float64, p.Nodes), via: make([]int32, p.Nodes), done: make([]bool, p.Nodes),
		cables: newMarks(), nodes: newMarks(), risks: newMarks()}
	for _, l := range p.Links {
		f.at[l.From+1]++
	}
	for n := range p.Nodes {
		f.at[n+1] += f.at[n]
	}
	next := make([]int32, p.Nodes)
	for i, l := range p.Links {
		f.out[f.at[l.From]+next[l.From]] = int32(i)
		next[l.From]++
	}
	return f
}

// tree finds the shortest paths from a node, up to one node, or to all if that is -1. Length
// returns that of a link, at least 0, or +Inf if it may not be used.
func (f *finder) tree(from, to int, length func(link int) float64) {
	for n := range f.dist {
		f.dist[n], f.via[n], f.done[n] = math.Inf(1), -1, false
	}
	f.seen = f.seen[:0]
	f.dist[from] = 0
	f.heap = append(f.heap[:0], entry{0, int32(from)})
	for len(f.heap) > 0 {
		e := f.pop()
		if f.done[e.node] {
			continue
		}
		f.done[e.node] = true
		f.seen = append(f.seen, e.node)
		if int(e.node) == to {
			return
		}
		for _, i := range f.out[f.at[e.node]:f.at[e.node+1]] {
			far := f.p.Links[i].To
			if f.done[far] {
				continue
			}
			if d := e.dist + length(int(i)); d < f.dist[far] {
				f.dist[far], f.via[far] = d, i
				f.push(entry{d, int32(far)})
			}
		}
	}
}

// path returns the path of the last tree to a node; nil if there is none.
func (f *finder) path(from, to int) (path []int) {
	n := 0
	for at := to; at != from; at = f.p.Links[f.via[at]].From {
		if f.via[at] < 0 {
			return nil
		}
		n++
	}
	path = make([]int, n)
	for at := to; at != from; at = f.p.Links[f.via[at]].From {
		n--
		path[n] = int(f.via[at])
	}
	return path
}

// before orders entries: of equal ones that of the smaller node comes first, so that the
// result is the same each time.
func (e entry) before(o entry) bool {
	return e.dist < o.dist || e.dist == o.dist && e.node < o.node
}

func (f *finder) push(e entry) {
	h := append(f.heap, e)
	i := len(h) - 1
	for i > 0 && e.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = e
	f.heap = h
}

func (f *finder) pop() entry {
	h := f.heap
	first, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	for i := 0; len(h) > 0; {
		k := 2*i + 1
		if k+1 < len(h) && h[k+1].before(h[k]) {
			k++
		}
		if k >= len(h) || !h[k].before(e) {
			h[i] = e
			break
		}
		h[i] = h[k]
		i = k
	}
	f.heap = h
	return first
}
