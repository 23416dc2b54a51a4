package oshi

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/pce"
)

// A star of three ends with the hub at its middle, or beside an end.
func TestCrossed(t *testing.T) {
	topo := &topology.Topology{
		Switches: []topology.Switch{{Name: "m"}, {Name: "far"}, {Name: "a"}, {Name: "b"}, {Name: "c"}},
		Links:    []topology.Link{{A: "m", B: "a"}, {A: "m", B: "b"}, {A: "m", B: "c"}, {A: "a", B: "far"}},
	}
	index := map[string]int{}
	for i, s := range topo.Switches {
		index[s.Name] = i
	}
	var links []pce.Link
	for i, l := range topo.Links {
		links = append(links, pce.Link{From: index[l.A], To: index[l.B], Cable: i, Cost: 1}, pce.Link{From: index[l.B], To: index[l.A], Cable: i, Cost: 1})
	}
	g, err := pce.NewGraph(len(topo.Switches), links)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		name      string
		hub       int
		crossings int
	}{{bySteiner, 1, 3}, {byStar, 0, 3}, {byStar, 1, 4}, {byPseudowires, 0, 3}, {byPseudowires, 1, 1 + 3 + 3}} {
		if got, _, err := crossed(g, of.name, []int{2, 3, 4}, of.hub); got != of.crossings || err != nil {
			t.Errorf("%s, hub %d: %d crossings, %v; want %d", of.name, of.hub, got, err, of.crossings)
		}
	}
}

// The same seed and round draw the same.
func TestDrawTrees(t *testing.T) {
	a, err := drawTrees(bySteiner, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := drawTrees(bySteiner, 1, 1)
	other, _ := drawTrees(bySteiner, 1, 2)
	if !slices.EqualFunc(a, b, slices.Equal) || slices.EqualFunc(a, other, slices.Equal) {
		t.Errorf("%q, %q, %q", a, b, other)
	}
}
