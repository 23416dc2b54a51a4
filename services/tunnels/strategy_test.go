package tunnels

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// newSquare returns a ring of four: from 1 to 3 by 2, cheap, slow and narrow, or by 4.
func newSquare(t *testing.T) *rig {
	g := newRig(t, ringOf(4)...)
	g.tell()
	for _, l := range [][2]flow.DPID{{1, 2}, {2, 3}} {
		g.setLink(l[0], l[1], &api.LinkSettings{Metric: 1, DelayUs: 5000, CapacityKbps: 500})
	}
	for _, l := range [][2]flow.DPID{{3, 4}, {4, 1}} {
		g.setLink(l[0], l[1], &api.LinkSettings{Metric: 9, DelayUs: 2000, CapacityKbps: 900})
	}
	return g
}

// TestStrategies: a tunnel takes the cheapest path, the one with least delay, or the one with most that is free,
// and of two paths the better one first.
func TestStrategies(t *testing.T) {
	g := newSquare(t)
	for strategy, by := range map[string]flow.DPID{"": 2, "cost": 2, "latency": 4, "widest": 4} {
		m := g.want(&api.Tunnel{Name: "t" + strategy, From: "1", To: "3", Strategy: strategy})
		g.arrives(m, 1, by, 3)
		m = g.want(&api.Tunnel{Name: "p" + strategy, From: "1", To: "3", Strategy: strategy, Protect: true})
		if m.State != "up" || len(m.Standby.GetHops()) != 3 {
			t.Errorf("%s, protected: %v", strategy, m)
		}
	}
	g.want(&api.Tunnel{Name: "big", From: "1", To: "3", ReservedKbps: 600}) // fits by 4 only
	g.arrives(g.b.get("twidest"), 1, 4, 3)                                  // it stays
	g.arrives(g.want(&api.Tunnel{Name: "next", From: "1", To: "3", Strategy: "widest"}), 1, 2, 3)
	for text, m := range map[string]*api.Tunnel{
		"want cost, latency or widest": {Strategy: "fastest"},
		"want more than max_delay_us":  {ToleratedDelayUs: 7},
		"more than max_delay_us, 9":    {MaxDelayUs: 9, ToleratedDelayUs: 9},
		"strategy cannot be had":       {Strategy: "latency", Transport: "gre"},
	} {
		m.Name, m.From, m.To = "x", "1", "3"
		if _, err := g.repairer.set(context.Background(), m); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v; want %q", m, err, text)
		}
	}
}

// TestLatencyMoves: a tunnel by latency moves to a path that is faster by more than a tenth, not by less.
func TestLatencyMoves(t *testing.T) {
	g := newSquare(t)
	g.want(&api.Tunnel{Name: "a", From: "1", To: "3", Strategy: "latency"})
	for us, by := range map[uint32]flow.DPID{1900: 4, 1000: 2} {
		g.setLink(1, 2, &api.LinkSettings{Metric: 1, DelayUs: us})
		g.setLink(2, 3, &api.LinkSettings{Metric: 1, DelayUs: us})
		g.b.improved.last = g.clock
		g.clock = g.clock.Add(2 * time.Minute)
		g.repaired()
		g.arrives(g.b.get("a"), 1, by, 3)
		g.setLink(1, 2, &api.LinkSettings{Metric: 1, DelayUs: 5000})
		g.b.improved.last = g.clock
		g.clock = g.clock.Add(2 * time.Minute)
		g.repaired()
		g.arrives(g.b.get("a"), 1, 4, 3)
	}
}

// TestToleratedDelay: where no path is within the bound, one within the second is used, and the tunnel is degraded;
// when there is one within the bound again, it moves there.
func TestToleratedDelay(t *testing.T) {
	g := newSquare(t)
	m := g.want(&api.Tunnel{Name: "a", From: "1", To: "3", MaxDelayUs: 4500, ToleratedDelayUs: 20000})
	g.arrives(m, 1, 4, 3)
	if m.State != "up" {
		t.Errorf("%v", m)
	}
	g.cut(1, 4, true)
	g.repaired()
	m = g.b.get("a")
	g.arrives(m, 1, 2, 3)
	if m.State != "degraded" || !strings.Contains(m.Reason, "takes 10000 µs, and no path is within max_delay_us, 4500") {
		t.Errorf("%s: %s", m.State, m.Reason)
	}
	if far := g.want(&api.Tunnel{Name: "b", From: "1", To: "3", MaxDelayUs: 4500, ToleratedDelayUs: 9000}); far.State != "down" {
		t.Errorf("beyond both: %s, %s", far.State, far.Reason)
	}
	g.cut(1, 4, false)
	g.clock = g.clock.Add(time.Minute)
	g.repaired()
	m = g.b.get("a")
	g.arrives(m, 1, 4, 3)
	if m.State != "up" {
		t.Errorf("within the bound again: %s, %s", m.State, m.Reason)
	}
	g.repaired()
	if m = g.b.get("b"); m.State != "up" {
		t.Errorf("the other: %s, %s", m.State, m.Reason)
	}
}

// TestToleratedStandby: a second path that is tolerated comes before none; the first is the one within the bound, and
// while the other carries frames the tunnel is degraded.
func TestToleratedStandby(t *testing.T) {
	g := newSquare(t)
	m := g.want(&api.Tunnel{Name: "a", From: "1", To: "3", MaxDelayUs: 4500, ToleratedDelayUs: 20000, Protect: true})
	g.arrives(m, 1, 4, 3)
	if m.State != "up" || len(m.Standby.GetHops()) != 3 {
		t.Errorf("%v", m)
	}
	g.cut(1, 4, true)
	g.repaired()
	m = g.b.get("a")
	g.arrives(m, 1, 2, 3)
	if m.State != "degraded" {
		t.Errorf("%v", m)
	}
	g.cut(1, 4, false)
	g.clock = g.clock.Add(time.Minute)
	g.repaired()
	m = g.b.get("a")
	g.arrives(m, 1, 4, 3)
	if m.State != "up" || len(m.Standby.GetHops()) != 3 {
		t.Errorf("%v", m)
	}
}
