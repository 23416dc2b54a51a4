package assign

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Relaxation is the optimum of the problem where demands may split over several paths, and
// capacities, bounds and what is to be apart do not count; Fixed demands stay, and those without a
// path count nothing.
type Relaxation struct {
	// MeanDelay is what flow deviation has reached, s, and Bound that below which no
	// assignment of these demands gets, whatever it does: the mean delay less the duality gap.
	MeanDelay, Bound float64
	Load             []float64 // of each link, bit/s
	Rounds           int

	a      *Assignment
	fixed  []float64
	groups []group
	aim    []float64 // the loads where all take the paths that are shortest now
	goal   []float64 // the loads towards which the last round went; nil: there was none, or it got there
	sums   []float64 // by node
	total  float64
	low    float64
	rate   float64
}

// group is demands with the same beginning that may use the same links.
type group struct {
	from  int
	avoid []bool
	rate  []float64 // by node at which they end
}

// Relax computes the relaxation for the demands that have a path, by flow deviation, until the
// gap is a share of the mean delay at most, or after so many rounds.
func (a *Assignment) Relax(gap float64, rounds int) *Relaxation {
	r := a.relaxation()
	for r.Rounds < rounds && r.total-r.low > gap*r.total {
		r.step()
	}
	r.MeanDelay, r.Bound = a.p.perRate(r.total, r.rate), a.p.perRate(r.low, r.rate)
	return r
}

// relaxation returns one that begins with the loads of the assignment.
func (a *Assignment) relaxation() *Relaxation {
	p := a.p
	r := &Relaxation{a: a, Load: slices.Clone(a.Load), fixed: make([]float64, len(p.Links)), aim: make([]float64, len(p.Links)),
		sums: make([]float64, p.Nodes), total: p.total(a.Load), rate: a.Placed()}
	type key struct {
		from  int
		avoid *bool
	}
	at := map[key]int{}
	for i := range p.Demands {
		d := &p.Demands[i]
		if len(a.Paths[i]) == 0 {
			continue
		}
		if d.Fixed || !a.open(i) {
			for _, l := range a.Paths[i] {
				r.fixed[l] += d.Rate
			}
			continue
		}
		k := key{from: d.From}
		if len(d.Avoid) > 0 {
			k.avoid = &d.Avoid[0]
		}
		n, ok := at[k]
		if !ok {
			n = len(r.groups)
			at[k], r.groups = n, append(r.groups, group{d.From, d.Avoid, make([]float64, p.Nodes)})
		}
		r.groups[n].rate[d.To] += d.Rate
	}
	return r
}

// open reports whether a demand may use all links of its path. One that may not cannot be
// compared with those that it may use, and counts as fixed.
func (a *Assignment) open(i int) bool {
	d := &a.p.Demands[i]
	return !slices.ContainsFunc(a.Paths[i], func(l int) bool { return a.p.Links[l].Closed || d.Avoid != nil && d.Avoid[l] })
}

// Follow returns paths for the demands that may move, chosen as if the loads were those of the
// relaxation for what has none yet: in the order 0 the larger demands first, in others as the order's
// number draws it. It is nil if one finds no room. Improve may come to another end from there
// than from the present paths, where links may be full that single moves do not leave.
func (r *Relaxation) Follow(order uint64) *Assignment {
	p := r.a.p
	a := p.Present()
	var list []int
	rate := 0.0
	for i, path := range r.a.Paths {
		a.Set(i, path)
		if d := &p.Demands[i]; len(path) > 0 && !d.Fixed && r.a.open(i) {
			list = append(list, i)
			rate += d.Rate
		}
	}
	for _, i := range list {
		a.take(i)
	}
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(p.Demands[y].Rate, p.Demands[x].Rate) })
	if order > 0 {
		rand.New(rand.NewPCG(order, 0)).Shuffle(len(list), func(x, y int) { list[x], list[y] = list[y], list[x] })
	}
	left := rate
	for _, i := range list {
		left -= p.Demands[i].Rate
		a.ahead = func(l int) float64 { return max(0, r.Load[l]-r.fixed[l]) * max(0, left/rate) }
		path, _ := a.best(i)
		if path == nil {
			return nil
		}
		a.put(i, path)
	}
	a.ahead = nil
	return a
}

// step is one round of flow deviation (Fratta, Gerla and Kleinrock, section 3): all demands take
// the paths that are shortest by eq. (2), and the loads move as far as γT falls: towards that, or
// towards a point between that and where the last round went, so that the two directions are
// conjugate (M. Mitradjieva and P. O. Lindberg, The stiff is moving, Transportation Science 47,
// 2013, section 3.1), which takes far fewer rounds. By convexity the optimum is no less than
// what the slope reaches at the shortest paths.
func (r *Relaxation) step() {
	p := r.a.p
	lengths := make([]float64, len(p.Links))
	for l, f := range r.Load {
		_, lengths[l] = p.cost(l, f)
	}
	copy(r.aim, r.fixed)
	for g := range r.groups {
		r.load(&r.groups[g], lengths)
	}
	slope := 0.0
	for l, length := range lengths {
		slope += length * (r.aim[l] - r.Load[l])
	}
	r.low = max(r.low, r.total+slope)
	r.Rounds++
	r.conjugate()
	share := r.search()
	for l := range r.Load {
		r.Load[l] += share * (r.goal[l] - r.Load[l])
	}
	if share == 1 {
		r.goal = nil
	}
	r.total = p.total(r.Load)
}

// nearest bounds how near to the last goal the next one is.
const nearest = 0.99

// conjugate sets the goal of the next round.
func (r *Relaxation) conjugate() {
	if r.goal == nil {
		r.goal = slices.Clone(r.aim)
		return
	}
	above, below := 0.0, 0.0
	for l, f := range r.Load {
		bend := r.a.p.bend(l, f) * (r.goal[l] - f)
		above += bend * (r.aim[l] - f)
		below += bend * (r.aim[l] - r.goal[l])
	}
	keeps := 0.0
	if below != 0 {
		keeps = min(max(above/below, 0), nearest)
	}
	for l, aim := range r.aim {
		r.goal[l] = keeps*r.goal[l] + (1-keeps)*aim
	}
}

// load adds the demands of a group to the loads, each on its shortest path.
func (r *Relaxation) load(g *group, lengths []float64) {
	p, f := r.a.p, r.a.find
	f.tree(g.from, -1, func(l int) float64 {
		if p.Links[l].Closed || g.avoid != nil && g.avoid[l] {
			return math.Inf(1)
		}
		return lengths[l]
	})
	copy(r.sums, g.rate)
	for _, n := range slices.Backward(f.seen) {
		if via := f.via[n]; via >= 0 {
			r.aim[via] += r.sums[n]
			r.sums[p.Links[via].From] += r.sums[n]
		}
	}
}

// search returns how far to go towards the goal, 0 to 1, so that γT is least.
func (r *Relaxation) search() float64 {
	slope := func(share float64) (sum float64) {
		for l, f := range r.Load {
			if by := r.goal[l] - f; by != 0 {
				_, length := r.a.p.cost(l, max(0, f+share*by))
				sum += length * by
			}
		}
		return sum
	}
	if slope(1) <= 0 {
		return 1
	}
	low, high := 0.0, 1.0
	for range 40 {
		if mid := (low + high) / 2; slope(mid) > 0 {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}
