package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/crillab/gophersat/solver"
)

// model is a problem as pseudo-Boolean constraints: a variable for each node on
// each server, and for each edge one for each length that it may have.
type model struct {
	p      *problem
	vars   int
	all    []solver.PBConstr
	levels []float64 // the delays that there are, ascending, without 0
	edges  []modelEdge
	unit   float64 // of the cost: what one in the objective is worth
	// The objective: sum of weight times literal, in units.
	costLits, costWeights []int
	clusters              []clusterCost
	between               clusterCost // what is no cluster's
	routed                []clusterCost
}

// modelEdge is a pair of nodes whose distance matters; far[l] is true if it is
// at least levels[l].
type modelEdge struct {
	a, b int
	w    float64
	far  []int
}

// maxSum is what the weights of a constraint may sum up to: gophersat keeps what
// a constraint asks for in 30 bits, and says nothing if it is more.
const maxSum = 1 << 29

// maxModel is how many literals a model may have in the constraints of its
// edges; larger ones have no chance.
const maxModel = 1_000_000

// newModel writes the constraints down; nil if they are too many.
func newModel(p *problem) *model {
	m := &model{p: p, vars: p.n * p.s}
	seen := map[float64]bool{0: true}
	for _, row := range p.delay {
		for _, d := range row {
			if !seen[d] {
				seen[d] = true
				m.levels = append(m.levels, d)
			}
		}
	}
	slices.Sort(m.levels)
	m.pairs()
	if len(m.edges)*p.s*p.s*len(m.levels) > maxModel {
		return nil
	}
	m.places()
	m.distances()
	m.triangles()
	m.together()
	m.budgets()
	m.objective()
	m.clusterCosts()
	m.routes()
	m.symmetry()
	return m
}

// x is the variable of node k on server s.
func (m *model) x(k, s int) int { return k*m.p.s + s + 1 }

// fresh is a new variable.
func (m *model) fresh() int { m.vars++; return m.vars }

// clause says that one of the literals is true.
func (m *model) clause(lits ...int) { m.all = append(m.all, solver.PropClause(lits...)) }

// atMost says that the sum of weights of true literals is at most n.
func (m *model) atMost(lits, weights []int, n int) {
	total := 0
	for _, w := range weights {
		total += w
	}
	if total > n {
		m.all = append(m.all, solver.LtEq(slices.Clone(lits), slices.Clone(weights), n))
	}
}

// pairs lists the edges and the hops of paths with deadlines.
func (m *model) pairs() {
	p := m.p
	there := map[[2]int]bool{}
	for a := range p.n {
		for e := p.first[a]; e < p.first[a+1]; e++ {
			if b := int(p.to[e]); a < b {
				m.edges = append(m.edges, modelEdge{a: a, b: b, w: p.w[e]})
				there[[2]int{a, b}] = true
			}
		}
	}
	for _, path := range p.budget {
		for h := 1; h < len(path.nodes); h++ {
			a, b := min(path.nodes[h-1], path.nodes[h]), max(path.nodes[h-1], path.nodes[h])
			if a != b && !there[[2]int{a, b}] {
				m.edges = append(m.edges, modelEdge{a: a, b: b})
				there[[2]int{a, b}] = true
			}
		}
	}
}

// places says that every node is on one server that it may run on and that no
// server has more than it can take (eq. 5).
func (m *model) places() {
	p := m.p
	for k := range p.n {
		var lits []int
		for s := range p.s {
			if p.fits(k, s) {
				lits = append(lits, m.x(k, s))
			} else {
				m.clause(-m.x(k, s))
			}
		}
		m.clause(slices.Clone(lits)...)
		if len(lits) > 1 {
			m.all = append(m.all, solver.AtMost(lits, 1))
		}
	}
	for s := range p.s {
		m.capacity(s, p.cpu, p.capCPU[s])
		m.capacity(s, p.memory, p.capMemory[s])
	}
}

// capacity bounds what one server has of one resource. Amounts that have to be
// made smaller are rounded down, by which no placement is lost.
func (m *model) capacity(s int, need []int64, have int64) {
	divisor, total := int64(0), int64(0)
	for _, n := range need {
		divisor, total = gcd(divisor, n), total+n
	}
	divisor = max(divisor, 1)
	if total/divisor >= maxSum {
		divisor = total/maxSum + 1
	}
	var lits, weights []int
	for k, n := range need {
		if n >= divisor && m.p.fits(k, s) {
			lits, weights = append(lits, m.x(k, s)), append(weights, int(n/divisor))
		}
	}
	m.atMost(lits, weights, int(min(have/divisor, maxSum)))
}

