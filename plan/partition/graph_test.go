package partition

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// must returns a generated graph.
func must(t *testing.T) func(*Graph, error) *Graph {
	return func(g *Graph, err error) *Graph {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
}

// permuted is a graph whose switches have each other's DPIDs, and the new
// indices by the old ones; links are shuffled, too.
func permuted(t *testing.T, g *Graph, rng *rand.Rand) (*Graph, []int) {
	t.Helper()
	to := rng.Perm(len(g.Switches))
	switches := make([]Switch, len(g.Switches))
	for i, s := range g.Switches {
		s.DPID = g.Switches[to[i]].DPID
		switches[i] = s
	}
	links := slices.Clone(g.Links)
	rng.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
	return must(t)(New(switches, links)), to
}

func TestNewRefuses(t *testing.T) {
	two := []Switch{{DPID: 1, Load: 1}, {DPID: 2, Load: 1}}
	for _, c := range []struct {
		switches []Switch
		links    []Link
		want     string
	}{
		{nil, nil, "no switches"},
		{[]Switch{{DPID: 1}, {DPID: 1}}, nil, "given twice"},
		{[]Switch{{DPID: 1, Name: "s1", Load: -1}}, nil, "switch s1: load -1"},
		{[]Switch{{DPID: 1, Load: math.MaxInt64}}, nil, "load"},
		{two, []Link{{0, 2, 1}}, "there are numbers 0 to 1"},
		{two, []Link{{-1, 0, 1}}, "there are numbers 0 to 1"},
		{two, []Link{{0, 1, -5}}, "weight -5"},
		{two, []Link{{0, 1, math.MaxInt64}}, "weight"},
		{make([]Switch, MaxSwitches+1), nil, "at most"},
	} {
		if _, err := New(c.switches, c.links); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%v, %v): %v, want %q", c.switches, c.links, err, c.want)
		}
	}
}

// TestNewSorts: switches are sorted by DPID and links follow them.
func TestNewSorts(t *testing.T) {
	g := must(t)(New([]Switch{{DPID: 9, Name: "z"}, {DPID: 3, Name: "a"}}, []Link{{0, 1, 7}, {1, 1, 2}}))
	if g.Switches[0].Name != "a" || g.Links[0] != (Link{1, 0, 7}) || g.Links[1] != (Link{0, 0, 2}) {
		t.Errorf("graph %+v", g)
	}
	if i, ok := g.Index(9); i != 1 || !ok {
		t.Errorf("index of 9: %d, %v", i, ok)
	}
	if _, ok := g.Index(4); ok {
		t.Error("switch 4 is found, and is not there")
	}
}

func TestGenerators(t *testing.T) {
	m := must(t)
	for _, c := range []struct {
		name                        string
		g                           *Graph
		switches, links, components int
	}{
		{"hydra", Hydra(), 2560, 49152, 1},
		{"fat tree of 4 ports", m(FatTreeOf(4)), 20, 32, 1},
		{"fat tree without core", m(FatTree(3, 0, 2, 2)), 12, 12, 3},
		{"hub and spoke", m(HubAndSpoke(2, 3, 4)), 14, 1 + 3*(2+3), 1},
		{"ring", m(Ring(12)), 12, 12, 1},
		{"grid", m(Grid(4, 3)), 12, 17, 1},
		{"one switch", m(Grid(1, 1)), 1, 0, 1},
	} {
		if _, n := c.g.Components(); len(c.g.Switches) != c.switches || len(c.g.Links) != c.links || n != c.components {
			t.Errorf("%s: %d switches, %d links, %d components, want %d, %d, %d", c.name, len(c.g.Switches), len(c.g.Links), n, c.switches, c.links, c.components)
		}
	}
	for seed := range uint64(5) {
		a, b := m(Waxman(60, 0.05, 0.1, seed)), m(Waxman(60, 0.05, 0.1, seed))
		if _, n := a.Components(); n != 1 || !slices.Equal(a.Links, b.Links) {
			t.Errorf("Waxman network of seed %d: %d components, the same again: %v", seed, n, slices.Equal(a.Links, b.Links))
		}
	}
}

func TestGeneratorsRefuse(t *testing.T) {
	for name, err := range map[string]error{
		"odd ports":       second(FatTreeOf(5)),
		"uneven core":     second(FatTree(2, 5, 2, 2)),
		"no pods":         second(FatTree(0, 4, 2, 2)),
		"a huge fat tree": second(FatTree(1<<16, 1<<16, 1<<16, 1<<16)),
		"no hubs":         second(HubAndSpoke(0, 1, 1)),
		"a huge hub":      second(HubAndSpoke(1<<16, 1<<16, 1<<16)),
		"ring of two":     second(Ring(2)),
		"grid of none":    second(Grid(0, 3)),
		"a huge grid":     second(Grid(1<<16, 1<<16)),
		"Waxman of none":  second(Waxman(0, 0.1, 0.1, 1)),
		"alpha of 0":      second(Waxman(5, 0, 0.1, 1)),
		"beta of NaN":     second(Waxman(5, 0.1, math.NaN(), 1)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ *Graph, err error) error { return err }

// TestAdjacency: parallel links are one, links of a switch to itself none.
func TestAdjacency(t *testing.T) {
	g := must(t)(New([]Switch{{DPID: 1}, {DPID: 2}, {DPID: 3}}, []Link{{0, 1, 2}, {1, 0, 3}, {2, 2, 9}, {1, 2, 1}}))
	x := g.adjacency()
	to, w := x.of(1)
	if !slices.Equal(to, []int32{0, 2}) || !slices.Equal(w, []int64{5, 1}) {
		t.Errorf("neighbours %v with %v, want [0 2] with [5 1]", to, w)
	}
	if to, _ := x.of(2); !slices.Equal(to, []int32{1}) {
		t.Errorf("neighbours %v, want [1]", to)
	}
}

func dpids(list ...uint64) []flow.DPID {
	set := make([]flow.DPID, len(list))
	for i, d := range list {
		set[i] = flow.DPID(d)
	}
	return set
}
