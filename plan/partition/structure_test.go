package partition

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestFatTreesBySymmetricPods: fat trees are cut between pods, all partitions
// exactly alike, the core switches being the border switches of all, whatever
// the numbers of the switches.
func TestFatTreesBySymmetricPods(t *testing.T) {
	for _, c := range []struct {
		pods, core, agg, edge int
		parts                 []int
	}{{4, 4, 2, 2, []int{2, 4}}, {6, 9, 3, 3, []int{2, 3, 6}}, {8, 16, 4, 4, []int{2, 4, 8}}, {6, 8, 4, 7, []int{3}}, {32, 512, 32, 32, []int{2, 4, 8, 16, 32}}} {
		g := must(t)(FatTree(c.pods, c.core, c.agg, c.edge))
		pod := func(name string) string { return strings.Split(name[1:], "-")[0] }
		networks := []*Graph{g}
		if c.pods < 32 {
			other, _ := permuted(t, g, rand.New(rand.NewPCG(1, 1)))
			networks = append(networks, other)
		}
		for _, g := range networks {
			for _, p := range c.parts {
				o := Options{Partitions: p, Tolerance: 0.2}
				r := cutWell(t, g, o)
				if r.Method != ByStructure || !r.Symmetric || !r.Connected() || len(r.Borders) != c.core || !r.Shared {
					t.Fatalf("%d pods in %d: method %s, symmetric %v, connected %v, %d border switches", c.pods, p, r.Method, r.Symmetric, r.Connected(), len(r.Borders))
				}
				where := map[string]int{}
				for i, s := range g.Switches {
					if s.Name[0] == 'c' {
						if !slices.Contains(r.Borders, i) {
							t.Fatalf("core switch %v is no border switch", s)
						}
						continue
					}
					if q, ok := where[pod(s.Name)]; ok && q != r.Of[i] {
						t.Fatalf("%d pods in %d: pod %s is in two partitions", c.pods, p, pod(s.Name))
					}
					where[pod(s.Name)] = r.Of[i]
				}
				for _, part := range r.Parts {
					if part.Internal != c.pods/p*(c.agg+c.edge) || part.Borders != c.core || part.Links != c.pods/p*(c.core+c.agg*c.edge) {
						t.Errorf("%d pods in %d: %+v", c.pods, p, part)
					}
				}
			}
		}
	}
}

// TestHubsBySpokes: so are networks of hubs.
func TestHubsBySpokes(t *testing.T) {
	g := must(t)(HubAndSpoke(2, 8, 5))
	for _, p := range []int{2, 4, 8} {
		r := cutWell(t, g, Options{Partitions: p, Tolerance: 0.05})
		if r.Method != ByStructure || !r.Symmetric || !slices.Equal(r.Borders, []int{0, 1}) {
			t.Errorf("%d partitions: %s, symmetric %v, borders %v", p, r.Method, r.Symmetric, r.Borders)
		}
	}
	got, err := Symmetric(g, Options{})
	if err != nil || !slices.Equal(got, []int{1, 2, 4, 8}) {
		t.Errorf("symmetric numbers %v (%v), want 1, 2, 4, 8", got, err)
	}
}

// TestNeighboursTogether: pods beside each other share a partition, and core
// switches are in ranges.
func TestNeighboursTogether(t *testing.T) {
	r := cutWell(t, Hydra(), Options{Partitions: 4})
	changes := 0
	for i := 1; i < len(r.Of); i++ {
		if r.Of[i] != r.Of[i-1] {
			changes++
		}
	}
	if changes != 7 {
		t.Errorf("the partition changes %d times along the DPIDs, want 3 times for core switches, 3 for pods and once between", changes)
	}
}

// TestNamedBorders: a fat tree that lost a link has no two pods alike; the core
// switches named as borders, pods stay whole.
func TestNamedBorders(t *testing.T) {
	g := must(t)(FatTreeOf(4))
	g.Links = append(g.Links[:9:9], g.Links[10:]...)
	o := Options{Partitions: 2, Borders: dpids(1, 2, 3, 4), Tolerance: 0.05}
	r := cutWell(t, g, o)
	if len(r.Borders) != 4 || !r.Shared || r.Parts[0].Internal != 8 {
		t.Errorf("borders %v, %+v", r.Borders, r.Parts)
	}
}

// TestStructureWithDemands: pods stay whole where demands move them.
func TestStructureWithDemands(t *testing.T) {
	g := must(t)(FatTreeOf(8)) // 16 core switches, then 8 pods of 8
	first, last := dpids(17)[0], dpids(80)[0]
	for name, o := range map[string]Options{
		"together": {Together: [][]flow.DPID{{first, last}}},
		"apart":    {Apart: [][]flow.DPID{{first, dpids(25)[0], dpids(33)[0], dpids(41)[0]}}},
		"fixed":    {Fixed: map[flow.DPID]string{first: "p4", dpids(1)[0]: "p2"}},
	} {
		o.Partitions, o.Tolerance, o.Method = 4, 0.1, ByStructure
		if r := cutWell(t, g, o); !r.Symmetric || len(r.Borders) != 16 {
			t.Errorf("%s: symmetric %v, %d border switches", name, r.Symmetric, len(r.Borders))
		}
	}
}

// TestNoStructure: networks without one say so, and are cut.
func TestNoStructure(t *testing.T) {
	for name, g := range map[string]*Graph{"ring": must(t)(Ring(12)), "waxman": must(t)(Waxman(50, 0.1, 0.4, 1)), "one": must(t)(Grid(1, 1))} {
		if _, err := Partition(g, Options{Partitions: 1, Method: ByStructure}); err == nil || !strings.Contains(err.Error(), "method cut") {
			t.Errorf("%s: %v, want the advice to use the method cut", name, err)
		}
		if p, err := Symmetric(g, Options{}); err != nil || !slices.Equal(p, []int{1}) {
			t.Errorf("%s: symmetric numbers %v (%v), want 1", name, p, err)
		}
	}
}
