package paths

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sharing is what Disjoint minimises, counted on routes.
func sharing(routes []route) penalty {
	links, switches := map[[2]int32]int64{}, map[int32]int64{}
	var c penalty
	for _, r := range routes {
		u := r.from
		for i, e := range r.links {
			if i > 0 {
				c.shared += min(1, switches[u]) * sharedSwitch
				switches[u]++
			}
			key := [2]int32{u, int32(e.out)}
			c.shared += min(1, links[key]) * sharedLink
			links[key]++
			c.weight += int64(e.w)
			u = e.to
		}
	}
	return c
}

// least is the least sharing of any k routes, the same one twice allowed.
func least(all []route, k int) penalty {
	best := penalty{1 << 62, 0}
	var choose func(from int, chosen []route)
	choose = func(from int, chosen []route) {
		if len(chosen) == k {
			if c := sharing(chosen); c.less(best) {
				best = c
			}
			return
		}
		for i := from; i < len(all); i++ {
			choose(i, append(chosen, all[i]))
		}
	}
	choose(0, nil)
	return best
}

// linkDisjoint is how many paths between two slots can be without sharing a
// link, by Ford and Fulkerson's algorithm.
func (t *Topology) linkDisjoint(src, dst int32) int {
	full := map[[2]int32]bool{}
	n := 0
	for {
		seen := map[int32]bool{}
		var reach func(u int32) bool
		reach = func(u int32) bool {
			if u == dst {
				return true
			}
			seen[u] = true
			for _, e := range t.adj[u] {
				forward, backward := [2]int32{u, int32(e.out)}, [2]int32{e.to, int32(e.in)}
				if full[forward] || seen[e.to] || !reach(e.to) {
					continue
				}
				if full[backward] {
					delete(full, backward)
				} else {
					full[forward] = true
				}
				return true
			}
			return false
		}
		if !reach(src) {
			return n
		}
		n++
	}
}

// sharedCables counts the links, in either direction, that paths have in common.
func sharedCables(top *Topology, paths []Path) int {
	seen, n := map[cable]bool{}, 0
	for _, p := range paths {
		for _, h := range p[:len(p)-1] {
			a := at2(h.Switch, h.Out)
			b, _ := top.Peer(a)
			if compare(a, b) > 0 {
				a, b = b, a
			}
			if seen[cable{a, b}] {
				n++
			}
			seen[cable{a, b}] = true
		}
	}
	return n
}

func TestDisjointEqualsEnumeration(t *testing.T) {
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 8))
		n := randomNetwork(r, 2+r.IntN(6), 4+r.IntN(8), 1+r.Uint32N(5), seed%2 == 0)
		top := n.graph.Snapshot()
		ids := top.Switches()
		src, dst := ids[0], ids[len(ids)-1]
		all := top.simple(top.index[src], top.index[dst])
		for k := 1; k <= 5; k++ {
			got := top.Disjoint(src, dst, k)
			if len(all) == 0 {
				if got != nil {
					t.Fatalf("seed %d: %v; want none", seed, got)
				}
				continue
			}
			if limit := []int{0, 1 << 30, 200, 60, 20, 12}; len(all) < limit[k] {
				routes := top.disjoint(top.index[src], top.index[dst], k)
				if c, want := sharing(routes), least(all, k); c != want {
					t.Fatalf("seed %d, %d of %d paths: %+v; want %+v\n%v", seed, k, len(all), c, want, got)
				}
			}
			distinct := map[string]bool{}
			for _, p := range got {
				if err := top.Check(p); err != nil || p[0].Switch != src || p[len(p)-1].Switch != dst {
					t.Fatalf("seed %d: %v: %v", seed, p, err)
				}
				distinct[fmt.Sprint(p)] = true
			}
			if len(distinct) != len(got) {
				t.Fatalf("seed %d: the same path twice: %v", seed, got)
			}
			if again := n.fresh(r).Disjoint(src, dst, k); fmt.Sprint(again) != fmt.Sprint(got) {
				t.Fatalf("seed %d: depends on the order in which links became known:\n%v\n%v", seed, got, again)
			}
		}
	}
}

func TestDisjointWhereMaxFlowSaysSo(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		n := randomNetwork(r, 20+r.IntN(60), 100+r.IntN(100), 1+r.Uint32N(9), seed%3 == 0)
		top := n.graph.Snapshot()
		ids := top.Switches()
		for range 10 {
			src, dst := ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]
			if src == dst {
				continue
			}
			possible := top.linkDisjoint(top.index[src], top.index[dst])
			for k := 1; k <= possible+1; k++ {
				got := top.Disjoint(src, dst, k)
				shared := sharedCables(top, got)
				if k <= possible && (len(got) != k || shared != 0) {
					t.Fatalf("seed %d: %d link-disjoint paths exist; got %d sharing %d links: %v", seed, possible, len(got), shared, got)
				}
				for _, p := range got {
					if err := top.Check(p); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestDisjointPrefersOtherSwitches(t *testing.T) {
	n := ladder(2, 2) // 1=2=3, and the long way 1-4-5-3
	n.addSwitch(4)
	n.addSwitch(5)
	n.wire(at2(1, 50), at2(4, 1), 10)
	n.wire(at2(4, 2), at2(5, 1), 10)
	n.wire(at2(5, 2), at2(3, 50), 10)
	got := n.graph.Snapshot().Disjoint(1, 3, 2)
	if want := "[[{0000000000000001 0 1} {0000000000000002 100 1} {0000000000000003 100 0}] " +
		"[{0000000000000001 0 50} {0000000000000004 1 2} {0000000000000005 1 2} {0000000000000003 50 0}]]"; fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
}

func TestDisjointSharesABridgeOnlyWhenItMust(t *testing.T) {
	n := ladder(1, 2)
	n.addSwitch(9)
	n.wire(at2(2, 50), at2(9, 1), 1) // the only way to 9
	top := n.graph.Snapshot()
	got := top.Disjoint(1, 9, 2)
	if len(got) != 2 || sharedCables(top, got) != 1 {
		t.Errorf("%v", got)
	}
	if got := top.Disjoint(2, 9, 4); len(got) != 1 {
		t.Errorf("%v; want the one path there is", got)
	}
}

// Networks, rare among random ones, where the fifth path takes back what two
// others share.
func TestDisjointTakesBackWhatIsShared(t *testing.T) {
	for _, seed := range []uint64{23522, 36507, 43220, 56267} {
		r := rand.New(rand.NewPCG(seed, 99))
		n := randomNetwork(r, 4+r.IntN(8), 5+r.IntN(13), 1+r.Uint32N(9), seed%2 == 0)
		top := n.graph.Snapshot()
		ids := top.Switches()
		src, dst := top.index[ids[0]], top.index[ids[len(ids)-1]]
		if c, want := sharing(top.disjoint(src, dst, 5)), least(top.simple(src, dst), 5); c != want {
			t.Errorf("seed %d: %+v; want %+v", seed, c, want)
		}
	}
}
