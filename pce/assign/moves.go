package assign

import (
	"cmp"
	"slices"
)

// Move is a demand that goes from one path to another.
type Move struct {
	Demand   int
	From, To []int   // links
	Gain     float64 // by how much it lowers the mean delay when it is made, s; may be negative
}

// Moves returns the moves that lead from the present paths to those of the assignment, in steps of
// at most atOnce moves that are made at the same time: what moves holds both of its paths
// until the step is over, and at no time a link holds more than its capacity, unless it did
// before. Of what is possible the largest gain comes first. A demand for whose move there is never
// room stays, and the assignment has its present path afterwards.
func (a *Assignment) Moves(atOnce int) (steps [][]Move) {
	now := a.p.Present()
	rate := now.Placed()
	var open []int
	for i, path := range a.Paths {
		if len(now.Paths[i]) > 0 && len(path) > 0 && !slices.Equal(now.Paths[i], path) {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		gains := map[int]float64{}
		for _, i := range open {
			was := now.take(i)
			gains[i] = now.grows(i, was) - now.grows(i, a.Paths[i])
			now.put(i, was)
		}
		slices.SortFunc(open, func(x, y int) int { return cmp.Or(cmp.Compare(gains[y], gains[x]), cmp.Compare(x, y)) })
		var step []Move
		held := slices.Clone(now.Load)
		rest := open[:0]
		for _, i := range open {
			if len(step) == atOnce || !now.joins(i, a.Paths[i], held, step) {
				rest = append(rest, i)
				continue
			}
			before := now.p.total(now.Load)
			was := now.Paths[i]
			now.Set(i, a.Paths[i])
			step = append(step, Move{i, was, a.Paths[i], now.p.perRate(before-now.p.total(now.Load), rate)})
		}
		if len(step) == 0 {
			break
		}
		steps, open = append(steps, step), rest
	}
	for _, i := range open {
		a.take(i)
	}
	for _, i := range open {
		a.put(i, now.Paths[i])
	}
	return steps
}

// joins reports whether a demand may move in a step, given what links hold in it, and adds what
// it holds.
func (a *Assignment) joins(i int, path []int, held []float64, step []Move) bool {
	d := &a.p.Demands[i]
	for _, x := range a.apart[i] {
		if slices.ContainsFunc(step, func(m Move) bool { return m.Demand == x.Demand }) {
			return false
		}
	}
	a.mark(i)
	for _, l := range path {
		if !slices.Contains(a.Paths[i], l) && !a.p.fits(l, held[l], d.Rate) || a.find.forbidden(d, l) {
			return false
		}
	}
	for _, l := range path {
		if !slices.Contains(a.Paths[i], l) {
			held[l] += d.Rate
		}
	}
	return true
}
