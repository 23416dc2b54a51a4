package tenants

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
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
	tenant := func(h *wefttest.Harness, name string) error {
		_, err := wefttest.Call(h, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: name}})
		return err
	}
	network := func(h *wefttest.Harness, name string, members ...*api.TenantMember) (*api.TenantNetwork, error) {
		return wefttest.Call(h, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "red", Name: name, Members: members}})
	}
	up := func(t *testing.T, h *wefttest.Harness) {
		t.Helper()
		fake(h)
		h.Start()
		if err := tenant(h, "red"); err != nil {
			t.Fatal(err)
		}
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"tenants": func(t *testing.T, h *wefttest.Harness) {
			up(t, h)
			change(t, h, func(c *Config) { c.Tenants = 1 })
			if err := tenant(h, "blue"); api.KindOf(err) != codes.ResourceExhausted {
				t.Errorf("a second tenant: %v", err)
			}
		},
		"members": func(t *testing.T, h *wefttest.Harness) {
			up(t, h)
			change(t, h, func(c *Config) { c.Members = 1 })
			if _, err := network(h, "net", member1(sw1, 1, 0), member1(sw1, 2, 0)); api.KindOf(err) != codes.ResourceExhausted {
				t.Errorf("two members: %v", err)
			}
		},
		"first_segment": func(t *testing.T, h *wefttest.Harness) {
			up(t, h)
			change(t, h, func(c *Config) { c.FirstSegment = 100 })
			if n, err := network(h, "net"); err != nil || n.Segment != 100 {
				t.Errorf("%v, %v", n, err)
			}
		},
		"last_segment": func(t *testing.T, h *wefttest.Harness) {
			up(t, h)
			change(t, h, func(c *Config) { c.LastSegment = 2 })
			if n, err := network(h, "net"); err != nil || n.Segment != 2 {
				t.Errorf("%v, %v", n, err)
			}
			if _, err := network(h, "more"); api.KindOf(err) != codes.ResourceExhausted {
				t.Errorf("a second network: %v", err)
			}
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			h.Configure("deadline: 100ms")
			confirm := make(chan struct{})
			wefttest.Fake(h, api.SetStanding, func(ctx context.Context, _ *api.SetStandingRequest) (*api.SetStandingResponse, error) {
				select {
				case <-confirm:
					return &api.SetStandingResponse{}, nil
				case <-ctx.Done():
					return nil, api.Errorf(codes.Unavailable, "no answer")
				}
			})
			connect(h)
			change(t, h, func(c *Config) { c.Deadline = time.Minute })
			done := make(chan error, 1)
			go func() { done <- tenant(h, "red") }()
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
	})
}
