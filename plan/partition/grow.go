package partition

import (
	"math/rand/v2"
	"slices"
)

// grow makes a first assignment: partitions grow from seeds that are far from
// each other. The lightest partition is next, and takes the node with the most
// links to it for the node's load. coloured gives the nodes that already have a
// partition (-1: none).
func (p *problem) grow(rng *rand.Rand, coloured []int32) *assignment {
	n := p.len()
	part := make([]int32, n)
	copy(part, coloured)
	g := &growth{problem: p, part: part, loads: make([]int64, p.parts), conn: make([][]int64, p.parts), edge: make([][]int32, p.parts)}
	for q := range g.conn {
		g.conn[q] = make([]int64, n)
	}
	g.dist = make([]int32, n)
	for v := range g.dist {
		g.dist[v] = beyond
	}
	seeded := make([]bool, p.parts)
	free := n
	for v, q := range part {
		if q >= 0 {
			seeded[q] = true
			free--
			g.take(int32(v), q)
			g.spread(int32(v))
		}
	}
	for q := range seeded {
		if !seeded[q] {
			v := g.far(rng)
			g.take(v, int32(q))
			g.spread(v)
			free--
		}
	}
	order := rng.Perm(n)
	at := 0
	for ; free > 0; free-- {
		q := g.lightest(rng)
		v := g.nearest(q)
		if v < 0 { // no neighbour is free: continue from any node
			for part[order[at]] >= 0 {
				at++
			}
			v = int32(order[at])
		}
		g.take(v, q)
	}
	return newAssignment(p, part)
}

// growth is an assignment under construction.
type growth struct {
	*problem
	part  []int32
	loads []int64
	conn  [][]int64 // by partition and node: the weight of links between them
	edge  [][]int32 // by partition: nodes that have a link to it, some of them taken
	dist  []int32   // by node: distance in links to the nearest assigned node
	queue []int32   // scratch memory of spread
}

func (g *growth) take(v, q int32) {
	g.part[v] = q
	g.loads[q] += g.load[v]
	to, w := g.x.of(int(v))
	for j, u := range to {
		if g.part[u] < 0 && g.conn[q][u] == 0 {
			g.edge[q] = append(g.edge[q], u)
		}
		g.conn[q][u] += w[j]
	}
}

func (g *growth) lightest(rng *rand.Rand) int32 {
	best := int32(rng.IntN(g.parts))
	for q := range int32(g.parts) {
		if g.loads[q]*g.share(best) < g.loads[best]*g.share(q) {
			best = q
		}
	}
	return best
}

func (g *growth) share(q int32) int64 {
	if g.shares == nil {
		return 1
	}
	return g.shares[q]
}

// nearest returns the free neighbour of a partition with the largest share of
// links to it.
func (g *growth) nearest(q int32) int32 {
	best, share := int32(-1), -1.0
	kept := g.edge[q][:0]
	for _, v := range g.edge[q] {
		if g.part[v] >= 0 {
			continue
		}
		kept = append(kept, v)
		var all int64
		_, w := g.x.of(int(v))
		for _, x := range w {
			all += x
		}
		if s := float64(g.conn[q][v]) / float64(max(1, all)); s > share {
			best, share = v, s
		}
	}
	g.edge[q] = kept
	return best
}

// beyond is the distance of nodes that no assigned node reaches.
const beyond = 1 << 30

// spread updates distances after the assignment of a node.
func (g *growth) spread(v int32) {
	g.dist[v] = 0
	g.queue = append(g.queue[:0], v)
	for i := 0; i < len(g.queue); i++ {
		at := g.queue[i]
		to, _ := g.x.of(int(at))
		for _, u := range to {
			if g.dist[at]+1 < g.dist[u] {
				g.dist[u] = g.dist[at] + 1
				g.queue = append(g.queue, u)
			}
		}
	}
}

// far returns a free node with the largest distance from the assigned ones; if
// none is assigned, one with the largest distance from any node.
func (g *growth) far(rng *rand.Rand) int32 {
	from := rng.IntN(g.len())
	if !slices.ContainsFunc(g.part, func(q int32) bool { return q >= 0 }) {
		g.spread(int32(from))
		defer func() {
			for i := range g.dist {
				g.dist[i] = beyond
			}
		}()
	}
	best := int32(-1)
	for i := range g.len() {
		v := int32((from + i) % g.len())
		if g.part[v] < 0 && (best < 0 || g.dist[v] > g.dist[best]) {
			best = v
		}
	}
	return best
}
