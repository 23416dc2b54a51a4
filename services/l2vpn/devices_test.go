package l2vpn

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestDevices: the last address that is heard at an end counts; of two in turn one stays
// for a while, and the circuit says so.
func TestDevices(t *testing.T) {
	c := &circuit{Circuit: &api.Circuit{Payload: ip}, ends: []end{at(1, 1), at(2, 1)}}
	d, now, a := devices(nil).keep(c), time.Unix(1e9, 0), at(1, 1)
	x, y := flow.MAC{2, 1}, flow.MAC{2, 2}
	if d.learn(a, flow.MAC{}, now) || d.learn(a, flow.Broadcast, now) || d.learn(at(3, 1), x, now) || d.of(a, y) != y {
		t.Error("what is no device's address is learnt")
	}
	if !d.learn(a, x, now) || d.of(a, y) != x || d.learn(a, x, now) {
		t.Error("an address is not learnt once")
	}
	now = now.Add(time.Minute)
	if !d.learn(a, y, now) || d.of(a, x) != y || d.crowded() != "" {
		t.Error("another device does not take its place")
	}
	for i := range flapMoves {
		d.learn(a, []flow.MAC{x, y}[i%2], now)
	}
	if why := d.crowded(); !strings.Contains(why, "has more than one device") || !d[a].held() || d.learn(a, y, now) || d.learn(a, flow.MAC{2, 3}, now) {
		t.Errorf("two devices: %q, %+v", why, d[a])
	}
	if d.pass(now.Add(holdTime-1)) || !d.pass(now.Add(holdTime)) || d[a].held() || d.crowded() == "" {
		t.Error("it does not end in time")
	}
	if !d.pass(now.Add(holdTime+flapTime)) || d.crowded() != "" {
		t.Error("it is said for ever")
	}
	d.learn(at(2, 1), x, now)
	again := devices(nil).keep(c)
	again.recall(c, d.messages())
	for _, e := range c.ends {
		if again.of(e, flow.MAC{}) != d.of(e, flow.MAC{}) {
			t.Errorf("end %v: %v is stored as %v", e, d[e], again[e])
		}
	}
	moved := &circuit{Circuit: &api.Circuit{Payload: ip}, ends: []end{at(1, 1), at(4, 1)}}
	if now := d.keep(moved); now.of(a, flow.MAC{}) != d.of(a, flow.Broadcast) || now[at(4, 1)].there() || len(now) != 2 {
		t.Errorf("after a move: %v", now)
	}
	if moved.Payload = "ethernet"; d.keep(moved) != nil {
		t.Error("devices of another payload")
	}
}