// gcd is the greatest common divisor.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// distances ties the distance of every pair to where its nodes are: if a is on
// s, then b is on a server nearer than the level, or the pair is that far.
func (m *model) distances() {
	p := m.p
	for i := range m.edges {
		e := &m.edges[i]
		for l, d := range m.levels {
			e.far = append(e.far, m.fresh())
			if l > 0 {
				m.clause(-e.far[l], e.far[l-1])
			}
			for s := range p.s {
				one, other := []int{-m.x(e.a, s), e.far[l]}, []int{-m.x(e.b, s), e.far[l]}
				for t := range p.s {
					if p.delay[s][t] < d {
						one, other = append(one, m.x(e.b, t)), append(other, m.x(e.a, t))
					}
				}
				m.clause(one...)
				m.clause(other...)
			}
		}
		if l := m.levels; len(l) > 0 && l[0] > 0 && p.clash(e.a, e.b) != "" {
			m.clause(e.far[0])
		}
	}
}

// together says who shares no server with whom.
func (m *model) together() {
	p := m.p
	for s := range p.s {
		computes := m.fresh() // the server has compute nodes
		sources := make([]int, p.powers)
		for d := 1; d < p.powers; d++ {
			sources[d] = m.fresh()
		}
		for k := range p.n {
			if p.compute[k] {
				m.clause(-m.x(k, s), computes)
			}
			if p.sensitive[k] {
				m.clause(-m.x(k, s), -computes)
			}
			if d := p.power[k]; d > 0 {
				m.clause(-m.x(k, s), sources[d])
			}
		}
		if p.powers > 2 {
			m.all = append(m.all, solver.AtMost(slices.Clone(sources[1:]), 1))
		}
		for _, set := range p.apart {
			var lits []int
			for _, k := range set {
				lits = append(lits, m.x(k, s))
			}
			m.all = append(m.all, solver.AtMost(lits, 1))
		}
	}
	for _, set := range p.zones {
		byZone := make([][]int, p.zoneN)
		for s := range p.s {
			for _, k := range set {
				byZone[p.zone[s]] = append(byZone[p.zone[s]], m.x(k, s))
			}
		}
		for _, lits := range byZone {
			if len(lits) > 1 {
				m.all = append(m.all, solver.AtMost(lits, 1))
			}
		}
	}
}

// steps are what each level adds to the one before it.
func (m *model) steps() []float64 {
	steps := slices.Clone(m.levels)
	for l := len(steps) - 1; l > 0; l-- {
		steps[l] -= steps[l-1]
	}
	return steps
}

// whole returns a unit in which all numbers are whole, 1 if they are, or one so
// small that rounding down does not matter.
func whole(numbers []float64) float64 {
	total, exact := 0.0, true
	for _, x := range numbers {
		total += x
		exact = exact && x == math.Trunc(x)
	}
	if exact && total < maxSum || total == 0 {
		return 1
	}
	return total / (maxSum / 2)
}

// budgets bounds the latency of paths with deadlines (eq. 6).
func (m *model) budgets() {
	steps := m.steps()
	index := map[[2]int]int{}
	for i, e := range m.edges {
		index[[2]int{e.a, e.b}] = i
	}
	for _, path := range m.p.budget {
		times := map[int]int{} // a merged path may pass an edge more than once
		var order []int
		for h := 1; h < len(path.nodes); h++ {
			if a, b := min(path.nodes[h-1], path.nodes[h]), max(path.nodes[h-1], path.nodes[h]); a != b {
				i := index[[2]int{a, b}]
				if times[i]++; times[i] == 1 {
					order = append(order, i)
				}
			}
		}
		var lits, weights []int
		var delays []float64
		for _, i := range order {
			for l, step := range steps {
				lits, delays = append(lits, m.edges[i].far[l]), append(delays, float64(times[i])*step)
			}
		}
		unit := whole(delays)
		for _, d := range delays {
			weights = append(weights, int(d/unit))
		}
		m.atMost(lits, weights, int(min(path.deadline*(1+tolerance)/unit, maxSum)))
	}
}

