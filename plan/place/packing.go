package place

import (
	"math"
	"slices"
)

// packing routes as much traffic as it can between nodes that never share a
// server. Every way between two such nodes has an edge that crosses servers, so
// what was routed is what edges cost at least, by the least delay, whatever is
// left of them costs besides (the dual of the multicut relaxation, Garg, Vazirani
// and Yannakakis 1996).
type packing struct {
	p    *problem
	back []int     // of each edge, the one in the other direction
	room []float64 // of each edge in its direction; at first its weight
	sum  float64   // what was routed
	work int       // edges that may still be looked at
}

// packingWork bounds what a packing looks at: a second's worth.
const packingWork = 50_000_000

// rest is what a packing leaves: the same nodes and edges, at the weights that are
// left, beside what was routed.
type rest struct {
	*problem
	routed float64
}

// packings are the instance itself, with nothing routed; with what goes between
// compute nodes and sensitive ones, between power sources, and over at most one
// node between nodes that are to be apart; and with all that goes between those.
// Each is good where the others are not: what is routed counts in full, but no
// bound of the rest knows of it.
func (p *problem) packings() []rest {
	x := packing{p: p, back: make([]int, len(p.to)), room: slices.Clone(p.w), work: packingWork}
	next := slices.Clone(p.first)
	for a := range p.n { // edges of a node are in the order of their far ends
		for e := p.first[a]; e < p.first[a+1]; e++ {
			b := p.to[e]
			x.back[e] = next[b]
			next[b]++
		}
	}
	list := []rest{{p, 0}}
	x.flow(func(k int) bool { return p.compute[k] && !p.sensitive[k] }, func(k int) bool { return p.sensitive[k] && !p.compute[k] })
	for d := 1; d < p.powers; d++ {
		x.flow(func(k int) bool { return p.power[k] == d }, func(k int) bool { return p.power[k] > d })
	}
	x.pairs(x.short)
	list = append(list, x.rest())
	x.pairs(func(a, b int) {
		x.flow(func(k int) bool { return k == a }, func(k int) bool { return k == b })
	})
	return append(list, x.rest())
}

// rest is what is left now.
func (x *packing) rest() rest {
	q := *x.p
	q.w = slices.Clone(x.room)
	return rest{&q, x.sum}
}

// pairs calls one function for any two nodes that are to be apart.
func (x *packing) pairs(call func(a, b int)) {
	for _, sets := range [][][]int{x.p.apart, x.p.zones} {
		for _, set := range sets {
			for i, a := range set {
				for _, b := range set[:i] {
					if x.work > 0 {
						call(a, b)
					}
				}
			}
		}
	}
}

// flow routes as much as there is from sources to sinks (Dinic 1970), and leaves
// of every edge what neither direction has used.
func (x *packing) flow(source, sink func(k int) bool) {
	p := x.p
	if x.work -= len(x.room); x.work <= 0 {
		return
	}
	weight := slices.Clone(x.room)
	level, at := make([]int, p.n), make([]int, p.n)
	for x.rank(source, sink, level) {
		copy(at, p.first)
		for k := range p.n {
			if !source(k) {
				continue
			}
			for x.work > 0 {
				f := x.augment(k, math.Inf(1), sink, level, at)
				if f <= 0 {
					break
				}
				x.sum += f
			}
		}
	}
	for e, w := range weight {
		if b := x.back[e]; e < b {
			left := max(min(x.room[e], x.room[b], w), 0)
			x.room[e], x.room[b] = left, left
		}
	}
}

// rank numbers the nodes by how far they are from the sources; false if no sink
// can be reached any more.
func (x *packing) rank(source, sink func(k int) bool, level []int) bool {
	var queue []int
	for k := range level {
		if level[k] = -1; source(k) {
			level[k] = 0
			queue = append(queue, k)
		}
	}
	reached := false
	for len(queue) > 0 && x.work > 0 {
		a := queue[0]
		queue = queue[1:]
		if sink(a) {
			reached = true
			continue
		}
		for e := x.p.first[a]; e < x.p.first[a+1]; e++ {
			x.work--
			if b := int(x.p.to[e]); level[b] < 0 && x.room[e] > x.least(e) {
				level[b] = level[a] + 1
				queue = append(queue, b)
			}
		}
	}
	return reached && x.work > 0
}

// least is what of an edge is not worth to be routed: rounding.
func (x *packing) least(e int) float64 { return x.p.w[e] * 1e-9 }

// augment routes at most f from a node to a sink along edges to the next level.
func (x *packing) augment(a int, f float64, sink func(k int) bool, level, at []int) float64 {
	if sink(a) {
		return f
	}
	for ; at[a] < x.p.first[a+1]; at[a]++ {
		e := at[a]
		x.work--
		b := int(x.p.to[e])
		if level[b] != level[a]+1 || x.room[e] <= x.least(e) {
			continue
		}
		if got := x.augment(b, min(f, x.room[e]), sink, level, at); got > 0 {
			x.room[e] -= got
			x.room[x.back[e]] += got
			return got
		}
	}
	return 0
}

// short routes from one node to another, directly and over one node between.
func (x *packing) short(a, b int) {
	p := x.p
	i, j := p.first[a], p.first[b]
	x.work -= p.first[a+1] - i + p.first[b+1] - j
	for i < p.first[a+1] {
		for j < p.first[b+1] && p.to[j] < p.to[i] {
			j++
		}
		switch {
		case int(p.to[i]) == b:
			x.sum += x.room[i]
			x.take(i, x.room[i])
		case j < p.first[b+1] && p.to[j] == p.to[i]:
			f := min(x.room[i], x.room[j])
			x.sum += f
			x.take(i, f)
			x.take(j, f)
		}
		i++
	}
}

// take uses f of an edge.
func (x *packing) take(e int, f float64) {
	x.room[e] -= f
	x.room[x.back[e]] = x.room[e]
}
