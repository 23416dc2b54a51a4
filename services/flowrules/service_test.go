package flowrules

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

// site is the service among fakes of its peers: a southbound with one switch.
type site struct {
	*wefttest.Harness
	t  *testing.T
	sw *fakeSwitch
}

func newSite(t *testing.T, h *wefttest.Harness) *site {
	s := &site{Harness: h, t: t, sw: newFakeSwitch(1)}
	net := &fakeNetwork{map[flow.DPID]*fakeSwitch{1: s.sw}}
	wefttest.Fake(h, api.ReadFlows, func(ctx context.Context, req *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
		flows, err := net.ReadFlows(ctx, 1)
		if err != nil {
			return nil, api.Errorf(codes.Unavailable, "%w", err)
		}
		return &api.ReadFlowsResponse{Flows: flows}, nil
	})
	wefttest.Fake(h, api.ReadGroups, func(ctx context.Context, req *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
		groups, err := net.ReadGroups(ctx, 1)
		return &api.ReadGroupsResponse{Groups: groups}, err
	})
	wefttest.Fake(h, api.ReadMeters, func(ctx context.Context, req *api.ReadMetersRequest) (*api.ReadMetersResponse, error) {
		meters, err := net.ReadMeters(ctx, 1)
		return &api.ReadMetersResponse{Meters: meters}, err
	})
	wefttest.Fake(h, api.Apply, net.Apply)
	return s
}

func (s *site) describe() *api.Switch {
	s.sw.mu.Lock()
	defer s.sw.mu.Unlock()
	return &api.Switch{Dpid: s.sw.dpid.String(), Connected: s.sw.up, Openflow: "1.3"}
}

func (s *site) connect(up bool) {
	s.sw.mu.Lock()
	s.sw.up = up
	s.sw.mu.Unlock()
	wefttest.Publish(s.Harness, api.SwitchChangedEvent, &api.SwitchChanged{Switch: s.describe()})
}

// entries returns how many entries the switch has, and how many adds it has
// been sent.
func (s *site) entries() (n, adds int) {
	s.sw.mu.Lock()
	defer s.sw.mu.Unlock()
	return len(s.sw.entries), len(s.sw.adds)
}

func (s *site) add(noWait bool, flows ...*api.FlowEntry) string {
	s.t.Helper()
	resp, err := wefttest.Call(s.Harness, api.AddFlows, &api.AddFlowsRequest{Flows: flows, NoWait: noWait})
	if err != nil {
		s.t.Fatal(err)
	}
	var states []string
	for _, f := range resp.Flows {
		states = append(states, strings.TrimSuffix(f.State+": "+f.Reason, ": "))
	}
	return strings.Join(states, ", ")
}

// inSync waits until the switch has what is desired.
func (s *site) inSync() *api.Sync {
	s.t.Helper()
	for deadline := time.Now().Add(testwait.Limit); ; time.Sleep(2 * time.Millisecond) {
		resp, err := wefttest.Call(s.Harness, api.ListSync, &api.ListSyncRequest{})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(resp.Switches) == 1 && resp.Switches[0].State == "in_sync" {
			return resp.Switches[0]
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not in sync: %v", resp)
		}
	}
}

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		s := newSite(t, h)
		if got := s.add(false, wanted(1, 100, 1, 2)); got != "requested: switch away" {
			t.Errorf("switch away: %s", got)
		}
		s.connect(true)
		if sync := s.inSync(); sync.Added != 1 || sync.Confirmed != 1 {
			t.Errorf("%v", sync)
		}
		if got := s.add(false, wanted(1, 101, 1, 2), wanted(1, 102, 1, 2)); got != "confirmed, confirmed" {
			t.Errorf("connected: %s", got)
		}
		e := wefttest.Await(h, api.FlowsObservedEvent, func(e *api.FlowsObserved) bool { return e.Owner == "routes" })
		if e.Dpid != "0000000000000001" || len(e.Flows) != 0 {
			t.Errorf("%v: want an empty list to be made known, too", e)
		}
		standing := &api.SetStandingRequest{Dpid: "1", Owner: "discovery", Flows: []*api.FlowEntry{wanted(1, 65535, 1, 2)}}
		if resp, err := wefttest.Call(h, api.SetStanding, standing); err != nil || resp.Sent != 1 || len(resp.Failed) != 0 {
			t.Errorf("%v, %v", resp, err)
		}
		bad := entryOf(t, flow.OwnerOperator, wanted(1, 103, 1, 2))
		s.sw.mu.Lock()
		s.sw.refuse[bad.Key()] = "OFPET_BAD_ACTION: no"
		s.sw.mu.Unlock()
		if got := s.add(false, wanted(1, 103, 1, 2), wanted(1, 104, 1, 2)); got != "failed: OFPET_BAD_ACTION: no, confirmed" {
			t.Errorf("refused: %s", got)
		}
		if e := wefttest.Next(h, api.FlowFailedEvent); e.Flow.Flow.Priority != 103 || e.Flow.Reason != "OFPET_BAD_ACTION: no" {
			t.Errorf("%v", e)
		}
		resp, err := wefttest.Call(h, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 103, 1, 2), wanted(1, 104, 1, 2)}})
		if err != nil || resp.Deleted != 2 {
			t.Errorf("%v, %v", resp, err)
		}
		if n, _ := s.entries(); n != 4 {
			t.Errorf("%d entries, want the operator's three and discovery's one", n)
		}
		list, err := wefttest.Call(h, api.ListFlows, &api.ListFlowsRequest{Dpid: "1"})
		if err != nil || len(list.Flows) != 4 || list.Flows[0].Flow.Owner != "discovery" || list.Flows[3].State != "confirmed" {
			t.Errorf("%v, %v", list, err)
		}
		if h.Metric("entries", "state", "wanted") != 4 || h.Metric("writes", "op", "add", "result", "refused") < 1 {
			t.Errorf("metrics: %v, %v", h.Metric("entries", "state", "wanted"), h.Metric("writes", "op", "add", "result", "refused"))
		}
	})
}

func TestServiceConfig(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("deadline: 1s\nverify_interval: 500ms")
		if err := h.StartError(); !strings.Contains(err.Error(), "verify_interval") {
			t.Errorf("%v", err)
		}
	})
}
