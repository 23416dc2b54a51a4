package partition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Partition cuts a network as Options demand. Its errors report meaningless
// options, or are *Infeasible. Its result passes Check.
func Partition(g *Graph, o Options) (Result, error) {
	d, err := o.demands(g)
	if err != nil {
		return Result{}, err
	}
	s := &search{g: g, o: o, d: d, x: g.adjacency()}
	if o.Method != ByCut {
		r, err := s.structure()
		if o.Method == ByStructure || err == nil && r.Symmetric {
			return r, err
		}
	}
	return s.cut()
}

// Symmetric returns the numbers of partitions, from 1 up, into which the
// structure of a network can be dealt out evenly: for a fat tree the divisors of
// its pods. Borders are as in Options; a network without a structure gives 1
// only.
func Symmetric(g *Graph, o Options) ([]int, error) {
	o.Partitions, o.Names, o.Fixed = 1, nil, nil
	d, err := o.demands(g)
	if err != nil {
		return nil, err
	}
	s := &search{g: g, o: o, d: d, x: g.adjacency()}
	list := []int{1}
	for _, c := range s.structures() {
		n := len(c.parts)
		for p := 2; p <= min(n, MaxPartitions); p++ {
			if n%p == 0 && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

// search is the state of the cutting of one network.
type search struct {
	g *Graph
	o Options
	d *demands
	x *adjacency
}

func (s *search) rng() *rand.Rand { return rand.New(rand.NewPCG(s.o.Seed, uint64(s.d.parts))) }

// structures returns the structures of the network; if border switches are
// demanded, only their structure.
func (s *search) structures() []structured {
	if s.d.borders == nil {
		return structures(s.x)
	}
	if c, ok := s.x.around(s.d.borders, make([]int, s.x.len())); ok && slices.Equal(c.borders, s.d.borders) {
		return []structured{c}
	}
	return nil
}

// structure cuts by a structure with enough parts, preferably one that divides
// evenly.
func (s *search) structure() (Result, error) {
	var found *structured
	most := 0
	list := s.structures()
	for i, c := range list {
		n := len(c.parts)
		most = max(most, n)
		if n >= s.d.parts && (found == nil || n%s.d.parts == 0 && len(found.parts)%s.d.parts != 0) {
			found = &list[i]
		}
	}
	switch {
	case most == 0:
		return Result{}, &Infeasible{Constraint: "structure", Why: "no border switches leave parts that are alike, as the core switches of a fat tree do",
			Remedy: "name them as borders, or use the method " + ByCut}
	case found == nil:
		return Result{}, &Infeasible{Constraint: "structure", Why: fmt.Sprintf("without its border switches the network has %d parts that are alike, for %d partitions", most, s.d.parts),
			Remedy: fmt.Sprintf("ask for at most %d partitions, or use the method %s", most, ByCut)}
	}
	return s.deal(found)
}

// deal assigns the parts of a structure to partitions, neighbours together, and
// then the border switches.
func (s *search) deal(c *structured) (Result, error) {
	u, err := newUnits(s.g, s.x, s.d, c.borders)
	if err != nil {
		return Result{}, err
	}
	all := newProblem(s.g, s.d, u, s.o.Tolerance)
	inner := make([]bool, u.count) // has an internal switch
	for i, x := range u.of {
		inner[x] = inner[x] || !c.borders[i]
	}
	var parts, borders []int32
	for x := range u.count {
		if inner[x] {
			parts = append(parts, int32(x))
		} else {
			borders = append(borders, int32(x))
		}
	}
	if len(parts) < s.d.parts {
		return Result{}, why{g: s.g, d: s.d, between: c.borders}.tooFew(len(parts))
	}
	part := make([]int32, u.count)
	for i := range part {
		part[i] = -1
	}
	if err := s.dealParts(all, parts, part); err != nil {
		return Result{}, err
	}
	if !all.dealBorders(borders, part) {
		return Result{}, &Infeasible{Constraint: "apart", Why: "the border switches find no partitions in which nothing forbids them", Remedy: "ask for fewer switches apart, or use the method " + ByCut, Search: true}
	}
	a := newAssignment(all, part)
	if a.over > 0 {
		return Result{}, s.heavy(a, u)
	}
	return s.result(u, a, ByStructure, c.borders), nil
}

// dealParts assigns parts to partitions as evenly as their loads permit. It
// treats them as a chain and breaks it as rarely as possible, so neighbouring
// pods stay together.
func (s *search) dealParts(all *problem, parts, part []int32) error {
	n := len(parts)
	p := &problem{load: make([]int64, n), fixed: make([]int32, n), sets: make([][]int32, n), nsets: all.nsets, parts: all.parts}
	var grain, sum int64
	same := true
	for i, x := range parts {
		p.load[i], p.fixed[i], p.sets[i] = all.load[x], all.fixed[x], all.sets[x]
		grain, sum = gcd(grain, p.load[i]), sum+p.load[i]
		same = same && p.load[i] == p.load[0]
	}
	if same && !s.d.any {
		for i, x := range parts {
			part[x] = int32(i * all.parts / n)
		}
		return nil
	}
	p.limit = limitOf(max(1, grain), sum, p.parts, s.o.Tolerance)
	p.x = fold(n, func(add func(a, b int32, w int64)) {
		for i := range n - 1 {
			add(int32(i), int32(i+1), 1)
		}
	})
	a, err := p.solve(s.rng(), 8, nil)
	if err != nil {
		return err
	}
	for i, x := range parts {
		part[x] = a.part[i]
	}
	return nil
}

// dealBorders assigns border switches to partitions, neighbours together, the
// same number to each. Where that is forbidden, or makes a partition too heavy,
// it takes the lightest permitted one; it returns false if there is none.
func (p *problem) dealBorders(borders, part []int32) bool {
	for _, even := range []bool{true, false} {
		given := append([]int32(nil), part...)
		loads := make([]int64, p.parts)
		used := make([]bool, p.nsets*p.parts)
		give := func(x, q int32) {
			given[x] = q
			loads[q] += p.load[x]
			for _, s := range p.sets[x] {
				used[int(s)*p.parts+int(q)] = true
			}
		}
		for x, q := range part {
			if q >= 0 {
				give(int32(x), q)
			}
		}
		for _, x := range borders {
			if q := p.fixed[x]; q >= 0 {
				give(x, q)
			}
		}
		fits := func(x, q int32) bool {
			return !slices.ContainsFunc(p.sets[x], func(s int32) bool { return used[int(s)*p.parts+int(q)] })
		}
		done := true
		for i, x := range borders {
			if p.fixed[x] >= 0 {
				continue
			}
			best := int32(i * p.parts / len(borders))
			if !even || !fits(x, best) {
				best = -1
				for q := range int32(p.parts) {
					if fits(x, q) && (best < 0 || loads[q] < loads[best]) {
						best = q
					}
				}
			}
			if best < 0 {
				done = false
				break
			}
			give(x, best)
		}
		if done && (!even || slices.Max(loads) <= p.limit) {
			copy(part, given)
			return true
		}
	}
	return false
}

// cut looks for a cut of little weight.
func (s *search) cut() (Result, error) {
	u, err := newUnits(s.g, s.x, s.d, s.d.borders)
	if err != nil {
		return Result{}, err
	}
	p := newProblem(s.g, s.d, u, s.o.Tolerance)
	var shared []bool
	if s.d.borders != nil {
		shared = make([]bool, u.count)
		for i, b := range s.d.borders {
			shared[u.of[i]] = b
		}
	}
	rounds := s.o.Rounds
	if rounds == 0 {
		rounds = roundsFor(p.len(), len(p.x.to)/2, p.parts)
	}
	a, err := p.solve(s.rng(), rounds, shared)
	if err != nil {
		return Result{}, err
	}
	if a.over > 0 {
		return Result{}, s.heavy(a, u)
	}
	return s.result(u, a, ByCut, s.d.borders), nil
}

// result measures an assignment of units. Unnamed partitions are numbered by
// their first switches.
func (s *search) result(u *units, a *assignment, method string, between []bool) Result {
	of := make([]int, len(u.of))
	number := make([]int, s.d.parts)
	for q := range number {
		number[q] = -1
	}
	next := 0
	for i, x := range u.of {
		q := a.part[x]
		if number[q] < 0 {
			number[q] = next
			next++
		}
		of[i] = number[q]
		if len(s.o.Fixed) > 0 {
			of[i] = int(q)
		}
	}
	r := measure(s.g, s.x, of, s.d.names, between)
	r.Method = method
	return r
}

// heavy returns the error for partitions above the limit.
func (s *search) heavy(a *assignment, u *units) error {
	loads, even := balance(s.g, s.d.parts, 0)
	var sum, most int64
	for _, l := range loads {
		sum += l
	}
	mean := float64(sum) / float64(s.d.parts)
	most = slices.Max(a.loads)
	e := &Infeasible{Constraint: "balance", Search: true,
		Why:    fmt.Sprintf("the heaviest of %d partitions has a load of %d where the mean is %.6g and the limit %d", s.d.parts, most, mean, a.limit),
		Remedy: fmt.Sprintf("allow a tolerance of %.3g, or ask for another number of partitions", above(most, even))}
	for x, w := range a.load {
		if w <= a.limit {
			continue
		}
		var names []string
		for i, y := range u.of {
			if int(y) == x {
				names = append(names, s.g.Switches[i].String())
			}
		}
		who, makes := "switch "+names[0], "makes"
		if len(names) > 1 {
			who = fmt.Sprintf("the %d switches that have to share a partition, %s", len(names), strings.Join(names[:min(4, len(names))], ", "))
			if len(names) > 4 {
				who += " …,"
			}
			makes = "make"
			if s.d.borders != nil {
				e.Remedy += ", or allow more border switches"
			}
		}
		e.Why = fmt.Sprintf("%s alone %s a load of %d, where the mean of %d partitions is %.6g and the limit %d", who, makes, w, s.d.parts, mean, a.limit)
		e.Search = false
		break
	}
	return e
}

// above returns the share by which a load exceeds another, rounded up to a
// thousandth.
func above(load, base int64) float64 {
	thousandths := (load*1000 + base - 1) / base
	return float64(thousandths-1000) / 1000
}
