package tunnels

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestService: a tunnel over two links, through the calls and events that the
// Spec declares, and again after a restart.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		wefttest.Fake(h, api.SetStanding, func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.ComputePaths, func(_ context.Context, q *api.ComputePathsRequest) (*api.ComputePathsResponse, error) {
			resp := &api.ComputePathsResponse{}
			for range q.Demands {
				resp.Answers = append(resp.Answers, &api.PathAnswer{Paths: []*api.Path{{Hops: []*api.Hop{
					{Dpid: "0000000000000001", OutPort: 2}, {Dpid: "0000000000000002", InPort: 1, OutPort: 3}, {Dpid: "0000000000000003", InPort: 2}}}}})
			}
			return resp, nil
		})
		h.Start()
		tell := func() {
			for _, sw := range []string{"0000000000000001", "0000000000000002", "0000000000000003"} {
				wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Tables: 254}})
			}
			for _, l := range [][2]*api.Location{{{Dpid: "0000000000000001", Port: 2}, {Dpid: "0000000000000002", Port: 1}}, {{Dpid: "0000000000000002", Port: 3}, {Dpid: "0000000000000003", Port: 2}}} {
				wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: &api.Link{Src: l[0], Dst: l[1], State: "up"}})
			}
			h.Settle()
		}
		tell()
		m, err := wefttest.Call(h, api.SetTunnel, &api.SetTunnelRequest{Tunnel: &api.Tunnel{Name: "a", From: "1", To: "3"}})
		if err != nil || m.State != "up" || len(m.Path) != 3 || len(m.Labels) != 1 {
			t.Fatal(m, err)
		}
		h.Restart()
		tell()
		list, err := wefttest.Call(h, api.ListTunnels, &api.ListTunnelsRequest{})
		if err != nil || len(list.Tunnels) != 1 || list.Tunnels[0].Group != m.Group || !slices.Equal(list.Tunnels[0].Labels, m.Labels) {
			t.Error(list, err)
		}
		wefttest.Await(h, api.TunnelChangedEvent, func(e *api.TunnelChanged) bool { return e.Tunnel.Name == "a" && e.Tunnel.State == "up" })
		batch, err := wefttest.Call(h, api.SetTunnels, &api.SetTunnelsRequest{User: "l2vpn", Tunnels: []*api.Tunnel{
			{Name: "b", From: "1", To: "3", Circuits: 2}, {Name: "a", From: "1", To: "3"}, {Name: "c"}}, Delete: []string{"a", "z"}})
		if err == nil || batch != nil {
			t.Error("a name twice:", batch, err)
		}
		q := &api.SetTunnelsRequest{User: "l2vpn", DryRun: true, Tunnels: []*api.Tunnel{
			{Name: "b", From: "1", To: "3", Circuits: 2}, {Name: "c"}}, Delete: []string{"a", "z"}}
		for _, q.DryRun = range []bool{true, false} {
			if batch, err = wefttest.Call(h, api.SetTunnels, q); err != nil {
				t.Fatal(err)
			}
			var results []string
			for _, o := range batch.Outcomes {
				results = append(results, o.Name, o.Result)
			}
			if want := []string{"b", "made", "c", "failed", "a", "failed", "z", "unchanged"}; !slices.Equal(results, want) || len(batch.Outcomes[0].Tunnel.Path) != 3 {
				t.Errorf("%v", batch)
			}
		}
		wefttest.Await(h, api.TunnelChangedEvent, func(e *api.TunnelChanged) bool { return e.Tunnel.Name == "b" && e.Tunnel.Circuits == 2 })
		if resp, err := wefttest.Call(h, api.OptimiseTunnels, &api.OptimiseTunnelsRequest{}); err != nil || resp.Reason != "no tunnel books bandwidth" {
			t.Error(resp, err)
		}
		if gone, err := wefttest.Call(h, api.DeleteTunnel, &api.DeleteTunnelRequest{Name: "b"}); api.KindOf(err) != codes.FailedPrecondition {
			t.Error("a service's tunnel is deleted by an operator:", gone, err)
		}
		if _, err = wefttest.Call(h, api.SetTunnels, &api.SetTunnelsRequest{User: "l2vpn", Delete: []string{"b"}}); err != nil {
			t.Error(err)
		}
		wefttest.Await(h, api.TunnelChangedEvent, func(e *api.TunnelChanged) bool { return e.Tunnel.Name == "b" && e.Deleted })
		gone, err := wefttest.Call(h, api.DeleteTunnel, &api.DeleteTunnelRequest{Name: "a"})
		if err != nil || !gone.Deleted {
			t.Error(gone, err)
		}
	})
}
