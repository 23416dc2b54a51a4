package firewall

import (
	"context"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// listRules answers the call.
func (b *store) listRules(ctx context.Context, req *api.ListFirewallRulesRequest) (*api.ListFirewallRulesResponse, error) {
	sw, err := parseSwitch(req.Dpid)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	resp := &api.ListFirewallRulesResponse{Total: uint32(len(b.rules))}
	var list []*rule
	take := func(r *rule) {
		if r != nil && (req.Dpid == "" || r.local && r.sw == sw) {
			list = append(list, r)
		}
	}
	if len(req.Ids) > 0 {
		for _, id := range req.Ids {
			take(b.rules[id])
		}
	} else {
		for _, r := range b.rules {
			take(r)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(list, compareRules)
	list = slices.Compact(list)
	if req.Limit > 0 && len(list) > int(req.Limit) {
		list = list[:req.Limit]
	}
	var counts map[uint32][2]uint64
	if req.Counts {
		counts = b.counts(ctx)
	}
	resp.Rules = make([]*api.FirewallRule, len(list))
	stands := b.stands()
	for i, r := range list {
		m := proto.CloneOf(r.msg)
		n := counts[m.Number]
		packets, bytes := r.count.read()
		m.Packets, m.Bytes = packets+n[0], bytes+n[1]
		m.State, m.Reason = stands.of(r)
		resp.Rules[i] = m
	}
	return resp, nil
}

// counts returns the packets and bytes of the switches' entries by rule number.
// It leaves out switches that do not answer.
func (b *store) counts(ctx context.Context) map[uint32][2]uint64 {
	sum := make(map[uint32][2]uint64)
	lists := make(chan []*api.FlowEntry, 64)
	go func() {
		defer close(lists)
		each(b.sites.all(), func(s *site) error {
			s.mu.Lock()
			connected, mode := s.info.GetConnected(), modeOff
			if s.program != nil {
				mode = s.program.mode
			}
			s.mu.Unlock()
			if !connected || mode == modeOff {
				return nil
			}
			owner := flow.OwnerFirewall
			if mode == modeReactive {
				owner = flow.OwnerVerdicts
			}
			flows, err := b.net.ReadFlows(ctx, s.dpid, owner)
			lists <- flows
			return err
		})
	}()
	for flows := range lists {
		for _, f := range flows {
			cookie, err := strconv.ParseUint(f.Cookie, 16, 64)
			if err != nil {
				continue
			}
			n := sum[flow.Cookie(cookie).ID()]
			sum[flow.Cookie(cookie).ID()] = [2]uint64{n[0] + f.Packets, n[1] + f.Bytes}
		}
	}
	return sum
}

// status answers the call.
func (b *store) status(_ context.Context, req *api.GetFirewallStatusRequest) (*api.FirewallStatus, error) {
	set := b.now.Load()
	resp := &api.FirewallStatus{DefaultAction: set.fallback, Rules: uint32(set.rules)}
	only, err := parseSwitch(req.Dpid)
	if err != nil {
		return nil, err
	}
	for _, s := range b.sites.all() {
		resp.Allowed += s.allowed.Load()
		resp.Denied += s.denied.Load()
		if req.Dpid == "" || s.dpid == only {
			resp.Switches = append(resp.Switches, b.describe(s, set))
		}
	}
	return resp, nil
}

// describe reports how a switch follows the rules.
func (b *store) describe(s *site, set *ruleset) *api.FirewallSwitch {
	v := set.view(s.dpid)
	m := &api.FirewallSwitch{Dpid: s.dpid.String(), DefaultAction: actionAllow, Mode: modeOff, Rules: uint32(v.size())}
	switch _, m.OwnDefault = set.ownBack[s.dpid]; {
	case v.block:
		m.DefaultAction = actionBlock
	case v.deny:
		m.DefaultAction = actionDeny
	}
	s.mu.Lock()
	if s.program != nil {
		m.Mode, m.Reason, m.Entries = s.program.mode, s.program.reason, uint32(len(s.program.entries))
	}
	m.Verdicts = uint32(len(s.verdicts))
	s.mu.Unlock()
	state, err := b.keeper.Status(s.dpid)
	if m.Sync = state; err != nil {
		m.Reason = err.Error()
	}
	return m
}

// check answers the call.
func (b *store) check(_ context.Context, req *api.CheckFirewallRequest) (*api.CheckFirewallResponse, error) {
	sw, err := parseSwitch(req.Dpid)
	if err != nil {
		return nil, err
	}
	list, err := parseConditions(&api.FirewallRule{Match: req.Packet})
	switch {
	case err != nil:
		return nil, api.Errorf(codes.InvalidArgument, "packet: %w", err)
	case len(list) != 1:
		return nil, api.Errorf(codes.InvalidArgument, "packet: say eth_type, 0x0800 for IPv4 or 0x86dd for IPv6")
	case list[0].match.Masked != 0 || list[0].src != everyPort || list[0].dst != everyPort:
		return nil, api.Errorf(codes.InvalidArgument, "packet: want exact values; a packet has neither masks nor ranges")
	}
	var w words
	w.pack(&list[0].match.Key)
	v := b.now.Load().view(sw)
	c, deny := v.judge(&search{}, &w, nil)
	resp := &api.CheckFirewallResponse{Action: actionAllow}
	if deny {
		resp.Action = actionDeny
	}
	if c != nil {
		resp.Rule = proto.CloneOf(c.rule.msg)
	}
	return resp, nil
}
