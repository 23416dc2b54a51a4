package flowrules

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// TestConfirmedAndNotThere: an entry that the switch confirms and does not have is
// not in sync: it is published, its owner is told, and it is written ever more rarely;
// when the switch keeps it, it is in sync again.
func TestConfirmedAndNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		deny := entryOf(t, flow.OwnerFirewall, wanted(1, 100, 1, 2))
		g.with(1, func(s *fakeSwitch) { s.drops = map[flow.EntryKey]bool{deny.Key(): true} })
		g.connect(1)
		time.Sleep(time.Second)
		g.standing(1, "firewall", wanted(1, 100, 1, 2), wanted(1, 101, 1, 2))
		time.Sleep(2 * time.Minute)
		if s := g.sync(1); s.State != "failing" || s.Failed != 1 {
			t.Errorf("%v", s)
		}
		if l := g.list(1); !strings.Contains(l[100], reasonLacks) || l[101] != "confirmed" {
			t.Errorf("%v", l)
		}
		g.mu.Lock()
		if len(g.failed) != 1 || g.failed[0].GetFlow().GetReason() != reasonLacks || !g.failed[0].Flow.Refused {
			t.Errorf("published: %v", g.failed)
		}
		g.mu.Unlock()
		times, _ := g.seenBy(flow.OwnerFirewall)
		if resp := g.standing(1, "firewall", wanted(1, 100, 1, 2), wanted(1, 101, 1, 2)); len(resp.Failed) != 1 || !resp.Failed[0].Refused || times < 2 {
			t.Errorf("the owner is told %d times, and then: %v", times, resp)
		}
		before := len(g.look(1).adds)
		time.Sleep(2 * time.Hour)
		if n := len(g.look(1).adds) - before; n < 3 || n > 10 {
			t.Errorf("written %d times in two hours", n)
		}
		g.mu.Lock()
		if len(g.failed) != 1 {
			t.Errorf("published %d times", len(g.failed))
		}
		g.mu.Unlock()
		g.with(1, func(s *fakeSwitch) { s.drops = nil })
		time.Sleep(2 * time.Hour)
		if s := g.sync(1); s.State != "in_sync" {
			t.Errorf("%v", s)
		}
		before = len(g.look(1).adds)
		time.Sleep(time.Hour)
		if n := len(g.look(1).adds) - before; n != 0 {
			t.Errorf("written %d times, though it is there", n)
		}
	})
}

// TestOnePlaceForAPriority: of two entries of one priority the switch keeps the one
// that was written last; neither is ever said to be in force for good.
func TestOnePlaceForAPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.with(1, func(s *fakeSwitch) { s.onePlace = true })
		g.connect(1)
		g.add(wanted(1, 100, 1, 2), wanted(1, 100, 2, 1))
		time.Sleep(5 * time.Minute)
		for range 120 {
			time.Sleep(time.Minute)
			if s := g.sync(1); s.State != "failing" {
				t.Fatalf("%v", s)
			}
		}
		if n := len(g.look(1).adds); n > 60 {
			t.Errorf("%d entries written", n)
		}
	})
}
