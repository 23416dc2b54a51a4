package hosts

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// crowded is a table with a host at each of n ports of a switch.
func crowded(t testing.TB, n int) (*table, int64) {
	t.Helper()
	tb, now := newTable(DefaultConfig()), int64(1e18)
	d := &flow.Decision{}
	for i := range n {
		s := sighting{now: now, who: newID(flow.MACFrom(2<<40|uint64(i)), 0), at: flow.Location{Switch: 1, Port: flow.Port(i + 1)}}
		if _, why := tb.observe(s, d); why != accepted {
			t.Fatal(why)
		}
	}
	return tb, now
}

func port(n int, up bool) *api.Port { return &api.Port{Port: uint32(n), Up: up} }

// TestOnlyWhatLeavesIsLookedAt: ports that flap, and hosts that move, cost what
// they are themselves, not what else there is; and nothing of it is kept.
func TestOnlyWhatLeavesIsLookedAt(t *testing.T) {
	tb, now := crowded(t, 20_000)
	grace := int64(tb.cfg.PortGrace)
	for i := range 1000 { // a port that flaps is waited for once
		tb.portChanged(now+int64(i), 1, port(7, false), false)
		tb.portChanged(now+int64(i), 1, port(7, true), false)
	}
	tb.portChanged(now, 1, port(9, false), false)
	if n := len(tb.places.leaving); n != 2 {
		t.Errorf("%d ports are waited for, want 2", n)
	}
	tb.advance(now+grace, &flow.Decision{})
	if _, there := tb.places.switches[1].places[9]; there || tb.index.size() != 19_999 || len(tb.places.leaving)+len(tb.places.empty) != 0 {
		t.Errorf("port 9 known: %v, %d hosts, %d ports are waited for", there, tb.index.size(), len(tb.places.leaving)+len(tb.places.empty))
	}
	now += grace
	tb.switchChanged(now, 1, false, nil)
	tb.advance(now+int64(tb.cfg.SwitchGrace), &flow.Decision{})
	if n := len(tb.places.switches[1].places); n != 0 || tb.index.size() != 0 {
		t.Errorf("%d ports and %d hosts of a switch that is lost", n, tb.index.size())
	}
	tb.advance(now+int64(tb.cfg.SwitchGrace)+2*int64(time.Minute), &flow.Decision{})
	if len(tb.places.switches) != 0 || len(tb.places.leaving) != 0 {
		t.Errorf("%d switches known, %d waited for, want none", len(tb.places.switches), len(tb.places.leaving))
	}
}

// TestPortDownThenSwitchGone: a port goes down, and its switch goes away before
// the port is lost. Its host stays as long as the switch may return, and goes with
// the port if that is still down then.
func TestPortDownThenSwitchGone(t *testing.T) {
	tb, now := crowded(t, 2)
	grace := int64(tb.cfg.PortGrace)
	tb.portChanged(now, 1, port(1, false), false)
	tb.switchChanged(now+grace/2, 1, false, nil)
	tb.advance(now+grace, &flow.Decision{})
	if n := tb.index.size(); n != 2 {
		t.Errorf("%d hosts while the switch is away, want 2", n)
	}
	tb.switchChanged(now+grace+1, 1, true, []*api.Port{port(1, false), port(2, true)})
	tb.advance(now+grace+1, &flow.Decision{})
	if n := tb.index.size(); n != 1 {
		t.Errorf("%d hosts after the switch has returned, want 1", n)
	}
}

// TestPortOfAClaimIsKept: a port without hosts is remembered as long as somebody
// claims a host from there.
func TestPortOfAClaimIsKept(t *testing.T) {
	tb, now := crowded(t, 2)
	d := &flow.Decision{}
	who := newID(flow.MACFrom(2<<40), 0)
	tb.portChanged(now, 1, port(2, false), false)
	tb.observe(sighting{now: now, who: who, at: flow.Location{Switch: 1, Port: 2}}, d)
	tb.advance(now+int64(tb.cfg.PortGrace), d)
	if tb.places.placeAt(flow.Location{Switch: 1, Port: 2}) == nil {
		t.Error("the port is forgotten")
	}
	tb.mu.Lock()
	for key := range tb.claims.of {
		tb.claims.end(key, tb.index.host(key.who), d)
	}
	tb.mu.Unlock()
	tb.advance(now+int64(tb.cfg.PortGrace), d)
	if tb.places.placeAt(flow.Location{Switch: 1, Port: 2}) != nil || len(tb.claims.at) != 0 {
		t.Errorf("the port is kept, and %d ports have claims", len(tb.claims.at))
	}
}

// BenchmarkPortFlaps is a port that goes down and is given up, beside others.
func BenchmarkPortFlaps(b *testing.B) {
	for _, others := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			tb, now := crowded(b, others)
			d := &flow.Decision{}
			s := sighting{who: newID(flow.MACFrom(3<<40), 0), at: flow.Location{Switch: 1, Port: flow.Port(others + 1)}}
			for b.Loop() {
				now += 2 * int64(tb.cfg.PortGrace)
				s.now = now
				tb.ageing = deadline(now * 2)
				tb.observe(s, d)
				tb.portChanged(now, 1, port(others+1, false), false)
				tb.advance(now+int64(tb.cfg.PortGrace), d)
				d.Reset()
			}
		})
	}
}
