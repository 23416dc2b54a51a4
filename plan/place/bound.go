package place

import (
	"cmp"
	"math"
	"slices"
)

// atLeast is what every placement costs at least, without search: what is
// unavoidable in moves, and the best of some bounds of what edges cost. Of each
// packing there are two: what does not fit beside each node; and small clusters of
// nodes, for which all ways to place them are looked at, with the first for the
// edges between clusters.
func (p *problem) atLeast() float64 {
	if p.s < 2 {
		return p.unavoidable()
	}
	of, n := p.clusters()
	nodes, least, best := members(of, n), p.leastDelay(), 0.0
	for _, r := range p.packings() {
		all := r.beside(func(a, b int) bool { return true })
		between := r.beside(func(a, b int) bool { return of[a] != of[b] })
		for _, list := range nodes {
			between += r.inside(list, func(a, b int) float64 { return r.between(a, b) * least })
		}
		best = max(best, r.routed*least+max(all, between))
	}
	return best + p.unavoidable()
}

// atLeastBeside is atLeast by eigenvalues, which want a good placement to start
// from.
func (p *problem) atLeastBeside(at []int32) float64 {
	if p.s < 2 || p.n > spectralNodes {
		return p.unavoidable()
	}
	list := []rest{{p, 0}}
	if p.n <= spectralNodes/2 {
		list = p.packings()
	}
	best := 0.0
	for _, r := range list {
		best = max(best, r.routed*p.leastDelay()+r.spectral(at))
	}
	return best + p.unavoidable()
}

// members lists the nodes of each cluster.
func members(of []int, n int) [][]int {
	nodes := make([][]int, n)
	for k, c := range of {
		nodes[c] = append(nodes[c], k)
	}
	return nodes
}

// unavoidable is what moving costs at least.
func (p *problem) unavoidable() float64 {
	var total float64
	for k := range p.n {
		cheapest := math.Inf(1)
		for s := range p.s {
			if p.fits(k, s) {
				cheapest = min(cheapest, p.moving(k, s))
			}
		}
		if !math.IsInf(cheapest, 1) {
			total += cheapest
		}
	}
	return total
}

// beside is what those edges cost at least that count: for each node, those to
// what does not fit beside it on any server, a fractional knapsack of its
// neighbours; an edge counts half for each end.
func (p *problem) beside(counts func(a, b int) bool) float64 {
	var total float64
	for k := range p.n {
		cpu, memory := int64(-1), int64(-1)
		for s := range p.s {
			if p.fits(k, s) {
				cpu, memory = max(cpu, p.capCPU[s]-p.cpu[k]), max(memory, p.capMemory[s]-p.memory[k])
			}
		}
		if cpu < 0 {
			continue // it has no place at all
		}
		var all float64
		var fit []int // edges
		for e := p.first[k]; e < p.first[k+1]; e++ {
			j := int(p.to[e])
			if !counts(k, j) {
				continue
			}
			all += p.w[e]
			if p.cpu[j] <= cpu && p.memory[j] <= memory && p.clash(k, j) == "" && p.meet(k, j) {
				fit = append(fit, e)
			}
		}
		most := min(p.knapsack(fit, p.cpu, cpu), p.knapsack(fit, p.memory, memory))
		total += all - min(all, most)
	}
	return total * p.leastDelay() / 2
}

// meet reports whether there is a server on which both nodes may run.
func (p *problem) meet(a, b int) bool {
	if p.allowed[a] == nil || p.allowed[b] == nil {
		return true
	}
	for s := range p.s {
		if p.allowed[a][s] && p.allowed[b][s] {
			return true
		}
	}
	return false
}

// knapsack is the most weight of edges whose far ends fit into room, if the last
// may be cut.
func (p *problem) knapsack(edges []int, need []int64, room int64) float64 {
	list := slices.Clone(edges)
	slices.SortFunc(list, func(a, b int) int { // by weight for what is needed
		return cmp.Compare(p.w[b]*float64(max(need[p.to[a]], 1)), p.w[a]*float64(max(need[p.to[b]], 1)))
	})
	var most float64
	for _, e := range list {
		if n := need[p.to[e]]; n <= room {
			room -= n
			most += p.w[e]
		} else {
			return most + p.w[e]*float64(room)/float64(n)
		}
	}
	return most
}
