package qos

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Switches is the part of the southbound that the service uses.
type Switches interface {
	// ReadFlows returns our entries on a switch, with counters.
	ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error)
	// ReadMeters returns the meters of a switch, with counters.
	ReadMeters(ctx context.Context, sw flow.DPID) ([]*api.Meter, error)
}

// readers is how many switches are read at once.
const readers = 16

// The states of a policy on a switch.
const (
	enforced = "enforced"
	pending  = "pending"
	failing  = "failing"
	refused  = "refused"
	away     = "away"
	idle     = "idle"
)

// site is the policies on one switch, and its counts.
type site struct {
	sw     flow.DPID
	info   *api.Switch
	status *api.QosSwitch
	*compiled
	flows  map[flow.EntryKey]*api.FlowEntry
	meters map[uint32]*api.Meter
}

// status answers GetStatus. standing returns the state of a switch.
func (b *store) status(ctx context.Context, only string, network Switches, standing func(flow.DPID) (string, error)) (*api.QosStatus, error) {
	b.mu.Lock()
	order := b.order
	if only != "" {
		p := b.policies.Get(only)
		if p == nil {
			b.mu.Unlock()
			return nil, api.Errorf(codes.NotFound, "there is no policy %q; ListPolicies tells those that are", only)
		}
		order = []*policy{p}
	}
	var sites []*site
	for _, sw := range b.net.DPIDs() {
		sites = append(sites, b.site(sw, standing))
	}
	b.mu.Unlock()

	count(ctx, sites, order, network)
	resp := &api.QosStatus{}
	for _, s := range sites {
		resp.Switches = append(resp.Switches, s.status)
	}
	for _, p := range order {
		resp.Policies = append(resp.Policies, p.status(sites))
	}
	return resp, nil
}

// site returns what is known of a switch without asking it. It is called with mu
// held.
func (b *store) site(sw flow.DPID, standing func(flow.DPID) (string, error)) *site {
	info := b.net.Info(sw)
	c, err := b.compile(b.order, sw)
	s := &site{sw: sw, info: info, compiled: c, status: &api.QosSwitch{Dpid: sw.String(), Entries: uint32(len(c.entries)), Meters: uint32(len(c.meters))}}
	switch why := info.Lack(api.NeedTables); {
	case !info.Connected:
		s.status.State, s.status.Reason = away, info.Reason
	case why != "":
		why = "the switch " + why
		s.status.State, s.status.Reason, s.status.Entries, s.status.Meters = refused, why, 0, 0
	case err != nil:
		s.status.State, s.status.Reason = failing, err.Error()
	default:
		state, err := standing(sw)
		s.status.State = map[string]string{"in_sync": enforced, "failing": failing, "away": away}[state]
		if s.status.State == "" {
			s.status.State = pending
		}
		if err != nil {
			s.status.Reason = err.Error()
		}
	}
	return s
}

// count reads the counters of the switches to which policies apply.
func count(ctx context.Context, sites []*site, order []*policy, network Switches) {
	slots := make(chan struct{}, readers)
	var work sync.WaitGroup
	defer work.Wait()
	for _, s := range sites {
		if s.status.State != enforced && s.status.State != failing || !slices.ContainsFunc(order, func(p *policy) bool { return s.concern[p] }) {
			continue
		}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			flows, err := network.ReadFlows(ctx, s.sw)
			if err != nil {
				return
			}
			s.flows = map[flow.EntryKey]*api.FlowEntry{}
			for _, f := range flows {
				if _, e, err := f.Entry(); err == nil {
					e.Match.Normalize()
					s.flows[e.Key()] = f
				}
			}
			meters, err := network.ReadMeters(ctx, s.sw)
			if err != nil {
				return
			}
			s.meters = map[uint32]*api.Meter{}
			for _, m := range meters {
				s.meters[m.Id] = m
			}
		})
	}
}

// status returns what switches do for a policy.
func (p *policy) status(sites []*site) *api.QosPolicyStatus {
	st := &api.QosPolicyStatus{Policy: p.said.Name}
	for _, s := range sites {
		if !s.concern[p] {
			continue
		}
		at := &api.QosPolicySwitch{Dpid: s.status.Dpid, State: s.status.State, Reason: s.status.Reason}
		if why := s.info.Lack(p.needs()...); at.State == enforced && why != "" {
			at.State, at.Reason = failing, "later fragments are not limited: the switch "+why
		}
		st.Switches = append(st.Switches, at)
		if s.flows == nil || p.said.Limit != nil && s.meters == nil {
			continue
		}
		at.Counted = true
		for i, v := range s.by {
			if f := s.flows[s.entries[i].Key()]; f != nil && (v.limit == p || v.mark == p || v.queue == p) {
				at.Packets += f.Packets
				at.Bytes += f.Bytes
			}
		}
		if m := s.meters[p.said.Meter]; p.said.Limit != nil && m != nil {
			for _, band := range m.Bands {
				at.BeyondPackets += band.Packets
				at.BeyondBytes += band.Bytes
			}
		}
	}
	st.State, st.Reason = p.overall(st.Switches)
	return st
}

// overall returns the state of a policy: the worst of its states on switches.
func (p *policy) overall(at []*api.QosPolicySwitch) (state, reason string) {
	if len(at) == 0 {
		switch {
		case p.host.given():
			return idle, "host " + p.said.Host + " is not known yet; the policy takes effect where it turns up"
		case p.sited:
			return idle, "switch " + p.said.Dpid + " has not connected yet"
		}
		return idle, "no switch has connected yet"
	}
	worst := []string{refused, failing, pending, enforced, away}
	first := at[0]
	for _, s := range at[1:] {
		if slices.Index(worst, s.State) < slices.Index(worst, first.State) {
			first = s
		}
	}
	if first.Reason != "" {
		reason = "switch " + first.Dpid + ": " + first.Reason
	}
	return first.State, reason
}
