package l2vpn

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// probed is two switches that carry a circuit, as far as probes can tell.
type probed struct {
	h *wefttest.Harness

	turn sync.Mutex // packets come in one by one

	mu      sync.Mutex // guards the following
	longest int        // frames that are longer are lost
	lacks   bool       // switch 2 has no entries
	set     map[string]*api.SetStandingRequest
	spoil   func(*api.Group, *api.Meter) bool // changes a copy of what a switch has, or says that it lacks it
}

func (p *probed) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// send carries packet-outs: those to a tunnel's group come to the other switch, and
// those to the controller back.
func (p *probed) send(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	p.mu.Lock()
	longest := p.longest
	p.mu.Unlock()
	for _, op := range d.Ops {
		o, to := d.Outs[op.Index], op.Switch
		if o.Actions[0].Kind == flow.ActionGroup {
			if to = 3 - to; len(o.Data) > longest {
				continue
			}
		}
		in := wefttest.NewPacketIn(to, 2, bytes.Clone(o.Data))
		go func() {
			p.turn.Lock()
			defer p.turn.Unlock()
			p.h.PacketIn(in)
		}()
	}
	return &api.ApplyResult{}, nil
}

// TestProbes: a circuit is measured, pinged with short and long probes, and
// validated; it is down while nothing comes through, and up again when something does.
func TestProbes(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := &probed{h: h, longest: 1600, set: map[string]*api.SetStandingRequest{}}
		wefttest.Fake(h, api.SetStanding, func(_ context.Context, q *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			if q.Base != 0 {
				return nil, api.Errorf(codes.FailedPrecondition, "declare the whole set")
			}
			p.change(func() { p.set[q.Dpid] = q })
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.ListTunnels, func(context.Context, *api.ListTunnelsRequest) (*api.ListTunnelsResponse, error) {
			r := &api.ListTunnelsResponse{}
			for i, from := range []string{"0000000000000001", "0000000000000002"} {
				to := []string{"0000000000000002", "0000000000000001"}[i]
				r.Tunnels = append(r.Tunnels, &api.Tunnel{Name: []string{"l2vpn-1-2", "l2vpn-2-1"}[i], From: from, To: to, State: "up", User: user,
					Group: flow.TunnelGroups + uint32(i), Path: []string{from, to},
					Primary: &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: from, OutPort: 2}, {Dpid: to, InPort: 2}}}})
			}
			return r, nil
		})
		wefttest.Fake(h, api.SetTunnels, func(_ context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
			r := &api.SetTunnelsResponse{}
			for _, m := range q.Tunnels {
				r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: m.Name})
			}
			for _, name := range q.Delete {
				r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: name})
			}
			return r, nil
		})
		wefttest.Fake(h, api.ReadMultipart, func(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
			return &api.ReadMultipartResponse{}, nil
		})
		wefttest.Fake(h, api.Send, p.send)
		wefttest.Fake(h, api.ReadFlows, func(_ context.Context, q *api.ReadFlowsRequest) (r *api.ReadFlowsResponse, _ error) {
			p.change(func() {
				if r = (&api.ReadFlowsResponse{}); !p.lacks || q.Dpid != "0000000000000002" {
					r.Flows = p.set[q.Dpid].GetFlows()
				}
			})
			return r, nil
		})
		wefttest.Fake(h, api.ReadGroups, func(_ context.Context, q *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
			r := &api.ReadGroupsResponse{}
			p.change(func() {
				for _, m := range p.set[q.Dpid].GetGroups() {
					if m = proto.CloneOf(m); p.spoil == nil || !p.spoil(m, nil) {
						r.Groups = append(r.Groups, m)
					}
				}
			})
			return r, nil
		})
		wefttest.Fake(h, api.ReadMeters, func(_ context.Context, q *api.ReadMetersRequest) (*api.ReadMetersResponse, error) {
			r := &api.ReadMetersResponse{}
			p.change(func() {
				for _, m := range p.set[q.Dpid].GetMeters() {
					if m = proto.CloneOf(m); p.spoil == nil || !p.spoil(nil, m) {
						r.Meters = append(r.Meters, m)
					}
				}
			})
			return r, nil
		})
		h.Configure("probe_interval: 20ms")
		h.Start()
		for _, sw := range []string{"0000000000000001", "0000000000000002"} {
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{
				Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Tables: 254}, Ports: []*api.Port{{Dpid: sw, Port: 1, Up: true}, {Dpid: sw, Port: 2, Up: true}}})
		}
		h.Settle()
		if _, err := wefttest.Call(h, api.SetCircuits, &api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "red", Ends: []string{"1:1", "2:1"}, Payload: ip, RateKbps: 10000}}}); err != nil {
			t.Fatal(err)
		}
		until := func(what string, so func(*api.Circuit) bool) {
			t.Helper()
			var m *api.Circuit
			for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				var err error
				if m, err = wefttest.Call(h, api.GetCircuit, &api.GetCircuitRequest{Name: "red"}); err == nil && so(m) {
					return
				}
			}
			t.Fatalf("it does not come to be that the circuit %s: %v", what, m)
		}
		until("is up, and measured", func(m *api.Circuit) bool { return m.State == "up" && m.DelayUs != nil && m.LossRatio == 0 })
		ping := func(size uint32) (sent, received uint32) {
			t.Helper()
			r, err := wefttest.Call(h, api.PingCircuit, &api.PingCircuitRequest{Name: "red", Count: 2, IntervalUs: 1000, Size: size})
			if err != nil || len(r.Ways) != 2 || r.Ways[0].From == r.Ways[1].From {
				t.Fatal(r, err)
			}
			return r.Ways[0].Sent + r.Ways[1].Sent, r.Ways[0].Received + r.Ways[1].Received
		}
		if sent, received := ping(1500); sent != 4 || received != 4 {
			t.Errorf("of %d probes for packets of 1500 octets %d come back", sent, received)
		}
		if r, err := wefttest.Call(h, api.PingCircuit, &api.PingCircuitRequest{Name: "red", Count: 2, IntervalUs: 1000, Ends: []string{"2:1", "1:1"}}); err != nil ||
			len(r.Ways) != 2 || r.Ways[0].From != "0000000000000002:1" || r.Ways[0].Received+r.Ways[1].Received != 4 {
			t.Errorf("between two ends: %v, %v", r, err)
		}
		if _, received := ping(2000); received != 0 {
			t.Errorf("%d probes come back that are longer than what fits", received)
		}
		faults := func() []*api.CircuitFault {
			t.Helper()
			r, err := wefttest.Call(h, api.ValidateCircuits, &api.ValidateCircuitsRequest{})
			if err != nil || r.Circuits != 1 {
				t.Fatal(r, err)
			}
			return r.Faults
		}
		if list := faults(); len(list) != 0 {
			t.Errorf("faults of a circuit that is as it should be: %v", list)
		}
		for _, c := range []struct {
			kind, text string
			spoil      func(*api.Group, *api.Meter) bool
		}{
			{"meters", "lacks meter", func(_ *api.Group, m *api.Meter) bool { return m != nil }},
			{"meters", "rate 7,", func(_ *api.Group, m *api.Meter) bool {
				if m != nil {
					m.Bands[0].Rate = 7
				}
				return false
			}},
			{"groups", "lacks group", func(g *api.Group, _ *api.Meter) bool { return g != nil }},
			{"groups", "output:9", func(g *api.Group, _ *api.Meter) bool {
				if g != nil {
					g.Buckets[0].Actions = []string{"output:9"}
				}
				return false
			}},
		} {
			p.change(func() { p.spoil = c.spoil })
			list := faults()
			for _, f := range list {
				if f.Kind != c.kind || !strings.Contains(f.Text, c.text) {
					t.Errorf("want %s, %s: %v", c.kind, c.text, f)
				}
			}
			if len(list) == 0 {
				t.Errorf("no fault: want %s, %s", c.kind, c.text)
			}
		}
		p.change(func() { p.spoil = nil })
		p.change(func() { p.lacks = true })
		if list := faults(); len(list) == 0 || list[0].Kind != "entries" || list[0].At != "0000000000000002" {
			t.Errorf("a switch has lost its entries: %v", list)
		}
		p.change(func() { p.longest = 0 })
		until("is down", func(m *api.Circuit) bool { return m.State == "down" && m.LossRatio > 0 })
		if list := faults(); list[len(list)-1].Kind != "probes" {
			t.Errorf("nothing comes through: %v", list)
		}
		p.change(func() { p.longest = 1600 })
		until("is up again", func(m *api.Circuit) bool { return m.State == "up" })
		for _, q := range []*api.PingCircuitRequest{{Name: "blue"}, {Name: "red", Count: 101}, {Name: "red", IntervalUs: 1}, {Name: "red", Size: 9001},
			{Name: "red", Ends: []string{"1:1"}}, {Name: "red", Ends: []string{"1:1", "3:1"}}} {
			if r, err := wefttest.Call(h, api.PingCircuit, q); err == nil {
				t.Errorf("%v: %v", q, r)
			}
		}
	})
}
