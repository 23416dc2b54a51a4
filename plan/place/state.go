package place

import "math"

// state is a placement in the making, with all that makes the price of a move
// or a swap known at once: what each node would cost on each server, loads, and
// who is where.
type state struct {
	p     *problem
	at    []int32
	table []float64 // what node k costs on server s, at k*servers+s: its edges and its move
	on    [][]int32 // nodes of each server
	pos   []int32   // of each node in there

	cpu, memory     []int64
	perCPU, perMem  float64 // violations per unit of excess: 1 is a node of mean size
	compute, tender []int32 // nodes of servers, compute and sensitive
	powered         []int32 // nodes of servers with a power source, at s*powers+source
	sets            []int32 // nodes of apart sets on servers, at set*servers+s
	zsets           []int32 // nodes of zone sets in zones, at set*zones+z
	latency         []float64
	perDelay        float64 // violations per µs over a deadline

	cost      float64 // edges and moves
	violation float64
}

// newState is the state of a placement that keeps the pins.
func newState(p *problem, at []int32) *state {
	s := &state{p: p, at: append([]int32(nil), at...), table: make([]float64, p.n*p.s), on: make([][]int32, p.s), pos: make([]int32, p.n),
		cpu: make([]int64, p.s), memory: make([]int64, p.s), compute: make([]int32, p.s), tender: make([]int32, p.s),
		powered: make([]int32, p.s*p.powers), sets: make([]int32, len(p.apart)*p.s), zsets: make([]int32, len(p.zones)*p.zoneN),
		latency: make([]float64, len(p.budget)), perDelay: 1}
	s.perCPU, s.perMem = float64(p.n)/max(float64(sum(p.cpu)), 1), float64(p.n)/max(float64(sum(p.memory)), 1)
	if d := p.leastDelay(); d > 0 && !math.IsInf(d, 1) {
		s.perDelay = 1 / d
	}
	for k := range p.n {
		row := s.table[k*p.s : (k+1)*p.s]
		if p.home != nil && p.home[k] != nil {
			for t := range row {
				row[t] = p.moving(k, t)
			}
		}
		for e := p.first[k]; e < p.first[k+1]; e++ {
			to, w := p.delay[s.at[p.to[e]]], p.w[e]
			for t := range row {
				row[t] += w * to[t]
			}
		}
		s.enter(int32(k), at[k], 1)
		s.pos[k] = int32(len(s.on[at[k]]))
		s.on[at[k]] = append(s.on[at[k]], int32(k))
	}
	for b := range p.budget {
		s.latency[b] = s.path(b)
	}
	s.recount()
	return s
}

// enter adds a node to the counts of a server, or, with -1, takes it away.
func (s *state) enter(k, t, sign int32) {
	p := s.p
	s.cpu[t] += int64(sign) * p.cpu[k]
	s.memory[t] += int64(sign) * p.memory[k]
	if p.compute[k] {
		s.compute[t] += sign
	}
	if p.sensitive[k] {
		s.tender[t] += sign
	}
	if d := p.power[k]; d != 0 {
		s.powered[int(t)*p.powers] += sign // of all sources
		s.powered[int(t)*p.powers+d] += sign
	}
	for _, g := range p.sets[k] {
		s.sets[g*p.s+int(t)] += sign
	}
	for _, g := range p.zsets[k] {
		s.zsets[g*p.zoneN+p.zone[t]] += sign
	}
}

// path is what crossing servers adds to a path now.
func (s *state) path(b int) float64 {
	nodes := s.p.budget[b].nodes
	var sum float64
	for h := 1; h < len(nodes); h++ {
		sum += s.p.delay[s.at[nodes[h-1]]][s.at[nodes[h]]]
	}
	return sum
}

// late is by how much a path's latency breaks its deadline.
func (s *state) late(b int, latency float64) float64 {
	if d := s.p.budget[b].deadline; latency > d*(1+tolerance) {
		return (latency - d) * s.perDelay
	}
	return 0
}

