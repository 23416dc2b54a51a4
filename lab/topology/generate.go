package topology

import (
	"cmp"
	"fmt"
	"math/rand/v2"
)

// builder collects a generated topology.
type builder struct{ t Topology }

func newBuilder(name string) *builder { return &builder{t: Topology{Name: name}} }

// add makes the next switch, s1, s2, …, and returns its name.
func (b *builder) add() string {
	name := fmt.Sprintf("s%d", len(b.t.Switches)+1)
	b.t.Switches = append(b.t.Switches, Switch{Name: name})
	return name
}

// host makes the next host, h1, h2, …, on sw.
func (b *builder) host(sw string) {
	b.t.Hosts = append(b.t.Hosts, Host{Name: fmt.Sprintf("h%d", len(b.t.Hosts)+1), Switch: sw})
}

func (b *builder) link(a, c string) { b.t.Links = append(b.t.Links, Link{A: a, B: c}) }

func (b *builder) done() *Topology {
	b.t.Complete()
	return &b.t
}

func atLeast(what string, n, least int) error {
	if n < least {
		return fmt.Errorf("%s is %d; allowed: %d and more", what, n, least)
	}
	return nil
}

func atMost(what string, n int) error {
	if n > mostNodes {
		return fmt.Errorf("it would have more than %d %s", mostNodes, what)
	}
	return nil
}

// Linear is n switches in a row, hostsPer hosts on each.
func Linear(n, hostsPer int) (*Topology, error) {
	if err := atLeast("the number of switches", n, 1); err != nil {
		return nil, err
	}
	if err := atLeast("the number of hosts per switch", hostsPer, 0); err != nil {
		return nil, err
	}
	if err := cmp.Or(atMost("switches", n), atMost("hosts", n*hostsPer)); err != nil {
		return nil, err
	}
	b := newBuilder(fmt.Sprintf("linear-%d", n))
	for i := range n {
		s := b.add()
		for range hostsPer {
			b.host(s)
		}
		if i > 0 {
			b.link(fmt.Sprintf("s%d", i), s)
		}
	}
	return b.done(), nil
}

// Ring is n switches in a circle, hostsPer hosts on each.
func Ring(n, hostsPer int) (*Topology, error) {
	if err := atLeast("the number of switches", n, 3); err != nil {
		return nil, err
	}
	t, err := Linear(n, hostsPer)
	if err != nil {
		return nil, err
	}
	t.Name = fmt.Sprintf("ring-%d", n)
	t.Links = append(t.Links, Link{A: fmt.Sprintf("s%d", n), B: "s1"})
	t.Complete()
	return t, nil
}

// Tree is a tree of switches of the given depth (1: the root alone), fanout
// children to each, and fanout hosts on each leaf: Mininet's tree.
func Tree(depth, fanout int) (*Topology, error) {
	if err := atLeast("the depth", depth, 1); err != nil {
		return nil, err
	}
	if err := atLeast("the fan-out", fanout, 1); err != nil {
		return nil, err
	}
	switches, leaves := 1, 1
	for range depth - 1 {
		leaves *= fanout
		switches += leaves
		if err := atMost("switches", switches); err != nil {
			return nil, err
		}
	}
	if err := atMost("hosts", leaves*fanout); err != nil {
		return nil, err
	}
	b := newBuilder(fmt.Sprintf("tree-%d-%d", depth, fanout))
	level := []string{b.add()}
	for range depth - 1 {
		var next []string
		for _, parent := range level {
			for range fanout {
				s := b.add()
				b.link(parent, s)
				next = append(next, s)
			}
		}
		level = next
	}
	for _, leaf := range level {
		for range fanout {
			b.host(leaf)
		}
	}
	return b.done(), nil
}

// FatTree is the k-ary fat-tree of Al-Fares et al. (SIGCOMM 2008): (k/2)² core
// switches c1…, k pods of k/2 aggregation switches aP-N and k/2 edge switches
// eP-N, and k/2 hosts on each edge switch. k is even.
func FatTree(k int) (*Topology, error) {
	if k < 2 || k%2 != 0 {
		return nil, fmt.Errorf("the k of a fat-tree is %d; allowed: even numbers from 2", k)
	}
	if err := atMost("hosts", k*k*k/4); err != nil {
		return nil, err
	}
	b := newBuilder(fmt.Sprintf("fattree-%d", k))
	half := k / 2
	named := func(format string, args ...any) string {
		name := fmt.Sprintf(format, args...)
		b.t.Switches = append(b.t.Switches, Switch{Name: name})
		return name
	}
	for i := range half * half {
		named("c%d", i+1)
	}
	for p := range k {
		aggs := make([]string, half)
		for i := range half {
			aggs[i] = named("a%d-%d", p+1, i+1)
			for j := range half {
				b.link(fmt.Sprintf("c%d", i*half+j+1), aggs[i])
			}
		}
		for i := range half {
			edge := named("e%d-%d", p+1, i+1)
			for _, a := range aggs {
				b.link(a, edge)
			}
			for range half {
				b.host(edge)
			}
		}
	}
	return b.done(), nil
}

// Random is a connected graph of n switches of about the given average degree,
// one host on each, the same for the same seed: a random spanning tree, then
// random further links, no two between the same switches.
func Random(n, degree int, seed uint64) (*Topology, error) {
	if err := atLeast("the number of switches", n, 2); err != nil {
		return nil, err
	}
	if degree < 1 || degree > n-1 {
		return nil, fmt.Errorf("the degree is %d; allowed: 1 to %d for %d switches", degree, n-1, n)
	}
	if err := cmp.Or(atMost("switches", n), atMost("links", n*degree/2)); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	b := newBuilder(fmt.Sprintf("random-%d-%d-%d", n, degree, seed))
	for range n {
		b.host(b.add())
	}
	order := rng.Perm(n)
	linked := map[[2]int]bool{}
	join := func(x, y int) {
		if x > y {
			x, y = y, x
		}
		if x == y || linked[[2]int{x, y}] {
			return
		}
		linked[[2]int{x, y}] = true
		b.link(b.t.Switches[x].Name, b.t.Switches[y].Name)
	}
	for i := 1; i < n; i++ {
		join(order[i], order[rng.IntN(i)])
	}
	for want := n * degree / 2; len(linked) < want; {
		join(rng.IntN(n), rng.IntN(n))
	}
	return b.done(), nil
}

// Demo is a ring of ten switches with three chords, so that every switch has
// two disjoint ways to every other, and eight hosts.
func Demo() *Topology {
	b := newBuilder("demo")
	for i := range 10 {
		s := b.add()
		if i != 4 && i != 9 {
			b.host(s)
		}
		if i > 0 {
			b.link(fmt.Sprintf("s%d", i), s)
		}
	}
	b.link("s10", "s1")
	b.link("s1", "s6")
	b.link("s3", "s8")
	b.link("s5", "s10")
	return b.done()
}
