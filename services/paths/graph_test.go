package paths

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// equal fails the test unless a topology answers as the facts say: as a fresh
// graph told them in another order, and as Floyd and Warshall's algorithm.
func equal(t *testing.T, r *rand.Rand, n *network, got *Topology) {
	t.Helper()
	want := n.fresh(r)
	links := n.usable()
	if !slices.Equal(got.Links(), links) || !slices.Equal(want.Links(), links) {
		t.Fatalf("usable links:\n%v\nwant\n%v", got.Links(), links)
	}
	if !slices.Equal(got.Switches(), want.Switches()) || len(got.Switches()) != len(n.switches) {
		t.Fatalf("switches %v; want %v", got.Switches(), want.Switches())
	}
	dist := n.distances(links)
	for _, src := range got.Switches() {
		for _, dst := range got.Switches() {
			w, reachable := dist[[2]flow.DPID{src, dst}]
			for _, top := range []*Topology{got, want} {
				d, ok := top.Distance(src, dst)
				if ok != reachable || ok && d != w {
					t.Fatalf("distance from %v to %v: %d, %v; want %d, %v", src, dst, d, ok, w, reachable)
				}
			}
			hops := got.NextHops(src, dst)
			if !slices.Equal(hops, want.NextHops(src, dst)) {
				t.Fatalf("next hops from %v to %v: %v; want %v", src, dst, hops, want.NextHops(src, dst))
			}
			hash := r.Uint64()
			p, ok := got.Path(src, dst, hash)
			q, _ := want.Path(src, dst, hash)
			if ok != reachable || !slices.Equal(p, q) {
				t.Fatalf("path from %v to %v: %v, %v; want %v", src, dst, p, ok, q)
			}
			if ok {
				must(t, got, p, src, dst, w)
				if src != dst && !slices.Contains(hops, p[0].Out) {
					t.Fatalf("path %v leaves by none of %v", p, hops)
				}
			}
		}
	}
	if !reflect.DeepEqual(got.Components(), want.Components()) {
		t.Fatalf("components %v; want %v", got.Components(), want.Components())
	}
	if changed := got.Tree().Changed(want.Tree()); changed != nil {
		t.Fatalf("trees differ at %v", changed)
	}
}

func TestIncrementalEqualsFresh(t *testing.T) {
	cases := []struct {
		name     string
		n, m     int
		heaviest uint32
		skew     bool
	}{
		{"unit weights", 24, 48, 1, false},
		{"sparse", 30, 24, 1, false},
		{"small weights", 24, 48, 4, false},
		{"asymmetric", 20, 40, 7, true},
		{"heavy", 16, 30, MaxWeight, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(12) {
				r := rand.New(rand.NewPCG(seed, 1))
				n := randomNetwork(r, c.n, c.m, c.heaviest, c.skew)
				equal(t, r, n, n.graph.Snapshot())
				for range 25 {
					for range 1 + r.IntN(4)*r.IntN(4) {
						mutate(r, n, c.heaviest)
					}
					before := n.graph.Current()
					top := n.graph.Snapshot()
					if top != before && top.Version() <= before.Version() {
						t.Fatalf("version %d after %d", top.Version(), before.Version())
					}
					switch r.IntN(4) {
					case 0:
						top.Converge()
					case 1: // leave rows to be repaired twice
						continue
					}
					equal(t, r, n, top)
				}
			}
		})
	}
}

// mutate tells the graph one thing, likely or not.
func mutate(r *rand.Rand, n *network, heaviest uint32) {
	var ids []flow.DPID
	for d := range n.switches {
		ids = append(ids, d)
	}
	slices.Sort(ids)
	var ends [][2]flow.Location
	for e := range n.links {
		ends = append(ends, e)
	}
	slices.SortFunc(ends, func(a, b [2]flow.Location) int {
		if c := compare(a[0], b[0]); c != 0 {
			return c
		}
		return compare(a[1], b[1])
	})
	weight := 1 + r.Uint32N(heaviest)
	somewhere := func() flow.Location { return at2(ids[r.IntN(len(ids))], flow.Port(1+r.IntN(60))) }
	switch op := r.IntN(20); {
	case op == 0:
		n.addSwitch(flow.DPID(r.Uint64N(1 << 40)))
	case len(ids) < 2 || op == 1:
		if len(ends) > 0 { // perhaps one that left
			n.addSwitch(ends[r.IntN(len(ends))][0].Switch)
		}
	case op == 2:
		n.removeSwitch(ids[r.IntN(len(ids))])
	case op == 3: // left and back before anybody looked
		d := ids[r.IntN(len(ids))]
		n.removeSwitch(d)
		n.addSwitch(d)
	case op < 9 || len(ends) == 0:
		n.wire(somewhere(), somewhere(), weight)
	case op == 9:
		n.setLink(somewhere(), somewhere(), weight)
	case op == 10:
		e := ends[r.IntN(len(ends))]
		n.removeLink(e[0], e[1])
	case op < 15:
		e := ends[r.IntN(len(ends))]
		n.cut(e[0], e[1])
	default:
		e := ends[r.IntN(len(ends))]
		n.setLink(e[0], e[1], weight)
	}
}