// objective sums what edges and moves cost.
func (m *model) objective() {
	var costs []float64
	var lits []int
	steps := m.steps()
	for _, e := range m.edges {
		for l, step := range steps {
			if c := e.w * step; c > 0 {
				costs, lits = append(costs, c), append(lits, e.far[l])
			}
		}
	}
	for k := range m.p.home {
		for s := range m.p.s {
			if c := m.p.moving(k, s); c > 0 && m.p.fits(k, s) {
				costs, lits = append(costs, c), append(lits, m.x(k, s))
			}
		}
	}
	m.unit = whole(costs)
	for i, c := range costs {
		if w := int(c / m.unit); w > 0 {
			m.costLits, m.costWeights = append(m.costLits, lits[i]), append(m.costWeights, w)
		}
	}
}

// clusterCosts are the parts of the objective that clusters have, and the least
// that each is.
func (m *model) clusterCosts() {
	p := m.p
	of, n := p.clusters()
	weight := map[[2]int]float64{}
	at := map[int]int{} // literal to edge
	steps := m.steps()
	for i, e := range m.edges {
		for l, step := range steps {
			if w := int(e.w * step / m.unit); w > 0 {
				at[e.far[l]] = i
				if l == 0 {
					weight[[2]int{e.a, e.b}] = float64(w)
				}
			}
		}
	}
	m.clusters = make([]clusterCost, n)
	for c, nodes := range members(of, n) {
		m.clusters[c].least = int(p.inside(nodes, func(a, b int) float64 { return weight[[2]int{min(a, b), max(a, b)}] }))
	}
	for i, lit := range m.costLits {
		e, there := at[lit]
		if !there || of[m.edges[e].a] != of[m.edges[e].b] {
			m.between.add(lit, m.costWeights[i])
			continue
		}
		m.clusters[of[m.edges[e].a]].add(lit, m.costWeights[i])
	}
}

// clusterCost is a part of the objective.
type clusterCost struct {
	lits, weights []int
	least         int
}

func (c *clusterCost) add(lit, weight int) {
	c.lits, c.weights = append(c.lits, lit), append(c.weights, weight)
}

// below is all constraints and that the objective is at most n units. Each part
// of it can be above its least by no more than what is left when all others are
// at theirs.
func (m *model) below(n int) []solver.PBConstr {
	limited := model{}
	limited.atMost(m.costLits, m.costWeights, n)
	slack := n - m.between.least
	for _, c := range m.clusters {
		slack -= c.least
	}
	if slack < 0 {
		return []solver.PBConstr{solver.PropClause(1), solver.PropClause(-1)}
	}
	limited.atMost(m.between.lits, m.between.weights, m.between.least+slack)
	for _, c := range m.clusters {
		limited.atMost(c.lits, c.weights, c.least+slack)
	}
	for _, r := range m.routed {
		if n < r.least {
			return []solver.PBConstr{solver.PropClause(1), solver.PropClause(-1)}
		}
		limited.atMost(r.lits, r.weights, n-r.least)
	}
	var out []solver.PBConstr
	for _, c := range append(slices.Clone(m.all), limited.all...) { // the solver keeps and reorders what it is given
		out = append(out, solver.PBConstr{Lits: slices.Clone(c.Lits), Weights: slices.Clone(c.Weights), AtLeast: c.AtLeast})
	}
	return out
}

// symmetry keeps the k-th node, of those with the most traffic, to the first k
// servers where all servers are the same, so that renamed placements do not
// count as others.
func (m *model) symmetry() {
	p := m.p
	if !p.identical() {
		return
	}
	weight := make([]float64, p.n)
	order := make([]int, p.n)
	for k := range p.n {
		order[k] = k
		for e := p.first[k]; e < p.first[k+1]; e++ {
			weight[k] += p.w[e]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
	for rank, k := range order {
		for s := rank + 1; s < p.s; s++ {
			m.clause(-m.x(k, s))
		}
	}
}

// identical reports whether servers can be renamed without a difference.
func (p *problem) identical() bool {
	if p.s > 1 && p.uniform == 0 || p.home != nil || len(p.zones) > 0 {
		return false
	}
	for s := range p.s {
		if p.capCPU[s] != p.capCPU[0] || p.capMemory[s] != p.capMemory[0] {
			return false
		}
	}
	return !slices.ContainsFunc(p.allowed, func(list []bool) bool { return list != nil })
}

// placement reads where the nodes are.
func (m *model) placement(values []bool) []int32 {
	at := make([]int32, m.p.n)
	for k := range at {
		for s := range m.p.s {
			if values[m.x(k, s)-1] {
				at[k] = int32(s)
			}
		}
	}
	return at
}
