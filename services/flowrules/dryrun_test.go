package flowrules

import (
	"context"
	"maps"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestDryRun: a dry run says what the same call then does, refuses what it
// refuses, and changes nothing.
func TestDryRun(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("max_flows: 3")
		s := newSite(t, h)
		h.Start()
		s.connect(true)
		s.add(false, wanted(1, 101, 1, 1), wanted(1, 102, 1, 2))
		if _, err := wefttest.Call(h, api.SetStanding, &api.SetStandingRequest{Dpid: "1", Owner: "discovery", Flows: []*api.FlowEntry{wanted(1, 109, 1, 2)}}); err != nil {
			t.Fatal(err)
		}
		state := func() (out []*api.WantedFlow) {
			list, err := wefttest.Call(h, api.ListFlows, &api.ListFlowsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return list.Flows
		}
		same := func(a, b []*api.WantedFlow) bool {
			return proto.Equal(&api.ListFlowsResponse{Flows: a}, &api.ListFlowsResponse{Flows: b})
		}
		untouched := func(name string, dry func()) {
			before, kept := state(), storedNow(t, h)
			n, adds := s.entries()
			dry()
			if now, sent := s.entries(); now != n || sent != adds || !same(before, state()) || !maps.Equal(storedNow(t, h), kept) {
				t.Errorf("%s: the dry run has changed something: %d entries and %d adds, then %d and %d", name, n, adds, now, sent)
			}
		}
		wrong := wanted(1, 103, 1, 3)
		wrong.Match = map[string]string{"nothing": "1"}
		for _, c := range []struct {
			name  string
			flows []*api.FlowEntry
			want  []string
			code  codes.Code
		}{
			{"new, other and the same", []*api.FlowEntry{wanted(1, 103, 1, 3), wanted(1, 101, 1, 7), wanted(1, 102, 1, 2)}, []string{"added", "replaced", "unchanged"}, codes.OK},
			{"twice, of which the last counts", []*api.FlowEntry{wanted(1, 101, 1, 8), wanted(1, 101, 1, 7)}, []string{"unchanged", "unchanged"}, codes.OK},
			{"wrong", []*api.FlowEntry{wrong}, nil, codes.InvalidArgument},
			{"held by a service", []*api.FlowEntry{wanted(1, 109, 1, 1)}, nil, codes.FailedPrecondition},
			{"too many", []*api.FlowEntry{wanted(1, 104, 1, 3)}, nil, codes.ResourceExhausted},
		} {
			req := &api.AddFlowsRequest{Flows: c.flows}
			dry := proto.CloneOf(req)
			dry.DryRun = true
			var would *api.AddFlowsResponse
			var refused error
			untouched(c.name, func() { would, refused = wefttest.Call(h, api.AddFlows, dry) })
			is, err := wefttest.Call(h, api.AddFlows, req)
			if api.KindOf(refused) != c.code || (err == nil) != (refused == nil) || err != nil && err.Error() != refused.Error() {
				t.Errorf("%s: the dry run says %v, the call %v", c.name, refused, err)
			}
			for i := range c.want {
				a, b := would.Flows[i], is.Flows[i]
				if a.Effect != c.want[i] || b.Effect != a.Effect || !proto.Equal(a.Replaces, b.Replaces) {
					t.Errorf("%s: entry %d: would be %v, is %v; want %s", c.name, i, a, b, c.want[i])
				}
			}
		}
		for _, req := range []*api.DeleteFlowsRequest{
			{Flows: []*api.FlowEntry{wanted(1, 101, 1, 2), wanted(1, 108, 1, 2), wanted(1, 101, 1, 2)}},
			{AllOf: "all"}, {AllOf: "all"}, {AllOf: "x"},
		} {
			dry := proto.CloneOf(req)
			dry.DryRun = true
			var would *api.DeleteFlowsResponse
			var refused error
			untouched("delete", func() { would, refused = wefttest.Call(h, api.DeleteFlows, dry) })
			is, err := wefttest.Call(h, api.DeleteFlows, req)
			if (err == nil) != (refused == nil) || err != nil && err.Error() != refused.Error() || would.GetDeleted() != is.GetDeleted() || !sameEffects(would.GetFlows(), is.GetFlows()) {
				t.Errorf("%v: would be %v, %v; is %v, %v", req, would, refused, is, err)
			}
		}
	})
}

// sameEffects compares as sets: all_of has no order.
func sameEffects(a, b []*api.WantedFlow) bool {
	count := map[string]int{}
	for _, f := range a {
		count[f.Effect+f.Flow.String()]++
	}
	for _, f := range b {
		count[f.Effect+f.Flow.String()]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return len(a) == len(b)
}

// storedNow returns what the service's bucket holds.
func storedNow(t *testing.T, h *wefttest.Harness) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := h.Bucket("flows").All(context.Background(), func(key string, value []byte, _ uint64) error {
		all[key] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
