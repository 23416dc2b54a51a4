package paths

import "slices"

// row returns the distances to a slot, computing them if nobody has. Two
// goroutines may compute the same row at once; one of the two is kept.
func (t *Topology) row(dst int32) []uint32 {
	if r := t.rows[dst].Load(); r != nil {
		return r.dist
	}
	s := t.scratch.Get().(*scratch)
	r := &row{make([]uint32, len(t.adj))}
	t.measure(s, r.dist, dst)
	t.scratch.Put(s)
	if !t.rows[dst].CompareAndSwap(nil, r) {
		return t.rows[dst].Load().dist
	}
	return r.dist
}

// scratch is the working memory of one computation.
type scratch struct {
	queue queue
	slots []int32
	mark  []uint32 // by slot: the round in which it was last marked
	round uint32
	dist  []uint32
}

// unmark begins a round in which no slot of n is marked.
func (s *scratch) unmark(n int) {
	s.round++
	if len(s.mark) < n || s.round == 0 {
		s.mark = make([]uint32, max(n, 2*len(s.mark)))
		s.round = 1
	}
}

// measure sets dist to the distance from every slot to the nearest of roots.
func (t *Topology) measure(s *scratch, dist []uint32, roots ...int32) {
	fill(dist, Unreachable)
	for _, r := range roots {
		dist[r] = 0
	}
	if t.uniform != 0 {
		t.breadthFirst(s, dist, roots)
	} else {
		s.queue.reset()
		for _, r := range roots {
			s.queue.push(0, r)
		}
		t.settle(s, dist)
	}
}

// breadthFirst is measure when all links weigh the same.
func (t *Topology) breadthFirst(s *scratch, dist []uint32, roots []int32) {
	q := append(s.slots[:0], roots...)
	for i := 0; i < len(q); i++ {
		u := q[i]
		d := dist[u] + t.uniform
		adj := t.adj[u]
		for j := range adj {
			if v := adj[j].to; dist[v] == Unreachable {
				dist[v] = d
				q = append(q, v)
			}
		}
	}
	s.slots = q
}

// settle is Dijkstra's algorithm from the queued slots, against the direction
// of the links: it lowers every distance that a queued one makes too high.
func (t *Topology) settle(s *scratch, dist []uint32) {
	for len(s.queue) > 0 {
		d, u := s.queue.pop()
		if d != dist[u] {
			continue
		}
		adj := t.adj[u]
		for i := range adj {
			if e := &adj[i]; d+e.back < dist[e.to] {
				dist[e.to] = d + e.back
				s.queue.push(dist[e.to], e.to)
			}
		}
	}
}

func fill(dist []uint32, v uint32) {
	for i := range dist {
		dist[i] = v
	}
}

// queue is a priority queue of slots by distance, then slot: a 4-ary heap.
type queue []uint64

func (q *queue) reset() { *q = (*q)[:0] }

func (q *queue) push(dist uint32, slot int32) {
	h := append(*q, uint64(dist)<<32|uint64(uint32(slot)))
	x, i := h[len(h)-1], len(h)-1
	for i > 0 {
		up := (i - 1) / 4
		if h[up] <= x {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
	*q = h
}

func (q *queue) pop() (dist uint32, slot int32) {
	h := *q
	top := h[0]
	n := len(h) - 1
	x := h[n]
	h = h[:n]
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, n); c++ {
			if h[c] < h[least] {
				least = c
			}
		}
		if x <= h[least] {
			break
		}
		h[i] = h[least]
		i = least
	}
	if n > 0 {
		h[i] = x
	}
	*q = h
	return uint32(top >> 32), int32(uint32(top))
}

// grown returns a copy of dist for n slots, the new ones unreachable.
func grown(dist []uint32, n int) []uint32 {
	r := slices.Grow([]uint32(nil), n)[:n]
	fill(r[copy(r, dist):], Unreachable)
	return r
}
