package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// halves is one network of two partitions: switches 1 to 8 are of east, all
// others of west. Its southbounds take down what they are asked.
type halves struct {
	*cluster
	mu    sync.Mutex
	log   []string        // what the southbounds were asked, in order
	cries map[string]bool // switches that refuse
}

const halvesPlan = `{name: halves, events: grpc, transport: %s, partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}, workers: {
	e: {services: [southbound, firewall, qos], partition: east}, w: {services: [southbound, firewall, qos], partition: west},
	a: {services: [discovery, forwarding]}, g: {services: [gateway]}}}`

func newHalves(t *testing.T, transport string) *halves {
	h := &halves{cries: map[string]bool{}}
	h.cluster = newCluster(t, []weft.Spec{
		{Name: "southbound", Pipeline: true, Scale: weft.PerPartition,
			Serves:    weft.Methods(api.Apply, api.Send, api.ListSwitches, api.ReadFlows, api.EchoSwitches, api.ListLimits),
			Publishes: weft.Subjects(api.SwitchChangedEvent)},
		{Name: "discovery", Stage: true, Scale: weft.Single},
		{Name: "firewall", Stage: true, Scale: weft.PerPartition, Serves: weft.Methods(api.AddFirewallRules, api.ListFirewallRules, api.GetFirewallStatus)},
		{Name: "qos", Scale: weft.PerPartition, Serves: weft.Methods(api.QosListPolicies, api.QosGetStatus, api.QosSetQueues)},
		{Name: "forwarding", Stage: true, Scale: weft.Any},
		{Name: "gateway", Scale: weft.Any, Subscribes: weft.Subjects(api.SwitchChangedEvent),
			Calls: weft.Methods(api.Apply, api.Send, api.ListSwitches, api.ReadFlows, api.EchoSwitches, api.ListLimits,
				api.AddFirewallRules, api.ListFirewallRules, api.GetFirewallStatus, api.QosListPolicies, api.QosGetStatus, api.QosSetQueues)},
	}, map[string]func(*actor){"southbound": h.southbound, "firewall": h.firewall, "qos": h.qos, "discovery": passing, "forwarding": passing,
		"gateway": func(p *actor) { weft.On(p.env, api.SwitchChangedEvent, func(context.Context, *api.SwitchChanged) {}) }})
	h.apply(fmt.Sprintf(halvesPlan, transport))
	return h
}

// qos of e enforces a policy that fails in w, where another has no switch.
func (h *halves) qos(p *actor) {
	state, other, sw := "enforced", "enforced", "1"
	if p.process == "w" {
		state, other, sw = "failing", "idle", "2f"
	}
	weft.Handle(p.env, api.QosListPolicies, func(context.Context, *api.QosListPoliciesRequest) (*api.QosListPoliciesResponse, error) {
		return &api.QosListPoliciesResponse{Policies: []*api.QosPolicy{{Name: "a", Dpid: "2f"}, {Name: "b"}}}, nil
	})
	weft.Handle(p.env, api.QosGetStatus, func(context.Context, *api.QosGetStatusRequest) (*api.QosStatus, error) {
		m := &api.QosStatus{Switches: []*api.QosSwitch{{Dpid: sw, State: state}}, Policies: []*api.QosPolicyStatus{
			{Policy: "a", State: state, Reason: sw, Switches: []*api.QosPolicySwitch{{Dpid: sw, State: state}}}, {Policy: "b", State: other, Reason: sw}}}
		if other != "idle" {
			m.Policies[1].Switches = []*api.QosPolicySwitch{{Dpid: sw, State: other}}
		}
		return m, nil
	})
	weft.Handle(p.env, api.QosSetQueues, func(_ context.Context, r *api.QosSetQueuesRequest) (*api.QosQueues, error) {
		return &api.QosQueues{Dpid: r.Queues.Dpid, State: p.process}, nil
	})
}

func passing(p *actor) {
	weft.Stage(p.env, func(flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Next }
	})
}

func (h *halves) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// asked returns what the southbounds were asked since the last time.
func (h *halves) asked() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := strings.Join(h.log, "; ")
	h.log = nil
	return text
}

