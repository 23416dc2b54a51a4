package qos

import (
	"context"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// switches stands in for flowrules and the southbound: it keeps what was
// declared last, and counts for it.
type switches struct {
	mu   sync.Mutex
	sets map[string]*api.SetStandingRequest
}

func fakes(h *wefttest.Harness) *switches {
	s := &switches{sets: map[string]*api.SetStandingRequest{}}
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sets[r.Dpid] = r
		return &api.SetStandingResponse{}, nil
	})
	wefttest.Fake(h, api.ReadFlows, func(_ context.Context, r *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
		resp := &api.ReadFlowsResponse{}
		for _, f := range s.of(r.Dpid).GetFlows() {
			resp.Flows = append(resp.Flows, &api.FlowEntry{Dpid: f.Dpid, Table: f.Table, Priority: f.Priority, Match: f.Match, Packets: 10, Bytes: 1000})
		}
		return resp, nil
	})
	wefttest.Fake(h, api.ReadMeters, func(_ context.Context, r *api.ReadMetersRequest) (*api.ReadMetersResponse, error) {
		resp := &api.ReadMetersResponse{}
		for _, m := range s.of(r.Dpid).GetMeters() {
			resp.Meters = append(resp.Meters, &api.Meter{Id: m.Id, Bands: []*api.Band{{Packets: 3, Bytes: 300}}})
		}
		return resp, nil
	})
	wefttest.Fake(h, api.ListPorts, func(context.Context, *api.ListPortsRequest) (*api.ListPortsResponse, error) {
		return &api.ListPortsResponse{Ports: []*api.Port{{Dpid: sw1, Port: 1, Name: "s1-h1"}}}, nil
	})
	return s
}

func (s *switches) of(dpid string) *api.SetStandingRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sets[dpid]
}

func (s *switches) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sets)
}

const (
	sw1 = "0000000000000001"
	sw2 = "0000000000000002"
	sw3 = "0000000000000003"
)

