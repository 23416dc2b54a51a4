package pce

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestFindIsBest compares, on random networks, what Find returns with the best of all paths.
func TestFindIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	found, refused, preempting := 0, map[Reason]int{}, 0
	for range 20_000 {
		g := randomGraph(t, r, 3+r.IntN(5), 4+r.IntN(10))
		d := randomDemand(r, g)
		got, err := g.Find(d)
		polite := *d
		polite.Setup = Priorities - 1
		want := bestOf(g, &polite)
		if want == nil {
			want = bestOf(g, d)
		}
		if want == nil {
			e := &Infeasible{}
			if !errors.As(err, &e) {
				t.Fatalf("%+v in %+v: %v, %v, but there is none", d, g.Links, got, err)
			}
			refused[e.Reason]++
			wellFounded(t, g, d, e)
			continue
		}
		if err != nil {
			t.Fatalf("%+v in %+v: %v, but there is %v", d, g.Links, err, want)
		}
		if err := d.Verify(g, got.Path); err != nil {
			t.Fatalf("%+v in %+v: %v: %v", d, g.Links, got, err)
		}
		if rank(g, d, got.Path) != rank(g, d, want) || got.Cost != want.Cost(g) || got.Delay != want.Delay(g) {
			t.Fatalf("%+v in %+v: %v %v, but there is %v %v", d, g.Links, got, rank(g, d, got.Path), want, rank(g, d, want))
		}
		found++
		if checkPreempts(t, g, d, &got) {
			preempting++
		}
	}
	t.Logf("%d found, %d preempting; none: %v", found, preempting, refused)
	for reason := range ReasonPair {
		if refused[reason] == 0 {
			t.Errorf("reason %d never came", reason)
		}
	}
	if found < 3000 || preempting < 100 {
		t.Error("too little came of it to say anything")
	}
}

// checkPreempts checks that a route takes what it needs, from the least important first.
func checkPreempts(t *testing.T, g *Graph, d *Demand, got *Route) bool {
	t.Helper()
	links := slices.Clone(g.Links)
	for _, p := range got.Preempts {
		l := &links[p.Link]
		if p.Priority <= d.Setup || p.Bandwidth > l.Booked[p.Priority] || p.Bandwidth == 0 {
			t.Fatalf("%+v: takes %+v of %+v", d, p, l)
		}
		for q := int(p.Priority) + 1; q < Priorities; q++ {
			if l.Booked[q] > 0 {
				t.Fatalf("%+v: takes %+v of %+v, before what is less important", d, p, l)
			}
		}
		if l.Booked[p.Priority] -= p.Bandwidth; l.Free(Priorities-1) > d.Bandwidth {
			t.Fatalf("%+v: takes %+v, more than it needs", d, p)
		}
	}
	for _, n := range got.Path {
		if d.Bandwidth > 0 && links[n].Free(Priorities-1) < d.Bandwidth {
			t.Fatalf("%+v: link %d has not enough after all", d, n)
		}
	}
	return len(got.Preempts) > 0
}

// wellFounded checks that without what an error names there would be a path.
func wellFounded(t *testing.T, g *Graph, d *Demand, e *Infeasible) {
	t.Helper()
	plain := *d
	plain.MaxDelay, plain.MaxHops, plain.Via = 0, 0, nil
	switch all := everyPath(g, d.From, d.To); e.Reason {
	case ReasonApart:
		if len(all) > 0 {
			t.Fatalf("%v: but there are links: %v", e, all)
		}
	case ReasonCut:
		for _, p := range all { // each crosses the cut
			if !slices.ContainsFunc(e.Cut, func(b Blocked) bool { return slices.Contains(p, b.Link) }) {
				t.Fatalf("%v: %v avoids the cut %v", e, p, e.Cut)
			}
		}
		for _, b := range e.Cut {
			if b.Why == "" || b.Why == "bandwidth" && b.Free >= d.Bandwidth {
				t.Fatalf("%v: %+v", e, b)
			}
		}
	case ReasonDelay, ReasonHops, ReasonBounds:
		plain.Via = d.Via
		fallthrough
	case ReasonVia:
		if bestOf(g, &plain) == nil {
			t.Fatalf("%v of %+v in %+v: but the rest is wrong, too", e, d, g.Links)
		}
	default:
		t.Fatalf("%v", e)
	}
	if text := e.Error(); strings.Contains(text, "%!") || len(text) < 20 {
		t.Errorf("%q", text)
	}
}

// line is a network of nodes in a row, each joined to the next by as many cables as it says.
func line(t testing.TB, cables ...int) *Graph {
	t.Helper()
	var links []Link
	n := 0
	for i, many := range cables {
		for range many {
			for _, ends := range [2][2]int{{i, i + 1}, {i + 1, i}} {
				links = append(links, Link{From: ends[0], To: ends[1], Cable: n, Cost: 10, Delay: 1000, Capacity: 50_000})
			}
			n++
		}
	}
	g, err := NewGraph(len(cables)+1, links)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestReasons(t *testing.T) {
	name := func(prefix string) func(int) string {
		return func(n int) string { return prefix + string(rune('0'+n)) }
	}
	for want, d := range map[string]*Demand{
		"no path from s0 to s3: bandwidth 100000 kbit/s is not free on 3 links of the cut: l0 (50000 kbit/s free), l2 (50000 kbit/s free), l4 (50000 kbit/s free)": {To: 3, Bandwidth: 100_000},
		"no path from s0 to s3: the least delay is 3000 µs, at most 2000 is asked for":                                                                             {To: 3, MaxDelay: 2000},
		"no path from s0 to s3: the shortest has 3 hops, at most 2 is asked for":                                                                                   {To: 3, MaxHops: 2},
		"no path from s0 to s3: 1 link of the cut excluded: l6":                                                                                                    {To: 3, ExcludeCables: []int{3}},
		"no path from s0 to s3: 3 links of the cut without the colours that are asked for: l0, l2, l4":                                                             {To: 3, IncludeAll: 1},
		"no path from s1 to s0: what it is to pass lies on no path that visits no node twice and meets the other conditions":                                       {From: 1, To: 0, Via: []Via{{ID: 2}}},
		"no path from s0 to s3: 1 link of the cut shared with the path to be apart from: l6":                                                                       {To: 3, Apart: []Apart{{From: Path{0, 6, 8}, Cables: true}}},
	} {
		_, err := line(t, 3, 1, 2).Find(d)
		e := &Infeasible{}
		if !errors.As(err, &e) || e.Text(name("s"), name("l")) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for want, d := range map[string]*Demand{
		"want two of 4 nodes":                {To: 4},
		"want two nodes":                     {},
		"want 0, the highest, to 7":          {To: 1, Setup: 8},
		"is below setup priority":            {To: 1, Setup: 2, Hold: 3},
		"no such node or cable":              {To: 1, Via: []Via{{ID: 9}}},
		"apart from a path with link 99":     {To: 1, Apart: []Apart{{From: Path{99}}}},
		"at most -1 hops: want 1 or more":    {To: 1, MaxHops: -1},
		"objective 3: want LeastCost, Least": {To: 1, Minimise: 3},
	} {
		if _, err := line(t, 3, 1, 2).Find(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", d, err, want)
		}
	}
	for _, l := range []Link{{From: 0, To: 0, Cost: 1}, {From: 0, To: 2, Cost: 1}, {To: 1}, {To: 1, Cost: 1 << 16}, {To: 1, Cost: 1, Delay: MaxDelay + 1}, {To: 1, Cost: 1, Cable: 1}} {
		if _, err := NewGraph(2, []Link{l}); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}