// over is by how much a server's loads are too much.
func (s *state) over(t int32, cpu, memory int64) float64 {
	var v float64
	if x := cpu - s.p.capCPU[t]; x > 0 {
		v += float64(x) * s.perCPU
	}
	if x := memory - s.p.capMemory[t]; x > 0 {
		v += float64(x) * s.perMem
	}
	return v
}

// recount computes cost and violation anew, so that rounding does not add up.
func (s *state) recount() {
	p := s.p
	s.cost, s.violation = 0, 0
	for k := range p.n {
		own := p.moving(k, int(s.at[k]))
		s.cost += own + (s.table[k*p.s+int(s.at[k])]-own)/2 // an edge is in the tables of both ends
	}
	for t := range p.s {
		s.violation += s.over(int32(t), s.cpu[t], s.memory[t])
		s.violation += float64(s.compute[t]) * float64(s.tender[t])
		all := s.powered[t*p.powers : (t+1)*p.powers]
		same := int32(0)
		for _, n := range all[1:] {
			same += n * n
		}
		s.violation += float64(all[0]*all[0]-same) / 2
	}
	for _, n := range s.sets {
		s.violation += float64(n*(n-1)) / 2
	}
	for _, n := range s.zsets {
		s.violation += float64(n*(n-1)) / 2
	}
	for b, t := range s.latency {
		s.violation += s.late(b, t)
	}
}

// moved is what moving node k to server t changes: the cost and the violation.
func (s *state) moved(k, t int32) (cost, violation float64) {
	p := s.p
	from := s.at[k]
	row := s.table[int(k)*p.s : (int(k)+1)*p.s]
	violation = s.over(from, s.cpu[from]-p.cpu[k], s.memory[from]-p.memory[k]) - s.over(from, s.cpu[from], s.memory[from]) +
		s.over(t, s.cpu[t]+p.cpu[k], s.memory[t]+p.memory[k]) - s.over(t, s.cpu[t], s.memory[t])
	if p.compute[k] {
		violation += float64(s.tender[t] - s.tender[from])
	}
	if p.sensitive[k] {
		violation += float64(s.compute[t] - s.compute[from])
	}
	violation += s.sources(k, from, t, -1)
	for _, g := range p.sets[k] {
		violation += float64(s.sets[g*p.s+int(t)] - s.sets[g*p.s+int(from)] + 1)
	}
	if zf, zt := p.zone[from], p.zone[t]; zf != zt {
		for _, g := range p.zsets[k] {
			violation += float64(s.zsets[g*p.zoneN+zt] - s.zsets[g*p.zoneN+zf] + 1)
		}
	}
	if len(p.paths[k]) > 0 {
		s.at[k] = t
		for _, b := range p.paths[k] {
			violation += s.late(b, s.path(b)) - s.late(b, s.latency[b])
		}
		s.at[k] = from
	}
	return row[t] - row[from], violation
}

// sources is what the move of node k changes in pairs of different power
// sources; without other, if that is not -1, which leaves t meanwhile.
func (s *state) sources(k, from, t, other int32) float64 {
	p := s.p
	d := p.power[k]
	if d == 0 {
		return 0
	}
	f, g := int(from)*p.powers, int(t)*p.powers
	v := (s.powered[g] - s.powered[g+d]) - (s.powered[f] - s.powered[f+d])
	if other >= 0 && p.power[other] != 0 && p.power[other] != d {
		v-- // it is not there any more
	}
	return float64(v)
}

