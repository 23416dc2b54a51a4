package paths

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// simple lists all loopless routes between two slots, in order.
func (t *Topology) simple(src, dst int32) []route {
	var list []route
	seen := make([]bool, len(t.adj))
	var links []edge
	var weight uint64
	var visit func(u int32)
	visit = func(u int32) {
		if u == dst {
			list = append(list, route{weight: weight, links: slices.Clone(links), from: src})
			return
		}
		seen[u] = true
		for _, e := range t.adj[u] {
			if !seen[e.to] {
				links = append(links, e)
				weight += uint64(e.w)
				visit(e.to)
				links = links[:len(links)-1]
				weight -= uint64(e.w)
			}
		}
		seen[u] = false
	}
	visit(src)
	slices.SortFunc(list, compareRoutes)
	return list
}

func TestKShortestEqualsEnumeration(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := randomNetwork(r, 2+r.IntN(6), 3+r.IntN(10), 1+r.Uint32N(4), seed%2 == 0)
		top := n.graph.Snapshot()
		other := n.fresh(r)
		ids := top.Switches()
		src, dst := ids[0], ids[len(ids)-1]
		all := top.simple(top.index[src], top.index[dst])
		for _, k := range []int{1, 2, 5, 17, 1000} {
			got := top.KShortest(src, dst, k)
			if len(got) != min(k, len(all)) {
				t.Fatalf("seed %d: %d paths; want %d of %d", seed, len(got), k, len(all))
			}
			distinct := map[string]bool{}
			for i, p := range got {
				must(t, top, p, src, dst, uint32(all[i].weight))
				distinct[fmt.Sprint(p)] = true
			}
			if len(distinct) != len(got) {
				t.Fatalf("seed %d: %d paths, %d of them different", seed, len(got), len(distinct))
			}
			if again := other.KShortest(src, dst, k); fmt.Sprint(again) != fmt.Sprint(got) {
				t.Fatalf("seed %d: depends on the order in which links became known:\n%v\n%v", seed, got, again)
			}
		}
	}
}
