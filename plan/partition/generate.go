package partition

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/weft-sdn/weft/flow"
)

// network collects a generated graph: switches with DPIDs from 1 and loads of
// 1, links with weights of 1.
type network struct {
	switches []Switch
	links    []Link
}

// add makes the next switch and returns its index.
func (n *network) add(format string, args ...any) int {
	i := len(n.switches)
	n.switches = append(n.switches, Switch{DPID: flow.DPID(i + 1), Name: fmt.Sprintf(format, args...), Load: 1})
	return i
}

func (n *network) link(a, b int) { n.links = append(n.links, Link{a, b, 1}) }

// fits returns an error if a graph would have fewer than one or more switches
// or links than a Graph may have.
func fits(what string, switches, links int) error {
	if switches < 1 || switches > MaxSwitches || links > MaxLinks {
		return fmt.Errorf("%s with %d switches and %d links: want 1 to %d switches and at most %d links", what, switches, links, MaxSwitches, MaxLinks)
	}
	return nil
}

// bounded returns an error unless a number is from least to MaxSwitches.
func bounded(what string, n, least int) error {
	if n < least || n > MaxSwitches {
		return fmt.Errorf("%d %s: want %d to %d", n, what, least, MaxSwitches)
	}
	return nil
}

// FatTree returns a fat tree: core switches, and pods of aggregation and edge
// switches. In a pod every aggregation switch has a link to every edge switch;
// over each pod the core switches are divided evenly among the aggregation
// switches, so core must be a multiple of agg. Core switches, c1 and so on, come
// first, then pod by pod the aggregation switches aP-N and the edge switches
// eP-N, as in the generators of lab and sim.
func FatTree(pods, core, agg, edge int) (*Graph, error) {
	for _, x := range []struct {
		what     string
		n, least int
	}{{"pods", pods, 1}, {"core switches", core, 0}, {"aggregation switches in a pod", agg, 1}, {"edge switches in a pod", edge, 1}} {
		if err := bounded(x.what, x.n, x.least); err != nil {
			return nil, fmt.Errorf("fat tree: %w", err)
		}
	}
	if core%agg != 0 {
		return nil, fmt.Errorf("fat tree: %d core switches over %d aggregation switches in a pod: want a multiple", core, agg)
	}
	if err := fits("fat tree", core+pods*(agg+edge), pods*(core+agg*edge)); err != nil {
		return nil, err
	}
	var n network
	for i := range core {
		n.add("c%d", i+1)
	}
	up := core / agg
	for p := range pods {
		first := len(n.switches)
		for a := range agg {
			n.add("a%d-%d", p+1, a+1)
		}
		for e := range edge {
			n.add("e%d-%d", p+1, e+1)
		}
		for a := range agg {
			for c := range up {
				n.link(a*up+c, first+a)
			}
			for e := range edge {
				n.link(first+a, first+agg+e)
			}
		}
	}
	return New(n.switches, n.links)
}

// FatTreeOf returns the fat tree of k-port switches (Al-Fares et al., SIGCOMM
// 2008): (k/2)² core switches, and k pods of k/2 aggregation and k/2 edge
// switches. k is even.
func FatTreeOf(k int) (*Graph, error) {
	if k < 2 || k%2 != 0 || k > 1<<10 {
		return nil, fmt.Errorf("fat tree of %d-port switches: want an even number from 2 to %d", k, 1<<10)
	}
	return FatTree(k, k*k/4, k/2, k/2)
}

// Hydra returns the fat tree of paper 001 §4: 512 core switches and 32 pods of
// 32 aggregation and 32 edge switches, 2,560 switches and 49,152 links.
func Hydra() *Graph {
	g, err := FatTree(32, 512, 32, 32)
	if err != nil {
		panic(err) // the numbers are right
	}
	return g
}

// HubAndSpoke returns an enterprise network (paper 001 §3.2): hubs, all joined
// to each other, and spokes. A spoke is a row of switches, the first of which
// is joined to every hub. Hubs, h1 and so on, come first, then spoke by spoke
// the switches sS-N.
func HubAndSpoke(hubs, spokes, each int) (*Graph, error) {
	for _, x := range []struct {
		what string
		n    int
	}{{"hubs", hubs}, {"spokes", spokes}, {"switches in a spoke", each}} {
		if err := bounded(x.what, x.n, 1); err != nil {
			return nil, fmt.Errorf("hub and spoke: %w", err)
		}
	}
	if err := fits("hub and spoke", hubs+spokes*each, hubs*(hubs-1)/2+spokes*(hubs+each-1)); err != nil {
		return nil, err
	}
	var n network
	for h := range hubs {
		n.add("h%d", h+1)
		for other := range h {
			n.link(other, h)
		}
	}
	for s := range spokes {
		for i := range each {
			x := n.add("s%d-%d", s+1, i+1)
			if i > 0 {
				n.link(x-1, x)
				continue
			}
			for h := range hubs {
				n.link(h, x)
			}
		}
	}
	return New(n.switches, n.links)
}

