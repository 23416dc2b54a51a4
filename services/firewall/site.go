package firewall

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// network is what the firewall asks of others.
type network interface {
	// Apply carries out a decision and returns when it is confirmed.
	Apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error)
	// Send carries out a decision and returns when it is on its way.
	Send(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error)
	// ReadFlows returns the entries of an owner that a switch has.
	ReadFlows(ctx context.Context, sw flow.DPID, owner flow.Owner) ([]*api.FlowEntry, error)
}

// pendingMost bounds the packets of a switch whose verdicts wait to be installed.
const pendingMost = 1024

// sendTime is how long verdicts may take to be sent, or to be removed.
const sendTime = 3 * time.Second

// site is one switch.
type site struct {
	dpid     flow.DPID
	enforced atomic.Uint64 // the ruleset that the switch has confirmed, by its version
	reactive atomic.Bool   // verdicts are installed
	allowed  atomic.Uint64
	denied   atomic.Uint64
	shed     atomic.Uint64 // verdicts that were not installed, as there were too many

	waiting sync.Mutex // guards pending and queued
	pending []words    // packets whose verdicts are to be installed
	queued  bool       // the site is in the line of those with work

	mu        sync.Mutex // guards the following; held while verdicts are sent, so that they do not cross
	connected bool
	target    target
	ports     map[flow.Port]bool // links
	program   *program           // as last declared
	version   uint64             // of the ruleset that it is of
	verdicts  map[flow.Match]*verdict
	unknown   bool // the switch may have verdicts that are not in verdicts
}

// verdict is one that a switch has.
type verdict struct {
	value, mask words
	since       time.Time
}

// propose has the verdict on a packet installed, soon. It does not block.
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

// install installs the verdicts on packets, by the rules as they are now.
func (s *site) install(ctx context.Context, b *book, list []words, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.connected || s.unknown || !s.reactive.Load() {
		return nil
	}
	v := b.now.Load().view(s.dpid)
	d := &flow.Decision{}
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
	if d.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	res, err := b.net.Send(ctx, d)
	if err == nil && len(res.GetFailures()) > 0 {
		err = fmt.Errorf("%s", res.Failures[0].Text)
	}
	if err != nil {
		s.unknown = true
	}
	return err
}

// removed takes note that a switch has no longer a verdict.
func (s *site) removed(m flow.Match) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.verdicts[m]; v != nil && time.Since(v.since) > time.Second {
		delete(s.verdicts, m)
	}
}

// comparisons bounds what is spent on finding verdicts that a change is about;
// beyond it, all are removed.
const comparisons = 2_000_000

// revoke removes, and has confirmed, the verdicts that may no longer be right:
// those on packets that a changed condition may be about. all is all of them.
func (s *site) revoke(ctx context.Context, b *book, changed []*cond, all bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.connected || len(s.verdicts) == 0 && !s.unknown {
		return nil
	}
	all = all || s.unknown || len(changed)*len(s.verdicts) > comparisons
	d := &flow.Decision{}
	gone := make([]flow.Match, 0, 16)
	if !all {
		for m, v := range s.verdicts {
			for _, c := range changed {
				if c.mayConcern(v) {
					gone = append(gone, m)
					break
				}
			}
		}
		if len(gone) == 0 {
			return nil
		}
	}
	if all || len(gone) > 500 {
		all = true
		mod := d.AddFlow(s.dpid)
		mod.Command = flow.Delete
		// In every table: a former version had another.
		mod.Entry.Table, mod.Entry.Cookie, mod.CookieMask = flow.TableAll, flow.NewCookie(flow.OwnerVerdicts, 0, 0), flow.OwnerMask
	} else {
		for _, m := range gone {
			mod := d.AddFlow(s.dpid)
			mod.Command = flow.DeleteStrict
			mod.Entry.Table, mod.Entry.Priority, mod.Entry.Match = flow.TableFirewall, flow.PriorityFirewallVerdict, m
			mod.Entry.Cookie, mod.CookieMask = flow.NewCookie(flow.OwnerVerdicts, 0, 0), flow.OwnerMask
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	res, err := b.net.Apply(ctx, d)
	if err == nil && len(res.GetFailures()) > 0 {
		err = fmt.Errorf("%s", res.Failures[0].Text)
	}
	if err != nil {
		s.unknown = true
		return fmt.Errorf("verdicts not removed: %w", err)
	}
	if all {
		clear(s.verdicts)
		s.unknown = false
	}
	for _, m := range gone {
		delete(s.verdicts, m)
	}
	return nil
}
