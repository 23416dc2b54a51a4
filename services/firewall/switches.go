package firewall

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// switchChanged records a switch that has connected or disconnected.
func (b *store) switchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	s := b.site(sw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected, s.unknown = ev.Switch.Connected, true
	s.changes++
	s.enforced.Store(0)
	clear(s.verdicts)
	s.program, s.version, s.target.forced = nil, 0, ""
	s.info = proto.CloneOf(ev.Switch)
	if s.connected {
		s.target.old = ev.Switch.Openflow == "1.0"
		s.target.single = flow.ForwardTable(ev.Switch.Tables, s.target.old) == 0
		s.unknown = !s.target.single // one table never has verdicts
	}
}

// roleChanged records which ports lead to other switches. It returns the switch
// if its entries may change.
func (b *store) roleChanged(at flow.Location, role string) (sw flow.DPID, changed bool) {
	s := b.site(at.Switch)
	s.mu.Lock()
	defer s.mu.Unlock()
	link := role == flow.RoleLink.String()
	if s.ports[at.Port] == link {
		return at.Switch, false
	}
	if s.ports[at.Port] = link; !link {
		delete(s.ports, at.Port)
	}
	return at.Switch, s.program != nil && s.program.mode != modeOff
}

// want returns the entries that a switch should have now.
func (b *store) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return nil
	}
	s := b.site(sw)
	s.mu.Lock()
	defer s.mu.Unlock()
	set := b.now.Load()
	v := set.view(sw)
	t := s.target
	for port := range s.ports {
		t.links = append(t.links, port)
	}
	p := v.compile(&t, b.cfg.TableLimit)
	s.program, s.version = p, set.version
	s.reactive.Store(p.mode == modeReactive)
	if p.mode != modeReactive && len(s.verdicts) > 0 {
		s.unknown = true // review removes them when the entries are there
	}
	req := &api.SetStandingRequest{}
	for i := range p.entries {
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &p.entries[i]))
	}
	return req
}

// review records which switches have confirmed their entries. If a switch refuses
// them, the controller judges its packets. It reports whether there are such
// switches.
func (b *store) review() (again bool) {
	for _, s := range b.everySite() {
		s.mu.Lock()
		version, p, connected := s.version, s.program, s.connected
		s.mu.Unlock()
		if !connected || p == nil {
			continue
		}
		state, err := b.keeper.Status(s.dpid)
		switch {
		case state == "in_sync":
			s.enforced.Store(version)
		case state == "failing":
			s.enforced.Store(0) // what it had confirmed may be gone
		}
		switch {
		case err != nil && api.RefusedBySwitch(err) && p.mode == modeCompiled:
			s.mu.Lock()
			s.target.forced = err.Error()
			s.mu.Unlock()
			b.log.Warn("a switch refuses the entries of rules: its packets are judged by the controller", "dpid", s.dpid, "error", err)
			b.keeper.Recompute(s.dpid)
			again = true
		}
	}
	return again
}

// reviewInterval is how often switches are reviewed while nothing changes.
const reviewInterval = 250 * time.Millisecond

// watch reviews the switches until ctx ends. It removes verdicts that an earlier
// run, or a session, may have left.
func (b *store) watch(ctx context.Context) {
	tick := time.NewTicker(reviewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.review()
		var due []*site
		for _, s := range b.everySite() {
			s.mu.Lock()
			if s.connected && s.unknown && s.program != nil && s.version > 0 {
				due = append(due, s)
			}
			s.mu.Unlock()
		}
		b.each(due, func(s *site) error { return s.revoke(ctx, b, nil, true) })
	}
}

// flowRemoved records that a verdict has ended.
func (b *store) flowRemoved(ev *api.FlowRemoved) {
	if ev.GetFlow().GetOwner() != flow.OwnerVerdicts.String() {
		return
	}
	if sw, e, err := ev.Flow.Entry(); err == nil {
		e.Match.Normalize()
		b.site(sw).removed(e.Match)
	}
}
