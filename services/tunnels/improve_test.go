package tunnels

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestImproveLater: a tunnel that is seen to for something else when the others move to
// a better path moves when it lacks nothing any more, though no link has become better
// since; what is wanted of it may have changed meanwhile.
func TestImproveLater(t *testing.T) {
	g := newRig(t, ringOf(4)...)
	g.tell()
	g.setLink(1, 2, &api.LinkSettings{Metric: 1000})
	for _, name := range []string{"a", "b"} {
		g.want(&api.Tunnel{Name: name, From: "1", To: "2"})
	}
	g.passes("a", "1 4 3 2")
	g.clock = g.clock.Add(time.Hour)
	g.repair(t.Context())
	if wait := g.next(); wait != g.b.cfg.Retry {
		t.Errorf("the next look is in %v, want %v", wait, g.b.cfg.Retry)
	}
	g.setLink(1, 2, nil)
	g.repair(t.Context())
	if wait := g.next(); wait > time.Minute {
		t.Errorf("the next look is in %v", wait)
	}
	g.clock = g.clock.Add(time.Minute)
	g.b.mu.Lock()
	g.b.need(g.b.status["a"], g.clock.Add(time.Minute))
	g.b.mu.Unlock()
	g.repair(t.Context())
	g.passes("a", "1 4 3 2")
	g.passes("b", "1 2")
	g.clock = g.clock.Add(time.Minute)
	for range 3 {
		g.repair(t.Context())
	}
	g.passes("a", "1 2")
	if wait := g.next(); wait != g.b.cfg.Retry {
		t.Errorf("the next look is in %v, want %v", wait, g.b.cfg.Retry)
	}
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	for _, h := range g.b.improved.holds {
		if len(h.later) != 0 || h.looked != g.b.improved.last {
			t.Errorf("not looked at: %v", h.later)
		}
	}
}
