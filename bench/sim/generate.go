package sim

import (
	"fmt"
	"math/rand/v2"
)

// Isolated returns n switches without links, each with its own hosts. With one
// port all packets come from it, as cbench's do: they are for a silent host at a
// second port.
func Isolated(n, hosts, ports int) (*Topology, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d isolated switches: want at least 1", n)
	}
	t := newTopology("isolated", n)
	if err := t.AttachHosts(hosts, ports); err != nil || ports > 1 {
		return t, err
	}
	if len(t.Hosts)+n >= maxHosts {
		return t, fmt.Errorf("%d hosts: the address plan holds %d; use fewer hosts or switches", len(t.Hosts)+n, maxHosts-1)
	}
	for sw := range t.Switches {
		t.newHost(t.newPort(sw)).Silent = true
	}
	return t, nil
}

// Linear returns n switches in a row.
func Linear(n int) (*Topology, error) {
	if n < 1 {
		return nil, fmt.Errorf("linear topology of %d switches: want at least 1", n)
	}
	t := newTopology("linear", n)
	for i := 1; i < n; i++ {
		t.connect(i-1, i)
	}
	return t, nil
}

// Ring returns n switches in a circle.
func Ring(n int) (*Topology, error) {
	if n < 3 {
		return nil, fmt.Errorf("ring of %d switches: want at least 3", n)
	}
	t := newTopology("ring", n)
	for i := range n {
		t.connect(i, (i+1)%n)
	}
	return t, nil
}

// Random returns a connected topology of n switches and the given number of
// links, no two between the same switches: a random tree first, then random
// pairs. The same seed gives the same topology.
func Random(n, links int, seed uint64) (*Topology, error) {
	if n < 1 {
		return nil, fmt.Errorf("random topology of %d switches: want at least 1", n)
	}
	if most := n * (n - 1) / 2; links < n-1 || links > most {
		return nil, fmt.Errorf("random topology: %d links for %d switches: want %d (a tree) to %d (all pairs)", links, n, n-1, most)
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	t := newTopology("random", n)
	used := make(map[[2]int]bool, links)
	add := func(a, b int) {
		if k := [2]int{min(a, b), max(a, b)}; a != b && !used[k] {
			used[k] = true
			t.connect(a, b)
		}
	}
	order := rng.Perm(n)
	for i := 1; i < n; i++ {
		add(order[i], order[rng.IntN(i)])
	}
	for len(t.Links) < links {
		add(rng.IntN(n), rng.IntN(n))
	}
	return t, nil
}

// FatTree returns the fat tree of k-port switches (Al-Fares et al., SIGCOMM
// 2008): (k/2)² core switches, and k pods of k/2 aggregation and k/2 edge
// switches. k is even. Core switches come first.
func FatTree(k int) (*Topology, error) {
	if k < 2 || k%2 != 0 {
		return nil, fmt.Errorf("fat tree of %d-port switches: want an even number from 2", k)
	}
	t := pods(k*k/4, k, k/2, k/2)
	t.Name = "fat-tree"
	return t, nil
}

// Hydra returns the topology of Hydra's evaluation: 512 core switches and 32
// pods of 32 aggregation and 32 edge switches, 49,152 links.
func Hydra() *Topology {
	t := pods(512, 32, 32, 32)
	t.Name = "hydra"
	return t
}

// HydraShare returns what one of n equal partitions of Hydra's topology has: 512/n
// core switches and 32/n whole pods, and the links between them. n is 1, 2, 4, 8 or 16.
func HydraShare(n int) (*Topology, error) {
	if n < 1 || n > 16 || 32%n != 0 { // with 32, a partition has fewer core than aggregation switches
		return nil, fmt.Errorf("one of %d partitions of Hydra's topology: want 1, 2, 4, 8 or 16", n)
	}
	t := pods(512/n, 32/n, 32, 32)
	t.Name = fmt.Sprintf("hydra/%d", n)
	return t, nil
}

// pods returns core switches and pods of aggregation and edge switches. In a
// pod every aggregation switch has a link to every edge switch; over each pod
// the core switches are divided evenly among the aggregation switches.
func pods(core, count, agg, edge int) *Topology {
	t := newTopology("pods", core+count*(agg+edge))
	for i := range t.Switches {
		s := &t.Switches[i]
		switch at := (i - core) % (agg + edge); {
		case i < core:
			s.Layer = Core
		case at < agg:
			s.Layer = Aggregation
		default:
			s.Layer = Edge
		}
	}
	up := core / agg
	for p := range count {
		first := core + p*(agg+edge)
		for a := range agg {
			for c := range up {
				t.connect(a*up+c, first+a)
			}
			for e := range edge {
				t.connect(first+a, first+agg+e)
			}
		}
	}
	return t
}
