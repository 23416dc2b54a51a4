package flowrules

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// Network is the part of the southbound that the service uses.
type Network interface {
	// ReadFlows returns the entries that a switch has.
	ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error)
	// ReadGroups and ReadMeters return the groups and meters of a switch; an
	// Unimplemented error if it does not know them.
	ReadGroups(ctx context.Context, sw flow.DPID) ([]*api.Group, error)
	ReadMeters(ctx context.Context, sw flow.DPID) ([]*api.Meter, error)
	// Apply carries out a decision and returns when the switch has confirmed it.
	Apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error)
}

// worker looks after one switch: one goroutine while there is work or something is
// due, one step at a time, so that calls for the same switch never overlap and those
// for others do not wait.
type worker struct {
	start func(*worker) // starts its goroutine
	users int           // who may change it, besides its goroutine; guarded by Rules.mu

	life    sync.Mutex // guards running, and bell against the end of the goroutine
	running bool

	mu      sync.Mutex // guards ledger and changed
	ledger  *ledger
	changed chan struct{} // closed and renewed when the switch connects, leaves or is read

	storing sync.Mutex // orders changes of the store and of the ledger, and guards pages; taken before mu
	pages   pageSet
	bell    chan struct{} // holds one: there is work
}

func newWorker(l *ledger, start func(*worker)) *worker {
	return &worker{start: start, ledger: l, changed: make(chan struct{}), bell: make(chan struct{}, 1)}
}

// wake notifies the worker of possible work.
func (w *worker) wake() {
	w.life.Lock()
	defer w.life.Unlock()
	object.Notify(w.bell)
	if !w.running {
		w.running = true
		w.start(w)
	}
}

// endIfIdle ends the goroutine of a worker without work, unless it was notified
// meanwhile.
func (w *worker) endIfIdle() bool {
	w.life.Lock()
	defer w.life.Unlock()
	select {
	case <-w.bell:
		return false
	default:
		w.running = false
		return true
	}
}

// notifyWaiters notifies those who wait for the switch. The caller holds mu.
func (w *worker) notifyWaiters() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// run works until there is nothing to do and nothing due, or ctx ends.
func (w *worker) run(ctx context.Context, r *Rules) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		w.mu.Lock()
		s := w.ledger.next(time.Now())
		w.mu.Unlock()
		if s.kind != idle {
			w.perform(ctx, r, s)
			continue
		}
		if s.until.IsZero() {
			if w.endIfIdle() {
				r.dropWorker(w)
				return
			}
			continue
		}
		timer.Reset(time.Until(s.until))
		select {
		case <-ctx.Done():
		case <-w.bell:
		case <-timer.C:
		}
	}
}

// perform does one step and records its outcome.
func (w *worker) perform(ctx context.Context, r *Rules, s step) {
	if s.kind == record {
		w.record(ctx, r)
		return
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return
	}
	switch s.kind {
	case read:
		w.read(ctx, r, s)
	case write, erase, place, displace:
		limited, cancel := context.WithTimeout(ctx, r.cfg.Deadline)
		defer cancel()
		res, err := r.net.Apply(limited, s.decision)
		w.mu.Lock()
		refusal := ""
		switch now := time.Now(); s.kind {
		case write:
			w.ledger.recordWrite(s, res, err, now)
		case erase:
			refusal = w.ledger.recordErased(s, res, err, now)
		case place:
			w.ledger.recordMade(s, res, err, now)
		case displace:
			refusal = w.ledger.recordUnmade(s, res, err, now)
		}
		w.announce(r)
		w.mu.Unlock()
		if refusal != "" {
			r.log.Warn("switch keeps what it was to remove", "dpid", w.ledger.sw, "reason", refusal)
		}
	}
}

// read reads the entries of the switch, and its groups and meters unless it is
// known that no service has any there.
func (w *worker) read(ctx context.Context, r *Rules, s step) {
	limited, cancel := context.WithTimeout(ctx, r.cfg.ReadDeadline)
	defer cancel()
	began := time.Now()
	flows, err := r.net.ReadFlows(limited, w.ledger.sw)
	var rd *reading
	if err == nil {
		rd = newReading(flows)
		if s.readObjects {
			rd.objects, err = r.readObjects(limited, w.ledger.sw)
		}
	}
	switches, damaged, history := r.size(), r.trust.damaged(), r.trust.history()
	var doubts []string
	defer func() { r.tellDoubts(ctx, doubts) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	l, now := w.ledger, time.Now()
	l.doubtful, l.history = l.doubtful || damaged, history
	if l.session != s.session || !l.connected {
		return
	}
	if err != nil {
		r.count.readErrors.Add(1)
		presumed := l.readFailed(err, now)
		if !l.unknown { // of a switch that tells nothing, nobody waits for the next read
			l.asked |= s.asked
		}
		if presumed {
			r.log.Warn("switch does not tell its entries: they are taken as unknown, and those that it is to have are written over them", "dpid", l.sw, "error", err)
			w.announce(r)
			w.notifyWaiters()
		}
		return
	}
	if l.unknown {
		r.log.Info("switch tells its entries again", "dpid", l.sw)
	}
	l.read(rd, s.asked, began, now)
	l.again(now.Sub(began), switches, rand.Float64(), now)
	doubts, l.doubts = l.doubts, nil
	w.announce(r)
	w.notifyWaiters()
}

// readObjects reads the groups and meters that a switch has.
func (r *Rules) readObjects(ctx context.Context, sw flow.DPID) (map[objectKey]*body, error) {
	groups, err := r.net.ReadGroups(ctx, sw)
	if err != nil && !hasNone(err) {
		return nil, err
	}
	meters, err := r.net.ReadMeters(ctx, sw)
	if err != nil && !hasNone(err) {
		return nil, err
	}
	return readObjects(groups, meters), nil
}

// announce queues what is to be published. The caller holds mu.
func (w *worker) announce(r *Rules) {
	l := w.ledger
	lacking(r.log, l.failures)
	r.news.add(l.observed, l.failures)
	l.observed, l.failures = nil, nil
}

// lacking logs the entries that a switch confirms and does not have.
func lacking(log *slog.Logger, failures []*api.WantedFlow) {
	const most = 5
	var list []string
	for _, f := range failures {
		if f.GetReason() == reasonLacks {
			list = append(list, fmt.Sprintf("%s: table %d, priority %d, match %v", f.Flow.GetOwner(), f.Flow.GetTable(), f.Flow.GetPriority(), f.Flow.GetMatch()))
		}
	}
	if n := len(list); n > 0 {
		log.Warn(reasonLacks, "dpid", failures[0].Flow.GetDpid(), "entries", n, "first", strings.Join(list[:min(n, most)], "; "))
	}
}

// record updates the store with entries that have ended or were delivered.
func (w *worker) record(ctx context.Context, r *Rules) {
	w.storing.Lock()
	defer w.storing.Unlock()
	w.mu.Lock()
	l := w.ledger
	forget, deliver := l.forget, l.deliver
	l.forget, l.deliver = nil, nil
	w.mu.Unlock()
	var e edits
	for _, rule := range forget {
		e.drop(rule)
	}
	for _, rule := range deliver {
		if rule.page != nil {
			e.change(rule.page)
		}
	}
	for _, err := range w.write(ctx, r.store, &e) {
		r.reportUnstored("put", l.sw, err)
	}
}
