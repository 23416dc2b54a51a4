package ryu

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The bounds of VLANs and priorities, as Ryu has them.
const (
	vlanNone, vlanMin, vlanMax = 0, 2, 4094
	ruleLeast, ruleMost        = 1, 65533
)

// vlanText returns a VLAN as Ryu shows it, empty for none.
func vlanText(vlan uint16) string {
	if vlan == vlanNone {
		return ""
	}
	return strconv.Itoa(int(vlan))
}

// vlanOf reads the VLAN of a path; all means every VLAN.
func vlanOf(r *request) (vlan uint16, all bool, err error) {
	text, ok := r.args["vlan"]
	if !ok {
		return vlanNone, false, nil
	}
	if text == "all" {
		return 0, true, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n != vlanNone && (n < vlanMin || n > vlanMax) {
		return 0, false, bad("Invalid {vlan_id} value. Set [%d-%d]", vlanMin, vlanMax)
	}
	return uint16(n), false, nil
}

// filterRule is a rule as Ryu's users see it.
type filterRule struct {
	id       string // the firewall's
	path     uint16 // the VLAN of the path by which it was added
	number   uint32
	vlan     string // that it is about, as Ryu shows it; empty: none
	priority uint32
	deny     bool
	match    flow.Match
}

// list returns the rules of a switch, in order of precedence.
func (f *firewall) list(ctx context.Context, sw flow.DPID) ([]filterRule, error) {
	resp, err := f.filter.listRules(ctx, &api.ListFirewallRulesRequest{Dpid: sw.String()})
	if err != nil {
		return nil, err
	}
	var list []filterRule
	for _, m := range resp.Rules {
		path, n, ok := parseRuleID(sw, m.Id)
		if !ok {
			continue
		}
		text := maps.Clone(m.Match)
		if m.Vlan != 0 {
			text["vlan_vid"] = strconv.Itoa(int(m.Vlan))
		}
		match, err := flow.ParseMatch(text)
		if err != nil {
			return nil, fmt.Errorf("rule %s of the firewall: %w", m.Id, err)
		}
		vlan, _ := showMatch(&match)["dl_vlan"].(string)
		list = append(list, filterRule{m.Id, path, n, vlan, m.Priority, m.Action == "deny", match})
	}
	slices.SortStableFunc(list, func(a, b filterRule) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.vlan, b.vlan), cmp.Compare(a.number, b.number))
	})
	return list, nil
}

// show returns a rule in Ryu's names.
func (x *filterRule) show() map[string]any {
	out := map[string]any{"rule_id": x.number, "priority": x.priority, "actions": "ALLOW"}
	if x.deny {
		out["actions"] = "DENY"
	}
	showNamedMatch(&x.match, out)
	return out
}

// rules answers with the rules of a switch, by VLAN.
func (f *firewall) rules(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	list, err := f.list(ctx, sw)
	if err != nil {
		return nil, err
	}
	type group struct {
		VLAN  string `json:"vlan_id,omitempty"`
		Rules []any  `json:"rules"`
	}
	of := map[string]*group{}
	for _, x := range list {
		if !all && x.vlan != vlanText(vlan) {
			continue
		}
		if of[x.vlan] == nil {
			of[x.vlan] = &group{VLAN: x.vlan}
		}
		of[x.vlan].Rules = append(of[x.vlan].Rules, x.show())
	}
	groups := []*group{}
	for _, v := range slices.Sorted(maps.Keys(of)) {
		groups = append(groups, of[v])
	}
	return map[string]any{"switch_id": sw.String(), "access_control_list": groups}, nil
}

