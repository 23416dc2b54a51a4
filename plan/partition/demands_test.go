package partition

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestDemandsKept: demands that some partitioning meets are met, with what they
// allow of balance.
func TestDemandsKept(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 5))
		g, _ := planted(t, 4, 12, seed)
		const parts = 4
		hidden := make([]int, len(g.Switches)) // a partitioning that meets them
		for i := range hidden {
			hidden[i] = i % parts
		}
		pick := func(q int) flow.DPID { return g.Switches[rng.IntN(len(hidden)/parts)*parts+q].DPID }
		o := Options{Partitions: parts, Tolerance: 0.25, Seed: seed, Rounds: 3, Names: []string{"a", "b", "c", "d"}, Fixed: map[flow.DPID]string{}}
		for range 3 {
			q := rng.IntN(parts)
			o.Together = append(o.Together, []flow.DPID{pick(q), pick(q), pick(q)})
			o.Apart = append(o.Apart, []flow.DPID{pick(0), pick(1), pick(2), pick(3)})
			o.Fixed[pick(q)] = o.Names[q]
		}
		if r := cutWell(t, g, o); !slices.Equal(r.Names, o.Names) {
			t.Errorf("names %v, want %v", r.Names, o.Names)
		}
	}
}

// TestApartEverywhere: where every partition must have one of each set, nodes
// are exchanged until the cut is as small as without the demand.
func TestApartEverywhere(t *testing.T) {
	g, of := planted(t, 4, 12, 3)
	sets := make([][]flow.DPID, 6)
	for i := range g.Switches {
		if at := i % 12; at < len(sets) {
			sets[at] = append(sets[at], g.Switches[i].DPID)
		}
	}
	free := cutWell(t, g, Options{Partitions: 4})
	r := cutWell(t, g, Options{Partitions: 4, Apart: sets})
	if r.Cut != free.Cut {
		t.Errorf("cut %d, want %d of the groups %v", r.Cut, free.Cut, of)
	}
}

// TestBordersKept: only the switches named join partitions, and belong to those
// of all their neighbours.
func TestBordersKept(t *testing.T) {
	// a row of 9: 1 2 3 (4) 5 6 (7) 8 9
	var n network
	for i := range 9 {
		n.add("s%d", i+1)
		if i > 0 {
			n.link(i-1, i)
		}
	}
	g := must(t)(New(n.switches, n.links))
	r := cutWell(t, g, Options{Partitions: 3, Borders: dpids(4, 7), Tolerance: 0.4})
	if !slices.Equal(r.Borders, []int{3, 6}) || !r.Shared || !r.Connected() {
		t.Errorf("borders %v, shared %v, connected %v", r.Borders, r.Shared, r.Connected())
	}
	if r.Of[0] != r.Of[2] || r.Of[4] != r.Of[5] || r.Of[7] != r.Of[8] || r.Of[0] == r.Of[4] || r.Of[4] == r.Of[7] {
		t.Errorf("partitions %v", r.Of)
	}
}

