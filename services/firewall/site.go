package firewall

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// network is what the firewall asks of others.
type network interface {
	// Apply carries out a decision and returns when the switch has confirmed it.
	Apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error)
	// Send carries out a decision and returns when it is on its way.
	Send(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error)
	// ReadFlows returns an owner's entries on a switch.
	ReadFlows(ctx context.Context, sw flow.DPID, owner flow.Owner) ([]*api.FlowEntry, error)
}

// pendingMost bounds the packets of a switch whose verdicts wait to be installed.
const pendingMost = 1024

// sendTime bounds the sending and the removal of verdicts.
const sendTime = 3 * time.Second

// site is one switch.
type site struct {
	dpid     flow.DPID
	enforced atomic.Uint64 // version of the ruleset that the switch has confirmed
	reactive atomic.Bool   // verdicts are installed
	allowed  atomic.Uint64
	denied   atomic.Uint64
	shed     atomic.Uint64 // verdicts not installed because there were too many

	waiting sync.Mutex // guards pending and queued
	pending []words    // packets whose verdicts are to be installed
	queued  bool       // the site is queued in line

	sending chan struct{} // holds a token while verdicts are sent or removed, so that they do not cross

	mu       sync.Mutex  // guards the following
	info     *api.Switch // as it last connected or disconnected; read-only
	changes  uint64      // how often the switch has connected or disconnected
	target   target
	program  *program // as last declared
	version  uint64   // of the ruleset that it is of
	verdicts map[flow.Match]*verdict
	unknown  bool              // the switch may have verdicts that are not in verdicts, or none of them holds
	stale    []*cond           // changed conditions: verdicts on packets that they may concern no longer hold
	failed   map[uint32]string // why the switch does not have entries of the last declared, by the number of the rule; 0 is of none
}

// verdict is one that a switch has.
type verdict struct {
	value, mask words
	since       time.Time
}

// propose queues a packet whose verdict is to be installed soon. It does not
// block.
func (s *site) propose(w *words, line chan<- *site) {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	if len(s.pending) >= pendingMost {
		s.shed.Add(1)
		return
	}
	s.pending = append(s.pending, *w)
	if !s.queued {
		select {
		case line <- s:
			s.queued = true
		default: // the next packet tries again
		}
	}
}

// take returns the packets whose verdicts are to be installed.
func (s *site) take(spare []words) []words {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	list := s.pending
	s.pending, s.queued = spare[:0], false
	return list
}

// send waits for its turn and sends what choose returns, if anything, by carry.
// It holds no lock meanwhile. It calls sent with the outcome, locked.
func (s *site) send(ctx context.Context, choose func() *flow.Decision, carry func(context.Context, *flow.Decision) (*api.ApplyResult, error), sent func(error)) error {
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	d := choose()
	s.mu.Unlock()
	if d.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	res, err := carry(ctx, d)
	if err == nil && len(res.GetFailures()) > 0 {
		err = fmt.Errorf("%s", res.Failures[0].Text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.unknown = true
	}
	sent(err)
	return err
}

// install installs the verdicts on packets by the current rules.
func (s *site) install(ctx context.Context, b *store, list []words, now time.Time) error {
	return s.send(ctx, func() *flow.Decision { return s.verdictsOn(b, list, now) }, b.net.Send, func(error) {})
}

// verdictsOn records the verdicts on packets and returns the decision that
// installs them; mu is held.
func (s *site) verdictsOn(b *store, list []words, now time.Time) *flow.Decision {
	d := &flow.Decision{}
	if !s.info.GetConnected() || s.unknown || !s.reactive.Load() {
		return d
	}
	v := b.now.Load().view(s.dpid)
	var look search
	for i := range list {
		var trace words
		c, deny := v.judge(&look, &list[i], &trace)
		m, err := matchOf(&list[i], &trace)
		if err != nil {
			s.shed.Add(1)
			continue
		}
		old := s.verdicts[m]
		if old != nil && now.Sub(old.since) < time.Second {
			continue
		}
		if old == nil && len(s.verdicts) >= b.cfg.VerdictLimit {
			s.shed.Add(1)
			b.reached.Reach(now.UnixNano(), "firewall.verdict_limit", b.cfg.VerdictLimit, "switch "+s.dpid.String())
			continue
		}
		value := list[i]
		for j := range value {
			value[j] &= trace[j]
		}
		s.verdicts[m] = &verdict{value, trace, now}
		number := uint32(0)
		if c != nil {
			number = c.rule.number()
		}
		e := &d.AddFlow(s.dpid).Entry
		*e = passing(flow.PriorityFirewallVerdict, m, number)
		if deny {
			*e = dropping(flow.PriorityFirewallVerdict, m, number)
		}
		e.Cookie = flow.NewCookie(flow.OwnerVerdicts, 0, number)
		e.IdleTimeout, e.Flags = uint16(b.cfg.VerdictIdle.Seconds()), flow.FlagSendRem
	}
	return d
}

// removed records that a switch no longer has a verdict.
func (s *site) removed(m flow.Match) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.verdicts[m]; v != nil && time.Since(v.since) > time.Second {
		delete(s.verdicts, m)
	}
}

