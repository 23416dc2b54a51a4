package paths

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

func TestNoPathsWhereThereAreNone(t *testing.T) {
	empty := NewGraph().Snapshot()
	one := newNetwork()
	one.addSwitch(7)
	two := newNetwork()
	two.addSwitch(7)
	two.addSwitch(8)
	two.setLink(at2(7, 1), at2(8, 1), 1) // one way
	for name, top := range map[string]*Topology{"no switches": empty, "one switch": one.graph.Snapshot(), "disconnected": two.graph.Snapshot()} {
		top.Converge()
		h := top.NextHopTable()
		for _, ends := range [][2]flow.DPID{{7, 8}, {8, 7}, {9, 9}, {7, 9}, {9, 7}} {
			src, dst := ends[0], ends[1]
			_, distance := top.Distance(src, dst)
			p, path := top.Path(src, dst, 1)
			if distance || path || p != nil || top.NextHops(src, dst) != nil || top.KShortest(src, dst, 3) != nil ||
				top.Disjoint(src, dst, 3) != nil || h.Append(nil, src, dst) != nil {
				t.Errorf("%s: from %v to %v: something", name, src, dst)
			}
		}
		if n := len(top.Components()); n != top.Len() || len(top.Tree().Switches()) != n {
			t.Errorf("%s: %d components, tree of %v", name, n, top.Tree().Switches())
		}
		if top.Has(7) != (top.Len() > 0) {
			t.Errorf("%s: Has(7) is %v", name, top.Has(7))
		}
	}

	top := one.graph.Snapshot()
	w, ok := top.Distance(7, 7)
	p, _ := top.Path(7, 7, 1)
	want := Path{{Switch: 7}}
	if w != 0 || !ok || !slices.Equal(p, want) || top.NextHops(7, 7) != nil ||
		!slices.Equal(top.KShortest(7, 7, 2)[0], want) || !slices.Equal(top.Disjoint(7, 7, 2)[0], want) {
		t.Errorf("from a switch to itself: %d, %v, %v", w, ok, p)
	}
}

// ladder has n+1 switches in a row, width links between neighbours.
func ladder(n, width int) *network {
	net := newNetwork()
	for i := range n + 1 {
		net.addSwitch(flow.DPID(i + 1))
	}
	for i := range n {
		for j := range width {
			net.wire(at2(flow.DPID(i+1), flow.Port(j+1)), at2(flow.DPID(i+2), flow.Port(100+j)), 1)
		}
	}
	return net
}

func TestHashSpreadsOverEqualPaths(t *testing.T) {
	const flows = 20000
	for name, n := range map[string]*network{"parallel links": ladder(2, 4), "fat tree": fatTree(4, 4, 16)} {
		top := n.graph.Snapshot()
		ids := top.Switches()
		src, dst := ids[0], ids[len(ids)-1]
		if name == "fat tree" {
			src = ids[len(ids)-5] // an edge switch of the last pod but one
		}
		all := top.KShortest(src, dst, 1000)
		w, _ := top.Distance(src, dst)
		equal := 0
		for _, p := range all {
			if v, _ := top.Weight(p); v == uint64(w) {
				equal++
			}
		}
		used := map[string]int{}
		for h := range uint64(flows) { // hashes as bad as can be
			p, _ := top.Path(src, dst, h)
			key := ""
			for _, hop := range p {
				key += flow.Location{Switch: hop.Switch, Port: hop.Out}.String() + " "
			}
			used[key]++
		}
		if len(used) != equal {
			t.Errorf("%s: %d of %d equal paths used", name, len(used), equal)
		}
		for p, got := range used {
			if mean := flows / equal; got < mean*8/10 || got > mean*12/10 {
				t.Errorf("%s: %d flows on %s; the mean is %d", name, got, p, mean)
			}
		}
	}
}

func TestFailureMovesOnlyTheFlowsItHits(t *testing.T) {
	n := fatTree(4, 4, 16)
	before := n.graph.Snapshot()
	ids := before.Switches()
	src, dst := ids[len(ids)-5], ids[len(ids)-1]
	cut, _ := before.Path(src, dst, 0)
	ends := [2]flow.Location{at2(cut[1].Switch, cut[1].Out), at2(cut[2].Switch, cut[2].In)}
	n.cut(ends[0], ends[1])
	after := n.graph.Snapshot()
	n.wire(ends[0], ends[1], 1)
	again := n.graph.Snapshot()
	moved := 0
	for h := range uint64(2000) {
		p, _ := before.Path(src, dst, h)
		q, _ := after.Path(src, dst, h)
		hit := slices.ContainsFunc(p, func(x Hop) bool { return x.Switch == ends[0].Switch && x.Out == ends[0].Port })
		if hit {
			moved++
		} else if !slices.Equal(p, q) {
			t.Fatalf("hash %d: %v became %v though it did not use %v", h, p, q, ends)
		}
		if back, _ := again.Path(src, dst, h); !slices.Equal(p, back) {
			t.Fatalf("hash %d: %v became %v when the link came back", h, p, back)
		}
	}
	if moved == 0 {
		t.Error("no flow was hit")
	}
}