// TestInfeasible: what cannot be is told with its name, and what would make it
// possible.
func TestInfeasible(t *testing.T) {
	g := must(t)(Ring(12))
	heavy := must(t)(Ring(6))
	heavy.Switches[2].Load = 100
	for name, c := range map[string]struct {
		g          *Graph
		o          Options
		constraint string
		want       []string
	}{
		"too many": {g, Options{Partitions: 13}, "partitions", []string{"13 partitions of 12 switches", "at most 12"}},
		"together and apart": {g, Options{Partitions: 3, Together: [][]flow.DPID{dpids(1, 2), dpids(2, 3)}, Apart: [][]flow.DPID{dpids(1, 3)}},
			"apart", []string{"s1 and s3 are to be apart", "s1 – s2 – s3", "out of what is together"}},
		"fixed and together": {g, Options{Partitions: 2, Together: [][]flow.DPID{dpids(4, 9)}, Fixed: map[flow.DPID]string{4: "p1", 9: "p2"}},
			"fixed", []string{"s4 is fixed in p1 and s9 in p2", "s4 – s9", "fix both in the same"}},
		"fixed and apart": {g, Options{Partitions: 2, Apart: [][]flow.DPID{dpids(4, 9)}, Fixed: map[flow.DPID]string{4: "p1", 9: "p1"}},
			"apart", []string{"s4 and s9 are to be apart", "p1", "elsewhere"}},
		"apart of too many": {g, Options{Partitions: 3, Apart: [][]flow.DPID{dpids(1, 2, 3, 4)}}, "apart", []string{"4 switches", "ask for 4 partitions"}},
		"apart in pairs": {g, Options{Partitions: 2, Apart: [][]flow.DPID{dpids(1, 2), dpids(2, 3), dpids(1, 3)}}, "apart",
			[]string{"does not fit into 2 partitions", "more partitions"}},
		"too much together": {g, Options{Partitions: 4, Together: [][]flow.DPID{dpids(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)}}, "together", []string{"3 groups, for 4 partitions", "at most 3"}},
		"too few borders":   {g, Options{Partitions: 4, Borders: dpids(1)}, "borders", []string{"2 parts", "for 4 partitions", "allow more border switches"}},
		"apart within borders": {g, Options{Partitions: 2, Borders: dpids(1, 6), Apart: [][]flow.DPID{dpids(2, 4)}}, "apart",
			[]string{"s2 and s4 are to be apart", "s2 – s3 – s4", "allow one of s2, s3, s4 as a border switch"}},
		"a heavy switch": {heavy, Options{Partitions: 3, Tolerance: 0.05}, "balance", []string{"switch s3 alone makes a load of 100", "tolerance of"}},
		"heavy together": {g, Options{Partitions: 3, Together: [][]flow.DPID{dpids(1, 2, 3, 4, 5, 6)}}, "balance",
			[]string{"the 6 switches that have to share a partition, s1, s2, s3, s4 …, alone make a load of 6", "tolerance of 0.5,"}},
		"no even way":  {loadedWith(t, 3, 3, 3, 2, 2, 2), Options{Partitions: 4}, "balance", []string{"the heaviest of 4 partitions", "tolerance of"}},
		"no structure": {g, Options{Partitions: 2, Method: ByStructure}, "structure", []string{"no border switches", "method cut"}},
		"few pods":     {must(t)(FatTreeOf(4)), Options{Partitions: 5, Method: ByStructure}, "structure", []string{"4 parts that are alike, for 5 partitions", "at most 4"}},
	} {
		_, err := Partition(c.g, c.o)
		var no *Infeasible
		if !errors.As(err, &no) || no.Constraint != c.constraint {
			t.Errorf("%s: %v, want it infeasible by %s", name, err, c.constraint)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", name, err, want)
			}
		}
	}
}

// loadedWith is a ring of switches with loads.
func loadedWith(t *testing.T, loads ...int64) *Graph {
	g := must(t)(Ring(len(loads)))
	for i, l := range loads {
		g.Switches[i].Load = l
	}
	return g
}

