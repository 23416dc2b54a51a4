package firewall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// errorsMost is how many mistakes of a request are listed.
const errorsMost = 100

// The effects of requests.
const (
	effectAdded     = "added"
	effectReplaced  = "replaced"
	effectUnchanged = "unchanged"
	effectDeleted   = "deleted"
	effectAbsent    = "absent"
)

// effectsListed bounds the rules that the answer to a request for all of them
// lists.
const effectsListed = 1000

// addRules answers the call.
func (b *store) addRules(ctx context.Context, req *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error) {
	rules, errs := make([]*rule, len(req.Rules)), make([]error, len(req.Rules))
	for i, m := range req.Rules {
		rules[i], errs[i] = newRule(m)
	}
	resp := &api.AddFirewallRulesResponse{}
	x, err := b.change(ctx, req.DryRun, "no rule is in force or kept: %w; add them again", func() ([]object.Edit, error) {
		if err := b.admit(req.Rules, rules, errs); err != nil {
			return nil, err
		}
		return b.edits(b.place(req.Rules, rules, resp)), nil
	})
	switch {
	case err != nil:
		return nil, err
	case !req.DryRun && !(x.empty() && req.NoWait):
		resp.Failures = b.enforce(ctx, x, !req.NoWait)
	}
	return resp, nil
}

// place gives the rules of a request their numbers, and says in the response what
// happens to each. It returns those that are not there yet. It is called with mu held.
func (b *store) place(list []*api.FirewallRule, rules []*rule, resp *api.AddFirewallRulesResponse) map[uint32]*rule {
	next, free := map[uint32]*rule{}, b.free(b.low)
	b.low = free
	for i, r := range rules {
		old := b.rules[r.id]
		effect, number := effectAdded, uint32(0)
		switch {
		case old == nil:
			number, free = free, b.free(free+1)
			resp.Added++
		case r.same(old, list[i]):
			effect = effectUnchanged
			resp.Unchanged++
		default:
			effect, number = effectReplaced, old.number()
			resp.Replaced++
			resp.Before = append(resp.Before, old.msg)
		}
		resp.Ids, resp.Effects = append(resp.Ids, r.id), append(resp.Effects, effect)
		if number != 0 {
			r.msg = r.kept(list[i], number)
			next[number] = r
		}
	}
	return next
}

// admit checks the rules of a request, and gives ids to those without. It returns all
// mistakes in them. It is called with mu held.
func (b *store) admit(list []*api.FirewallRule, rules []*rule, bad []error) error {
	var errs []error
	wrong := func(i int, err error) {
		if len(errs) == errorsMost {
			errs = append(errs, errors.New("and more"))
		}
		if len(errs) < errorsMost {
			errs = append(errs, fmt.Errorf("rules[%d]: %w", i, err))
		}
	}
	seen := make(map[string]int, len(list))
	added := 0
	for i, r := range rules {
		if bad[i] != nil {
			wrong(i, bad[i])
			continue
		}
		if r.id == "" {
			r.id = b.madeUp(list[i], seen)
		}
		if first, twice := seen[r.id]; twice {
			wrong(i, fmt.Errorf("id %s is that of rules[%d], too", r.id, first))
			continue
		}
		seen[r.id] = i
		if b.rules[r.id] == nil {
			added++
		}
	}
	if len(errs) == 0 && len(b.rules)+added > b.cfg.MaxRules {
		return api.Errorf(codes.ResourceExhausted, "%d rules are there and %d more asked for: want at most %d (firewall.max_rules)", len(b.rules), added, b.cfg.MaxRules)
	}
	if len(errs) > 0 {
		return api.Errorf(codes.InvalidArgument, "no rule was taken:\n%w", errors.Join(errs...))
	}
	for i, r := range rules {
		if err := b.holds(r); err != nil && !r.same(b.rules[r.id], list[i]) {
			return err
		}
	}
	return nil
}

// deleteRules deletes the rules that a request names, and those for which also returns true.
func (b *store) deleteRules(ctx context.Context, req *api.DeleteFirewallRulesRequest, also func(*rule) bool) (*api.DeleteFirewallRulesResponse, error) {
	resp := &api.DeleteFirewallRulesResponse{}
	x, err := b.change(ctx, req.DryRun, "all rules are still in force and kept: %w; delete them again", func() ([]object.Edit, error) {
		var more []string
		for id, r := range b.rules {
			if also(r) {
				more = append(more, id)
			}
		}
		slices.Sort(more)
		gone, seen := map[uint32]*rule{}, map[string]bool{}
		for _, id := range slices.Concat(req.Ids, more) {
			if seen[id] {
				continue
			}
			seen[id] = true
			effect := effectAbsent
			if r := b.rules[id]; r != nil {
				effect, gone[r.number()] = effectDeleted, nil
			}
			resp.Ids, resp.Effects = append(resp.Ids, id), append(resp.Effects, effect)
		}
		resp.Deleted = uint32(len(gone))
		most := min(len(resp.Ids), len(req.Ids)+effectsListed)
		resp.Ids, resp.Effects = resp.Ids[:most], resp.Effects[:most]
		return b.edits(gone), nil
	})
	if err != nil {
		return nil, err
	}
	if resp.Deleted > 0 && !req.DryRun {
		resp.Failures = b.enforce(ctx, x, !req.NoWait)
	}
	return resp, nil
}

// setDefault answers the call.
func (b *store) setDefault(ctx context.Context, req *api.SetFirewallDefaultRequest) (*api.SetFirewallDefaultResponse, error) {
	if req.Action != "" || req.Dpid == "" {
		if err := checkDefault(req.Action); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
	}
	sw, err := parseSwitch(req.Dpid)
	if err != nil {
		return nil, err
	}
	resp := &api.SetFirewallDefaultResponse{Effect: effectReplaced}
	x, err := b.change(ctx, req.DryRun, "the default is not changed: %w", func() ([]object.Edit, error) {
		back, own := b.back, maps.Clone(b.ownBack)
		if resp.Before = back; req.Dpid == "" {
			back = req.Action
		} else if resp.Before, own[sw] = own[sw], req.Action; req.Action == "" {
			delete(own, sw)
		}
		if resp.Before == req.Action {
			resp.Effect = effectUnchanged
			return nil, nil
		}
		return []object.Edit{b.kept.Edit(keyDefaults, func(*record) (*record, error) { return defaultsRecord(back, own), nil })}, nil
	})
	if err != nil {
		return nil, err
	}
	if !x.empty() {
		resp.Failures = b.enforce(ctx, x, !req.NoWait)
	}
	return resp, nil
}

// edits returns the edits that give numbers their rules; nil is none.
func (b *store) edits(next map[uint32]*rule) (list []object.Edit) {
	done := map[string]bool{}
	for _, n := range slices.Sorted(maps.Keys(next)) {
		if key := chunkKey(n); !done[key] {
			done[key] = true
			list = append(list, b.kept.Edit(key, func(*record) (*record, error) { return b.chunkOf(n, next), nil }))
		}
	}
	return list
}

// parseSwitch reads the dpid of a request; an empty one is 0.
func parseSwitch(dpid string) (sw flow.DPID, err error) {
	if dpid != "" {
		if sw, err = flow.ParseDPID(dpid); err != nil {
			err = api.Errorf(codes.InvalidArgument, "dpid: %w", err)
		}
	}
	return sw, err
}