func TestPathsAllocateNothing(t *testing.T) {
	top := fatTree(4, 4, 8).graph.Snapshot()
	top.Converge()
	ids := top.Switches()
	p, ports := make(Path, 0, 8), make([]flow.Port, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		p, _ = top.AppendPath(p[:0], ids[len(ids)-1], ids[0], 3)
		ports = top.AppendNextHops(ports[:0], ids[len(ids)-1], ids[0])
		top.Distance(ids[0], ids[3])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// CVE-2022-29608 (ONOS): crafted ports in the middle of a path made it loop.
// Whatever links are claimed, no path visits a switch twice or leaves by the
// port it came in by; and a path given from outside that does is refused.
func TestCVE_2022_29608_CraftedPortsMakeNoLoop(t *testing.T) {
	links := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 29608))
		n := newNetwork()
		for d := flow.DPID(1); d <= 8; d++ {
			n.addSwitch(d)
		}
		ports := []flow.Port{0, 1, 2, 3, 4, 5, 6, flow.PortIn, flow.PortFlood, flow.PortAll, flow.PortController}
		for range 60 { // few ports, so that claims collide
			a := at2(flow.DPID(1+r.IntN(8)), ports[r.IntN(len(ports))])
			b := at2(flow.DPID(1+r.IntN(8)), ports[r.IntN(len(ports))])
			if r.IntN(3) == 0 {
				n.setLink(a, b, r.Uint32())
			} else {
				n.wire(a, b, r.Uint32N(4))
			}
		}
		top := n.graph.Snapshot()
		for _, src := range top.Switches() {
			for _, dst := range top.Switches() {
				paths := append(top.KShortest(src, dst, 5), top.Disjoint(src, dst, 3)...)
				for h := range uint64(5) {
					if p, ok := top.Path(src, dst, h); ok {
						paths = append(paths, p)
					}
				}
				for _, p := range paths {
					if err := top.Check(p); err != nil {
						t.Fatalf("seed %d: %v: %v", seed, p, err)
					}
					links += len(p) - 1
					for i, hop := range p {
						if i > 0 && i < len(p)-1 && hop.In == hop.Out {
							t.Fatalf("seed %d: %v turns back", seed, p)
						}
						if i < len(p)-1 && !hop.Out.Physical() {
							t.Fatalf("seed %d: %v leaves by a reserved port", seed, p)
						}
					}
				}
			}
		}
	}
	if links == 0 {
		t.Error("no path was found to check")
	}

	top := ladder(2, 2).graph.Snapshot()
	good := Path{{1, 0, 1}, {2, 100, 2}, {3, 101, 0}}
	if err := top.Check(good); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		crafted Path
		want    string
	}{
		{nil, "no switches"},
		{Path{{1, 0, 1}, {2, 100, 100}, {1, 1, 2}, {2, 101, 0}}, "hop 3: switch 0000000000000001 is visited twice"},
		{Path{{1, 0, 1}, {2, 100, 100}, {1, 1, 0}}, "visited twice"},
		{Path{{1, 0, 1}, {2, 101, 2}, {3, 101, 0}}, "hop 1: the link at 0000000000000001/1 leads to"},
		{Path{{1, 0, 9}, {2, 100, 0}}, "no usable link at 0000000000000001/9"},
		{Path{{1, 0, 1}, {9, 100, 0}}, "hop 1: the link at"},
		{Path{{9, 0, 0}}, "is not connected"},
	} {
		if err := top.Check(c.crafted); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.crafted, err, c.want)
		}
	}
}

func TestNextHopTableEqualsNextHops(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := randomNetwork(r, 10+r.IntN(400), 600, 1+2*uint32(seed%2), seed%4 == 1)
		ids := n.graph.Snapshot().Switches()
		for range 5 { // slots without a switch
			n.removeSwitch(ids[r.IntN(len(ids))])
		}
		top := n.graph.Snapshot()
		h := top.NextHopTable()
		lazy := n.fresh(r)
		for _, src := range top.Switches() {
			for _, dst := range top.Switches() {
				d, _ := top.Distance(src, dst)
				want, _ := lazy.Distance(src, dst)
				if ports := lazy.NextHops(src, dst); d != want || !slices.Equal(h.Append(nil, src, dst), ports) {
					t.Fatalf("seed %d: from %v to %v: %d %v; want %d %v", seed, src, dst, d, h.Append(nil, src, dst), want, ports)
				}
			}
		}
	}
}
