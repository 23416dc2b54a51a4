package router

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
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
	up := func(t *testing.T, h *wefttest.Harness, config string, addresses ...string) *network {
		t.Helper()
		h.Configure(config)
		n := fakes(h)
		connect(h, sw1, "1.3", 254)
		h.Settle()
		for _, a := range addresses {
			if err := addTo(h, "1", a); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		if api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	}
	route := func(h *wefttest.Harness, to string) error {
		_, err := wefttest.Call(h, api.AddRouterRoute, &api.AddRouterRouteRequest{Dpid: "1", Destination: to, Gateway: "10.1.0.9"})
		return err
	}
	host := flow.MAC{2, 0, 0, 0, 0, 1}
	send := func(t *testing.T, h *wefttest.Harness, to string) (flow.Verdict, int) {
		t.Helper()
		m, err := wefttest.Call(h, api.ListRouters, &api.ListRoutersRequest{})
		if err != nil || len(m.Routers) != 1 {
			t.Fatal(m, err)
		}
		mac, _ := flow.ParseMAC(m.Routers[0].Mac)
		v, d := h.Packet(1, 1, ping(host, mac, "10.1.0.8", to, 64))
		return v, len(d.Outs)
	}
	sent := func(n *network, f func(packet.ICMP) bool) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, o := range n.sent {
			if m, ok := packet.ParseICMP(o.Data); ok && f(m) {
				return true
			}
		}
		return false
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"routers": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "", "10.1.0.1/24")
			change(t, h, func(c *Config) { c.Routers = 1 })
			refused(t, addTo(h, "2", "10.2.0.1/24"))
		},
		"addresses": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "", "10.1.0.1/24")
			change(t, h, func(c *Config) { c.Addresses = 1 })
			refused(t, addTo(h, "1", "10.2.0.1/24"))
		},
		"routes": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "", "10.1.0.1/24")
			if err := route(h, ""); err != nil {
				t.Fatal(err)
			}
			change(t, h, func(c *Config) { c.Routes = 1 })
			refused(t, route(h, "10.9.0.0/16"))
		},
		"entries": func(t *testing.T, h *wefttest.Harness) {
			n := up(t, h, "", "10.1.0.1/24")
			count := func() int { return strings.Count(n.text(sw1), "owner=router") }
			testwait.Until(t, "two entries, and what is not routed", func() bool { return count() == 10 })
			change(t, h, func(c *Config) { c.Entries = 1 })
			testwait.Until(t, "one entry", func() bool { return count() == 1 })
		},
		"waiting": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "resolve: 1m", "10.1.0.1/24")
			change(t, h, func(c *Config) { c.Waiting = 1 })
			if _, n := send(t, h, "10.1.0.9"); n == 0 {
				t.Error("the first is not asked for")
			}
			if _, n := send(t, h, "10.1.0.10"); n != 0 {
				t.Error("the second waits, too")
			}
		},
		"resolve": func(t *testing.T, h *wefttest.Harness) {
			n := up(t, h, "resolve: 1m", "10.1.0.1/24")
			send(t, h, "10.1.0.9")
			change(t, h, func(c *Config) { c.Resolve = 100 * time.Millisecond })
			testwait.Until(t, "the sender is told", func() bool { return sent(n, func(m packet.ICMP) bool { return m.Type() == 3 && m.Code() == 1 }) })
		},
		"ask_interval": func(t *testing.T, h *wefttest.Harness) {
			n := up(t, h, "ask_interval: 1m", "10.1.0.1/24")
			if err := route(h, ""); err != nil {
				t.Fatal(err)
			}
			change(t, h, func(c *Config) { c.AskInterval = 100 * time.Millisecond })
			testwait.Until(t, "the gateway is asked for again", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.sent) > 2 })
		},
		"errors_per_second": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "", "10.1.0.1/24")
			change(t, h, func(c *Config) { c.ErrorsPerSecond = 1 })
			answers, began := 0, time.Now()
			for range 5 {
				_, n := send(t, h, "10.1.0.1")
				answers += n
			}
			if most := 2 + int(time.Since(began)/time.Second); answers > most { // a second may have begun meanwhile
				t.Errorf("%d answers, want at most %d", answers, most)
			}
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "deadline: 100ms", "10.1.0.1/24")
			confirm := make(chan struct{})
			wefttest.Fake(h, api.SetStanding, func(ctx context.Context, _ *api.SetStandingRequest) (*api.SetStandingResponse, error) {
				select {
				case <-confirm:
					return &api.SetStandingResponse{}, nil
				case <-ctx.Done():
					return nil, api.Errorf(codes.Unavailable, "no answer")
				}
			})
			change(t, h, func(c *Config) { c.Deadline = time.Minute })
			done := make(chan error, 1)
			go func() { done <- addTo(h, "1", "10.2.0.1/24") }()
			select {
			case err := <-done:
				t.Errorf("it waits no longer than before: %v", err)
			case <-time.After(500 * time.Millisecond):
				close(confirm)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		},
		"mac_prefix": func(t *testing.T, h *wefttest.Harness) {
			up(t, h, "", "10.1.0.1/24")
			change(t, h, func(c *Config) { c.MACPrefix = "06:aa:bb" })
			if err := addTo(h, "2", "10.2.0.1/24"); err != nil {
				t.Fatal(err)
			}
			m, err := wefttest.Call(h, api.ListRouters, &api.ListRoutersRequest{})
			if err != nil || len(m.Routers) != 2 || !strings.HasPrefix(m.Routers[0].Mac, "06:57:72") || !strings.HasPrefix(m.Routers[1].Mac, "06:aa:bb") {
				t.Error(m, err)
			}
		},
	})
}

// addTo gives the router of a switch an address.
func addTo(h *wefttest.Harness, dpid, address string) error {
	_, err := wefttest.Call(h, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid, Address: address})
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}
