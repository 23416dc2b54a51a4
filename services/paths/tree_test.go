package paths

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// spanning fails the test unless a tree is a spanning forest of a topology:
// both ends of a link in it or neither, no cycle, and no component divided.
func spanning(t *testing.T, top *Topology) {
	t.Helper()
	tree := top.Tree()
	if !slices.Equal(tree.Switches(), top.Switches()) {
		t.Fatalf("tree of %v; want %v", tree.Switches(), top.Switches())
	}
	group := map[flow.DPID]flow.DPID{}
	var find func(flow.DPID) flow.DPID
	find = func(d flow.DPID) flow.DPID {
		if up, ok := group[d]; ok && up != d {
			return find(up)
		}
		return d
	}
	ends := 0
	for _, d := range top.Switches() {
		ports := tree.Ports(d)
		if !slices.IsSorted(ports) || len(slices.Compact(slices.Clone(ports))) != len(ports) {
			t.Fatalf("ports of %v: %v", d, ports)
		}
		for _, p := range ports {
			ends++
			peer, ok := top.Peer(at2(d, p))
			if !ok || !tree.Has(peer) || !tree.Has(at2(d, p)) {
				t.Fatalf("%v is in the tree; its peer %v, %v is not", at2(d, p), peer, ok)
			}
			if d < peer.Switch {
				a, b := find(d), find(peer.Switch)
				if a == b {
					t.Fatalf("the link at %v closes a cycle", at2(d, p))
				}
				group[a] = b
			}
		}
	}
	if want := 2 * (top.Len() - len(top.Components())); ends != want {
		t.Fatalf("%d ports in the tree; want %d", ends, want)
	}
}

// nearest fails the test unless every switch reaches its root within the tree
// at the least distance.
func nearest(t *testing.T, top *Topology) {
	t.Helper()
	tree := NewGraph()
	for _, d := range top.Switches() {
		tree.AddSwitch(d)
	}
	for _, l := range top.Links() {
		if top.Tree().Has(l.Src) {
			tree.SetLink(l)
		}
	}
	only := tree.Snapshot()
	for _, set := range top.Components() {
		for _, d := range set {
			want, _ := top.Distance(d, set[0])
			if got, ok := only.Distance(d, set[0]); !ok || got != want {
				t.Fatalf("%v to its root %v in the tree: %d, %v; want %d", d, set[0], got, ok, want)
			}
		}
	}
}

func TestTreeIsASpanningForest(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := randomNetwork(r, 1+r.IntN(40), r.IntN(90), 1+uint32(seed%3), seed%2 == 0)
		spanning(t, n.graph.Snapshot())
		for range 10 {
			mutate(r, n, 3)
			top := n.graph.Snapshot()
			spanning(t, top)
			nearest(t, top)
		}
	}
	spanning(t, fatTree(4, 4, 8).graph.Snapshot())
}

func TestTreeChangesOnlyWhereItMust(t *testing.T) {
	n := newNetwork() // a ring of four, and a chord
	for d := flow.DPID(1); d <= 4; d++ {
		n.addSwitch(d)
	}
	for d := flow.DPID(1); d <= 4; d++ {
		n.wire(at2(d, 1), at2(d%4+1, 2), 1)
	}
	n.wire(at2(1, 3), at2(2, 3), 1)
	top := n.graph.Snapshot()
	want := map[flow.DPID][]flow.Port{1: {1, 2}, 2: {1, 2}, 3: {2}, 4: {1}}
	for d, ports := range want {
		if got := top.Tree().Ports(d); !slices.Equal(got, ports) {
			t.Errorf("ports of %v: %v; want %v", d, got, ports)
		}
	}
	n.cut(at2(3, 1), at2(4, 2)) // not in the tree
	n.cut(at2(1, 3), at2(2, 3))
	after := n.graph.Snapshot()
	if after == top || after.Tree() != top.Tree() {
		t.Error("the tree changed with a link that is not in it")
	}
	n.cut(at2(4, 1), at2(1, 2))
	n.graph.Snapshot() // its tree is never asked for
	n.addSwitch(9)
	last := n.graph.Snapshot().Tree()
	if got := last.Changed(top.Tree()); !slices.Equal(got, []flow.DPID{1, 4, 9}) {
		t.Errorf("changed: %v", got)
	}
	if got := top.Tree().Changed(last); !slices.Equal(got, []flow.DPID{1, 4, 9}) {
		t.Errorf("changed back: %v", got)
	}
	if got := top.Tree().Changed(nil); len(got) != 4 {
		t.Errorf("changed from none: %v", got)
	}
}
