package test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
)

// linkState returns the states of the two directions of a link, "gone" where a
// direction is not known.
func linkState(c *controller, l *lab.Lab, a, b string) (states [2]string, flaps uint32) {
	c.t.Helper()
	ends := [2]string{dpid(c.t, l, a), dpid(c.t, l, b)}
	states = [2]string{"gone", "gone"}
	for _, k := range call(c, api.ListLinks, &api.ListLinksRequest{}).Links {
		for i := range 2 {
			if k.Src.Dpid == ends[i] && k.Dst.Dpid == ends[1-i] {
				states[i] = k.State
				flaps = max(flaps, k.Flaps)
			}
		}
	}
	return states, flaps
}

// TestSilentFailure: a link that loses every frame, which its ports do not show, is
// taken out of use, and used again when it is mended. How long that takes is proven in
// services/discovery, in virtual time.
func TestSilentFailure(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		set  []string
	}{
		{"default", nil},
		{"liveness", []string{"discovery.liveness.interval=50ms"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, options{set: v.set})
			l := up(t, "ring:4", c)
			settled(c, l)
			began := time.Now()
			if err := l.LinkSilent(context.Background(), "s1", "s2"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the silent link out of use", func() bool {
				s, _ := linkState(c, l, "s1", "s2")
				return s[0] != "up" && s[1] != "up"
			})
			t.Logf("silent failure found after %d ms", time.Since(began).Milliseconds())
			mended(t, l)
			if err := l.LinkUp(context.Background(), "s1", "s2"); err != nil {
				t.Fatal(err)
			}
			settled(c, l)
			explain(c)
		})
	}
}

// TestFlappingLink has a link flap: paths lead around it, and others are not
// disturbed.
func TestFlappingLink(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"discovery.flap.hold=4s", "discovery.flap.max_hold=8s"}})
	l := up(t, "ring:4", c)
	settled(c, l)
	pingAll(t, l, false)
	result := steady(l, "h3", "h4", 1000, 5*time.Millisecond) // does not use the link
	dampened := func() bool {
		s, flaps := linkState(c, l, "s1", "s2")
		return s == [2]string{"dampened", "dampened"} && flaps > 5
	}
	for n := 0; n < 10 || n < 40 && !dampened(); n++ { // a busy machine's switches do not tell of every flap
		for _, change := range []func(context.Context, string, string) error{l.LinkDown, l.LinkUp} {
			if err := change(context.Background(), "s1", "s2"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(120 * time.Millisecond)
		}
	}
	eventually(t, "the link dampened", dampened)
	_, flaps := linkState(c, l, "s1", "s2")
	t.Logf("%d flaps counted", flaps)
	eventually(t, "h1 -> h2 goes over 4 switches, around the dampened link", func() bool {
		_, hops := path(c, l, "h1", "h2")
		return len(hops) == 4
	})
	mended(t, l)
	if r := <-result; r.Lost() > 0 {
		t.Errorf("h3 -> h4, which the link has nothing to do with: %d of %d lost", r.Lost(), r.Sent)
	}
	eventually(t, "the link in use again", func() bool {
		s, _ := linkState(c, l, "s1", "s2")
		return s == [2]string{"up", "up"}
	})
	settled(c, l)
	pingAll(t, l, false)
	explain(c)
}
