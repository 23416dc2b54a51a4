package l2vpn

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

func at(sw flow.DPID, p flow.Port) end { return end{at: flow.Location{Switch: sw, Port: p}} }

func macOf(n int) flow.MAC { return flow.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

func TestLearn(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newLAN(2, time.Minute)
	a, b := at(1, 1), at(2, 1)
	full := 0
	l.full = func(at end, _ time.Time) { full++ }
	if !l.learn(macOf(1), a, now) || l.learn(macOf(1), a, now) || l.known[macOf(1)].at != a {
		t.Fatal("an address is not learnt, or twice")
	}
	for _, m := range []flow.MAC{{}, everybody, {1}} {
		if l.learn(m, a, now) {
			t.Errorf("%v is learnt", m)
		}
	}
	if !l.hears(a) || !l.learn(macOf(2), a, now) || l.learn(macOf(3), a, now) || l.hears(a) || l.count[a] != 2 {
		t.Errorf("an end has %d addresses of 2, hears %v", l.count[a], l.hears(a))
	}
	if full != 1 {
		t.Errorf("full %d times", full)
	}
	if !l.learn(macOf(1), b, now) || l.known[macOf(1)].at != b || l.count[a] != 1 || l.count[b] != 1 || !l.hears(a) {
		t.Error("an address does not move")
	}
	if l.pass(now.Add(time.Minute)) {
		t.Error("addresses age too soon")
	}
	now = now.Add(time.Minute + time.Second)
	if !l.pass(now) || !l.known[macOf(1)].asked {
		t.Error("an address is not asked for")
	}
	if !l.learn(macOf(1), b, now) || l.known[macOf(1)].asked {
		t.Error("the answer is not heard")
	}
	if !l.pass(now.Add(answerTime)) || l.known[macOf(2)] != nil || l.known[macOf(1)] == nil || l.count[a] != 0 {
		t.Error("what does not answer stays, or what does goes")
	}
	if !l.keep([]end{a}) || len(l.known) != 0 {
		t.Error("addresses of an end that is gone stay")
	}
}

// TestLearnLoop has two ends behind which there is a loop: the address that comes
// from both is held where it was, the end that is not that one is blocked for a time, and
// another that moves a few times is not.
func TestLearnLoop(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newLAN(10, time.Minute)
	home, x, y := at(1, 1), at(2, 1), at(3, 1)
	l.learn(macOf(1), home, now)
	now = now.Add(time.Minute)
	for i := range flapMoves {
		if l.learn(macOf(1), []end{x, y}[i%2], now); len(l.blocked) > 0 {
			t.Fatalf("an end is blocked after %d moves", i+1)
		}
	}
	l.learn(macOf(1), y, now)
	if why := l.blocked[y].why; len(l.blocked) != 1 || !strings.Contains(why, macOf(1).String()) || l.known[macOf(1)].at != home {
		t.Fatalf("blocked %+v, address at %v", l.blocked, l.known[macOf(1)].at)
	}
	if l.learn(macOf(2), y, now) {
		t.Error("a blocked end learns")
	}
	if l.learn(macOf(1), x, now.Add(time.Second)) {
		t.Error("an address that flapped moves at once")
	}
	if !l.pass(now.Add(blockTime)) || len(l.blocked) > 0 {
		t.Error("an end stays blocked")
	}
}

// TestLearnFlood has an end send ever new senders: it is quiet for a while, and then heard
// again.
func TestLearnFlood(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newLAN(lanMACs, time.Minute)
	a, b := at(1, 1), at(2, 1)
	for i := range 10 * learnRate {
		l.learn(macOf(i), a, now)
	}
	if len(l.known) != learnRate || l.hears(a) || !l.hears(b) || !l.learn(macOf(1<<15), b, now) {
		t.Errorf("%d addresses are learnt in a second, heard %v", len(l.known), l.hears(a))
	}
	if l.pass(now.Add(quietTime - time.Second)) {
		t.Error("it is heard too soon")
	}
	if now = now.Add(quietTime); !l.pass(now) || !l.hears(a) || !l.learn(macOf(1<<14), a, now) {
		t.Error("an end is not heard again")
	}
}
