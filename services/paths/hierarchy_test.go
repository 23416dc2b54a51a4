package paths

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// partitioned is a network and its hierarchy, told the same.
type partitioned struct {
	*network
	of     map[flow.DPID]string
	shared map[flow.DPID]bool
	metric Metric
	h      *Hierarchy
}

func partition(n *network, of map[flow.DPID]string, shared map[flow.DPID]bool, m Metric) *partitioned {
	p := &partitioned{network: n, of: of, shared: shared, metric: m}
	p.h = p.fresh()
	return p
}

// fresh returns a hierarchy that has been told of the network as it is.
func (p *partitioned) fresh() *Hierarchy {
	var names []string
	for _, name := range p.of {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	h := NewHierarchy(names, AreaConfig{
		Of: func(d flow.DPID) string { return p.of[d] }, Shared: func(d flow.DPID) bool { return p.shared[d] }, Metric: p.metric,
	})
	for d := range p.switches {
		h.AddSwitch(d)
	}
	for ends, w := range p.links {
		h.SetLink(Link{ends[0], ends[1], w})
	}
	return h
}

// mutate changes something, here and there.
func (p *partitioned) mutate(r *rand.Rand, all []cable, ids []flow.DPID, heaviest uint32) {
	switch r.IntN(8) {
	case 0:
		d := ids[r.IntN(len(ids))]
		if p.switches[d] {
			p.removeSwitch(d)
			p.h.RemoveSwitch(d)
		} else {
			p.addSwitch(d)
			p.h.AddSwitch(d)
		}
	case 1: // one direction only
		c := all[r.IntN(len(all))]
		p.removeLink(c.a, c.b)
		p.h.RemoveLink(c.a, c.b)
	case 2, 3, 4:
		c := all[r.IntN(len(all))]
		p.cut(c.a, c.b)
		p.h.RemoveLink(c.a, c.b)
		p.h.RemoveLink(c.b, c.a)
	default:
		c := all[r.IntN(len(all))]
		for _, l := range []Link{{c.a, c.b, 1 + r.Uint32N(heaviest)}, {c.b, c.a, 1 + r.Uint32N(heaviest)}} {
			p.setLink(l.Src, l.Dst, l.Weight)
			p.h.SetLink(l)
		}
	}
}

// stretch is how much longer paths are than the shortest.
type stretch struct {
	pairs     int
	sum, most float64
}

func (s stretch) String() string {
	return fmt.Sprintf("%d pairs, stretch %.3f mean, %.2f most", s.pairs, s.sum/float64(max(s.pairs, 1)), s.most)
}

// check compares all pairs with the flat computation: there is a path exactly
// if there is one there; it is one of the network, and no loop.
func (p *partitioned) check(t *testing.T, s *stretch, each int) {
	t.Helper()
	top := p.graph.Snapshot()
	ids := slices.Sorted(maps.Keys(p.of))
	for i, src := range ids {
		for j, dst := range ids {
			if (i*7+j)%each != 0 {
				continue
			}
			want, reachable := top.Distance(src, dst)
			path, ok, err := p.h.Path(src, dst, uint64(i+j))
			if err != nil {
				t.Fatal(err)
			}
			if ok != reachable {
				t.Fatalf("from %v (%s) to %v (%s): path %v, reachable %v", src, p.of[src], dst, p.of[dst], path, reachable)
			}
			if !ok {
				continue
			}
			w, err := top.Weight(path)
			if err != nil || path[0].Switch != src || path[len(path)-1].Switch != dst {
				t.Fatalf("from %v to %v: %v: %v", src, dst, path, err)
			}
			if w < uint64(want) {
				t.Fatalf("from %v to %v: %v weighs %d, the shortest %d", src, dst, path, w, want)
			}
			if want > 0 {
				x := float64(w) / float64(want)
				s.pairs, s.sum, s.most = s.pairs+1, s.sum+x, max(s.most, x)
			}
		}
	}
}

// same fails unless a hierarchy told of the network as it is knows the same.
func (p *partitioned) same(t *testing.T) {
	t.Helper()
	fresh := p.fresh()
	fresh.Converge()
	for _, name := range p.h.names {
		a, b := p.h.areas[name], fresh.areas[name]
		octets, err := proto.Marshal(a.summary.Message())
		m := &api.PartitionSummary{}
		if err != nil || proto.Unmarshal(octets, m) != nil {
			t.Fatal(err)
		}
		if s, err := SummaryOf(m); err != nil || s.Check() != nil || !s.equal(a.summary) || s.Version != a.summary.Version {
			t.Fatalf("summary of %s: %+v, %v; sent as %v", name, s, err, m)
		}
		if !a.summary.equal(b.summary) {
			t.Fatalf("summary of %s: %+v; from nothing %+v", name, a.summary, b.summary)
		}
		if len(a.rows) != len(b.rows) {
			t.Fatalf("%s has rows to %d islands; from nothing %d", name, len(a.rows), len(b.rows))
		}
		for id, row := range a.rows {
			for d, slot := range a.top.index {
				if x, y := at(row.dist, slot), at(b.rows[id].dist, b.top.index[d]); x != y {
					t.Fatalf("%s: from %v to island %v: %d; from nothing %d", name, d, id, x, y)
				}
			}
		}
	}
}

// TestHierarchyRandom: on networks of all kinds, cut anyhow, whatever fails and
// comes back, the hierarchy reaches what the flat computation reaches, without
// loops, and what it repairs is what it would compute from nothing.
func TestHierarchyRandom(t *testing.T) {
	var all [3]stretch
	for seed := range uint64(90) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 1 + r.IntN(24)
		heaviest := uint32(1 + r.IntN(2)*r.IntN(20))
		net := randomNetwork(r, n, r.IntN(3*n+2), heaviest, r.IntN(2) == 0)
		ids := slices.Sorted(maps.Keys(net.switches))
		parts := 1 + r.IntN(n)
		if r.IntN(2) == 0 {
			parts = 1 + r.IntN(min(n, 3))
		}
		of, shared := map[flow.DPID]string{}, map[flow.DPID]bool{}
		for _, d := range ids {
			of[d] = fmt.Sprint("p", r.IntN(parts))
			shared[d] = seed%3 == 0 && r.IntN(3) == 0
		}
		var cables []cable
		for ends := range net.links {
			if compare(ends[0], ends[1]) < 0 {
				cables = append(cables, cable{ends[0], ends[1]})
			}
		}
		slices.SortFunc(cables, func(x, y cable) int { return compare(x.a, y.a) })
		metric := Metric(seed / 3 % 3)
		s := &all[metric]
		p := partition(net, of, shared, metric)
		p.h.Converge()
		p.check(t, s, 1)
		for step := range 12 {
			for range 1 + r.IntN(3) {
				if len(cables) > 0 {
					p.mutate(r, cables, ids, heaviest)
				}
			}
			p.h.Converge()
			p.check(t, s, 1)
			if step%4 == 3 {
				p.same(t)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
	t.Logf("most: %v; mean: %v; least: %v", all[Most], all[Mean], all[Least])
}

// TestHierarchyLeavesAndReturns: a partition that links do not connect inside is
// two islands, and packets between them travel through another partition; when
// that cannot help either, there is no path.
func TestHierarchyLeavesAndReturns(t *testing.T) {
	n := newNetwork()
	of := map[flow.DPID]string{1: "a", 2: "b", 3: "a", 4: "b", 5: "c"}
	for d := range of {
		n.addSwitch(d)
	}
	ends := func(d flow.DPID) (x, y flow.Location) { return at2(d, 1), at2(d+1, 2) }
	for d := flow.DPID(1); d < 4; d++ {
		x, y := ends(d)
		n.wire(x, y, 5)
	}
	p := partition(n, of, nil, Most)
	p.h.Converge()
	path, ok, err := p.h.Path(1, 3, 0)
	if want := "[{0000000000000001 0 1} {0000000000000002 2 1} {0000000000000003 2 0}]"; fmt.Sprint(path) != want || !ok || err != nil {
		t.Errorf("%v, %v, %v; want %s", path, ok, err, want)
	}
	if _, ok, err := p.h.Path(1, 5, 0); ok || err != nil {
		t.Errorf("a path to a switch without links: %v, %v", ok, err)
	}
	x, y := ends(2)
	p.h.RemoveLink(x, y)
	p.h.RemoveLink(y, x)
	if summaries, _ := p.h.Converge(); summaries != 2 {
		t.Errorf("%d partitions told of a link between two", summaries)
	}
	if path, ok, err := p.h.Path(1, 3, 0); ok || err != nil {
		t.Errorf("still %v, %v", path, err)
	}
	if got := p.h.Area("a").Summary().Islands; len(got) != 2 || len(p.h.Area("c").Summary().Islands) != 1 {
		t.Errorf("islands of a: %+v", got)
	}
}

// tree cuts a fat tree into groups of pods, with its core switches as borders
// of all of them.
func tree(n *network, pods, groups int, m Metric) *partitioned {
	of, shared := map[flow.DPID]string{}, map[flow.DPID]bool{}
	for d := range n.switches {
		if d >= 1<<20 {
			of[d] = fmt.Sprint("p", int(d>>8&0xff)*groups/pods)
		} else {
			of[d], shared[d] = fmt.Sprint("p", int(d)%groups), true
		}
	}
	return partition(n, of, shared, m)
}

// TestHierarchyTouchesLittle: in a fat tree a failure concerns the partition
// where it is, and others only by the routes that lead there; if the summary
// does not change, nobody else.
func TestHierarchyTouchesLittle(t *testing.T) {
	cut := func(p *partitioned, a, b flow.Location) (summaries, rows int) {
		p.cut(a, b)
		p.h.RemoveLink(a, b)
		p.h.RemoveLink(b, a)
		return p.h.Converge()
	}
	for _, c := range []struct {
		metric          Metric
		summaries, rows int // after a pod-local failure, at most
	}{
		{Least, 0, 0}, // the nearest is as near as before
		{Most, 1, 3},  // each of the three others has one row to that partition
	} {
		p := tree(fatTree(8, 4, 8), 8, 4, c.metric)
		if told, rows := p.h.Converge(); told != 4 || rows < 12 {
			t.Errorf("at first %d summaries, %d rows", told, rows)
		}
		// Between edge switches, where hosts are, no path is longer than the shortest.
		for a := range 8 * 4 {
			for b := range 8 * 4 {
				src, dst := flow.DPID(2<<20|a/4<<8|a%4), flow.DPID(2<<20|b/4<<8|b%4)
				path, _, _ := p.h.Path(src, dst, uint64(a))
				if want, _ := p.graph.Snapshot().Distance(src, dst); len(path) != int(want)+1 {
					t.Fatalf("from %v to %v, %d hops apart: %v", src, dst, want, path)
				}
			}
		}
		var s stretch
		agg, edge := flow.DPID(1<<20|2<<8|1), flow.DPID(2<<20|2<<8|3)
		told, rows := cut(p, at2(agg, 4), at2(edge, 2))
		if told != c.summaries || rows > c.rows+3 || c.rows > 0 && rows == 0 { // three of its own
			t.Errorf("metric %d: pod-local failure: %d summaries, %d rows", c.metric, told, rows)
		}
		p.same(t)
		told, rows = cut(p, at2(flow.DPID(1), 4), at2(flow.DPID(1<<20|3<<8), 5))
		if told > 1 || rows > 6 {
			t.Errorf("metric %d: core failure: %d summaries, %d rows", c.metric, told, rows)
		}
		p.same(t)
		p.check(t, &s, 3)
		t.Logf("metric %d, two failures: %v", c.metric, s)
	}
}

// TestSummaryCheck: what no partition would tell is refused, and changes nothing.
func TestSummaryCheck(t *testing.T) {
	of := func(d flow.DPID) string { return map[bool]string{true: "a", false: "b"}[d < 10] }
	island := func(d ...flow.DPID) Island { return Island{Switches: d} }
	gate := func(g ...Gate) []Island { return []Island{{Switches: []flow.DPID{11}, Gates: g}} }
	for name, s := range map[string]*Summary{
		"nameless":        {},
		"no switches":     {Partition: "b", Islands: []Island{{}}},
		"order":           {Partition: "b", Islands: []Island{island(12, 11)}},
		"twice":           {Partition: "b", Islands: []Island{island(11, 13), island(12, 13)}},
		"islands":         {Partition: "b", Islands: []Island{island(12), island(11)}},
		"another's":       {Partition: "b", Islands: []Island{island(1)}},
		"unknown":         {Partition: "c", Islands: []Island{island(11)}},
		"unreachable":     {Partition: "b", Islands: gate(Gate{11, Unreachable, nil})},
		"gates' order":    {Partition: "b", Islands: gate(Gate{12, 1, nil}, Gate{11, 1, nil})},
		"link to itself":  {Partition: "b", Islands: gate(Gate{11, 1, []BorderLink{{1, at2(11, 2), 1}}})},
		"link of no cost": {Partition: "b", Islands: gate(Gate{11, 1, []BorderLink{{1, at2(1, 2), 0}}})},
	} {
		a := NewArea(AreaConfig{Partition: "a", Of: of})
		if news, err := a.Learn(s); err == nil || news || len(a.border.islands) != 0 {
			t.Errorf("%s: %v, %v", name, news, err)
		}
	}
	a := NewArea(AreaConfig{Partition: "a", Of: of})
	good := &Summary{Partition: "b", Version: 2, Islands: []Island{island(11)}}
	if news, err := a.Learn(good); !news || err != nil {
		t.Errorf("%v, %v", news, err)
	}
	if news, err := a.Learn(good); news || err != nil {
		t.Errorf("again: %v, %v", news, err)
	}
	// What is garbled on the way is refused, or harmless.
	a.AddSwitch(1)
	a.AddSwitch(2)
	for _, l := range []Link{{at2(1, 1), at2(2, 1), 1}, {at2(1, 2), at2(11, 1), 1}} {
		a.SetLink(l)
		a.SetLink(Link{l.Dst, l.Src, 1})
	}
	good = &Summary{Partition: "b", Islands: []Island{{[]flow.DPID{11, 12}, []Gate{{11, 3, []BorderLink{{1, at2(1, 2), 1}}}, {12, 1, nil}}}}}
	octets, _ := proto.Marshal(good.Message())
	r := rand.New(rand.NewPCG(1, 1))
	for version := range uint64(3000) {
		garbled := slices.Clone(octets)
		for range 1 + r.IntN(3) {
			garbled[r.IntN(len(garbled))] = byte(r.Uint32())
		}
		m := &api.PartitionSummary{}
		if proto.Unmarshal(garbled, m) != nil {
			continue
		}
		m.Version = version + 3
		if s, err := SummaryOf(m); err == nil {
			_, _ = a.Learn(s)
			a.Inside()
			a.Outside()
			a.Step(2, 11, version)
		}
	}
	if !a.Forget("b") || a.Forget("b") || len(a.border.islands) != 1 || a.border.home[11] != 0 {
		t.Error("not forgotten")
	}
}