// Networks large enough for rows to be repaired by several goroutines, computed
// afresh because too much is lost, or dropped because too much changed at once.
func TestRepairOfLargeNetworksEqualsFresh(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	for name, n := range map[string]*network{
		"fat tree":   fatTree(6, 12, 36),
		"tree":       randomNetwork(r, 300, 300, 1, false),
		"weighted":   randomNetwork(r, 300, 400, 50, true),
		"long chain": ladder(250, 1),
		"star":       star(400),
	} {
		t.Run(name, func(t *testing.T) {
			sameRows(t, n)
			for round := range 24 {
				batch := 1
				if round%4 == 3 {
					batch = 1 + r.IntN(120)
				}
				var cut []Link
				for range batch {
					links := n.graph.Current().Links()
					l := links[r.IntN(len(links))]
					n.cut(l.Src, l.Dst)
					cut = append(cut, l)
				}
				sameRows(t, n)
				for i, l := range cut {
					n.wire(l.Src, l.Dst, l.Weight+uint32(i%2))
				}
				sameRows(t, n)
			}
		})
	}
}

// sameRows fails the test unless every row of the next snapshot is what a
// search from its switch finds.
func sameRows(t *testing.T, n *network) {
	t.Helper()
	top := n.graph.Snapshot()
	top.Converge()
	s, dist := new(scratch), make([]uint32, len(top.adj))
	for _, slot := range top.order {
		top.measure(s, dist, slot)
		if !slices.Equal(top.row(slot), dist) {
			t.Fatalf("distances to %v:\n%v\nwant\n%v", top.ids[slot], top.row(slot), dist)
		}
	}
}

func TestSnapshotSharesWhatStaysTrue(t *testing.T) {
	n := fatTree(4, 4, 8)
	top := n.graph.Snapshot()
	if n.graph.Snapshot() != top {
		t.Error("nothing changed, and the snapshot did")
	}
	top.Converge()
	n.graph.SetLink(Link{Src: at2(1, 9), Dst: at2(2, 9)}) // one way
	if n.graph.Snapshot() != top {
		t.Error("a one-way link changed the snapshot")
	}
	a := top.Links()[0]
	n.cut(a.Src, a.Dst)
	n.wire(a.Src, a.Dst, 1)
	if n.graph.Snapshot() != top {
		t.Error("a link that came back before anybody looked changed the snapshot")
	}
	n.cut(a.Src, a.Dst)
	after := n.graph.Snapshot()
	shared := 0
	for slot := range top.rows {
		if after.rows[slot].Load() == top.rows[slot].Load() {
			shared++
		}
	}
	if shared == 0 || shared == len(top.rows) {
		t.Errorf("%d of %d rows shared after one link failed", shared, len(top.rows))
	}
}

