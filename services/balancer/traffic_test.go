package balancer

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// seldom is pairs with a member that is checked every second, or every five while it
// serves; it is up.
func seldom(t *testing.T) *rig {
	g := newRig(t)
	v := pairs(5)
	v.Health = &api.HealthCheck{Kind: "tcp", IntervalMs: 1000, TimeoutMs: 1000, Rise: 1, Fall: 3, IdleIntervalMs: 5000}
	g.set(v)
	g.answer(5, g.tick(0), true)
	if h := g.show("web").Pool[0].Health; h != "up" {
		t.Fatal(h)
	}
	return g
}

// tally has both switches read after the pair's entries have counted more: packets
// there, packets back and the octets of these.
func (g *rig) tally(there, back, octets uint64) {
	seen := g.entries()
	c := g.by(1, 0)
	for sw, flows := range seen {
		for _, f := range flows {
			_, e, err := f.Entry()
			o, ok := readEntry(&e)
			switch {
			case err != nil || !ok:
			case o.part == 0 && sw == c.ingress.Switch:
				f.Packets, f.Bytes = c.counted[0].packets+there, c.counted[0].bytes+100*there
			case o.part == 1 && sw == c.egress:
				f.Packets, f.Bytes = c.counted[1].packets+back, c.counted[1].bytes+octets
			}
		}
	}
	g.b.tracker.tally(seen, g.now)
}

// A member that nobody uses is checked seldom; it goes down after as many checks.
func TestIdleMembersAreCheckedSeldom(t *testing.T) {
	g := seldom(t)
	for range 4 {
		if d := g.tick(time.Second); len(d.Outs) != 0 {
			t.Fatal("checked after less than the idle interval")
		}
	}
	for i := range 3 {
		if d := g.tick(time.Second); len(d.Outs) != 1 {
			t.Fatalf("%d packets; want check %d", len(d.Outs), i)
		} else {
			g.answer(5, d, false)
		}
	}
	if h := g.show("web").Pool[0].Health; h != "down" {
		t.Error(h)
	}
	if d := g.tick(time.Second); len(d.Outs) != 1 {
		t.Error("a member that is down is not checked every second")
	}
}

// A member whose pairs are answered with data needs no check; one that is sent
// something, and answers nothing but what a host does for it, is checked at once.
func TestTrafficIsACheck(t *testing.T) {
	g := seldom(t)
	g.open(1, 4000)
	g.posted()
	for range 20 {
		g.tally(3, 3, 600)
		if d := g.tick(500 * time.Millisecond); len(d.Outs) != 0 {
			t.Fatal("a member that serves is checked")
		}
	}
	for range 6 {
		g.tally(0, 0, 0)
		if d := g.tick(500 * time.Millisecond); len(d.Outs) != 0 {
			t.Fatal("a member that is sent nothing is checked")
		}
	}
	g.tally(2, 2, 2*54) // resets
	for i := range 3 {
		d := g.tick(0)
		if len(d.Outs) != 1 {
			t.Fatalf("%d packets; want check %d", len(d.Outs), i)
		}
		g.answer(5, d, false)
		g.now += int64(time.Second)
	}
	if h := g.show("web").Pool[0].Health; h != "down" {
		t.Error(h)
	}
}

// A member whose traffic is not read is checked as often as all.
func TestTrafficNotRead(t *testing.T) {
	g := seldom(t)
	g.open(1, 4000)
	for i := range 3 {
		d := g.tick(time.Second)
		if len(d.Outs) != 1 {
			t.Fatalf("%d packets; want check %d", len(d.Outs), i)
		}
		g.answer(5, d, true)
	}
	g.tally(0, 0, 0)
	g.b.tracker.tally(map[flow.DPID][]*api.FlowEntry{1: nil}, g.now+int64(time.Second)) // the member's switch does not answer
	if d := g.tick(1100 * time.Millisecond); len(d.Outs) != 1 {
		t.Errorf("%d packets", len(d.Outs))
	}
	if sws := g.b.tracker.watched(); len(sws) != 2 {
		t.Errorf("read: %v", sws)
	}
	for n := range watchMax {
		g.b.tracker.at[1][&conn{id: uint32(n)}] = struct{}{}
	}
	if sws := g.b.tracker.watched(); len(sws) != 1 {
		t.Errorf("of so many connections: %v", sws)
	}
}

// An entry that was made again counts from nothing; acknowledgements and resets are no
// data; an idle interval that cannot be is refused.
func TestTally(t *testing.T) {
	if more := (tally{3, 300}).since(tally{5, 400}); more != (tally{3, 300}) {
		t.Errorf("%v", more)
	}
	if (tally{2, 148}).answers(true) || !(tally{2, 149}).answers(true) || (tally{2, 188}).answers(false) || (tally{}).answers(true) {
		t.Error("data")
	}
	for health, want := range map[*api.HealthCheck]string{
		{Kind: "tcp", IntervalMs: 1000, IdleIntervalMs: 500}: "idle_interval_ms 500: want interval_ms, 1000, to 3600000, or 0",
		{Kind: "arp", IdleIntervalMs: 5000}:                  "idle_interval_ms 5000: only checks of kind tcp and http2 have one",
	} {
		if _, err := readCheck(health, service{port: 80, proto: 6}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
