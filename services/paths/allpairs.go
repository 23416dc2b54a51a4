package paths

import (
	"math/bits"
	"runtime"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// Converge computes the distances between all switches that are not known yet,
// on all processors. Later calls for paths find them ready, and later
// snapshots keep or repair them. It takes 4 bytes per pair of switches.
func (t *Topology) Converge() {
	var missing []int32
	for _, slot := range t.order {
		if t.rows[slot].Load() == nil {
			missing = append(missing, slot)
		}
	}
	if t.uniform != 0 && len(missing) > len(t.order)/8 {
		t.sweepAll(nil)
		return
	}
	share(runtime.GOMAXPROCS(0), len(missing), 16, func(s *scratch, from, to int) {
		for _, slot := range missing[from:to] {
			r := &row{make([]uint32, len(t.adj))}
			t.measure(s, r.dist, slot)
			t.rows[slot].CompareAndSwap(nil, r)
		}
	}, t.scratch)
}

// NextHopTable is the equal-cost next hops between all switches, one bit for
// each usable link and destination. It never changes.
type NextHopTable struct {
	t     *Topology
	base  []int32  // by slot: the number of its first link
	words int      // 64 destinations each
	bits  []uint64 // by link, by destination slot: the link begins a shortest path
}

// NextHopTable computes the next hops between all switches, and the distances,
// on all processors. For a few destinations NextHops is cheaper.
func (t *Topology) NextHopTable() *NextHopTable {
	h := &NextHopTable{t: t, base: make([]int32, len(t.adj)+1), words: lanes * ((len(t.adj) + 64*lanes - 1) / (64 * lanes))}
	for slot, adj := range t.adj {
		h.base[slot+1] = h.base[slot] + int32(len(adj))
	}
	h.bits = make([]uint64, int(h.base[len(t.adj)])*h.words)
	if t.uniform != 0 {
		t.sweepAll(h)
		return h
	}
	t.Converge()
	share(runtime.GOMAXPROCS(0), len(t.adj), 64, func(_ *scratch, from, to int) { h.fill(from, to) }, t.scratch)
	return h
}

// fill sets the bits of destinations [from, to), a multiple of 64 and at most
// 64 more.
func (h *NextHopTable) fill(from, to int) {
	var dist [64][]uint32
	for i := range to - from {
		if r := h.t.rows[from+i].Load(); r != nil {
			dist[i] = r.dist
		}
	}
	for u, adj := range h.t.adj {
		for j := range adj {
			e, word := &adj[j], uint64(0)
			for i, d := range dist[:to-from] {
				if v := at(d, e.to); v != Unreachable && v+e.w == at(d, int32(u)) {
					word |= 1 << i
				}
			}
			h.bits[(int(h.base[u])+j)*h.words+from/64] = word
		}
	}
}

// Append appends what NextHops of the same topology would return, reading the
// table only.
func (h *NextHopTable) Append(list []flow.Port, src, dst flow.DPID) []flow.Port {
	s, ok := h.t.index[src]
	d, ok2 := h.t.index[dst]
	if !ok || !ok2 {
		return list
	}
	at := int(h.base[s])*h.words + int(d)/64
	for i := range h.t.adj[s] {
		if h.bits[at]>>(d%64)&1 != 0 {
			list = append(list, h.t.adj[s][i].out)
		}
		at += h.words
	}
	return list
}

// lanes is how many words of 64 destinations a sweep handles at once.
const lanes = 4

type lane [lanes]uint64

// sweepAll computes the rows of all slots when links weigh the same, and the
// next hops if h is not nil: breadth-first search from 64·lanes slots at once,
// one bit each (Then et al., "The more the merrier: efficient multi-source
// graph traversal", VLDB 2014). Weights being equal, the distance to a slot is
// the distance from it.
func (t *Topology) sweepAll(h *NextHopTable) {
	n := len(t.adj)
	live := make([]bool, n)
	for _, slot := range t.order {
		live[slot] = true
	}
	base := make([]int32, n+1)
	peers := make([]int32, 0, t.links)
	for slot, adj := range t.adj {
		for i := range adj {
			peers = append(peers, adj[i].to)
		}
		base[slot+1] = int32(len(peers))
	}
	rows := make([]*row, n)
	for _, slot := range t.order {
		rows[slot] = &row{}
	}
	workers := runtime.GOMAXPROCS(0)
	share(workers, n, 64, func(_ *scratch, from, to int) {
		for slot := from; slot < to; slot++ {
			if live[slot] {
				rows[slot].dist = make([]uint32, n)
			}
		}
	}, t.scratch)

	memory := sync.Pool{New: func() any {
		return &sweep{seen: make([]lane, n), front: make([]lane, n), next: make([]lane, n)}
	}}
	share(workers, n, 64*lanes, func(_ *scratch, from, to int) {
		w := memory.Get().(*sweep)
		defer memory.Put(w)
		w.rows, w.base, w.peers, w.weight, w.table = rows, base, peers, t.uniform, h
		w.run(live, from, to)
	}, t.scratch)
	for slot, r := range rows {
		if r != nil {
			t.rows[slot].CompareAndSwap(nil, r)
		}
	}
}

// sweep is one search from up to 64·lanes slots.
type sweep struct {
	rows   []*row
	base   []int32 // by slot: its first in peers
	peers  []int32
	weight uint32
	table  *NextHopTable

	seen, front, next []lane // by slot: the sources that have reached it; in the last step; in this one
}

func (w *sweep) run(live []bool, from, to int) {
	clear(w.seen)
	clear(w.front)
	var all lane
	for slot := from; slot < to; slot++ {
		if live[slot] {
			word, bit := (slot-from)/64, uint64(1)<<(slot%64)
			all[word] |= bit
			w.seen[slot][word] |= bit
			w.front[slot][word] |= bit
			w.rows[slot].dist[slot] = 0
		}
	}
	for dist := w.weight; w.step(all, from, dist); dist += w.weight {
		w.front, w.next = w.next, w.front
	}
	for slot, r := range w.rows {
		if r == nil {
			continue
		}
		for word, seen := range w.seen[slot] {
			first := from + 64*word
			for rest := ^seen; rest != 0; rest &= rest - 1 {
				if i := first + bits.TrailingZeros64(rest); i < to {
					r.dist[i] = Unreachable
				}
			}
		}
	}
}

// step extends every search by one link and reports whether any found a slot.
func (w *sweep) step(all lane, from int, dist uint32) bool {
	grew := false
	for v := range w.seen {
		seen := &w.seen[v]
		if *seen == all {
			w.next[v] = lane{}
			continue
		}
		var a, b, c, d uint64
		peers := w.peers[w.base[v]:w.base[v+1]]
		for _, u := range peers {
			f := &w.front[u]
			a |= f[0]
			b |= f[1]
			c |= f[2]
			d |= f[3]
		}
		found := lane{a &^ seen[0], b &^ seen[1], c &^ seen[2], d &^ seen[3]}
		w.next[v] = found
		if found == (lane{}) {
			continue
		}
		grew = true
		row := w.rows[v].dist[from:]
		for i, bitset := range found {
			seen[i] |= bitset
			put(row, 64*i, bitset, dist)
		}
		if w.table != nil {
			w.table.add(int(w.base[v]), from/64, peers, w.front, &found)
		}
	}
	return grew
}

// put writes v at first plus each bit of the set.
func put(row []uint32, first int, set uint64, v uint32) {
	if set == 0 {
		return
	}
	if set == ^uint64(0) {
		fill(row[first:first+64], v)
		return
	}
	for ; set != 0; set &= set - 1 {
		row[first+bits.TrailingZeros64(set)] = v
	}
}

// add sets the bits of the links from link on, one to each of peers, that lead
// to slots at the front of searches that have just found theirs.
func (h *NextHopTable) add(link, word int, peers []int32, front []lane, found *lane) {
	at := link*h.words + word
	for _, u := range peers {
		f, b := &front[u], h.bits[at:at+lanes]
		b[0] |= f[0] & found[0]
		b[1] |= f[1] & found[1]
		b[2] |= f[2] & found[2]
		b[3] |= f[3] & found[3]
		at += h.words
	}
}
