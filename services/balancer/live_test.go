package balancer

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
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
	up := func(h *wefttest.Harness, config string) {
		h.Configure(config)
		fakes(h)
		h.Start()
		for sw := range flow.DPID(2) {
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: (sw + 1).String(), Connected: true, Openflow: "1.3", Tables: 254, Address: "127.0.0.1:1"}})
		}
		for _, n := range []int{1, 5, 6} {
			wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: macOfHost(n).String(), At: api.NewLocation(placeOf(n)), Ipv4: []string{v4(n).String()}}})
		}
		h.Settle()
	}
	set := func(h *wefttest.Harness, v *api.Vip) (*api.Vip, error) {
		return wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: v})
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"vips": func(t *testing.T, h *wefttest.Harness) {
			up(h, "")
			change(t, h, func(c *Config) { c.Vips = 1 })
			other := web("", 5)
			other.Name, other.Port = "other", 81
			_, err := set(h, web("", 5))
			_, err2 := set(h, other)
			if err != nil || api.KindOf(err2) != codes.ResourceExhausted {
				t.Errorf("%v; a second VIP: %v", err, err2)
			}
		},
		"members": func(t *testing.T, h *wefttest.Harness) {
			up(h, "")
			change(t, h, func(c *Config) { c.Members = 1 })
			if _, err := set(h, web("", 5, 6)); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "at most 1") {
				t.Errorf("two members: %v", err)
			}
		},
		"connections": func(t *testing.T, h *wefttest.Harness) {
			up(h, "")
			m, err := set(h, web("", 5, 6))
			if err != nil {
				t.Fatal(err)
			}
			change(t, h, func(c *Config) { c.Connections = 1 })
			g := &rig{t: t, b: newBalancer(DefaultConfig(), nil, nil)}
			mac, _ := flow.ParseMAC(m.Mac)
			for i, want := range []flow.Verdict{flow.Next, flow.Drop} {
				frame := g.frame(1, uint16(4000+i))
				copy(frame, mac[:])
				if v, _ := h.Packet(1, 1, frame); v != want {
					t.Errorf("connection %d: %v, want %v", i, v, want)
				}
			}
		},
		"idle_timeout": func(t *testing.T, h *wefttest.Harness) {
			up(h, "")
			change(t, h, func(c *Config) { c.IdleTimeout = 77 * time.Second })
			v := web("", 5)
			v.IdleTimeout = 0
			if m, err := set(h, v); err != nil || m.IdleTimeout != 77 {
				t.Errorf("%v, %v", m, err)
			}
		},
		"ask_interval": func(t *testing.T, h *wefttest.Harness) {
			h.Configure("ask_interval: 1h")
			fakes(h)
			asked := make(chan struct{}, 1000)
			wefttest.Fake(h, api.Send, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
				if len(d.Outs) > 0 {
					asked <- struct{}{}
				}
				return &api.ApplyResult{}, nil
			})
			h.Start()
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
			wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(placeOf(1)), Role: "edge"}})
			h.Settle()
			if _, err := set(h, web("", 7)); err != nil {
				t.Fatal(err)
			}
			change(t, h, func(c *Config) { c.AskInterval = 100 * time.Millisecond })
			for range 3 {
				select {
				case <-asked:
				case <-time.After(testwait.Limit):
					t.Fatal("a member that is not known is not asked for again")
				}
			}
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			h.Configure("deadline: 100ms")
			fakes(h)
			confirm := make(chan struct{})
			wefttest.Fake(h, api.SetStanding, func(ctx context.Context, _ *api.SetStandingRequest) (*api.SetStandingResponse, error) {
				select {
				case <-confirm:
					return &api.SetStandingResponse{}, nil
				case <-ctx.Done():
					return nil, api.Errorf(codes.Unavailable, "no answer")
				}
			})
			h.Start()
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
			change(t, h, func(c *Config) { c.Deadline = time.Minute })
			done := make(chan error, 1)
			go func() { _, err := set(h, web("", 5)); done <- err }()
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
			up(h, "")
			change(t, h, func(c *Config) { c.MACPrefix = "06:aa:bb" })
			if m, err := set(h, web("", 5)); err != nil || !strings.HasPrefix(m.Mac, "06:aa:bb:") {
				t.Errorf("%v, %v", m, err)
			}
		},
	})
}

// TestFiguresGoWithMembers: what is told of single members ends with them.
func TestFiguresGoWithMembers(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		fakes(h)
		h.Start()
		names := []string{"member_connections", "member_connections_given", "member_up"}
		count := func(want int) {
			t.Helper()
			for _, name := range names {
				if list := h.Metrics(name); len(list) != want {
					t.Errorf("%s: %v, want %d of them", name, list, want)
				}
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		other := web("", 5)
		other.Name, other.Port = "other", 81
		for _, v := range []*api.Vip{web("", 5, 6, 7), other} {
			_, err := wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: v})
			must(err)
		}
		count(4)
		_, err := wefttest.Call(h, api.DeleteMember, &api.DeleteMemberRequest{Vip: "web", Address: v4(7).String(), Port: 8080})
		must(err)
		count(3)
		_, err = wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: web("", 6)})
		must(err)
		count(2)
		_, err = wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "web"})
		must(err)
		count(1)
		h.Restart()
		count(1)
		_, err = wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "other"})
		must(err)
		count(0)
	})
}
