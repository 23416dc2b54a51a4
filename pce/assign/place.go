package assign

import (
	"cmp"
	"math"
	"slices"
)

// best returns the path of a demand that makes γT grow least, given the loads without it, and by
// how much; nil if no path has room and meets the demand's constraints. With a bound on delay
// or links it is the best of those that a Lagrange multiplier on that bound finds.
func (a *Assignment) best(i int) (path []int, grows float64) {
	d, p, f := &a.p.Demands[i], a.p, a.find
	a.mark(i)
	apart := len(a.apart[i]) > 0
	price := 0.0
	length := func(l int) float64 {
		k := &p.Links[l]
		if k.Closed || d.Avoid != nil && d.Avoid[l] || !p.fits(l, a.Load[l], d.Rate) || apart && f.forbidden(d, l) {
			return math.Inf(1)
		}
		load := a.Load[l]
		if a.ahead != nil {
			load += a.ahead(l)
		}
		x := p.more(l, load, d.Rate) + d.Rate*hopDelay
		if price > 0 {
			x += price * p.weight(d, l)
		}
		return x
	}
	try := func() []int {
		f.tree(d.From, d.To, length)
		return f.path(d.From, d.To)
	}
	path = try()
	if path != nil && !p.within(d, path) {
		path = nil
		low, high := 0.0, 0.0
		for price = d.Rate * hopDelay; high == 0 && price < d.Rate*1e6; price *= 8 {
			if found := try(); p.within(d, found) {
				path, high = found, price
			} else {
				low = price
			}
		}
		for range 12 {
			if high == 0 {
				break
			}
			if price = (low + high) / 2; low > 0 {
				price = math.Sqrt(low * high)
			}
			if found := try(); p.within(d, found) {
				path, high = found, price
			} else {
				low = price
			}
		}
	}
	return path, a.grows(i, path)
}

// grows returns by how much γT grows where a demand, which has no path, gets one.
func (a *Assignment) grows(i int, path []int) (sum float64) {
	for _, l := range path {
		sum += a.p.more(l, a.Load[l], a.p.Demands[i].Rate)
	}
	return sum
}

// weight returns the share of a link in the bounds of a demand.
func (p *Problem) weight(d *Demand, l int) (share float64) {
	if d.MaxDelay > 0 {
		share = p.Links[l].Latency / d.MaxDelay
	}
	if d.MaxHops > 0 {
		share += 1 / float64(d.MaxHops)
	}
	return share
}

// within reports whether a path keeps the bounds of a demand.
func (p *Problem) within(d *Demand, path []int) bool {
	sum := 0.0
	for _, l := range path {
		sum += p.Links[l].Latency
	}
	return (d.MaxHops == 0 || len(path) <= d.MaxHops) && (d.MaxDelay == 0 || sum <= d.MaxDelay*(1+1e-9))
}

// mark marks what a demand shares with none of the paths that it is to be apart from.
func (a *Assignment) mark(i int) {
	f := a.find
	f.cables.clear()
	f.nodes.clear()
	f.risks.clear()
	for _, x := range a.apart[i] {
		path := a.Paths[x.Demand]
		for k, l := range path {
			f.cables.add(a.p.Links[l].Cable)
			if x.Nodes && k > 0 {
				f.nodes.add(a.p.Links[l].From)
			}
			if x.Risks {
				for _, r := range a.p.Links[l].Risks {
					f.risks.add(r)
				}
			}
		}
	}
}

// forbidden reports whether a link shares something that is marked.
func (f *finder) forbidden(d *Demand, l int) bool {
	k := &f.p.Links[l]
	return f.cables.has(k.Cable) || k.To != d.To && f.nodes.has(k.To) || slices.ContainsFunc(k.Risks, f.risks.has)
}

