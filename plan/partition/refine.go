package partition

import (
	"container/heap"
	"math/rand/v2"
)

// fruitless is how many moves a pass continues without a new best.
func fruitless(nodes int) int { return 60 + min(nodes/8, 400) }

// passesMax bounds the passes over one level.
const passesMax = 12

// refine moves nodes between partitions until no pass improves the result: less
// load above the limit, then a smaller cut (Fiduccia and Mattheyses, "A
// linear-time heuristic for improving network partitions", DAC 1982, for any
// number of partitions). In every other pass a partition may exceed its limit
// temporarily, which lets full partitions exchange nodes.
func (a *assignment) refine(rng *rand.Rand) {
	var heaviest int64
	for _, w := range a.load {
		heaviest = max(heaviest, w)
	}
	idle := 0
	for pass := 0; pass < passesMax && idle < 2; pass++ {
		room := int64(0)
		if pass%2 == 1 {
			room = heaviest
		}
		better := a.pass(rng, room)
		better = a.exchange(rng) || better
		if better {
			idle = 0
		} else {
			idle++
		}
	}
}

// candidate is a possible move of a node, and its gain.
type candidate struct {
	gain  int64
	tie   uint32
	node  int32
	stamp int32 // of the node when this was true
}

type candidates []candidate

func (h candidates) Len() int { return len(h) }
func (h candidates) Less(i, j int) bool {
	if h[i].gain != h[j].gain {
		return h[i].gain > h[j].gain
	}
	return h[i].tie < h[j].tie
}
func (h candidates) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *candidates) Push(x any)   { *h = append(*h, x.(candidate)) }
func (h *candidates) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// pass moves every node at most once, the best first. It continues for a while
// where that worsens the result, undoes what did not help, and reports whether
// anything improved.
func (a *assignment) pass(rng *rand.Rand, room int64) bool {
	n := a.len()
	s := &sweep{a: a, room: room, rng: rng, locked: make([]bool, n), stamp: make([]int32, n)}
	for v := range n {
		s.offer(int32(v))
	}
	type step struct {
		node, from int32
		gain       int64
	}
	var steps []step
	bestOver, bestCut, bestAt := a.over, a.cut, 0
	firstOver, firstCut := bestOver, bestCut
	over := bestOver
	for patience := fruitless(n); len(steps)-bestAt < patience; {
		v, to, gain, ok := s.next(over)
		if !ok {
			break
		}
		steps = append(steps, step{v, a.part[v], gain})
		a.move(v, to, gain)
		s.locked[v] = true
		if over = a.over; over < bestOver || over == bestOver && a.cut < bestCut {
			bestOver, bestCut, bestAt = over, a.cut, len(steps)
		}
		neighbours, _ := a.x.of(int(v))
		for _, u := range neighbours {
			if !s.locked[u] {
				s.offer(u)
			}
		}
	}
	for i := len(steps) - 1; i >= bestAt; i-- {
		a.move(steps[i].node, steps[i].from, -steps[i].gain)
	}
	return bestOver < firstOver || bestCut < firstCut
}

// sweep is the state of a pass.
type sweep struct {
	a      *assignment
	room   int64
	rng    *rand.Rand
	queue  candidates
	locked []bool
	stamp  []int32
}

// offer puts the best move of a node into the queue, in place of its former
// one; it skips nodes without links to other partitions.
func (s *sweep) offer(v int32) {
	s.stamp[v]++
	own := s.a.part[v]
	to, _ := s.a.x.of(int(v))
	for _, u := range to {
		if s.a.part[u] == own {
			continue
		}
		if _, gain, ok := s.a.best(v, s.room, false); ok {
			heap.Push(&s.queue, candidate{gain, s.rng.Uint32(), v, s.stamp[v]})
		}
		return
	}
}

// next returns the next move: out of a partition over its limit, if there is
// one, else the best of the queue.
func (s *sweep) next(over int64) (v, to int32, gain int64, ok bool) {
	if over > 0 {
		return s.relief()
	}
	for len(s.queue) > 0 {
		c := heap.Pop(&s.queue).(candidate)
		if s.locked[c.node] || c.stamp != s.stamp[c.node] {
			continue
		}
		to, gain, ok := s.a.best(c.node, s.room, false)
		if !ok {
			continue
		}
		if gain < c.gain { // the room that it had is taken
			s.stamp[c.node]++
			heap.Push(&s.queue, candidate{gain, c.tie, c.node, s.stamp[c.node]})
			continue
		}
		return c.node, to, gain, true
	}
	return 0, 0, 0, false
}

// relief returns the best move out of the partition that exceeds its limit
// most, preferably to one with room.
func (s *sweep) relief() (v, to int32, gain int64, ok bool) {
	a := s.a
	worst := int32(0)
	for q := range int32(a.parts) {
		if a.loads[q]-a.most(q) > a.loads[worst]-a.most(worst) {
			worst = q
		}
	}
	fits := false
	for u := range a.part {
		if a.part[u] != worst || s.locked[u] || a.load[u] == 0 {
			continue
		}
		q, g, found := a.best(int32(u), 0, true)
		if !found {
			continue
		}
		f := a.loads[q]+a.load[u] <= a.most(q)
		if !ok || f && !fits || f == fits && g > gain {
			v, to, gain, ok, fits = int32(u), q, g, true, f
		}
	}
	return v, to, gain, ok
}

// exchange swaps nodes of apart sets, which single moves cannot do when each
// partition has one, and reports whether that improved the result.
func (a *assignment) exchange(rng *rand.Rand) bool {
	members := make([][]int32, a.nsets)
	var nodes []int32
	for v := range a.sets {
		for _, s := range a.sets[v] {
			members[s] = append(members[s], int32(v))
		}
		if len(a.sets[v]) > 0 && a.fixed[v] < 0 {
			nodes = append(nodes, int32(v))
		}
	}
	better := false
	rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, v := range nodes {
		for _, s := range a.sets[v] {
			for _, u := range members[s] {
				better = a.swap(v, u) || better
			}
		}
	}
	return better
}

// swap swaps two nodes if that is permitted and an improvement.
func (a *assignment) swap(v, u int32) bool {
	p, q := a.part[v], a.part[u]
	if p == q || a.fixed[u] >= 0 || a.fixed[v] >= 0 {
		return false
	}
	over, cut := a.over, a.cut
	gain := a.gainOf(v, q)
	a.move(v, q, gain)
	back := a.gainOf(u, p)
	a.move(u, p, back)
	for _, x := range [2]int32{u, v} {
		for _, s := range a.sets[x] {
			if a.used[int(s)*a.parts+int(a.part[x])] > 1 {
				over = -1 // it breaks a demand: undo it
			}
		}
	}
	if now := a.over; now < over || now == over && a.cut < cut {
		return true
	}
	a.move(u, q, -back)
	a.move(v, p, -gain)
	return false
}
