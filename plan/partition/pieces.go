package partition

import (
	"cmp"
	"slices"
)

// piecesOf numbers the pieces of a partition by node; -1: the node neither is
// in the partition nor belongs to it. Shared nodes that belong to it join
// pieces.
func (a *assignment) piecesOf(q int32, shared []bool) ([]int, int) {
	without := make([]bool, a.len())
	for v := range without {
		without[v] = a.part[v] != q && !a.belongs(v, q, shared)
	}
	return a.x.components(without)
}

// belongs reports whether a shared node has a link to an unshared node of a
// partition.
func (a *assignment) belongs(v int, q int32, shared []bool) bool {
	if shared == nil || !shared[v] {
		return false
	}
	to, _ := a.x.of(v)
	return slices.ContainsFunc(to, func(u int32) bool { return a.part[u] == q && !shared[u] })
}

// pieces counts those of all partitions.
func (a *assignment) pieces(shared []bool) int {
	sum := 0
	for _, n := range a.torn(shared) {
		sum += n
	}
	return sum
}

// torn counts the pieces of each partition.
func (a *assignment) torn(shared []bool) []int {
	list := make([]int, a.parts)
	if shared != nil {
		for q := range list {
			of, count := a.piecesOf(int32(q), shared)
			list[q] = len(a.owned(of, count, int32(q)))
		}
		return list
	}
	seen := make([]bool, a.len())
	var queue []int32
	for root, q := range a.part {
		if seen[root] {
			continue
		}
		list[q]++
		seen[root] = true
		queue = append(queue[:0], int32(root))
		for i := 0; i < len(queue); i++ {
			to, _ := a.x.of(int(queue[i]))
			for _, u := range to {
				if !seen[u] && a.part[u] == q {
					seen[u] = true
					queue = append(queue, u)
				}
			}
		}
	}
	return list
}

// owned returns, for the pieces that have a node of the partition's own, their
// nodes; the heaviest piece is first.
func (a *assignment) owned(of []int, count int, q int32) [][]int32 {
	nodes := make([][]int32, count)
	loads := make([]int64, count)
	for v, c := range of {
		if c >= 0 && a.part[v] == q {
			nodes[c] = append(nodes[c], int32(v))
			loads[c] += a.load[v]
		}
	}
	list := slices.DeleteFunc(slices.Clone(nodes), func(set []int32) bool { return len(set) == 0 })
	slices.SortStableFunc(list, func(x, y []int32) int { return cmp.Compare(loads[of[y[0]]], loads[of[x[0]]]) })
	return list
}

// mend moves all pieces of a partition except its heaviest, each to the
// partition with the most links to it that has room, unless a demand forbids
// that. With force it ignores room.
func (a *assignment) mend(shared []bool, force bool) {
	for q, n := range a.torn(shared) {
		if n < 2 {
			continue
		}
		of, count := a.piecesOf(int32(q), shared)
		for _, piece := range a.owned(of, count, int32(q))[1:] {
			a.give(piece, int32(q), force)
		}
	}
}

// give moves a piece of a partition to another that it has links to.
func (a *assignment) give(piece []int32, q int32, force bool) {
	var load int64
	conn := map[int32]int64{}
	for _, v := range piece {
		load += a.load[v]
		to, w := a.x.of(int(v))
		for j, u := range to {
			conn[a.part[u]] += w[j]
		}
	}
	best := int32(-1)
	for t := range int32(a.parts) {
		w, linked := conn[t]
		if t == q || !linked || !force && a.loads[t]+load > a.most(t) || slices.ContainsFunc(piece, func(v int32) bool { return a.blocked(v, t) }) {
			continue
		}
		if best < 0 || w > conn[best] {
			best = t
		}
	}
	if best < 0 {
		return
	}
	for _, v := range piece {
		a.move(v, best, a.gainOf(v, best))
	}
}