// Place gives a path to each demand that has none, where one has room: the more important ones
// first, of equally important ones the larger. It returns how many have none after that.
func (a *Assignment) Place() (left int) {
	var list []int
	for i := range a.Paths {
		if len(a.Paths[i]) == 0 && !a.p.Demands[i].Fixed {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(x, y int) int {
		d, e := &a.p.Demands[x], &a.p.Demands[y]
		return cmp.Or(cmp.Compare(d.Priority, e.Priority), cmp.Compare(e.Rate, d.Rate))
	})
	for _, i := range list {
		if path, _ := a.best(i); path != nil {
			a.put(i, path)
		} else {
			left++
		}
	}
	return left
}

// passes bounds how often Improve looks at all demands.
const passes = 30

// pairsMost is how many pairs of demands Improve looks at in a pass at most: with more, single moves
// come near enough to the bound.
const pairsMost = 5_000

// few reports whether so many demands are few enough to be looked at in pairs.
func few(demands int) bool { return demands*(demands-1)/2 <= pairsMost }

// Improve moves single demands, and pairs of them where there are few, to other paths as long as each
// move lowers the mean delay by more than a share of what it was at the beginning, and
// moves those back that in the end gain less. Nobody loses a path.
func (a *Assignment) Improve(least float64) {
	total := a.p.total(a.Load)
	least = max(least, 1e-12) * total
	began := slices.Clone(a.Paths)
	for range passes {
		gain := 0.0
		for i := range a.Paths {
			gain += a.improve(i, least)
		}
		if enough := max(least, 1e-5*total); gain <= enough {
			if gain = a.improvePairs(least); gain <= enough {
				break
			}
		}
	}
	a.undo(began, least)
}

// undo moves demands back to the paths that they had where γT grows by less than least.
func (a *Assignment) undo(began [][]int, least float64) {
	for i, was := range began {
		if now := a.Paths[i]; len(was) > 0 && !slices.Equal(now, was) {
			a.take(i)
			if a.allowed(i, was) && a.grows(i, was)-a.grows(i, now) < least {
				now = was
			}
			a.put(i, now)
		}
	}
}

// ordersMost is how many orders Optimise tries for paths that follow the relaxation where there are few
// demands.
const ordersMost = 8

// Terms say how far to go.
type Terms struct {
	Least  float64 // share of the mean delay that a move gains, as Improve has it
	Gap    float64 // share of the mean delay to which the bound is computed
	Rounds int     // the most rounds of flow deviation
}

// following is the share of the mean delay by which paths that follow the relaxation have to be better
// than improved ones to be taken: far more demands move.
const following = 0.01

// Optimise improves the assignment, and returns it, or one in which the same demands have paths that
// follow the relaxation, if that is better, and the relaxation, whose Bound holds for both.
func (a *Assignment) Optimise(t Terms) (*Assignment, *Relaxation) {
	least := max(t.Least, 1e-12) * a.p.total(a.Load)
	began := slices.Clone(a.Paths)
	a.Improve(t.Least)
	r := a.Relax(t.Gap, t.Rounds)
	if a.p.total(a.Load)*(1-following) <= r.low {
		return a, r
	}
	orders := uint64(1)
	if few(len(r.a.Paths)) {
		orders = ordersMost
	}
	best := a.p.total(a.Load) * (1 - following)
	for order := range orders {
		if f := r.Follow(order); f != nil {
			f.Improve(t.Least)
			if f.undo(began, least); f.p.total(f.Load) < best {
				a, best = f, f.p.total(f.Load)
			}
		}
	}
	return a, r
}

// improve moves one demand, if γT falls by more than least, and returns by how much it falls.
func (a *Assignment) improve(i int, least float64) (gain float64) {
	if len(a.Paths[i]) == 0 || a.p.Demands[i].Fixed {
		return 0
	}
	was := a.take(i)
	stays := a.grows(i, was)
	path, moves := a.best(i)
	if path == nil || stays-moves <= least {
		a.put(i, was)
		return 0
	}
	a.put(i, path)
	return stays - moves
}

// improvePairs moves pairs of demands, if γT falls by more than least for each, and returns by how much
// it falls.
func (a *Assignment) improvePairs(least float64) (gain float64) {
	var list []int
	for i, path := range a.Paths {
		if len(path) > 0 && !a.p.Demands[i].Fixed {
			list = append(list, i)
		}
	}
	if !few(len(list)) {
		return 0
	}
	for at, i := range list {
		for _, k := range list[at+1:] {
			if by := a.improvePair(i, k, least); by > 0 {
				gain += by
			} else {
				gain += a.improvePair(k, i, least)
			}
		}
	}
	return gain
}

// improvePair moves two demands, the first as if there were no second.
func (a *Assignment) improvePair(i, k int, least float64) (gain float64) {
	before := a.on(a.Paths[i], a.Paths[k])
	wasI, wasK := a.take(i), a.take(k)
	gain = before - a.on(wasI, wasK)
	back := func() float64 {
		a.put(i, wasI)
		a.put(k, wasK)
		return 0
	}
	path, grows := a.best(i)
	if gain -= grows; path == nil || gain <= 2*least {
		return back()
	}
	a.put(i, path)
	if path, grows = a.best(k); path == nil || gain-grows <= 2*least {
		a.take(i)
		return back()
	}
	a.put(k, path)
	return gain - grows
}

// on returns the share in γT of the links of two paths.
func (a *Assignment) on(p, q []int) (sum float64) {
	for _, l := range p {
		c, _ := a.p.cost(l, a.Load[l])
		sum += c
	}
	for _, l := range q {
		if !slices.Contains(p, l) {
			c, _ := a.p.cost(l, a.Load[l])
			sum += c
		}
	}
	return sum
}

// allowed reports whether a demand, which has no path, may have one.
func (a *Assignment) allowed(i int, path []int) bool {
	d := &a.p.Demands[i]
	a.mark(i)
	return !slices.ContainsFunc(path, func(l int) bool {
		return !a.p.fits(l, a.Load[l], d.Rate) || a.find.forbidden(d, l)
	})
}
