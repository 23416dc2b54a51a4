package place

import (
	"cmp"
	"slices"
)

// level is one stage of coarsening: the problem, and which node of the next,
// coarser one each of its nodes is part of.
type level struct {
	p    *problem
	into []int
}

// coarsen joins nodes along heavy edges, stage by stage (Karypis and Kumar
// 1998), as long as there are more than enough and joining gets on. No two are
// joined that may not share a server, and none grows past a share of the
// smallest server. With placements to keep to, no two are joined that one of
// these has on different servers, so that each is a placement of every level.
func coarsen(p *problem, d *dice, keep ...[]int32) []level {
	keep = slices.Clone(keep)
	levels := []level{{p: p}}
	for enough := max(6*p.s, 64); levels[len(levels)-1].p.n > enough; {
		last := &levels[len(levels)-1]
		into, n := last.p.match(d, enough, keep)
		if n > last.p.n*95/100 {
			break
		}
		last.into = into
		for i, at := range keep {
			keep[i] = lift(at, into, n)
		}
		levels = append(levels, level{p: last.p.contract(into, n)})
	}
	return levels
}

// match pairs nodes with the neighbour of the heaviest edge, in random order.
func (p *problem) match(d *dice, enough int, keep [][]int32) (into []int, n int) {
	mostCPU, mostMemory := slices.Min(p.capCPU)/4, slices.Min(p.capMemory)/4
	order := make([]int, p.n)
	for i := range order {
		j := d.below(i + 1)
		order[i] = order[j]
		order[j] = i
	}
	into = make([]int, p.n)
	for i := range into {
		into[i] = -1
	}
	left := p.n
	for _, k := range order {
		if into[k] >= 0 {
			continue
		}
		partner, heaviest := -1, 0.0
		for e := p.first[k]; e < p.first[k+1] && left > enough; e++ {
			j := int(p.to[e])
			if into[j] >= 0 || p.w[e] <= heaviest {
				continue
			}
			if p.cpu[k]+p.cpu[j] > mostCPU || p.memory[k]+p.memory[j] > mostMemory || p.clash(k, j) != "" || !p.sameServers(k, j) || parted(keep, k, j) {
				continue
			}
			partner, heaviest = j, p.w[e]
		}
		into[k] = n
		if partner >= 0 {
			into[partner] = n
			left--
		}
		n++
	}
	return into, n
}

// sameServers reports whether two nodes may run on the same servers.
func (p *problem) sameServers(a, b int) bool { return slices.Equal(p.allowed[a], p.allowed[b]) }

// contract makes the problem in which nodes are joined.
func (p *problem) contract(into []int, n int) *problem {
	q := &problem{in: p.in, n: n, s: p.s, capCPU: p.capCPU, capMemory: p.capMemory, powers: p.powers, zone: p.zone, zoneN: p.zoneN,
		uniform: p.uniform, delay: p.delay}
	q.cpu, q.memory = make([]int64, n), make([]int64, n)
	q.compute, q.sensitive = make([]bool, n), make([]bool, n)
	q.power, q.allowed, q.members = make([]int, n), make([][]bool, n), make([][]int, n)
	q.sets, q.zsets, q.paths = make([][]int, n), make([][]int, n), make([][]int, n)
	if p.home != nil {
		q.home = make([][]int, n)
	}
	q.node = make([]int, len(p.node))
	for i, k := range p.node {
		q.node[i] = into[k]
		q.members[into[k]] = append(q.members[into[k]], i)
	}
	for k, x := range into {
		q.cpu[x] += p.cpu[k]
		q.memory[x] += p.memory[k]
		q.compute[x] = q.compute[x] || p.compute[k]
		q.sensitive[x] = q.sensitive[x] || p.sensitive[k]
		q.power[x] = max(q.power[x], p.power[k])
		q.allowed[x] = both(q.allowed[x], p.allowed[k])
		if p.home != nil {
			q.home[x] = append(q.home[x], p.home[k]...)
		}
	}
	q.apart, q.sets = joined(p.apart, into, n)
	q.zones, q.zsets = joined(p.zones, into, n)
	for _, b := range p.budget {
		c := budget{path: b.path, deadline: b.deadline}
		for _, k := range b.nodes {
			if x := into[k]; len(c.nodes) == 0 || c.nodes[len(c.nodes)-1] != x {
				c.nodes = append(c.nodes, x)
			}
		}
		for _, x := range c.nodes {
			if list := q.paths[x]; len(list) == 0 || list[len(list)-1] != len(q.budget) {
				q.paths[x] = append(list, len(q.budget))
			}
		}
		q.budget = append(q.budget, c)
	}
	q.contractGraph(p, into)
	return q
}

// both are the servers of two lists, of which nil has all.
func both(a, b []bool) []bool {
	if a == nil || b == nil {
		return append(a, b...)
	}
	out := make([]bool, len(a))
	for s := range a {
		out[s] = a[s] && b[s]
	}
	return out
}

// joined renames the members of sets, none of which are joined with each other.
func joined(sets [][]int, into []int, n int) (out, of [][]int) {
	of = make([][]int, n)
	for g, set := range sets {
		nodes := make([]int, len(set))
		for i, k := range set {
			nodes[i] = into[k]
			of[into[k]] = append(of[into[k]], g)
		}
		out = append(out, nodes)
	}
	for x := range of {
		slices.Sort(of[x])
	}
	return out, of
}

// contractGraph sums the edges between joined nodes.
func (q *problem) contractGraph(p *problem, into []int) {
	parts := make([][]int, q.n)
	for k, x := range into {
		parts[x] = append(parts[x], k)
	}
	q.first = make([]int, q.n+1)
	weight := make([]float64, q.n)
	var touched []int32
	for x, nodes := range parts {
		touched = touched[:0]
		for _, k := range nodes {
			for e := p.first[k]; e < p.first[k+1]; e++ {
				y := into[p.to[e]]
				if y == x {
					continue
				}
				if weight[y] == 0 {
					touched = append(touched, int32(y))
				}
				weight[y] += p.w[e]
			}
		}
		slices.SortFunc(touched, func(a, b int32) int { return cmp.Compare(a, b) })
		for _, y := range touched {
			q.to, q.w = append(q.to, y), append(q.w, weight[y])
			weight[y] = 0
		}
		q.first[x+1] = len(q.to)
	}
}

// project carries a placement to the finer problem.
func project(coarse []int32, into []int) []int32 {
	at := make([]int32, len(into))
	for k, x := range into {
		at[k] = coarse[x]
	}
	return at
}

// lift carries a placement to the coarser problem; what is joined is on one
// server in it.
func lift(fine []int32, into []int, n int) []int32 {
	at := make([]int32, n)
	for k, x := range into {
		at[x] = fine[k]
	}
	return at
}

// parted reports whether one of the placements has two nodes on different
// servers.
func parted(placements [][]int32, a, b int) bool {
	for _, at := range placements {
		if at[a] != at[b] {
			return true
		}
	}
	return false
}