// comparisons bounds the search for verdicts that a change concerns; beyond it,
// all are removed.
const comparisons = 2_000_000

// outdate records that verdicts may no longer hold after a change.
func (s *site) outdate(x *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verdicts) == 0 {
		return
	}
	for _, d := range []*delta{&x.delta, x.own[s.dpid]} {
		if d != nil {
			s.stale, s.unknown = append(append(s.stale, d.add...), d.remove...), s.unknown || d.fallback
		}
	}
}

// revoke removes the verdicts that may no longer hold, and waits until the switch
// confirms it.
func (s *site) revoke(ctx context.Context, net network) error {
	var gone []flow.Match
	var changes uint64
	err := s.send(ctx, func() *flow.Decision {
		var d *flow.Decision
		d, gone = s.revocation()
		changes = s.changes
		return d
	}, net.Apply, func(err error) {
		switch {
		case err != nil || changes != s.changes: // it may have been another session
		case gone == nil:
			clear(s.verdicts)
			s.unknown = false
		default:
			for _, m := range gone {
				delete(s.verdicts, m)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("verdicts not removed: %w", err)
	}
	return nil
}

// revocation returns the decision that removes the verdicts that may no longer hold,
// and these verdicts; nil if they are all. mu is held.
func (s *site) revocation() (d *flow.Decision, gone []flow.Match) {
	d = &flow.Decision{}
	changed := s.stale
	s.stale = nil
	if !s.info.GetConnected() || len(s.verdicts) == 0 && !s.unknown {
		return d, nil
	}
	if !s.unknown && len(changed)*len(s.verdicts) <= comparisons {
		gone = make([]flow.Match, 0, 16)
		for m, v := range s.verdicts {
			if slices.ContainsFunc(changed, func(c *cond) bool { return c.mayConcern(v) }) {
				gone = append(gone, m)
			}
		}
		if len(gone) <= 500 {
			for _, m := range gone {
				mod := d.AddFlow(s.dpid)
				mod.Command = flow.DeleteStrict
				mod.Entry.Table, mod.Entry.Priority, mod.Entry.Match = flow.TableFirewall, flow.PriorityFirewallVerdict, m
				mod.Entry.Cookie, mod.CookieMask = flow.NewCookie(flow.OwnerVerdicts, 0, 0), flow.OwnerMask
			}
			return d, gone
		}
	}
	mod := d.AddFlow(s.dpid)
	mod.Command = flow.Delete
	mod.Entry.Table, mod.Entry.Cookie, mod.CookieMask = flow.TableFirewall, flow.NewCookie(flow.OwnerVerdicts, 0, 0), flow.OwnerMask
	return d, nil
}
