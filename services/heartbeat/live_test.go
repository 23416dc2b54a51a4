package heartbeat

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLive: each key that a running service takes over has its effect.
func TestLive(t *testing.T) {
	var deadline atomic.Uint64
	up := func(h *wefttest.Harness, config string) {
		h.Configure(config)
		wefttest.Fake(h, api.EchoSwitches, func(_ context.Context, req *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
			deadline.Store(req.DeadlineUs)
			resp := &api.EchoSwitchesResponse{}
			for range req.Dpids {
				resp.Echoes = append(resp.Echoes, &api.SwitchEcho{Error: "no answer"})
			}
			return resp, nil
		})
		h.Start()
		for _, d := range []string{"1", "2", "3"} {
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: d, Connected: true}})
		}
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
		for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not soon: " + what)
			}
		}
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"rate": func(t *testing.T, h *wefttest.Harness) {
			up(h, "rate: 1")
			change(t, h, func(c *Config) { c.Rate = 100 })
			soon(t, "many beats", func() bool { return h.Metric("beats_total") > 60 })
			resp, err := wefttest.Call(h, api.ListHeartbeats, &api.ListHeartbeatsRequest{})
			if err != nil || resp.Rate != 100 || len(resp.Switches) != 3 {
				t.Errorf("%v, %v", resp, err)
			}
			for _, s := range resp.GetSwitches() {
				if s.Beats < 5 {
					t.Errorf("switch %s has been asked %d times", s.Dpid, s.Beats)
				}
			}
			change(t, h, func(c *Config) { c.Rate = 1 })
			time.Sleep(50 * time.Millisecond) // those under way
			before := h.Metric("beats_total")
			time.Sleep(300 * time.Millisecond)
			if n := h.Metric("beats_total") - before; n > 30 {
				t.Errorf("%v beats in 0.3 s", n)
			}
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			up(h, "rate: 20")
			change(t, h, func(c *Config) { c.Deadline = 7 * time.Millisecond })
			soon(t, "another deadline", func() bool { return deadline.Load() > 0 && deadline.Load() <= 7000 })
		},
		"lost_after": func(t *testing.T, h *wefttest.Harness) {
			up(h, "rate: 20\nlost_after: 1000")
			change(t, h, func(c *Config) { c.LostAfter = 1 })
			soon(t, "lost", func() bool { return h.Metric("switches", "state", "lost") == 3 })
		},
	})
}