// Ring returns n switches in a circle, s1 and so on.
func Ring(n int) (*Graph, error) {
	if err := bounded("switches in a ring", n, 3); err != nil {
		return nil, err
	}
	var x network
	for i := range n {
		x.add("s%d", i+1)
		x.link(i, (i+1)%n)
	}
	return New(x.switches, x.links)
}

// Grid returns rows of switches, each joined to those beside, above and below
// it; rR-C is its C-th in row R.
func Grid(width, height int) (*Graph, error) {
	for _, n := range []int{width, height} {
		if err := bounded("switches on a side of a grid", n, 1); err != nil {
			return nil, err
		}
	}
	if err := fits("grid", width*height, 2*width*height); err != nil {
		return nil, err
	}
	var n network
	for r := range height {
		for c := range width {
			x := n.add("r%d-%d", r+1, c+1)
			if c > 0 {
				n.link(x-1, x)
			}
			if r > 0 {
				n.link(x-width, x)
			}
		}
	}
	return New(n.switches, n.links)
}

// maxWaxman bounds Waxman, which considers every pair.
const maxWaxman = 1 << 13

// Waxman returns a random network (Waxman, IEEE JSAC 1988): n switches at random
// places of a square, two of them at a distance d joined with the probability
// beta·exp(-d/(alpha·L)), L the diagonal; alpha and beta are above 0 and at most
// 1. Parts that are not connected are joined where they are closest. The same
// seed gives the same network.
func Waxman(n int, alpha, beta float64, seed uint64) (*Graph, error) {
	if n < 1 || n > maxWaxman {
		return nil, fmt.Errorf("Waxman network of %d switches: want 1 to %d", n, maxWaxman)
	}
	if !(alpha > 0 && alpha <= 1) || !(beta > 0 && beta <= 1) {
		return nil, fmt.Errorf("Waxman network with alpha %v and beta %v: want both above 0 and at most 1", alpha, beta)
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	var net network
	at := make([][2]float64, n)
	for i := range at {
		net.add("s%d", i+1)
		at[i] = [2]float64{rng.Float64(), rng.Float64()}
	}
	far := func(a, b int) float64 { return math.Hypot(at[a][0]-at[b][0], at[a][1]-at[b][1]) }
	for a := range n {
		for b := range a {
			if rng.Float64() < beta*math.Exp(-far(a, b)/(alpha*math.Sqrt2)) {
				net.link(b, a)
			}
		}
	}
	if len(net.links)+n > MaxLinks {
		return nil, fmt.Errorf("Waxman network with %d links: want at most %d; use a smaller alpha or beta", len(net.links), MaxLinks)
	}
	g, err := New(net.switches, net.links)
	if err != nil {
		return nil, err
	}
	of, count := g.Components()
	if count == 1 {
		return g, nil
	}
	net.join(of, far)
	return New(net.switches, net.links)
}

// join adds, for every component but the first, the shortest link to the rest:
// it computes a minimum spanning tree of all switches, by Prim, and adds those
// of its links that join components.
func (n *network) join(of []int, far func(a, b int) float64) {
	count := len(n.switches)
	near, dist, in := make([]int, count), make([]float64, count), make([]bool, count)
	for i := range dist {
		dist[i] = math.Inf(1)
	}
	take := func(i int) {
		in[i] = true
		for j := range count {
			d := far(i, j)
			if of[i] == of[j] {
				d = 0 // as if joined already
			}
			if !in[j] && d < dist[j] {
				near[j], dist[j] = i, d
			}
		}
	}
	take(0)
	for range count - 1 {
		next := -1
		for j := range count {
			if !in[j] && (next < 0 || dist[j] < dist[next]) {
				next = j
			}
		}
		if of[next] != of[near[next]] {
			n.link(near[next], next)
		}
		take(next)
	}
}
