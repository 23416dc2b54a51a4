package partition

import (
	"cmp"
	"math/bits"
	"slices"
)

// structured is a network that its border switches divide into similar parts:
// the pods of a fat tree, the spokes of hubs.
type structured struct {
	borders []bool  // by switch
	parts   [][]int // switches of each part, by their first
}

// maxStructured bounds the networks that are searched for a structure.
const maxStructured = 1 << 13

// structures returns the structures of a network, the one with the fewest
// border switches first. Switches with equal positions in the network, such as
// the core switches of a fat tree, are all border switches or none is.
func structures(x *adjacency) []structured {
	n := x.len()
	if n > maxStructured {
		return nil
	}
	class, count := x.classes()
	var list []structured
	for c := range min(count, 64) {
		borders := make([]bool, n)
		for v := range borders {
			borders[v] = class[v] == c
		}
		if s, ok := x.around(borders, class); ok {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b structured) int { return cmp.Compare(a.size(), b.size()) })
	return list
}

func (s structured) size() int {
	count := 0
	for _, b := range s.borders {
		if b {
			count++
		}
	}
	return count
}

// around returns the structure of a set of border switches: at least two
// similar parts, with at least half of the switches. Smaller parts that differ,
// such as the root of a tree above its border switches, become border switches.
func (x *adjacency) around(borders []bool, class []int) (structured, bool) {
	of, count := x.components(borders)
	parts := make([][]int, count)
	for v, c := range of {
		if c >= 0 {
			parts[c] = append(parts[c], v)
		}
	}
	looks := make([]uint64, count)
	weight := map[uint64]int{} // by looks: switches
	for c, part := range parts {
		looks[c] = x.looks(part, borders, class)
		weight[looks[c]] += len(part)
	}
	main, most := uint64(0), 0
	for c := range parts {
		if w := weight[looks[c]]; w > most {
			main, most = looks[c], w
		}
	}
	s := structured{borders: slices.Clone(borders)}
	for c, part := range parts {
		if looks[c] == main {
			s.parts = append(s.parts, part)
			continue
		}
		for _, v := range part {
			s.borders[v] = true
		}
	}
	return s, len(s.parts) >= 2 && 2*most >= x.len()
}

// looks is a hash that is equal for parts with the same number of switches of
// each class, and of links inside and to border switches.
func (x *adjacency) looks(part []int, borders []bool, class []int) uint64 {
	list := make([]int, 0, len(part)+2)
	inside, outside := 0, 0
	for _, v := range part {
		list = append(list, class[v])
		to, _ := x.of(v)
		for _, u := range to {
			if borders[u] {
				outside++
			} else {
				inside++
			}
		}
	}
	slices.Sort(list)
	return hashInts(append(list, inside, outside))
}

// hashInts is FNV-1a over numbers.
func hashInts(list []int) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range list {
		for range 4 {
			h = (h ^ uint64(x&0xff)) * 1099511628211
			x >>= 8
		}
	}
	return h
}

// classes puts switches with similar positions in the network into one class:
// first by the number of switches at each distance up to four, then repeatedly
// by the classes of their neighbours, until the classes stay the same. It
// numbers classes by their first switches.
func (x *adjacency) classes() ([]int, int) {
	n := x.len()
	keys := make([]uint64, n)
	for v, profile := range x.profiles(4) {
		keys[v] = hashInts(profile)
	}
	class, count := number(keys)
	for {
		for v := range n {
			to, _ := x.of(v)
			list := make([]int, 0, len(to)+1)
			for _, u := range to {
				list = append(list, class[u])
			}
			slices.Sort(list)
			keys[v] = hashInts(append(list, class[v]))
		}
		finer, more := number(keys)
		if more == count {
			return class, count
		}
		class, count = finer, more
	}
}

// number replaces keys by numbers in the order of first occurrence.
func number(keys []uint64) ([]int, int) {
	of := map[uint64]int{}
	list := make([]int, len(keys))
	for i, k := range keys {
		x, ok := of[k]
		if !ok {
			x = len(of)
			of[k] = x
		}
		list[i] = x
	}
	return list, len(of)
}

// profiles counts, for every switch, those within each distance up to depth.
func (x *adjacency) profiles(depth int) [][]int {
	n := x.len()
	words := (n + 63) / 64
	reach, next := make([]uint64, n*words), make([]uint64, n*words)
	for v := range n {
		reach[v*words+v/64] |= 1 << (v % 64)
	}
	list := make([][]int, n)
	for range depth {
		for v := range n {
			mine := next[v*words : (v+1)*words]
			copy(mine, reach[v*words:])
			to, _ := x.of(v)
			for _, u := range to {
				for i, w := range reach[int(u)*words : (int(u)+1)*words] {
					mine[i] |= w
				}
			}
			list[v] = append(list[v], ones(mine))
		}
		reach, next = next, reach
	}
	return list
}

func ones(words []uint64) int {
	sum := 0
	for _, w := range words {
		sum += bits.OnesCount64(w)
	}
	return sum
}