func connect(h *wefttest.Harness, dpid, openflow string, tables uint32) {
	wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: true, Openflow: openflow, Tables: tables, Address: "127.0.0.1:40000"}})
}

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		s := fakes(h)
		connect(h, sw1, "1.3", 254)
		connect(h, sw2, "1.3", 254)
		h.Settle()
		set := func(m *api.QosPolicy) *api.QosPolicy {
			t.Helper()
			resp, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: m})
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		slow := set(&api.QosPolicy{Name: "slow", Order: 5, Host: "10.0.0.1", Limit: &api.QosLimit{RateKbps: 1000}})
		web := set(&api.QosPolicy{Name: "web", Order: 9, Class: &api.QosClass{Protocol: "tcp", DstPort: 80}, Limit: &api.QosLimit{RatePps: 100}})
		connect(h, sw3, "1.0", 254)
		for _, m := range []*api.QosPolicy{{Name: "more", Limit: &api.QosLimit{RateKbps: 1}}, {Name: "there", Dpid: sw3, Limit: &api.QosLimit{RateKbps: 1}}, {Name: "web", MarkDscp: new(uint32(3))}} {
			if _, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: m}); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "switch "+sw3+" has OpenFlow 1.0") {
				t.Errorf("%v, with a switch of OpenFlow 1.0: %v", m, err)
			}
		}
		set(web) // what is there already stays
		if slow.Meter == 0 || web.Meter == 0 || slow.Meter == web.Meter {
			t.Errorf("meters %d and %d", slow.Meter, web.Meter)
		}
		if n := len(s.of(sw1).Flows); n != 2 || len(s.of(sw1).Meters) != 1 {
			t.Errorf("%d entries on switch 1, want 2: web over IPv4 and IPv6", n)
		}
		if len(s.of(sw3).GetFlows()) != 0 {
			t.Errorf("entries on a switch of OpenFlow 1.0")
		}
		// The host turns up, moves and goes: its limit goes with it.
		host := &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: "02:00:00:00:00:01", At: &api.Location{Dpid: sw1, Port: 4}, Ipv4: []string{"10.0.0.1"}}}
		wefttest.Publish(h, api.HostChangedEvent, host)
		testwait.Until(t, "the limit is on switch 1", func() bool { return len(s.of(sw1).Flows) == 3 && s.of(sw1).Flows[0].Match["in_port"] == "4" })
		var st *api.QosStatus
		testwait.Until(t, "the switch has confirmed it", func() bool {
			var err error
			if st, err = wefttest.Call(h, api.QosGetStatus, &api.QosGetStatusRequest{}); err != nil {
				t.Fatal(err)
			}
			return st.Policies[0].State != "pending"
		})
		if p := st.Policies[0]; p.Policy != "slow" || p.State != "enforced" || len(p.Switches) != 1 || !p.Switches[0].Counted || p.Switches[0].Packets != 10 || p.Switches[0].BeyondPackets != 3 {
			t.Errorf("status of slow: %v", p)
		}
		if p := st.Policies[1]; p.State != "refused" || !strings.Contains(p.Reason, "OpenFlow 1.0") || len(p.Switches) != 3 {
			t.Errorf("status of web: %v", p)
		}
		h.Restart()
		s.forget()
		connect(h, sw1, "1.3", 254)
		connect(h, sw2, "1.3", 254)
		wefttest.Publish(h, api.HostChangedEvent, host)
		testwait.Until(t, "the limit is on switch 1 after a restart", func() bool { return len(s.of(sw1).GetFlows()) == 3 })
		host = &api.HostChanged{Change: "moved", Host: &api.Host{Mac: "02:00:00:00:00:01", At: &api.Location{Dpid: sw2, Port: 7}, Ipv4: []string{"10.0.0.1"}}}
		wefttest.Publish(h, api.HostChangedEvent, host)
		testwait.Until(t, "the limit has moved to switch 2", func() bool {
			return len(s.of(sw1).GetFlows()) == 2 && len(s.of(sw2).GetFlows()) == 3 && s.of(sw2).Flows[0].Match["in_port"] == "7"
		})
		list, err := wefttest.Call(h, api.QosListPolicies, &api.QosListPoliciesRequest{})
		if err != nil || len(list.Policies) != 2 || list.Policies[0].Meter != slow.Meter {
			t.Errorf("list: %v, %v", list, err)
		}
		if _, err := wefttest.Call(h, api.QosDeletePolicy, &api.QosDeletePolicyRequest{Name: "web"}); err != nil {
			t.Fatal(err)
		}
		if len(s.of(sw1).Flows) != 0 || len(s.of(sw2).Flows) != 1 {
			t.Errorf("deleted, and still there: %v %v", s.of(sw1), s.of(sw2))
		}
		if _, err := wefttest.Call(h, api.QosGetStatus, &api.QosGetStatusRequest{Policy: "web"}); api.KindOf(err) != codes.NotFound {
			t.Errorf("status of what is not there: %v", err)
		}
		if _, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "x"}}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("a policy that does nothing: %v", err)
		}
		if n := h.Metric("policies"); n != 1 {
			t.Errorf("%v policies by metric", n)
		}
	})
}

func TestQueuesNotConfigured(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("deadline: 300ms")
		fakes(h)
		connect(h, sw1, "1.3", 254)
		h.Settle()
		m, err := wefttest.Call(h, api.QosSetQueues, &api.QosSetQueuesRequest{Queues: &api.QosQueues{Dpid: sw1, Port: 1, Queues: []*api.QosQueue{{Id: 1, MaxKbps: 5}}}})
		if err != nil || m.State != failing || !strings.Contains(m.Reason, "qos.ovsdb") {
			t.Errorf("%v, %v", m, err)
		}
	})
}

func TestLimitOfPolicies(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("policies: 2\nentries: 10")
		fakes(h)
		connect(h, sw1, "1.3", 254)
		h.Settle()
		set := func(name string, m *api.QosPolicy) error {
			m.Name, m.Limit = name, &api.QosLimit{RateKbps: 1}
			_, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: m})
			return err
		}
		for _, name := range []string{"a", "b"} {
			if err := set(name, &api.QosPolicy{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := set("c", &api.QosPolicy{}); api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("a third policy: %v", err)
		}
	})
}
