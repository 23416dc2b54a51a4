package oshi

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

// On a drawn network the bound is below Weft, which is no worse than the paper's heuristic, which is
// better than paths with the fewest links.
func TestAssignBy(t *testing.T) {
	net := drawNetwork(22, rand.New(rand.NewPCG(1, 1)))
	if len(net.cables) != 21+22/6+1 || slices.ContainsFunc(hopsOf(net), func(l []int) bool { return slices.Contains(l, -1) }) {
		t.Fatalf("%+v", net)
	}
	p := problemOn(net, 500, rand.New(rand.NewPCG(1, 2)))
	last := 0.0
	for _, name := range []string{teBound, teWeft, tePaper, teFewest} {
		a, bound := assignBy(name, p)
		delay := a.MeanDelay()
		if bound != nil {
			delay = bound.Bound
		}
		if a.Placed() == 0 || delay < last*(1-1e-3) {
			t.Errorf("%s: %v s, the case before %v s", name, delay, last)
		}
		last = delay
	}
}

// Of a network in parts the largest counts, with one link between two nodes.
func TestNetworkOf(t *testing.T) {
	topo := &topology.Topology{
		Switches: []topology.Switch{{Name: "x"}, {Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "y"}},
		Links:    []topology.Link{{A: "x", B: "y"}, {A: "a", B: "b"}, {A: "c", B: "b"}, {A: "b", B: "a"}},
	}
	if net := networkOf("n", topo); net.nodes != 3 || !slices.Equal(net.cables, [][2]int{{0, 1}, {2, 1}}) {
		t.Errorf("%+v", net)
	}
}
