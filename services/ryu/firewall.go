package ryu

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// ruleService is what the handlers of rest_firewall need of the firewall service.
type ruleService interface {
	addRules(context.Context, *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error)
	deleteRules(context.Context, *api.DeleteFirewallRulesRequest) (*api.DeleteFirewallRulesResponse, error)
	listRules(context.Context, *api.ListFirewallRulesRequest) (*api.ListFirewallRulesResponse, error)
	setDefault(context.Context, *api.SetFirewallDefaultRequest) (*api.SetFirewallDefaultResponse, error)
	firewallStatus(context.Context, *api.GetFirewallStatusRequest) (*api.FirewallStatus, error)
}

// firewall is rest_firewall: rules of the firewall service whose ids begin with
// "ryu.", and the state that the service does not keep for them.
type firewall struct {
	filter ruleService
	bucket bucket
	tell   func(*request, []*api.FirewallFailure) error // reports switches that have not confirmed

	mu    sync.Mutex // guards known, and is held during a change
	known map[flow.DPID]*firewallState
}

// firewallState is what is kept for each switch.
type firewallState struct {
	// Last is the last rule_id given, by VLAN (0 is none), so that none is given
	// twice.
	Last map[uint16]uint32 `json:"last,omitempty"`
	// LogStopped is set by log/disable.
	LogStopped bool `json:"log_stopped,omitempty"`
}

// openFirewall loads the state in the bucket.
func openFirewall(ctx context.Context, b bucket) (*firewall, error) {
	f := &firewall{bucket: b, known: map[flow.DPID]*firewallState{}}
	err := b.All(ctx, func(key string, value []byte, _ uint64) error {
		sw, err := flow.ParseDPID(key)
		if err != nil {
			return err
		}
		state := &firewallState{}
		if err := json.Unmarshal(value, state); err != nil {
			return fmt.Errorf("bucket ryu.firewall, key %s: %w", key, err)
		}
		f.known[sw] = state
		return nil
	})
	return f, err
}

// firewallRoutes are the routes of rest_firewall.
func (s *server) firewallRoutes() []route {
	f := s.firewall
	of := func(h func(context.Context, *request, flow.DPID) (any, error)) handler {
		return s.eachSwitch("firewall", &f.mu, h)
	}
	routes := []route{
		{"GET", "/firewall/module/status", of(f.status)},
		{"PUT", "/firewall/module/enable/{dpid}", of(f.enable)},
		{"PUT", "/firewall/module/disable/{dpid}", of(f.disable)},
		{"GET", "/firewall/log/status", of(f.logStatus)},
		{"PUT", "/firewall/log/enable/{dpid}", of(f.logging(false))},
		{"PUT", "/firewall/log/disable/{dpid}", of(f.logging(true))},
	}
	for _, path := range []string{"/firewall/rules/{dpid}", "/firewall/rules/{dpid}/{vlan}"} {
		routes = append(routes, route{"GET", path, of(f.rules)}, route{"POST", path, of(f.addRule)}, route{"DELETE", path, of(f.deleteRule)})
	}
	return routes
}

// The methods below are called with mu held.

// status reports whether a switch lets anything pass.
func (f *firewall) status(ctx context.Context, _ *request, sw flow.DPID) (any, error) {
	resp, err := f.filter.firewallStatus(ctx, &api.GetFirewallStatusRequest{Dpid: sw.String()})
	if err != nil {
		return nil, err
	}
	back := resp.DefaultAction
	for _, s := range resp.Switches {
		if s.Dpid == sw.String() {
			back = s.DefaultAction
		}
	}
	status := "enable"
	if back == "block" {
		status = "disable"
	}
	return map[string]any{"switch_id": sw.String(), "status": status}, nil
}

// enable puts the rules into force: what none allows is dropped, except ARP,
// whose rule comes first of those of the highest priority, by its id.
func (f *firewall) enable(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	added, err := f.filter.addRules(ctx, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{
		Id: rulePrefix(sw) + "arp", Priority: ruleMost, Action: "allow", Dpid: sw.String(),
		Match: map[string]string{"eth_type": "0x0806"}, Comment: "ARP passes where Ryu's users enable the firewall",
	}}})
	if err != nil {
		return nil, err
	}
	return f.back(ctx, r, sw, "deny", "firewall running.", added.Failures)
}

// disable drops everything.
func (f *firewall) disable(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	return f.back(ctx, r, sw, "block", "firewall stopped.", nil)
}

func (f *firewall) back(ctx context.Context, r *request, sw flow.DPID, action, details string, failures []*api.FirewallFailure) (any, error) {
	resp, err := f.filter.setDefault(ctx, &api.SetFirewallDefaultRequest{Dpid: sw.String(), Action: action})
	if err != nil {
		return nil, err
	}
	if err := f.tell(r, append(failures, resp.Failures...)); err != nil {
		return nil, err
	}
	return resultOf(sw, commandResult{Result: "success", Details: details}), nil
}

func (f *firewall) logStatus(_ context.Context, _ *request, sw flow.DPID) (any, error) {
	status := "enable"
	if f.of(sw).LogStopped {
		status = "disable"
	}
	return map[string]any{"switch_id": sw.String(), "log_status": status}, nil
}

// logging returns the handler that sets whether denied packets are logged.
func (f *firewall) logging(stopped bool) func(context.Context, *request, flow.DPID) (any, error) {
	details := "Log collection started."
	if stopped {
		details = "Log collection stopped."
	}
	return func(ctx context.Context, _ *request, sw flow.DPID) (any, error) {
		state := f.of(sw)
		if state.LogStopped != stopped {
			state.LogStopped = stopped
			if err := f.save(ctx, sw, state); err != nil {
				return nil, err
			}
		}
		return resultOf(sw, commandResult{Result: "success", Details: details}), nil
	}
}

// of returns a copy of a switch's state.
func (f *firewall) of(sw flow.DPID) *firewallState {
	state := &firewallState{Last: map[uint16]uint32{}}
	if old := f.known[sw]; old != nil {
		state.LogStopped = old.LogStopped
		for vlan, n := range old.Last {
			state.Last[vlan] = n
		}
	}
	return state
}

func (f *firewall) save(ctx context.Context, sw flow.DPID, state *firewallState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if f.known[sw] == nil && len(f.known) >= maxSwitches {
		return &failure{413, fmt.Sprintf("want at most %d switches", maxSwitches)}
	}
	if _, err := f.bucket.Put(ctx, sw.String(), text); err != nil {
		return err
	}
	f.known[sw] = state
	return nil
}

// rulePrefix begins the ids of a switch's rules made through Ryu.
func rulePrefix(sw flow.DPID) string { return "ryu." + sw.String() + "." }

// ruleID returns the firewall's id of a rule.
func ruleID(sw flow.DPID, vlan uint16, n uint32) string {
	return fmt.Sprintf("%srule.%d.%d", rulePrefix(sw), vlan, n)
}

// parseRuleID returns the VLAN and the number of a rule, if it was made through
// Ryu for the switch.
func parseRuleID(sw flow.DPID, id string) (vlan uint16, n uint32, ok bool) {
	rest, ok := strings.CutPrefix(id, rulePrefix(sw)+"rule.")
	first, second, cut := strings.Cut(rest, ".")
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(second, 10, 32)
	return uint16(a), uint32(b), ok && cut && errA == nil && errB == nil
}
