package paths

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// change is a usable link that differs between two snapshots: its weights in
// the older and in the newer one, 0 if it is absent.
type change struct {
	from, to int32
	old, new uint32
}

// appendChanges appends the differences between a slot's links in two
// snapshots, both by port.
func appendChanges(list []change, from int32, old, now []edge) []change {
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].out < now[0].out:
			list = append(list, change{from, old[0].to, old[0].w, 0})
			old = old[1:]
		case len(old) == 0 || now[0].out < old[0].out:
			list = append(list, change{from, now[0].to, 0, now[0].w})
			now = now[1:]
		default:
			if a, b := old[0], now[0]; a.to != b.to {
				list = append(list, change{from, a.to, a.w, 0}, change{from, b.to, 0, b.w})
			} else if a.w != b.w {
				list = append(list, change{from, a.to, a.w, b.w})
			}
			old, now = old[1:], now[1:]
		}
	}
	return list
}

const (
	// If more than one link in repairLinks changed at once, computing rows on
	// request is cheaper than repairing all known ones.
	repairLinks = 16
	// When a change makes more than one switch in repairSwitches farther from a
	// destination, its distances are computed afresh.
	repairSwitches = 4
	// Fewer rows than this are repaired by one goroutine.
	repairAlone = 128
)

// inherit gives t the rows of an older snapshot, as changes make them.
func (t *Topology) inherit(old *Topology, changes []change) {
	t.rows = make([]atomic.Pointer[row], len(t.adj))
	if len(changes) > 64 && len(changes) > max(t.links, old.links)/repairLinks {
		return
	}
	var known []int32
	for slot := range old.rows {
		if r := old.rows[slot].Load(); r != nil {
			t.rows[slot].Store(r)
			known = append(known, int32(slot))
		}
	}
	if len(changes) == 0 {
		return
	}
	workers := 1
	if len(known) >= repairAlone {
		workers = runtime.GOMAXPROCS(0)
	}
	share(workers, len(known), 64, func(s *scratch, from, to int) {
		for _, slot := range known[from:to] {
			r := t.rows[slot].Load()
			if now := t.repair(s, slot, r, changes); now != r {
				t.rows[slot].Store(now)
			}
		}
	}, t.scratch)
}

// share divides [0, n) into pieces of a size among workers and waits for them.
// Between pieces it yields to other goroutines: Go itself would let them wait
// for 10 ms.
func share(workers, n, size int, work func(s *scratch, from, to int), pool *sync.Pool) {
	var next atomic.Int64
	run := func() {
		s := pool.Get().(*scratch)
		defer pool.Put(s)
		for {
			to := int(next.Add(int64(size)))
			from := to - size
			if from >= n {
				return
			}
			work(s, from, min(to, n))
			runtime.Gosched() // on few processors, urgent work does not wait for the rest
		}
	}
	var wait sync.WaitGroup
	for range min(workers, (n+size-1)/size) - 1 {
		wait.Go(run)
	}
	run()
	wait.Wait()
}

// repair returns the distances to dst, given those that held before changes:
// the same row if they still do. It follows Ramalingam and Reps, "An
// incremental algorithm for a generalization of the shortest-path problem"
// (1996), for any number of changes at once: first the slots that have lost
// every shortest path, nearest first; then their new distances, and those that
// became shorter, by Dijkstra's algorithm.
func (t *Topology) repair(s *scratch, dst int32, r *row, changes []change) *row {
	dist := r.dist
	s.queue.reset()
	shorter := false
	for _, c := range changes {
		du, dv := at(dist, c.from), at(dist, c.to)
		if dv == Unreachable {
			continue
		}
		if c.old != 0 && du == dv+c.old && (c.new == 0 || c.new > c.old) && !t.supported(s, nil, dist, c.from) {
			s.queue.push(du, c.from)
		}
		shorter = shorter || c.new != 0 && dv+c.new < du
	}
	if len(s.queue) == 0 && !shorter {
		return r
	}

	n := len(t.adj)
	s.unmark(n)
	lost := s.slots[:0]
	limit := n/repairSwitches + 64
	for len(s.queue) > 0 {
		du, u := s.queue.pop()
		if s.mark[u] == s.round || t.supported(s, s.mark, dist, u) {
			continue
		}
		s.mark[u] = s.round
		lost = append(lost, u)
		for i := range t.adj[u] {
			e := &t.adj[u][i]
			if dy := at(dist, e.to); dy != Unreachable && dy >= du+e.back && s.mark[e.to] != s.round {
				s.queue.push(dy, e.to)
			}
		}
		if len(lost) > limit {
			s.slots = lost
			afresh := &row{make([]uint32, n)}
			t.measure(s, afresh.dist, dst)
			return afresh
		}
	}
	s.slots = lost

	dist = grown(dist, n)
	for _, u := range lost {
		dist[u] = Unreachable
	}
	for _, u := range lost {
		best := uint32(Unreachable)
		for i := range t.adj[u] {
			if e := &t.adj[u][i]; dist[e.to] != Unreachable {
				best = min(best, dist[e.to]+e.w)
			}
		}
		if best != Unreachable {
			dist[u] = best
			s.queue.push(best, u)
		}
	}
	for _, c := range changes {
		if c.new != 0 && dist[c.to] != Unreachable && dist[c.to]+c.new < dist[c.from] {
			dist[c.from] = dist[c.to] + c.new
			s.queue.push(dist[c.from], c.from)
		}
	}
	t.settle(s, dist)
	return &row{dist}
}

// supported reports whether u still has its distance by a link to a slot that
// is not marked.
func (t *Topology) supported(s *scratch, mark []uint32, dist []uint32, u int32) bool {
	du := at(dist, u)
	adj := t.adj[u]
	for i := range adj {
		e := &adj[i]
		if d := at(dist, e.to); d < du && d+e.w <= du && (mark == nil || mark[e.to] != s.round) {
			return true
		}
	}
	return false
}
