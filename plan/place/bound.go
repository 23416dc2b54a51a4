package place

import (
	"cmp"
	"math"
	"slices"
)

// atLeast is what every placement costs at least, without search: what a node's
// edges cost that do not fit beside it on any server. For each node it is a
// fractional knapsack of its neighbours; an edge counts half for each end. What
// moves are unavoidable comes on top.
func (p *problem) atLeast() float64 {
	least := p.leastDelay()
	var total float64
	for k := range p.n {
		cheapest := math.Inf(1)
		cpu, memory := int64(-1), int64(-1)
		for s := range p.s {
			if p.fits(k, s) {
				cpu, memory = max(cpu, p.capCPU[s]-p.cpu[k]), max(memory, p.capMemory[s]-p.memory[k])
				cheapest = min(cheapest, p.moving(k, s))
			}
		}
		if cpu < 0 {
			continue // it has no place at all
		}
		total += cheapest
		if p.s < 2 {
			continue
		}
		var all float64
		var beside []int // edges
		for e := p.first[k]; e < p.first[k+1]; e++ {
			all += p.w[e]
			if j := int(p.to[e]); p.cpu[j] <= cpu && p.memory[j] <= memory && p.clash(k, j) == "" && p.meet(k, j) {
				beside = append(beside, e)
			}
		}
		most := min(p.knapsack(beside, p.cpu, cpu), p.knapsack(beside, p.memory, memory))
		total += (all - min(all, most)) * least / 2
	}
	return total
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
