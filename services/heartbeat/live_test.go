package heartbeat

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLive: each key that a running service takes over has its effect.
func TestLive(t *testing.T) {
	var s *southbound
	up := func(h *wefttest.Harness, config string) {
		h.Configure(config)
		s = fake(h)
		h.Start()
		h.Settle()
	}
	change := func(t *testing.T, h *wefttest.Harness, f func(*Config)) {
		t.Helper()
		if err := wefttest.Reconfigure(h, f); err != nil {
			t.Fatal(err)
		}
	}
	soon := func(t *testing.T, what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(testwait.Limit); !so(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not soon: " + what)
			}
		}
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"rate": func(t *testing.T, h *wefttest.Harness) {
			up(h, "rate: 1")
			change(t, h, func(c *Config) { c.Rate = 100 })
			soon(t, "another interval", func() bool { return s.ordered().GetIntervalUs() == 10_000 })
			if resp, err := wefttest.Call(h, api.ListHeartbeats, &api.ListHeartbeatsRequest{}); err != nil || resp.Rate != 100 {
				t.Errorf("%v, %v", resp, err)
			}
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			up(h, "rate: 20")
			change(t, h, func(c *Config) { c.Deadline = 7 * time.Millisecond })
			soon(t, "another deadline", func() bool { return s.ordered().GetDeadlineUs() == 7000 })
		},
		"lost_after": func(t *testing.T, h *wefttest.Harness) {
			up(h, "rate: 20\nlost_after: 1000")
			change(t, h, func(c *Config) { c.LostAfter = 1 })
			soon(t, "lost sooner", func() bool { return s.ordered().GetLostAfter() == 1 })
		},
	})
}
