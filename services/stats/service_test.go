package stats

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("interval: 100ms\nflows_every: 1\nper_switch: 0s")
		net := &fakeNetwork{switches: map[flow.DPID]*fakeSwitch{1: {
			up: true, ports: []uint32{1, 2, 3}, since: time.Now(), rate: 1_000_000,
			entries: []*api.FlowEntry{{Priority: 1, Owner: "routes"}},
		}}}
		there := &api.Switch{Dpid: "0000000000000001", Connected: true, Since: "2026-01-01T00:00:00Z", Address: "127.0.0.1:1"}
		wefttest.Fake(h, api.ReadPortStats, func(ctx context.Context, _ *api.ReadPortStatsRequest) (*api.ReadPortStatsResponse, error) {
			ports, err := net.ReadPorts(ctx, 1)
			return &api.ReadPortStatsResponse{Ports: ports}, err
		})
		wefttest.Fake(h, api.ReadTableStats, func(ctx context.Context, _ *api.ReadTableStatsRequest) (*api.ReadTableStatsResponse, error) {
			tables, err := net.ReadTables(ctx, 1)
			return &api.ReadTableStatsResponse{Tables: tables}, err
		})
		wefttest.Fake(h, api.ReadFlows, func(ctx context.Context, _ *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
			flows, err := net.ReadFlows(ctx, 1)
			return &api.ReadFlowsResponse{Flows: flows}, err
		})
		rates(t, h, there)
		if rx := h.Metric("switch_rx_bytes", "dpid", "0000000000000001"); rx <= 0 || h.Metric("all_rx_bytes") < rx || h.Metric("switches") != 1 || h.Metric("polls", "result", "done") < 2 {
			t.Errorf("metrics: %v bytes of the switch, %v of all, %v switches", rx, h.Metric("all_rx_bytes"), h.Metric("switches"))
		}
		// The service alone restarts: the southbound's event is replayed.
		h.Restart()
		rates(t, h, there)
		// The southbound restarts: the switch connects again without having left.
		there.Since = "2026-01-01T00:00:09Z"
		rates(t, h, there)
		if n := h.Metric("switches"); n != 1 {
			t.Errorf("%v switches", n)
		}
	})
}

// rates waits until the rates of a switch are known; that it is connected is
// told all the time.
func rates(t *testing.T, h *wefttest.Harness, there *api.Switch) {
	t.Helper()
	for deadline := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) {
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: proto.Clone(there).(*api.Switch)})
		ports, err := wefttest.Call(h, api.ListPortStats, &api.ListPortStatsRequest{Dpid: "1"})
		if err != nil {
			t.Fatal(err)
		}
		tables, err := wefttest.Call(h, api.ListTableStats, &api.ListTableStatsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		flows, err := wefttest.Call(h, api.ListFlowStats, &api.ListFlowStatsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if len(ports.Ports) == 3 && ports.Ports[0].RxBitsPerS > 1e6 && len(tables.Tables) > 0 && len(flows.Flows) == 1 && flows.Flows[0].BitsPerS > 1e6 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no rates: %v %v %v", ports, tables, flows)
		}
	}
}

// A reading is due in an hour when a shorter interval is taken over.
func TestIntervalIsTakenOver(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("interval: 1h\nmax_interval: 2h\nper_switch: 0s")
		read := make(chan struct{}, 1000)
		wefttest.Fake(h, api.ReadPortStats, func(context.Context, *api.ReadPortStatsRequest) (*api.ReadPortStatsResponse, error) {
			read <- struct{}{}
			return &api.ReadPortStatsResponse{Ports: []*api.PortStats{{Port: 1}}}, nil
		})
		wefttest.Fake(h, api.ReadTableStats, func(context.Context, *api.ReadTableStatsRequest) (*api.ReadTableStatsResponse, error) {
			return &api.ReadTableStatsResponse{}, nil
		})
		wefttest.Fake(h, api.ReadFlows, func(context.Context, *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
			return &api.ReadFlowsResponse{}, nil
		})
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: "0000000000000001", Connected: true}})
		<-read
		for len(read) > 0 { // with every call made twice
			<-read
		}
		if err := wefttest.Reconfigure(h, func(c *Config) { c.Interval = 100 * time.Millisecond }); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			select {
			case <-read:
			case <-time.After(testwait.Limit):
				t.Fatal("the new interval is not kept")
			}
		}
		if err := wefttest.Reconfigure(h, func(c *Config) { c.MetricSwitches = 7 }); err == nil {
			t.Error("a key that is not in Live has been taken over")
		}
	})
}
