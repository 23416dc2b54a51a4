package l2vpn

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestLeaves: leaves are ends of a vpls, some of which are roots.
func TestLeaves(t *testing.T) {
	read := func(typ string, leaves ...string) (*circuit, error) {
		return readCircuit(&api.Circuit{Name: "c", Type: typ, Ends: []string{"1:1", "1:2.7", "2:1"}[:map[string]int{vpls: 3, vpws: 2}[typ]], Leaves: leaves})
	}
	c, err := read(vpls, "2:1", "1:2.7", "2:1")
	if err != nil || c.leaf(0) || !c.leaf(1) || !c.leaf(2) || len(c.Leaves) != 2 {
		t.Errorf("%v %v", c, err)
	}
	for _, bad := range []struct {
		typ    string
		leaves []string
		why    string
	}{
		{vpls, []string{"1:1", "1:2.7", "2:1"}, "all its ends are leaves"},
		{vpls, []string{"1:2"}, "is none of its ends"},
		{vpls, []string{"x"}, "leaf: end"},
		{vpws, []string{"1:1"}, "leaves, which are of a vpls"},
	} {
		if c, err := read(bad.typ, bad.leaves...); err == nil || !strings.Contains(err.Error(), bad.why) {
			t.Errorf("%s %v: %v %v, want %q", bad.typ, bad.leaves, c, err, bad.why)
		}
	}
}

// TestLeavesTree: the tree of a vpls with leaves has labels of its own for what leaves send, and
// others when the first leaf comes or the last goes.
func TestLeavesTree(t *testing.T) {
	plain, _ := readCircuit(&api.Circuit{Name: "c", Type: vpls, Ends: []string{"1:1", "2:1", "3:1"}})
	leaves, _ := readCircuit(&api.Circuit{Name: "c", Type: vpls, Ends: []string{"1:1", "2:1", "3:1"}, Leaves: []string{"2:1"}})
	more, _ := readCircuit(&api.Circuit{Name: "c", Type: vpls, Ends: []string{"1:1", "2:1", "3:1"}, Leaves: []string{"2:1", "3:1"}})
	if plain.sameTree(leaves) || leaves.sameTree(plain) || !leaves.sameTree(more) {
		t.Error("the tree does not follow whether there are leaves")
	}
	cfg := defaults()
	a, undo := newAllocator(cfg), []func(){}
	tree := withLeaves([]arc{{from: 1, to: 2}, {from: 2, to: 1}})
	var err error
	if leaves.TreeLabels, err = a.label(leaves, tree, &undo); err != nil {
		t.Fatal(err)
	}
	got := leaves.arcs()
	if !slices.EqualFunc(got, tree, arc.same) || got[0].label == got[1].label {
		t.Errorf("%v", got)
	}
	if on := ahead(got, 1, 0, true); len(on) != 1 || !on[0].leaves {
		t.Errorf("of leaves: %v", on)
	}
	if on := ahead(got, 1, 2, false); len(on) != 0 {
		t.Errorf("back: %v", on)
	}
}