// TestRemedy: the tolerance that an error advises is enough.
func TestRemedy(t *testing.T) {
	for seed := range uint64(6) {
		g := loaded(t, 20, seed)
		o := Options{Partitions: 6, Seed: seed, Method: ByCut}
		_, err := Partition(g, o)
		if err == nil {
			continue
		}
		at := strings.Index(err.Error(), "tolerance of ")
		if at < 0 {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, scan := fmt.Sscanf(err.Error()[at:], "tolerance of %g,", &o.Tolerance); scan != nil {
			t.Fatalf("seed %d: %v: %v", seed, err, scan)
		}
		cutWell(t, g, o)
	}
}

// TestRefuses: options that mean nothing.
func TestRefuses(t *testing.T) {
	g := must(t)(Ring(6))
	for want, o := range map[string]Options{
		"0 partitions":            {},
		"-1 partitions":           {Partitions: -1},
		"2000 partitions":         {Partitions: 2000},
		"method \"best\"":         {Partitions: 2, Method: "best"},
		"tolerance -1":            {Partitions: 2, Tolerance: -1},
		"tolerance NaN":           {Partitions: 2, Tolerance: math.NaN()},
		"tolerance +Inf":          {Partitions: 2, Tolerance: math.Inf(1)},
		"-2 rounds":               {Partitions: 2, Rounds: -2},
		"1 names for 2":           {Partitions: 2, Names: []string{"a"}},
		"each once":               {Partitions: 2, Names: []string{"a", "a"}},
		"none empty":              {Partitions: 2, Names: []string{"a", ""}},
		"together: the network":   {Partitions: 2, Together: [][]flow.DPID{dpids(77)}},
		"apart: the network":      {Partitions: 2, Apart: [][]flow.DPID{dpids(77)}},
		"borders: the network":    {Partitions: 2, Borders: dpids(77)},
		"fixed: the network":      {Partitions: 2, Fixed: map[flow.DPID]string{77: "p1"}},
		"in partition \"nobody\"": {Partitions: 2, Fixed: map[flow.DPID]string{1: "nobody"}},
	} {
		if _, err := Partition(g, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	big := must(t)(Ring(MaxApart + 1))
	all := make([]flow.DPID, 0, MaxApart+1)
	for _, s := range big.Switches {
		all = append(all, s.DPID)
	}
	if _, err := Partition(big, Options{Partitions: 2, Apart: [][]flow.DPID{all}}); err == nil {
		t.Error("more apart than fits: no error")
	}
}

// TestOddSets: empty sets, sets of one, and a switch twice in a set demand
// nothing.
func TestOddSets(t *testing.T) {
	g := must(t)(Ring(6))
	r := cutWell(t, g, Options{Partitions: 2, Together: [][]flow.DPID{nil, dpids(1), dpids(2, 2)}, Apart: [][]flow.DPID{nil, dpids(3), dpids(4, 4)}})
	if r.Cut != 2 {
		t.Errorf("cut %d, want 2", r.Cut)
	}
	if _, err := Partition(g, Options{Partitions: 2, Borders: []flow.DPID{}}); err == nil {
		t.Error("no border switches at all, a ring in two: no error")
	}
}

// TestDisconnected: networks in pieces are cut along them, and pieces without
// border switches can be, too.
func TestDisconnected(t *testing.T) {
	g := must(t)(FatTree(4, 0, 2, 2))
	r := cutWell(t, g, Options{Partitions: 4, Method: ByCut})
	if r.Cut != 0 || !r.Connected() {
		t.Errorf("cut %d, connected %v, want each pod by itself", r.Cut, r.Connected())
	}
	if r := cutWell(t, g, Options{Partitions: 2, Borders: []flow.DPID{}}); r.Cut != 0 || len(r.Borders) != 0 {
		t.Errorf("cut %d, borders %v, want none", r.Cut, r.Borders)
	}
	alone := must(t)(New([]Switch{{DPID: 5, Load: 1}, {DPID: 1, Load: 1}, {DPID: 9, Load: 1}}, nil))
	if r := cutWell(t, alone, Options{Partitions: 3}); r.Cut != 0 {
		t.Errorf("cut %d of no links", r.Cut)
	}
}

// TestCheckFinds: Check finds what is not so.
func TestCheckFinds(t *testing.T) {
	g := must(t)(FatTreeOf(4))
	o := Options{Partitions: 2, Tolerance: 0.05, Together: [][]flow.DPID{dpids(5, 6)}, Apart: [][]flow.DPID{dpids(5, 20)}, Fixed: map[flow.DPID]string{7: "p1"}}
	for want, spoil := range map[string]func(*Result, *Options){
		"have a partition":         func(r *Result, _ *Options) { r.Of = r.Of[1:] },
		"there are 0 to 1":         func(r *Result, _ *Options) { r.Of[3] = 2 },
		"the cut is":               func(r *Result, _ *Options) { r.Cut++ },
		"neither is a border":      func(r *Result, _ *Options) { r.Borders = nil },
		"not allowed to be":        func(_ *Result, o *Options) { o.Borders = dpids(1) },
		"without a link":           func(r *Result, _ *Options) { r.Borders = append(r.Borders, 10) },
		"are to be together":       func(_ *Result, o *Options) { o.Together = [][]flow.DPID{dpids(5, 20)} },
		"are to be apart":          func(_ *Result, o *Options) { o.Apart = [][]flow.DPID{dpids(5, 6)} },
		"and is to be in p2":       func(_ *Result, o *Options) { o.Fixed = map[flow.DPID]string{7: "p2"} },
		"more than":                func(r *Result, _ *Options) { r.Of[19], r.Of[18] = 0, 0 },
		"is empty":                 func(r *Result, _ *Options) { clear(r.Of) },
		"internal and":             func(r *Result, _ *Options) { r.Parts[0].Internal++ },
		"and is said to have":      func(r *Result, _ *Options) { r.Parts[1].Load-- },
		"has no switch":            func(_ *Result, o *Options) { o.Apart = [][]flow.DPID{dpids(1, 99)} },
		"names and 1 partitions":   func(r *Result, _ *Options) { r.Parts = r.Parts[:1] },
		"1 names and 2 partitions": func(r *Result, _ *Options) { r.Names = r.Names[:1] },
	} {
		r, err := Partition(g, o)
		if err != nil || Check(g, o, r) != nil {
			t.Fatal(err, Check(g, o, r))
		}
		spoilt := o
		spoil(&r, &spoilt)
		if err := Check(g, spoilt, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v, want %q", err, want)
		}
	}
}
