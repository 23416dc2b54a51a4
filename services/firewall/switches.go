package firewall

import (
	"context"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/policy"
)

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.segmentsChanged(c)
	for _, f := range c.Switches() {
		if f.Is != nil {
			b.sites.of(f.Is.Key).switchChanged(f.Is.Is.Switch)
		}
	}
	for _, sw := range c.SwitchesOf(flow.RoleLink) {
		if b.sites.of(sw).filters() {
			b.kept.Recompute(sw)
		}
	}
}

// switchChanged records that the switch has connected or disconnected.
func (s *site) switchChanged(info *api.Switch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info, s.unknown = info, true
	s.changes++
	s.enforced.Store(0)
	clear(s.verdicts)
	s.stale = nil
	s.program, s.version, s.target.forced = nil, 0, ""
	if info.Connected {
		s.target.old = info.Openflow == "1.0"
		s.target.single = flow.ForwardTable(info.Tables, s.target.old) == 0
		s.unknown = !s.target.single // one table never has verdicts
	}
}

// filters reports whether the switch has been declared entries.
func (s *site) filters() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.program != nil && s.program.mode != modeOff
}

// want returns the entries that a switch should have now.
func (b *store) want(info *api.Switch) policy.Rules {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return policy.Rules{}
	}
	s := b.sites.of(sw)
	s.mu.Lock()
	defer s.mu.Unlock()
	set := b.now.Load()
	v := set.view(sw)
	t := s.target
	t.links = b.network().PortsWith(sw, flow.RoleLink)
	p := v.compile(&t, b.cfg.TableLimit)
	s.program, s.version = p, set.version
	s.reactive.Store(p.mode == modeReactive)
	if p.mode != modeReactive && len(s.verdicts) > 0 {
		s.unknown = true // review removes them when the entries are there
	}
	return policy.Rules{Flows: p.entries}
}

// review records which switches have confirmed their entries. If a switch refuses
// them, the controller judges its packets. It reports whether there are such
// switches.
func (b *store) review() (again bool) {
	for _, s := range b.sites.all() {
		s.mu.Lock()
		version, p, connected := s.version, s.program, s.info.GetConnected()
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
			b.kept.Recompute(s.dpid)
			again = true
		}
	}
	return again
}

// reviewInterval is how often switches are reviewed while nothing changes.
const reviewInterval = 250 * time.Millisecond

// watch reviews the switches until ctx ends. It removes verdicts that no longer hold, and
// those that an earlier run, or a session, may have left.
func (b *store) watch(ctx context.Context) {
	tick := time.NewTicker(reviewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-b.changes:
		}
		b.review()
		var due []*site
		for _, s := range b.sites.all() {
			s.mu.Lock()
			if s.info.GetConnected() && (s.unknown || len(s.stale) > 0) && s.program != nil {
				due = append(due, s)
			}
			s.mu.Unlock()
		}
		each(due, func(s *site) error { return s.revoke(ctx, b.net) })
	}
}

// flowRemoved records that a verdict has ended.
func (b *store) flowRemoved(ev *api.FlowRemoved) {
	if ev.GetFlow().GetOwner() != flow.OwnerVerdicts.String() {
		return
	}
	if sw, e, err := ev.Flow.Entry(); err == nil {
		e.Match.Normalize()
		b.sites.of(sw).removed(e.Match)
	}
}
