package l2vpn

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLoop: an end that is looped back returns frames with the addresses exchanged to who
// sent them, and no broadcast; its own customer is cut off, other circuits are not; it ends
// by itself, also while the controller is away.
func TestLoop(t *testing.T) {
	for _, ends := range [][]string{{"1:1", "2:1"}, {"1:1.10", "2:1.20"}, {"1:1.10.3", "2:1"}, {"1:1", "2:1.10.3"}} {
		now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
		kept := wefttest.NewStore()
		b := newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
		f := newField(t, 2)
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "a", Ends: ends}, {Name: "b", Ends: []string{"1:2", "2:2"}}}}); err != nil {
			t.Fatal(err)
		}
		tunnels := func() {
			b.give()
			for name, m := range b.tunnels.known {
				from, _ := flow.ParseDPID(m.From)
				to, _ := flow.ParseDPID(m.To)
				m.Group = f.tunnel(from, to)
				b.tunnels.known[name] = m
			}
			for sw := flow.DPID(1); sw <= 2; sw++ {
				var all set
				for _, s := range b.status {
					s.entries(&all, sw, b.cfg, &b.tunnels)
				}
				f.declare(sw, &all)
			}
		}
		near, far := b.status["a"].circuit.ends[0], b.status["a"].circuit.ends[1]
		x, y := flow.MAC{2, 0, 0, 0, 0, 1}, flow.MAC{2, 0, 0, 0, 0, 2}
		// sent returns what the two hosts get when one sends.
		sent := func(from end, src, dst flow.MAC) (atNear, atFar [][]byte) {
			a, z := f.host(near.at), f.host(far.at)
			a.Received()
			z.Received()
			f.host(from.at).Send(frame(from, src, dst, 1))
			return a.Received(), z.Received()
		}
		carries := func(when string) {
			t.Helper()
			if a, z := sent(near, x, y); len(a) != 0 || len(z) != 1 {
				t.Errorf("%v, %s: %d come back, %d arrive", ends, when, len(a), len(z))
			}
			if a, z := sent(far, y, x); len(a) != 1 || len(z) != 0 {
				t.Errorf("%v, %s: the other way %d arrive, %d come back", ends, when, len(a), len(z))
			}
		}
		tunnels()
		carries("before")
		m := b.get("a")
		m.Loops, m.LoopsUntil = ends[1:], "2026-12-01T08:10:00Z"
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(err)
		}
		looped := func(when string) {
			t.Helper()
			tunnels()
			a, z := sent(near, x, y)
			if want := frame(near, y, x, 1); len(z) != 0 || len(a) != 1 || !bytes.HasPrefix(a[0], packet.Pad(want)[:len(want)]) {
				t.Errorf("%v, %s: %x comes back, %x arrives; want %x", ends, when, a, z, want)
			}
			if a, z := sent(near, x, flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); len(a)+len(z) != 0 {
				t.Errorf("%v, %s: a broadcast is sent back, or arrives", ends, when)
			}
			if a, z := sent(far, y, x); len(a)+len(z) != 0 {
				t.Errorf("%v, %s: what the customer sends arrives", ends, when)
			}
			got := b.get("a")
			if got.State != "degraded" || !strings.Contains(got.Reason, "is looped back until 2026-12-01T08:10:00Z") || b.get("b").State != "up" {
				t.Errorf("%s: %s (%s); b is %s", when, got.State, got.Reason, b.get("b").State)
			}
		}
		looped("looped")
		b = newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
		looped("after a restart")
		now = now.Add(9 * time.Minute)
		if next := b.turn(); next.Sub(now) != time.Minute {
			t.Errorf("it ends at %v", next)
		}
		looped("after 9 minutes")
		now = now.Add(time.Minute)
		b.turn()
		tunnels()
		carries("after it")
		if got := b.get("a"); got.State != "up" || len(got.Loops) > 0 {
			t.Errorf("after it: %v", got)
		}
		b = newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
		tunnels()
		carries("after a restart after it")
	}
}

func TestLoopRefused(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	const until = "2026-12-01T08:10:00Z"
	for _, c := range []struct {
		m    *api.Circuit
		text string
	}{
		{&api.Circuit{Ends: []string{"1:1", "2:1"}, Loops: []string{"1:2"}, LoopsUntil: until}, "no end of it"},
		{&api.Circuit{Ends: []string{"1:1", "2:1"}, Loops: []string{"1:1", "2:1"}, LoopsUntil: until}, "one can be looped back at a time"},
		{&api.Circuit{Ends: []string{"1:1", "2:1"}, Loops: []string{"1:1"}}, "loops_until"},
		{&api.Circuit{Ends: []string{"1:1", "1:2"}, Loops: []string{"1:1"}, LoopsUntil: until}, "between two switches"},
		{&api.Circuit{Type: "vpls", Ends: []string{"1:1", "2:1"}, Loops: []string{"1:1"}, LoopsUntil: until}, "only an end of a vpws"},
	} {
		c.m.Name = "a"
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{c.m}}); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v; want %s", c.m, err, c.text)
		}
	}
}
