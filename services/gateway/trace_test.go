package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// A trace is asked for in JSON, and asks the services for what it needs.
func TestTrace(t *testing.T) {
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		const dpid = "0000000000000001"
		at := &api.Location{Dpid: dpid, Port: 1}
		a := &api.Host{Mac: "02:00:00:00:00:01", At: at, Ipv4: []string{"10.0.0.1"}}
		b := &api.Host{Mac: "02:00:00:00:00:02", At: &api.Location{Dpid: dpid, Port: 2}, Ipv4: []string{"10.0.0.2"}}
		wefttest.Fake(h, api.FindHost, func(_ context.Context, r *api.FindHostRequest) (*api.Host, error) {
			if r.Address == a.Mac {
				return a, nil
			}
			return b, nil
		})
		wefttest.Fake(h, api.ListHosts, func(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error) {
			return &api.ListHostsResponse{Hosts: []*api.Host{a, b}}, nil
		})
		wefttest.Fake(h, api.ListPorts, func(context.Context, *api.ListPortsRequest) (*api.ListPortsResponse, error) {
			return &api.ListPortsResponse{Ports: []*api.Port{{Dpid: dpid, Port: 1, Up: true}, {Dpid: dpid, Port: 2, Up: true}}}, nil
		})
		wefttest.Fake(h, api.ListLinks, func(context.Context, *api.ListLinksRequest) (*api.ListLinksResponse, error) {
			return &api.ListLinksResponse{}, nil
		})
		wefttest.Fake(h, api.ReadGroups, func(_ context.Context, r *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
			return &api.ReadGroupsResponse{Groups: []*api.Group{{Dpid: r.Dpid, Id: 7, Type: "indirect", Buckets: []*api.Bucket{{Actions: []string{"output:2"}}}}}}, nil
		})
		wefttest.Fake(h, api.ReadFlows, func(_ context.Context, r *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
			return &api.ReadFlowsResponse{Flows: []*api.FlowEntry{{Dpid: r.Dpid, Priority: 3, Actions: []string{"group:7"}, Owner: "operator", Packets: 5}}}, nil
		})
		h.Start()
		resp, err := http.Post("http://"+address+"/v1/trace", "application/json", strings.NewReader(`{"src": "02:00:00:00:00:01", "dst": "10.0.0.2", "tcp_dst": 443}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got struct {
			Packet, Verdict string
			Arrives         bool
			Steps           []struct {
				Entry  struct{ Owner, Packets string }
				Groups []int
				Out    []struct {
					Port  int
					Hosts []string
				}
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if !got.Arrives || !strings.Contains(got.Packet, "ports 49152 to 443") || len(got.Steps) != 1 {
			t.Fatalf("got %+v", got)
		}
		if s := got.Steps[0]; s.Entry.Owner != "operator" || s.Entry.Packets != "5" || len(s.Groups) != 1 || len(s.Out) != 1 || s.Out[0].Port != 2 || len(s.Out[0].Hosts) != 1 {
			t.Errorf("step %+v", s)
		}
	})
}
