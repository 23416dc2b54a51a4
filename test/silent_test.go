package test

import (
	"context"
	"testing"
	"time"

	"weft/api"
	"weft/lab"
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

// TestSilentFailure measures how long it takes until a link that loses every
// frame is out of use.
func TestSilentFailure(t *testing.T) {
	for _, v := range []struct {
		name           string
		set            []string
		promised, most time.Duration
	}{
		{"default", nil, 3 * time.Second, 3500 * time.Millisecond},
		{"liveness", []string{"discovery.liveness.interval=50ms"}, 300 * time.Millisecond, 700 * time.Millisecond},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, options{set: v.set})
			l := up(t, "ring:4", c)
			settled(c, l)
			for range 2 {
				began := time.Now()
				if err := l.LinkSilent(context.Background(), "s1", "s2"); err != nil {
					t.Fatal(err)
				}
				eventually(t, 20*time.Second, "the silent link out of use", func() bool {
					s, _ := linkState(c, l, "s1", "s2")
					return s[0] != "up" && s[1] != "up"
				})
				took := time.Since(began)
				t.Logf("silent failure found after %d ms", took.Milliseconds())
				if took > v.most {
					t.Errorf("silent failure found after %v, promised %v", took, v.promised)
				}
				if err := l.LinkUp(context.Background(), "s1", "s2"); err != nil {
					t.Fatal(err)
				}
				settled(c, l)
			}
			for _, other := range [][2]string{{"s2", "s3"}, {"s3", "s4"}} {
				if _, flaps := linkState(c, l, other[0], other[1]); flaps > 0 {
					t.Errorf("link %s-%s, which did not fail, went down %d times", other[0], other[1], flaps)
				}
			}
			explain(c)
		})
	}
}

// TestFlappingLink has a link flap: it is taken out of use, and others are not.
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
	eventually(t, 20*time.Second, "the link dampened", dampened)
	_, flaps := linkState(c, l, "s1", "s2")
	t.Logf("%d flaps counted", flaps)
	pingAll(t, l, false) // the other way round
	if _, hops := path(c, l, "h1", "h2"); len(hops) != 4 {
		t.Errorf("h1 -> h2 goes over %d switches, want 4, around the dampened link", len(hops))
	}
	if r := <-result; r.Lost() > 0 {
		t.Errorf("h3 -> h4, which the link has nothing to do with: %d of %d lost", r.Lost(), r.Sent)
	}
	eventually(t, 20*time.Second, "the link in use again", func() bool {
		s, _ := linkState(c, l, "s1", "s2")
		return s == [2]string{"up", "up"}
	})
	settled(c, l)
	pingAll(t, l, false)
	explain(c)
}
