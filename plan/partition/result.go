package partition

import "slices"

// Result is a network in partitions.
type Result struct {
	Names  []string // of the partitions
	Of     []int    // by switch: the partition that masters it
	Method string   // how it was cut: ByStructure or ByCut
	// Borders are the border switches by their indices, in order: those that must
	// be crossed between partitions. Every link between two has one at an end.
	// Where Options or the network's structure say which switches may join
	// partitions these are of them, else they are all with a link to another.
	Borders []int
	// Shared is whether border switches belong, for routes, to the partitions of
	// all their neighbours (paper 001 §3.2: they may belong to several); otherwise
	// each belongs to its own.
	Shared bool
	// Cut is the weight of the links between partitions, CutLinks their number.
	Cut      int64
	CutLinks int
	// Parts are the partitions.
	Parts []Part
	// Balance is the load of the heaviest over the mean: 1 is even.
	Balance float64
	// Symmetric is whether all partitions have as many internal switches, of as
	// much load, as many border switches and as many links (paper 001 §3.2).
	Symmetric bool
}

// Part is one partition.
type Part struct {
	Switches int   // that it masters
	Load     int64 // of those
	Internal int   // of those, all but border switches: n of paper 001 §3.2
	// InternalLoad is that of the internal switches.
	InternalLoad int64
	// Borders is how many border switches belong to it, those of its own and
	// those that have a link to its internal switches: k of paper 001 §3.2.
	Borders int
	// Links is how many have an end at its internal switches.
	Links int
	// Pieces is in how many its switches fall, border switches that belong to it
	// joining them: 1 is connected.
	Pieces int
}

// Connected reports whether every partition is in one piece.
func (r *Result) Connected() bool {
	return !slices.ContainsFunc(r.Parts, func(p Part) bool { return p.Pieces > 1 })
}

// Switches lists the switches of a partition by their indices.
func (r *Result) Switches(part int) []int {
	var list []int
	for i, p := range r.Of {
		if p == part {
			list = append(list, i)
		}
	}
	return list
}

// measure fills in everything that follows from who masters what. between are
// the switches that may join partitions, nil: any.
func measure(g *Graph, x *adjacency, of []int, names []string, between []bool) Result {
	r := Result{Names: names, Of: of, Shared: between != nil, Parts: make([]Part, len(names))}
	border := make([]bool, len(of))
	for _, l := range g.Links {
		if of[l.A] == of[l.B] {
			continue
		}
		r.Cut += l.Weight
		r.CutLinks++
		for _, i := range [2]int{l.A, l.B} {
			border[i] = border[i] || between == nil || between[i]
		}
	}
	belongs := make([][]bool, len(names)) // by partition: its border switches
	for p := range belongs {
		belongs[p] = make([]bool, len(of))
	}
	for i, b := range border {
		part := &r.Parts[of[i]]
		part.Switches++
		part.Load += g.Switches[i].Load
		if b {
			r.Borders = append(r.Borders, i)
			belongs[of[i]][i] = true
			continue
		}
		part.Internal++
		part.InternalLoad += g.Switches[i].Load
		to, _ := x.of(i)
		for _, v := range to {
			if border[v] {
				belongs[of[i]][v] = true
			}
		}
	}
	for _, l := range g.Links {
		a, b := of[l.A], of[l.B]
		if !border[l.A] {
			r.Parts[a].Links++
		}
		if !border[l.B] && (border[l.A] || a != b) {
			r.Parts[b].Links++
		}
	}
	var heaviest int64
	for p := range r.Parts {
		part := &r.Parts[p]
		without := make([]bool, len(of))
		for i := range of {
			without[i] = of[i] != p && !belongs[p][i]
			if belongs[p][i] {
				part.Borders++
			}
		}
		part.Pieces = pieces(x, without, func(i int) bool { return of[i] == p })
		heaviest = max(heaviest, part.Load)
	}
	r.Balance = 1
	if total := g.Load(); total > 0 {
		r.Balance = float64(heaviest) * float64(len(names)) / float64(total)
	}
	r.Symmetric = alike(r.Parts)
	return r
}

// pieces counts the components that have a switch of a partition's own.
func pieces(x *adjacency, without []bool, own func(int) bool) int {
	of, count := x.components(without)
	has := make([]bool, count)
	found := 0
	for i, c := range of {
		if c >= 0 && own(i) && !has[c] {
			has[c] = true
			found++
		}
	}
	return found
}

// alike reports whether partitions are symmetric.
func alike(parts []Part) bool {
	for _, p := range parts {
		q := parts[0]
		if p.Internal != q.Internal || p.InternalLoad != q.InternalLoad || p.Borders != q.Borders || p.Links != q.Links {
			return false
		}
	}
	return true
}
