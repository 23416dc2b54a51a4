package tunnels

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestSteerService: a steer through the calls that the Spec declares, with its counters, and again after a restart.
func TestSteerService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		const one, two = "0000000000000001", "0000000000000002"
		wefttest.Fake(h, api.SetStanding, func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.ComputePaths, func(_ context.Context, q *api.ComputePathsRequest) (*api.ComputePathsResponse, error) {
			resp := &api.ComputePathsResponse{}
			for range q.Demands {
				resp.Answers = append(resp.Answers, &api.PathAnswer{Paths: []*api.Path{{Hops: []*api.Hop{{Dpid: one, OutPort: 2}, {Dpid: two, InPort: 1}}}}})
			}
			return resp, nil
		})
		wefttest.Fake(h, api.ReadFlows, func(_ context.Context, q *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
			f := api.NewFlowEntry(1, &flow.Entry{Cookie: flow.NewCookie(flow.OwnerSteers, 0, 1)})
			f.Packets, f.Bytes = 7, 700
			return &api.ReadFlowsResponse{Flows: []*api.FlowEntry{f}}, nil
		})
		h.Start()
		tell := func() {
			for _, sw := range []string{one, two} {
				wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Tables: 254}})
				wefttest.Publish(h, api.NodeChangedEvent, &api.NodeChanged{Node: &api.Node{State: "live", Report: &api.NodeReport{Dpid: sw, Ports: []*api.NodePort{
					{Port: 1, Role: "link", Internal: 10001, RoutedMac: "02:00:00:00:00:01"}, {Port: 2, Role: "link", Internal: 10002, RoutedMac: "02:00:00:00:00:02"},
					{Port: 3, Role: "access", Internal: 10003, RoutedMac: "02:00:00:00:00:03"}}}}})
			}
			wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: &api.Link{Src: &api.Location{Dpid: one, Port: 2}, Dst: &api.Location{Dpid: two, Port: 1}, State: "up"}})
			h.Settle()
		}
		tell()
		q := &api.SetSteerRequest{Steer: &api.Steer{Name: "a", Tunnel: "t", Match: map[string]string{"eth_type": "0x0800"}}}
		if _, err := wefttest.Call(h, api.SetSteer, q); api.KindOf(err) != codes.NotFound {
			t.Error("a steer without a tunnel:", err)
		}
		if _, err := wefttest.Call(h, api.SetTunnel, &api.SetTunnelRequest{Tunnel: &api.Tunnel{Name: "t", From: "1", To: "2"}}); err != nil {
			t.Fatal(err)
		}
		if m, err := wefttest.Call(h, api.SetSteer, q); err != nil || m.State != "up" || m.At != one || m.Id != 1 {
			t.Fatal(m, err)
		}
		for range 2 {
			list, err := wefttest.Call(h, api.ListSteers, &api.ListSteersRequest{})
			if err != nil || len(list.Steers) != 1 || list.Steers[0].State != "up" || list.Steers[0].Id != 1 || list.Steers[0].GetPackets() != 7 || list.Steers[0].GetBytes() != 700 {
				t.Error(list, err)
			}
			h.Restart()
			tell()
		}
		if _, err := wefttest.Call(h, api.DeleteTunnel, &api.DeleteTunnelRequest{Name: "t"}); api.KindOf(err) != codes.FailedPrecondition {
			t.Error("a tunnel with a steer is deleted:", err)
		}
		if resp, err := wefttest.Call(h, api.DeleteSteer, &api.DeleteSteerRequest{Name: "a"}); err != nil || !resp.Deleted {
			t.Error(resp, err)
		}
		if _, err := wefttest.Call(h, api.DeleteTunnel, &api.DeleteTunnelRequest{Name: "t"}); err != nil {
			t.Error(err)
		}
	})
}