// swapped is what exchanging nodes k and j, on different servers, changes.
func (s *state) swapped(k, j int32) (cost, violation float64) {
	p := s.p
	a, b := s.at[k], s.at[j]
	rk, rj := s.table[int(k)*p.s:(int(k)+1)*p.s], s.table[int(j)*p.s:(int(j)+1)*p.s]
	cost = rk[b] - rk[a] + rj[a] - rj[b] + 2*p.between(int(k), int(j))*p.delay[a][b]
	cpu, memory := p.cpu[k]-p.cpu[j], p.memory[k]-p.memory[j]
	violation = s.over(a, s.cpu[a]-cpu, s.memory[a]-memory) - s.over(a, s.cpu[a], s.memory[a]) +
		s.over(b, s.cpu[b]+cpu, s.memory[b]+memory) - s.over(b, s.cpu[b], s.memory[b])
	if compute, tender := bit(p.compute[k])-bit(p.compute[j]), bit(p.sensitive[k])-bit(p.sensitive[j]); compute != 0 || tender != 0 {
		violation += float64((s.compute[a]-compute)*(s.tender[a]-tender) - s.compute[a]*s.tender[a] +
			(s.compute[b]+compute)*(s.tender[b]+tender) - s.compute[b]*s.tender[b])
	}
	if p.power[k] != p.power[j] {
		violation += s.sources(k, a, b, j) + s.sources(j, b, a, k)
	}
	violation += s.swappedSets(k, j, a, b)
	if len(p.paths[k])+len(p.paths[j]) > 0 {
		s.at[k], s.at[j] = b, a
		for _, x := range p.paths[k] {
			violation += s.late(x, s.path(x)) - s.late(x, s.latency[x])
		}
		for _, x := range p.paths[j] {
			if !contains(p.paths[k], x) {
				violation += s.late(x, s.path(x)) - s.late(x, s.latency[x])
			}
		}
		s.at[k], s.at[j] = a, b
	}
	return cost, violation
}

// swappedSets is what a swap changes in pairs that are to be apart.
func (s *state) swappedSets(k, j, a, b int32) (violation float64) {
	p := s.p
	one := func(x, y, from, to int32) {
		for _, g := range p.sets[x] {
			if !contains(p.sets[y], g) { // of a set of both nothing changes
				violation += float64(s.sets[g*p.s+int(to)] - s.sets[g*p.s+int(from)] + 1)
			}
		}
		if zf, zt := p.zone[from], p.zone[to]; zf != zt {
			for _, g := range p.zsets[x] {
				if !contains(p.zsets[y], g) {
					violation += float64(s.zsets[g*p.zoneN+zt] - s.zsets[g*p.zoneN+zf] + 1)
				}
			}
		}
	}
	one(k, j, a, b)
	one(j, k, b, a)
	return violation
}

// move moves node k to server t, which changes cost and violation by so much.
func (s *state) move(k, t int32, cost, violation float64) {
	p := s.p
	from := s.at[k]
	s.enter(k, from, -1)
	s.enter(k, t, 1)
	last := s.on[from][len(s.on[from])-1]
	s.on[from][s.pos[k]], s.pos[last] = last, s.pos[k]
	s.on[from] = s.on[from][:len(s.on[from])-1]
	s.pos[k] = int32(len(s.on[t]))
	s.on[t] = append(s.on[t], k)
	s.at[k] = t
	for _, b := range p.paths[k] {
		s.latency[b] = s.path(b)
	}
	s.cost += cost
	s.violation += violation
	to, w := p.to[p.first[k]:p.first[k+1]], p.w[p.first[k]:p.first[k+1]]
	if d := p.uniform; d != 0 {
		for e, x := range to {
			row := s.table[int(x)*p.s : (int(x)+1)*p.s]
			row[from] += w[e] * d
			row[t] -= w[e] * d
		}
		return
	}
	was, is := p.delay[from], p.delay[t]
	for e, x := range to {
		row := s.table[int(x)*p.s : (int(x)+1)*p.s]
		for u := range row {
			row[u] += w[e] * (is[u] - was[u])
		}
	}
}

// swap exchanges nodes k and j.
func (s *state) swap(k, j int32, cost, violation float64) {
	a, b := s.at[k], s.at[j]
	s.move(k, b, cost, violation)
	s.move(j, a, 0, 0)
}

// bit is 1 for true.
func bit(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// contains reports whether a short list has a number.
func contains(list []int, x int) bool {
	for _, y := range list {
		if y == x {
			return true
		}
	}
	return false
}