// addRule adds a rule to a switch. One of the same priority and match is
// replaced, as an entry of a switch is.
func (f *firewall) addRule(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	body, err := r.dict()
	if err != nil {
		return nil, err
	}
	list, err := f.list(ctx, sw)
	if err != nil {
		return nil, err
	}
	vlans := map[uint16]bool{vlan: true}
	for _, x := range list {
		if all {
			vlans[x.path] = true
		}
	}
	state := f.of(sw)
	results := []commandResult{}
	req := &api.AddFirewallRulesRequest{}
	gone := &api.DeleteFirewallRulesRequest{}
	for _, v := range slices.Sorted(maps.Keys(vlans)) {
		m, match, err := readRule(body, v)
		if err != nil {
			return nil, err
		}
		for _, x := range list {
			if x.path == v {
				state.Last[v] = max(state.Last[v], x.number)
			}
			if x.priority == m.Priority && x.match == match {
				gone.Ids = append(gone.Ids, x.id)
			}
		}
		state.Last[v]++
		m.Id, m.Dpid = ruleID(sw, v, state.Last[v]), sw.String()
		req.Rules = append(req.Rules, m)
		result := commandResult{Result: "success", Details: fmt.Sprintf("Rule added. : rule_id=%d", state.Last[v])}
		if v != vlanNone {
			result.VLAN = &v
		}
		results = append(results, result)
	}
	if err := f.save(ctx, sw, state); err != nil {
		return nil, err
	}
	added, err := f.filter.addRules(ctx, req)
	if err != nil {
		return nil, err
	}
	failures := added.Failures
	if len(gone.Ids) > 0 {
		deleted, err := f.filter.deleteRules(ctx, gone)
		if err != nil {
			return nil, err
		}
		failures = append(failures, deleted.Failures...)
	}
	if err := f.tell(r, failures); err != nil {
		return nil, err
	}
	return resultOf(sw, results), nil
}

// deleteRule deletes a rule of a switch, or all.
func (f *firewall) deleteRule(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	body, err := r.dict()
	if err != nil {
		return nil, err
	}
	number := numberText(body["rule_id"])
	want, err := strconv.ParseUint(number, 10, 63)
	if number != "all" && err != nil {
		return nil, bad("Invalid ruleID.")
	}
	list, err := f.list(ctx, sw)
	if err != nil {
		return nil, err
	}
	req := &api.DeleteFirewallRulesRequest{}
	ids := map[string][]string{}
	for _, x := range list {
		if (number == "all" || want == uint64(x.number)) && (all || x.vlan == vlanText(vlan)) {
			req.Ids = append(req.Ids, x.id)
			ids[x.vlan] = append(ids[x.vlan], strconv.FormatUint(uint64(x.number), 10))
		}
	}
	if len(req.Ids) == 0 {
		details := "Rule is not exist."
		if number != "all" {
			details += " : ruleID=" + strconv.FormatUint(want, 10)
		}
		return resultOf(sw, commandResult{Result: "failure", Details: details}), nil
	}
	resp, err := f.filter.deleteRules(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := f.tell(r, resp.Failures); err != nil {
		return nil, err
	}
	results := []map[string]any{}
	for _, v := range slices.Sorted(maps.Keys(ids)) {
		result := map[string]any{"result": "success", "details": "Rule deleted. : ruleID=" + strings.Join(ids[v], ",")}
		if v != "" {
			result["vlan_id"] = v
		}
		results = append(results, result)
	}
	return resultOf(sw, results), nil
}

// readRule reads the body of a rule for a VLAN; without id and switch.
func readRule(body dict, vlan uint16) (*api.FirewallRule, flow.Match, error) {
	var none flow.Match
	priority, err := rulePriority(body, ruleLeast, ruleMost)
	if err != nil {
		return nil, none, err
	}
	in := maps.Clone(body)
	delete(in, "priority")
	delete(in, "actions")
	if vlan != vlanNone {
		in["dl_vlan"] = vlanText(vlan)
	}
	match, err := readNamedMatch(in)
	if err != nil {
		return nil, none, err
	}
	m := &api.FirewallRule{Priority: priority, Match: match.Text()}
	action, given := body["actions"]
	switch {
	case !given || action == "ALLOW":
		m.Action = "allow"
	case action == "DENY" || action == "PACKETIN":
		m.Action = "deny"
	default:
		return nil, none, bad("Invalid action type.")
	}
	if v := match.Key.VLAN; match.Set.Has(flow.FieldVLAN) && !match.Masked.Has(flow.FieldVLAN) && v > flow.VLANPresent {
		m.Vlan = uint32(v &^ flow.VLANPresent)
		delete(m.Match, flow.FieldVLAN.String())
	}
	return m, match, nil
}

// rulePriority reads the priority of a rule, a number or the text of one.
func rulePriority(body dict, least, most uint64) (uint32, error) {
	v, ok := body["priority"]
	if !ok {
		return uint32(least), nil
	}
	n, err := strconv.ParseUint(numberText(v), 10, 64)
	if err != nil || n < least || n > most {
		return 0, bad("Invalid priority value. Set [%d-%d]", least, most)
	}
	return uint32(n), nil
}