// southbound of e has the switches 1 and 3, that of w 2f and 20.
func (h *halves) southbound(p *actor) {
	mine := map[string][]string{"e": {"1", "3"}, "w": {"20", "2f"}}[p.process]
	take := func(how string) func(context.Context, *flow.Decision) (*api.ApplyResult, error) {
		return func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
			var ops []string
			resp := &api.ApplyResult{}
			for i, op := range d.Ops {
				if op.Kind == flow.OpFence {
					ops = append(ops, "fence")
					continue
				}
				ops = append(ops, fmt.Sprintf("%x:%d", uint64(op.Switch), priority(d, op)))
				h.mu.Lock()
				if h.cries[fmt.Sprintf("%x", uint64(op.Switch))] {
					resp.Failures = append(resp.Failures, &api.ApplyFailure{Dpid: op.Switch.String(), Op: uint32(i), Text: "refused"})
				}
				h.mu.Unlock()
			}
			h.note("%s %s %s", p.process, how, strings.Join(ops, " "))
			return resp, nil
		}
	}
	weft.Handle(p.env, api.Apply, take("applies"))
	weft.Handle(p.env, api.Send, take("sends"))
	weft.Handle(p.env, api.ListSwitches, func(context.Context, *api.ListSwitchesRequest) (*api.ListSwitchesResponse, error) {
		resp := &api.ListSwitchesResponse{}
		for _, sw := range mine {
			resp.Switches = append(resp.Switches, &api.Switch{Dpid: sw})
		}
		return resp, nil
	})
	weft.Handle(p.env, api.ReadFlows, func(_ context.Context, req *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
		if !slices.Contains(mine, req.Dpid) {
			return nil, api.Errorf(codes.NotFound, "%s has no %q", p.process, req.Dpid)
		}
		return &api.ReadFlowsResponse{Flows: []*api.FlowEntry{{Dpid: req.Dpid, Owner: p.process}}}, nil
	})
	weft.Handle(p.env, api.EchoSwitches, func(_ context.Context, req *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
		resp := &api.EchoSwitchesResponse{}
		for _, sw := range req.Dpids {
			resp.Echoes = append(resp.Echoes, &api.SwitchEcho{RttUs: req.DeadlineUs, Error: p.process + sw})
		}
		return resp, nil
	})
	weft.Handle(p.env, api.ListLimits, func(_ context.Context, req *api.ListLimitsRequest) (*api.ListLimitsResponse, error) {
		return &api.ListLimitsResponse{Limits: []*api.PortLimit{{Dpid: mine[0]}, {Dpid: mine[1]}}, Shed: map[string]uint64{"both": 3, p.process: 1}}, nil
	})
}

// priority tells operations apart: that of the entry, or the buffer of the
// packet.
func priority(d *flow.Decision, op flow.Op) uint32 {
	if op.Kind == flow.OpPacketOut {
		return d.Outs[op.Index].BufferID
	}
	return uint32(d.Flows[op.Index].Entry.Priority)
}

// firewall is one for each partition: each has rules both and its own.
func (h *halves) firewall(p *actor) {
	weft.Stage(p.env, func(sw flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict {
			h.note("%s judges %x", p.process, uint64(sw))
			return flow.Next
		}
	})
	weft.Handle(p.env, api.AddFirewallRules, func(_ context.Context, req *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error) {
		return &api.AddFirewallRulesResponse{Ids: []string{"x"}, Added: 1, Failures: []*api.FirewallFailure{{Dpid: map[string]string{"e": "1", "w": "20"}[p.process]}}}, nil
	})
	weft.Handle(p.env, api.ListFirewallRules, func(context.Context, *api.ListFirewallRulesRequest) (*api.ListFirewallRulesResponse, error) {
		return &api.ListFirewallRulesResponse{Total: 2, Rules: []*api.FirewallRule{{Id: "z", Packets: 5, Bytes: 50}, {Id: "a" + p.process, Packets: 1}}}, nil
	})
	weft.Handle(p.env, api.GetFirewallStatus, func(context.Context, *api.GetFirewallStatusRequest) (*api.FirewallStatus, error) {
		return &api.FirewallStatus{DefaultAction: "allow", Rules: 2, Allowed: 10, Denied: 1}, nil
	})
}

// program is a decision of operations such as 1:5 (an entry of priority 5 on
// switch 1), 1!5 (a packet-out of buffer 5) and fence.
func program(t *testing.T, text string) *flow.Decision {
	t.Helper()
	d := &flow.Decision{}
	for _, word := range strings.Fields(text) {
		var sw, n uint64
		switch {
		case word == "fence":
			d.Fence()
		case strings.Contains(word, "!"):
			if _, err := fmt.Sscanf(word, "%x!%d", &sw, &n); err != nil {
				t.Fatal(word, err)
			}
			d.PacketOut(flow.DPID(sw), flow.PacketOut{BufferID: uint32(n), InPort: flow.PortController})
		default:
			if _, err := fmt.Sscanf(word, "%x:%d", &sw, &n); err != nil {
				t.Fatal(word, err)
			}
			d.AddFlow(flow.DPID(sw)).Entry.Priority = uint16(n)
		}
	}
	return d
}

// failed tells of the operations that have failed: their numbers and whether it
// is worth trying again.
func failed(r *api.ApplyResult) string {
	var list []string
	for _, f := range r.GetFailures() {
		list = append(list, fmt.Sprintf("%d %s %v", f.Op, strings.TrimLeft(f.Dpid, "0"), f.Transient))
	}
	return strings.Join(list, "; ")
}
