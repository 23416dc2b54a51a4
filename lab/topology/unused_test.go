package topology

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The first number that is not taken is found, as a search one by one finds it.
func TestUnused(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		taken := map[int]bool{}
		for range random.IntN(60) {
			taken[random.IntN(50)] = true
		}
		free := newUnused(func(n int) bool { return taken[n] })
		for range 60 {
			from := random.IntN(50)
			want := from
			for taken[want] {
				want++
			}
			if got := free.from(from); got != want {
				t.Fatalf("from %d: %d, want %d; taken: %v", from, got, want, taken)
			}
			taken[want] = true
		}
	}
}

// However numbers are chosen, finding one costs a few look-ups: with N of them
// taken at the other end, one by one would be N*N/4.
func TestUnusedIsCheap(t *testing.T) {
	const n = 10_000
	taken, looks := map[int]bool{}, 0
	for i := 1; i <= n; i++ {
		taken[i] = true
	}
	free := newUnused(func(i int) bool { looks++; return taken[i] })
	for i := range n {
		taken[free.from(i+1)] = true
	}
	if looks > 4*n {
		t.Errorf("%d numbers took %d look-ups", n, looks)
	}
}

// A file with any number of mistakes costs what the first of them cost, and says
// that there are more.
func TestManyProblems(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "kontroller%d: 1\n", i)
	}
	_, err := Parse("lab.yaml", []byte(b.String()))
	problems, ok := err.(Problems)
	if !ok || len(problems) != maxProblems+1 || problems[maxProblems].What != "and at least 900 more problems from here on" {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
	r := &reader{}
	for range 20_000 {
		r.add(1, "", "a problem")
	}
	c := &checker{t: &Topology{}}
	for range 20_000 {
		c.add(1, "", "a problem")
	}
	if len(r.problems) != maxSought || len(c.problems) != maxSought {
		t.Errorf("%d and %d problems are kept", len(r.problems), len(c.problems))
	}
}

// A file of others is refused by what it has too much of.
func TestBounds(t *testing.T) {
	const text = `
switches: [{name: s1}, {name: s2}]
hosts: [{name: h1, switch: s1}]
links: [{a: s1, b: s2}, {a: s1, b: s2}]
`
	for _, c := range []struct {
		bounds Bounds
		want   string
	}{
		{Bounds{}, ""}, {Bounds{Items: 100, Nodes: 3, Links: 2}, ""},
		{Bounds{Items: 10}, "about 17 items; a lab file has at most 10"},
		{Bounds{Nodes: 2}, "3 switches and hosts; allowed: at most 2"},
		{Bounds{Links: 1}, "2 links; allowed: at most 1"},
	} {
		_, err := ParseBounded("lab.yaml", []byte(text), c.bounds)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v; want %q", c.bounds, err, c.want)
		}
	}
	if _, err := ParseBounded("net.t3d", []byte(`{"vertices": ["cro1", "cro2"], "edges": [["cro1", "cro2"]]}`), Bounds{Nodes: 1}); err == nil || !strings.Contains(err.Error(), "2 switches and hosts") {
		t.Error(err)
	}
}
