package scp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/sbi"
)

// Of two at random the faster one is chosen, by what it has to do.
func TestTwoChoices(t *testing.T) {
	c := newChooser()
	var list []candidate
	for i := range 2 {
		list = append(list, candidate{id: id(i), at: sbi.EndPoint{Addr: netip.AddrPortFrom(netip.MustParseAddr(at(i)), 80)}, weight: 100})
	}
	for i, took := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
		c.begin(list[i].at.Addr)(took)
	}
	policy, who := &api.ScpPolicy{Type: "UDM", Algorithm: twoChoices, Per: "connection"}, consumer{"x", flow.Location{}}
	for range 8 {
		if x := c.order(list, policy, who, 0); x[0].id != id(0) || len(x) != 2 {
			t.Errorf("chose %v", x)
		}
		c.begin(list[0].at.Addr)
	}
	for range 8 {
		c.begin(list[0].at.Addr)
	}
	if x := c.order(list, policy, who, 0); x[0].id != id(1) {
		t.Errorf("with 16 requests under way: chose %v", x[0])
	}
	c.rest(list[1].at.Addr, 0)
	if x := c.order(list, policy, who, 1); x[0].id != id(0) {
		t.Errorf("one that rests: chose %v", x[0])
	}
}

// The end point with the fewest requests for its weight is chosen.
func TestLeast(t *testing.T) {
	c := newChooser()
	var list []candidate
	for i, weight := range []int{100, 300} {
		list = append(list, candidate{id: id(i), at: sbi.EndPoint{Addr: netip.AddrPortFrom(netip.MustParseAddr(at(i)), 80)}, weight: weight})
	}
	policy, who := &api.ScpPolicy{Type: "UDM", Algorithm: "least", Per: "connection"}, consumer{"x", flow.Location{}}
	for n, want := range []int{1, 1, 0, 1} {
		x := c.order(list, policy, who, 0)[0]
		if x.id != id(want) {
			t.Errorf("request %d: chose %v", n, x)
		}
		c.begin(x.at.Addr)
	}
}