func TestUnusableLinks(t *testing.T) {
	n := newNetwork()
	for d := flow.DPID(1); d <= 3; d++ {
		n.addSwitch(d)
	}
	n.setLink(at2(1, 1), at2(2, 1), 1)
	n.wire(at2(1, 2), at2(1, 3), 1)
	n.wire(at2(1, 4), at2(1, 4), 1)
	n.wire(at2(1, 5), at2(2, 5), 1)
	n.wire(at2(1, 5), at2(3, 5), 1)
	n.wire(at2(3, 6), at2(4, 6), 1)
	n.wire(at2(2, 7), at2(3, flow.PortFlood), 1)
	n.wire(at2(2, 8), at2(3, 0), 1)
	top := n.graph.Snapshot()
	if links := top.Links(); len(links) != 0 {
		t.Fatalf("usable: %v", links)
	}
	if _, ok := top.Path(1, 2, 0); ok {
		t.Error("a path over a one-way link")
	}
	reasons := map[Reason]int{}
	for _, l := range n.graph.Unused() {
		reasons[l.Reason]++
	}
	if want := map[Reason]int{OneWay: 1, SameSwitch: 3, SharedPort: 4, SwitchAbsent: 2, Reserved: 4}; !reflect.DeepEqual(reasons, want) {
		t.Errorf("reasons %v; want %v", reasons, want)
	}

	n.setLink(at2(2, 1), at2(1, 1), 1)
	n.removeLink(at2(3, 5), at2(1, 5))
	n.addSwitch(4)
	if top = n.graph.Snapshot(); len(top.Links()) != 6 {
		t.Errorf("usable after mending: %v; want three links", top.Links())
	}
	if unused := n.graph.Unused(); len(unused) != 3+4+1 { // same switch and reserved port as before, and what is left at 1/5
		t.Errorf("unused after mending: %v", unused)
	}
	for _, nowhere := range []flow.Location{at2(3, 60), at2(99, 1)} {
		if p, ok := top.Peer(nowhere); ok {
			t.Errorf("peer of %v: %v", nowhere, p)
		}
	}
	if p, ok := top.Peer(at2(3, 6)); !ok || p != at2(4, 6) {
		t.Errorf("peer %v, %v", p, ok)
	}
}

func TestCableMovedToAnotherSwitch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	n := ladder(3, 1)
	n.graph.Snapshot().Converge()
	n.cut(at2(2, 1), at2(3, 100))
	n.wire(at2(2, 1), at2(4, 100), 1) // occupied until its own cable moves
	equal(t, r, n, n.graph.Snapshot())
	n.cut(at2(3, 1), at2(4, 100))
	equal(t, r, n, n.graph.Snapshot())
	n.cut(at2(2, 1), at2(4, 100))
	n.wire(at2(2, 1), at2(3, 100), 1)
	equal(t, r, n, n.graph.Snapshot())
}

func TestReportsWhetherAnythingChanged(t *testing.T) {
	g := NewGraph()
	l := Link{at2(1, 1), at2(2, 1), 0}
	for i, c := range []struct{ got, want bool }{
		{g.AddSwitch(1), true}, {g.AddSwitch(1), false},
		{g.SetLink(l), true}, {g.SetLink(l), false},
		{g.SetLink(Link{l.Src, l.Dst, 1}), false}, // the default
		{g.SetLink(Link{l.Src, l.Dst, 1 << 30}), true},
		{g.SetLink(Link{l.Src, l.Dst, MaxWeight}), false},
		{g.RemoveLink(l.Dst, l.Src), false}, {g.RemoveLink(l.Src, l.Dst), true},
		{g.RemoveSwitch(2), false}, {g.RemoveSwitch(1), true},
	} {
		if c.got != c.want {
			t.Errorf("call %d: %v; want %v", i, c.got, c.want)
		}
	}
	if len(g.ports)+len(g.cost)+len(g.slots) != 0 {
		t.Errorf("something is left: %v %v %v", g.ports, g.cost, g.slots)
	}
}

func TestReadersSeeOneStateWhileLinksChange(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	n := randomNetwork(r, 40, 100, 3, true)
	n.graph.Snapshot()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for i := range uint64(3) {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(i, 6))
			for {
				select {
				case <-stop:
					return
				default:
				}
				top := n.graph.Current()
				ids := top.Switches()
				src, dst := ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]
				w, ok := top.Distance(src, dst)
				p, found := top.Path(src, dst, r.Uint64())
				if ok != found {
					t.Errorf("distance %v, path %v", ok, found)
				} else if ok {
					if got, err := top.Weight(p); err != nil || got != uint64(w) {
						t.Errorf("path %v: weight %d, %v; want %d", p, got, err, w)
					}
				}
				top.Tree()
				top.KShortest(src, dst, 2)
				top.Disjoint(src, dst, 2)
			}
		})
	}
	for range 150 {
		mutate(r, n, 3)
		n.graph.Snapshot().Converge()
	}
	close(stop)
	wait.Wait()
}
