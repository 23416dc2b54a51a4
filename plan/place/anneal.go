package place

import "math"

// dice are pseudo-random numbers (xorshift64*): cheap enough for one or two
// with every step.
type dice uint64

func newDice(seed, stream uint64) *dice {
	x := seed*0x9e3779b97f4a7c15 + (stream+1)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	x ^= x >> 29
	d := dice(x | 1)
	for range 4 {
		d.next()
	}
	return &d
}

func (d *dice) next() uint64 {
	x := *d
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*d = x
	return uint64(x) * 0x2545f4914f6cdd1d
}

// below is a number from 0 to n-1.
func (d *dice) below(n int) int { return int((d.next() >> 32) * uint64(n) >> 32) }

// schedule is how an annealing run cools: from hot to cold, shares of the mean
// weight of a node.
type schedule struct {
	steps     int
	hot, cold float64
}

// The weight of violations, in mean weights of a node: it grows while it cools,
// so that much is possible in the beginning and nothing that breaks a
// constraint pays in the end.
const (
	penaltyHot  = 0.5
	penaltyCold = 5
)

const patienceBits = 10

// search is one annealing run and the best placement that it has seen.
type search struct {
	*state
	dice  *dice
	scale float64 // the mean weight of a node
	// patience is what a step may cost, in temperatures: exponentially
	// distributed, as Metropolis has it.
	patience [1 << patienceBits]float64

	best          []int32
	bestCost      float64
	bestViolation float64
}

func newSearch(p *problem, at []int32, d *dice) *search {
	s := &search{state: newState(p, at), dice: d, best: append([]int32(nil), at...)}
	s.bestCost, s.bestViolation = s.cost, s.violation
	s.scale = p.scale()
	for i := range s.patience {
		s.patience[i] = -math.Log((float64(i) + 0.5) / (1 << patienceBits))
	}
	return s
}

// scale is the mean of what a node's edges cost where all are crossed.
func (p *problem) scale() float64 {
	var total, delays float64
	for _, w := range p.w {
		total += w
	}
	for _, row := range p.delay {
		for _, d := range row {
			delays += d
		}
	}
	if p.s > 1 {
		total *= delays / float64(p.s*(p.s-1))
	}
	for k := range p.home {
		total += p.moving(k, -1)
	}
	if total > 0 {
		return total / float64(p.n)
	}
	return 1
}

// satisfied is what counts as no violation: rounding only.
const satisfied = 1e-7

// better reports whether one placement is better than another: less violated
// first, cheaper second.
func better(cost, violation, thanCost, thanViolation float64) bool {
	a, b := max(violation, satisfied), max(thanViolation, satisfied)
	if a != b {
		return a < b
	}
	return cost < thanCost-1e-9*math.Abs(thanCost)
}

// keep notes the placement if it is the best yet.
func (s *search) keep() {
	if better(s.cost, s.violation, s.bestCost, s.bestViolation) {
		copy(s.best, s.at)
		s.bestCost, s.bestViolation = s.cost, s.violation
	}
}

// anneal tries moves and swaps (Kirkpatrick et al. 1983), soft constraints
// becoming hard while it cools.
func (s *search) anneal(c schedule) {
	p := s.p
	if p.s < 2 || p.n < 1 || c.steps < 1 {
		return
	}
	const round = 256 // steps at one temperature
	rounds := max(c.steps/round, 1)
	cooling := math.Pow(c.cold/c.hot, 1/float64(rounds))
	growth := math.Pow(penaltyCold/penaltyHot, 1/float64(rounds))
	temperature, penalty := c.hot*s.scale, penaltyHot*s.scale
	for r := range rounds {
		if r%64 == 0 {
			s.recount()
		}
		for range round {
			s.step(temperature, penalty)
		}
		temperature *= cooling
		penalty *= growth
	}
	s.keep()
}

// step tries one move or swap.
func (s *search) step(temperature, penalty float64) {
	p := s.p
	r := s.dice.next()
	k := int32((r >> 32) * uint64(p.n) >> 32)
	from := s.at[k]
	// Half of the time to a neighbour's server: of many, most have nothing to
	// offer.
	t := from
	if deg := p.first[k+1] - p.first[k]; deg > 0 && r&1 != 0 {
		t = s.at[p.to[p.first[k]+s.dice.below(deg)]]
	}
	if t == from {
		if t = int32(s.dice.below(p.s - 1)); t >= from {
			t++
		}
	}
	if p.allowed[k] != nil && !p.allowed[k][t] {
		return
	}
	limit := s.patience[s.dice.next()>>(64-patienceBits)] * temperature
	// At best all violations go: most tries are refused by this alone.
	room := limit + penalty*max(s.violation, 0)
	row := s.table[int(k)*p.s:]
	j := int32(-1)
	var cost, violation float64
	if r&2 != 0 && len(s.on[t]) > 0 {
		j = s.on[t][s.dice.below(len(s.on[t]))]
		other := s.table[int(j)*p.s:]
		if row[t]-row[from]+other[from]-other[t] > room || p.allowed[j] != nil && !p.allowed[j][from] {
			return
		}
		cost, violation = s.swapped(k, j)
	} else {
		if row[t]-row[from] > room {
			return
		}
		cost, violation = s.moved(k, t)
	}
	if delta := cost + penalty*violation; delta > 0 {
		if delta > limit {
			return
		}
		s.keep() // before it gets worse
	}
	if j >= 0 {
		s.swap(k, j, cost, violation)
	} else {
		s.move(k, t, cost, violation)
	}
}

// descend takes the best of all moves and swaps along edges until none helps,
// violations before cost.
func (s *search) descend() {
	p := s.p
	penalty := 1e3 * s.scale
	for range 50 {
		improved := false
		for k := range int32(p.n) {
			if s.descendNode(k, penalty) {
				improved = true
			}
		}
		s.recount()
		if !improved {
			break
		}
	}
	s.keep()
}

// descendNode makes the best move of one node, or the best swap with a node on
// the server where it would cost least.
func (s *search) descendNode(k int32, penalty float64) bool {
	p := s.p
	from := s.at[k]
	best, bt, bj := -1e-9*s.scale, int32(-1), int32(-1)
	var bc, bv float64
	for t := range int32(p.s) {
		if t == from || p.allowed[k] != nil && !p.allowed[k][t] {
			continue
		}
		c, v := s.moved(k, t)
		if d := c + penalty*v; d < best {
			best, bt, bj, bc, bv = d, t, -1, c, v
		}
		// Of what is there, what would go: only where the node itself would gain.
		if c >= 0 && s.violation <= satisfied {
			continue
		}
		for _, j := range s.on[t] {
			if p.allowed[j] != nil && !p.allowed[j][from] {
				continue
			}
			c, v := s.swapped(k, j)
			if d := c + penalty*v; d < best {
				best, bt, bj, bc, bv = d, t, j, c, v
			}
		}
	}
	switch {
	case bt < 0:
		return false
	case bj >= 0:
		s.swap(k, bj, bc, bv)
	default:
		s.move(k, bt, bc, bv)
	}
	return true
}

// restore goes back to the best placement.
func (s *search) restore() { s.state = newState(s.p, s.best) }
