package nat

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLive: each key that a running service takes over has its effect.
func TestLive(t *testing.T) {
	change := func(t *testing.T, h *wefttest.Harness, f func(*Config)) {
		t.Helper()
		if err := wefttest.Reconfigure(h, f); err != nil {
			t.Fatal(err)
		}
	}
	set := func(t *testing.T, h *wefttest.Harness, m *api.NatGateway) {
		t.Helper()
		if _, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: m}); err != nil {
			t.Fatal(err)
		}
	}
	up := func(h *wefttest.Harness, config string) *network {
		h.Configure(config)
		n := fakes(h)
		connect(h, sw3, "1.3", 254)
		h.Settle()
		return n
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"gateways": func(t *testing.T, h *wefttest.Harness) {
			up(h, "")
			change(t, h, func(c *Config) { c.Gateways = 1 })
			set(t, h, wanted())
			if _, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: wanted6()}); api.KindOf(err) != codes.ResourceExhausted {
				t.Errorf("a second gateway: %v", err)
			}
		},
		"hosts": func(t *testing.T, h *wefttest.Harness) {
			n := up(h, "")
			set(t, h, wanted())
			host := &api.Host{Mac: "02:00:00:00:00:03", At: &api.Location{Dpid: sw1, Port: 4}, Ipv4: []string{"10.0.0.3", "10.0.0.4"}}
			wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: host})
			reached := func() int { return strings.Count(n.text(sw3), "id=257") }
			testwait.Until(t, "two hosts", func() bool { return reached() == 2 })
			change(t, h, func(c *Config) { c.Hosts = 1 })
			testwait.Until(t, "one host", func() bool { return reached() == 1 })
		},
		"ask_interval": func(t *testing.T, h *wefttest.Harness) {
			n := up(h, "ask_interval: 1h")
			set(t, h, wanted())
			change(t, h, func(c *Config) { c.AskInterval = 100 * time.Millisecond })
			testwait.Until(t, "the next hop is asked for", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.sent > 1 })
		},
		"poll": func(t *testing.T, h *wefttest.Harness) {
			n := up(h, "poll: 1h")
			set(t, h, wanted())
			change(t, h, func(c *Config) { c.Poll = 100 * time.Millisecond })
			testwait.Until(t, "what is refused is read", func() bool {
				n.mu.Lock()
				n.exhausted++
				n.mu.Unlock()
				return h.Metric("exhausted_total", "gateway", "internet") > 0
			})
		},
		"exhausted": func(t *testing.T, h *wefttest.Harness) {
			n := up(h, "poll: 100ms\nexhausted: 1h")
			set(t, h, wanted())
			testwait.Until(t, "exhausted", func() bool {
				n.mu.Lock()
				n.exhausted++
				n.mu.Unlock()
				return h.Metric("exhausted", "gateway", "internet") == 1
			})
			change(t, h, func(c *Config) { c.Exhausted = 100 * time.Millisecond })
			testwait.Until(t, "no more exhausted", func() bool { return h.Metric("exhausted", "gateway", "internet") == 0 })
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			h.Configure("deadline: 1h")
			fakes(h)
			never := make(chan struct{})
			t.Cleanup(func() { close(never) })
			wefttest.Fake(h, api.SetStanding, func(ctx context.Context, _ *api.SetStandingRequest) (*api.SetStandingResponse, error) {
				select {
				case <-ctx.Done():
				case <-never:
				}
				return nil, api.Errorf(codes.Unavailable, "no answer")
			})
			connect(h, sw3, "1.3", 254)
			change(t, h, func(c *Config) { c.Deadline = 100 * time.Millisecond })
			set(t, h, wanted()) // it would wait for ever
		},
	})
}
