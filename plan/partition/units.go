package partition

import (
	"fmt"
	"slices"
	"strings"
)

// units groups the switches that must share a partition: because of a demand,
// or because of links whose ends may not be in different partitions.
type units struct {
	of    []int32 // by switch: its unit; units are numbered by their first switches
	count int
	fixed []int32   // by unit: its partition, or -1
	sets  [][]int32 // by unit: the sets of Options.Apart that it has a switch of
}

// newUnits finds the units; between are the switches that may join partitions,
// nil: any. Its errors are demands that contradict each other.
func newUnits(g *Graph, x *adjacency, d *demands, between []bool) (*units, error) {
	n := len(g.Switches)
	up := make([]int32, n)
	for i := range up {
		up[i] = int32(i)
	}
	root := func(i int) int32 {
		for up[i] != int32(i) {
			up[i] = up[up[i]]
			i = int(up[i])
		}
		return int32(i)
	}
	join := func(a, b int) { up[root(a)] = root(b) }
	if between != nil {
		for _, l := range g.Links {
			if !between[l.A] && !between[l.B] {
				join(l.A, l.B)
			}
		}
	}
	for _, set := range d.together {
		for _, i := range set[min(1, len(set)):] {
			join(set[0], i)
		}
	}
	u := &units{of: make([]int32, n)}
	number := make([]int32, n)
	for i := range number {
		number[i] = -1
	}
	for i := range n {
		r := root(i)
		if number[r] < 0 {
			number[r] = int32(u.count)
			u.count++
		}
		u.of[i] = number[r]
	}
	w := why{g: g, x: x, d: d, between: between}
	if err := u.fix(w); err != nil {
		return nil, err
	}
	if err := u.separate(w); err != nil {
		return nil, err
	}
	if u.count < d.parts {
		return nil, w.tooFew(u.count)
	}
	return u, nil
}

// fix records the fixed partitions of units.
func (u *units) fix(w why) error {
	u.fixed = make([]int32, u.count)
	by := make([]int, u.count)
	for i := range u.fixed {
		u.fixed[i] = -1
	}
	for i, p := range w.d.fixed {
		if p < 0 {
			continue
		}
		x := u.of[i]
		if u.fixed[x] >= 0 && u.fixed[x] != int32(p) {
			return w.contradiction("fixed", by[x], i, fmt.Sprintf("%v is fixed in %s and %v in %s",
				w.g.Switches[by[x]], w.d.names[u.fixed[x]], w.g.Switches[i], w.d.names[p]), "fix both in the same partition")
		}
		u.fixed[x], by[x] = int32(p), i
	}
	return nil
}

// separate records which units must be apart.
func (u *units) separate(w why) error {
	u.sets = make([][]int32, u.count)
	for s, set := range w.d.apart {
		if len(set) > w.d.parts {
			return &Infeasible{Constraint: "apart", Why: fmt.Sprintf("%d switches are to be in different partitions, from %v to %v, and there are %d partitions",
				len(set), w.g.Switches[set[0]], w.g.Switches[set[len(set)-1]], w.d.parts),
				Remedy: fmt.Sprintf("ask for %d partitions, or for fewer switches apart", len(set))}
		}
		by := map[int32]int{}
		where := map[int32]int{}
		for _, i := range set {
			x := u.of[i]
			if other, ok := by[x]; ok {
				return w.contradiction("apart", other, i, fmt.Sprintf("%v and %v are to be apart", w.g.Switches[other], w.g.Switches[i]), "take one of the two out of what is apart")
			}
			by[x] = i
			if p := u.fixed[x]; p >= 0 {
				if other, ok := where[p]; ok {
					return &Infeasible{Constraint: "apart", Why: fmt.Sprintf("%v and %v are to be apart, and both belong in %s",
						w.g.Switches[other], w.g.Switches[i], w.d.names[p]), Remedy: "fix one of them elsewhere"}
				}
				where[p] = i
			}
			u.sets[x] = append(u.sets[x], int32(s))
		}
	}
	return nil
}

// why explains demands that contradict each other.
type why struct {
	g       *Graph
	x       *adjacency
	d       *demands
	between []bool
}

// tooFew is the error of fewer units than partitions.
func (w why) tooFew(count int) error {
	e := &Infeasible{Constraint: "together", Why: fmt.Sprintf("the switches that have to share a partition leave %d groups, for %d partitions", count, w.d.parts),
		Remedy: fmt.Sprintf("ask for at most %d partitions, or demand less", count)}
	if w.between != nil {
		e.Constraint = "borders"
		e.Why = fmt.Sprintf("with these border switches the network falls into %d parts that can be told apart, for %d partitions", count, w.d.parts)
		e.Remedy = fmt.Sprintf("ask for at most %d partitions, or allow more border switches", count)
	}
	return e
}

// contradiction is the error of two switches that must share a partition and
// must not.
func (w why) contradiction(constraint string, a, b int, not, remedy string) error {
	way := w.way(a, b)
	names := make([]string, len(way))
	inner := []string{} // could be border switches
	for i, x := range way {
		names[i] = w.g.Switches[x].String()
		linked := i > 0 && w.linked(way[i-1], x) || i < len(way)-1 && w.linked(x, way[i+1])
		if w.between != nil && !w.between[x] && linked {
			inner = append(inner, names[i])
		}
	}
	const most = 12
	if len(names) > most {
		names = slices.Concat(names[:most/2], []string{"…"}, names[len(names)-most/2:])
	}
	how := "by what is to be together"
	if len(inner) > 0 {
		how = "by links whose ends are no border switches"
		remedy += fmt.Sprintf(", or allow one of %s as a border switch", strings.Join(inner[:min(len(inner), most/2)], ", "))
	} else {
		remedy += ", or out of what is together"
		if constraint == "fixed" {
			remedy = "fix both in the same partition, or take one out of what is together"
		}
	}
	return &Infeasible{Constraint: constraint, Why: fmt.Sprintf("%s, but they have to share a partition, %s: %s", not, how, strings.Join(names, " – ")), Remedy: remedy}
}

// linked reports whether a link keeps two switches together.
func (w why) linked(a, b int) bool {
	if w.between == nil || w.between[a] || w.between[b] {
		return false
	}
	to, _ := w.x.of(a)
	_, ok := slices.BinarySearch(to, int32(b))
	return ok
}

// way returns the shortest chain of reasons why two switches share a partition.
func (w why) way(a, b int) []int {
	from := map[int]int{a: a}
	queue := []int{a}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		if at == b {
			break
		}
		reach := func(v int) {
			if _, ok := from[v]; !ok {
				from[v] = at
				queue = append(queue, v)
			}
		}
		for _, set := range w.d.together {
			if _, ok := slices.BinarySearch(set, at); ok {
				for _, v := range set {
					reach(v)
				}
			}
		}
		if to, _ := w.x.of(at); w.between != nil && !w.between[at] {
			for _, v := range to {
				if !w.between[v] {
					reach(int(v))
				}
			}
		}
	}
	way := []int{b}
	for at := b; at != a; {
		at = from[at]
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}
