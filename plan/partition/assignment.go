package partition

import "slices"

// assignment assigns the nodes of a problem to partitions.
type assignment struct {
	*problem
	part  []int32 // by node
	loads []int64 // by partition
	count []int   // by partition: its nodes
	used  []int32 // by apart set and partition: number of the set's nodes there
	cut   int64
	over  int64 // load above the limit, of all partitions

	conn    []int64 // by partition, during look: the weight of a node's links to it
	touched []int32 // partitions with some
}

// newAssignment makes an assignment from the partition of each node.
func newAssignment(p *problem, part []int32) *assignment {
	a := &assignment{problem: p, part: part, loads: make([]int64, p.parts), count: make([]int, p.parts), used: make([]int32, p.nsets*p.parts), conn: make([]int64, p.parts)}
	for v, q := range part {
		a.loads[q] += p.load[v]
		a.count[q]++
		for _, s := range p.sets[v] {
			a.used[int(s)*p.parts+int(q)]++
		}
		to, w := p.x.of(v)
		for j, u := range to {
			if int(u) > v && part[u] != q {
				a.cut += w[j]
			}
		}
	}
	for q := range int32(p.parts) {
		a.over += a.above(q)
	}
	return a
}

// clone returns a copy.
func (a *assignment) clone() *assignment { return newAssignment(a.problem, slices.Clone(a.part)) }

// above returns the load of a partition above the limit.
func (a *assignment) above(q int32) int64 { return max(0, a.loads[q]-a.most(q)) }

// look adds up the links of a node by the partitions of their far ends, in conn
// and touched, until forget.
func (a *assignment) look(v int32) {
	to, w := a.x.of(int(v))
	for j, u := range to {
		q := a.part[u]
		if a.conn[q] == 0 {
			a.touched = append(a.touched, q)
		}
		a.conn[q] += w[j]
	}
}

func (a *assignment) forget() {
	for _, q := range a.touched {
		a.conn[q] = 0
	}
	a.touched = a.touched[:0]
}

// blocked reports whether a demand forbids a node in a partition.
func (a *assignment) blocked(v, q int32) bool {
	if a.fixed[v] >= 0 || a.count[a.part[v]] == 1 {
		return true
	}
	for _, s := range a.sets[v] {
		if a.used[int(s)*a.parts+int(q)] > 0 {
			return true
		}
	}
	return false
}

// best returns the move of a node that reduces the cut most, or increases it
// least: to a partition with room, or one less over its limit. Among equal
// moves it takes the one to the lightest partition. anywhere also considers
// partitions to which the node has no links.
func (a *assignment) best(v int32, room int64, anywhere bool) (to int32, gain int64, ok bool) {
	own, w := a.part[v], a.load[v]
	if a.fixed[v] >= 0 || a.count[own] == 1 {
		return 0, 0, false
	}
	a.look(v)
	stay := a.conn[own]
	try := func(q int32) {
		if q == own || a.loads[q]+w > a.most(q)+room && a.loads[q]+w-a.most(q) >= a.loads[own]-a.most(own) || a.blocked(v, q) {
			return
		}
		g := a.conn[q] - stay
		if !ok || g > gain || g == gain && (a.loads[q] < a.loads[to] || a.loads[q] == a.loads[to] && q < to) {
			to, gain, ok = q, g, true
		}
	}
	if anywhere {
		for q := range int32(a.parts) {
			try(q)
		}
	} else {
		for _, q := range a.touched {
			try(q)
		}
	}
	a.forget()
	return to, gain, ok
}

// move moves a node to a partition; gain is the reduction of the cut.
func (a *assignment) move(v, to int32, gain int64) {
	from := a.part[v]
	a.part[v] = to
	a.over -= a.above(from) + a.above(to)
	a.loads[from] -= a.load[v]
	a.loads[to] += a.load[v]
	a.over += a.above(from) + a.above(to)
	a.count[from]--
	a.count[to]++
	for _, s := range a.sets[v] {
		a.used[int(s)*a.parts+int(from)]--
		a.used[int(s)*a.parts+int(to)]++
	}
	a.cut -= gain
}

// gainOf returns the reduction of the cut if a node moves to a partition.
func (a *assignment) gainOf(v, q int32) int64 {
	var gain int64
	to, w := a.x.of(int(v))
	for j, u := range to {
		switch a.part[u] {
		case q:
			gain += w[j]
		case a.part[v]:
			gain -= w[j]
		}
	}
	return gain
}
