package southbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// ledger keeps the tenure of a partition's mastership.
type ledger interface {
	// read returns what there is and its revision, 0 if there is nothing.
	read(ctx context.Context) (tenure, uint64, error)
	// swap replaces what has a revision; done is false if that is not the last
	// one any more. After an error nobody knows whether it was done.
	swap(ctx context.Context, t tenure, over uint64) (rev uint64, done bool, err error)
	// prove writes something else, which shows that the store takes writes.
	prove(ctx context.Context) error
}

// errLost is why a service ends that is not master any more: it is started
// again, as a standby.
var errLost = errors.New("this process is not master of the switches any more")

// fence is closed to all that programs switches unless the mastership is held
// at that very moment. It looks at this process' clock, not at what others say:
// whoever has slept for too long finds it closed.
type fence struct {
	now   func() time.Time
	base  time.Time
	until atomic.Int64 // ns since base; 0: closed
}

// openForever is the until of a mastership that does not end by itself.
const openForever = math.MaxInt64

func newFence(now func() time.Time) *fence { return &fence{now: now, base: now()} }

// open reports whether switches may be programmed. A nil fence is open.
func (f *fence) open() bool {
	if f == nil {
		return true
	}
	until := f.until.Load()
	return until == openForever || until != 0 && int64(f.now().Sub(f.base)) < until
}

// set opens the fence until a time.
func (f *fence) set(until time.Time, forever bool) {
	if forever {
		f.until.Store(openForever)
	} else {
		f.until.Store(int64(until.Sub(f.base)))
	}
}

// shut closes the fence.
func (f *fence) shut() { f.until.Store(0) }

// mastership is the lease at work.
type mastership struct {
	ledger ledger
	fence  *fence
	log    *slog.Logger
	now    func() time.Time
	fresh  func(context.Context) (uint64, error) // the least epoch of a tenure that begins
	others func() []string                       // instances that may take the mastership; nil: nobody
	ask    asker                                 // asks one of them
	faith  faith

	mu    sync.Mutex // guards lease
	lease lease
	kick  chan struct{} // what the lease waits for may have changed

	renewals, failures, suspensions, pledges atomic.Uint64
}

func newMastership(l ledger, t terms, self tenure, log *slog.Logger) *mastership {
	return &mastership{
		ledger: l, fence: newFence(time.Now), log: log, now: time.Now, lease: lease{terms: t, self: self}, kick: make(chan struct{}, 1),
		fresh: func(context.Context) (uint64, error) { return uint64(time.Now().Unix()), nil },
	}
}

// setTerms changes the times of the lease while it runs.
func (m *mastership) setTerms(t terms, holder string) {
	m.mu.Lock()
	t.others = m.lease.others
	m.lease.terms, m.lease.self.Holder = t, holder
	m.mu.Unlock()
	m.wake()
}

func (m *mastership) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// raise has the mastership go on under an epoch that is not lower than the
// given one: a switch has come that has seen higher ones, of the partition that
// it was in. The store grants it as it does a renewal.
func (m *mastership) raise(epoch uint64) {
	m.mu.Lock()
	m.lease.floor = max(m.lease.floor, epoch)
	m.mu.Unlock()
	m.wake()
}

// look has the store read at once: somebody else seems to be master.
func (m *mastership) look() {
	m.mu.Lock()
	m.lease.refused()
	m.mu.Unlock()
	m.wake()
}

// holder says who is master as far as this process knows, and under which epoch.
func (m *mastership) holder() (name string, epoch uint64, here bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.rev == 0 || m.lease.have.Released {
		return "", m.lease.have.Epoch, false
	}
	return m.lease.have.Holder, m.lease.have.Epoch, m.lease.held(m.now()) || m.fence.until.Load() == openForever
}

// left is how long the mastership is held if it is not renewed.
func (m *mastership) left() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.epoch == 0 || m.lease.lost {
		return 0
	}
	return max(0, m.lease.until.Sub(m.now()))
}

// pollOf is how often who waits for the mastership looks.
func pollOf(t terms) time.Duration { return max(t.lasts/16, time.Millisecond) }

// win waits until this process is master, and returns its epoch.
func (m *mastership) win(ctx context.Context) (epoch uint64, err error) {
	for told := ""; ; {
		if err := m.step(ctx); err != nil {
			return 0, err
		}
		m.mu.Lock()
		l := &m.lease
		epoch, holder := l.epoch, l.have.Holder
		waits := l.known && l.rev != 0 && !l.have.Released && l.have.Run != l.self.Run
		m.mu.Unlock()
		if epoch != 0 {
			return epoch, nil
		}
		if waits && holder != told {
			told = holder
			m.log.Info("standing by: another process is master of the switches", "master", holder)
		}
	}
}

// keep renews the mastership until ctx ends or it is lost. changed is told of
// every epoch that is not the one before, and resumed when the fence is open
// again that had been closed for want of a renewal.
func (m *mastership) keep(ctx context.Context, epoch uint64, changed func(epoch uint64), resumed func()) error {
	defer m.fence.shut()
	open := true
	for {
		err := m.step(ctx)
		m.mu.Lock()
		lost, now, holder := m.lease.lost, m.lease.epoch, m.lease.have.Holder
		m.mu.Unlock()
		switch {
		case lost:
			return fmt.Errorf("%w: %s is; it starts again as a standby", errLost, orNobody(holder))
		case err != nil:
			return err
		}
		if now != epoch {
			epoch = now
			changed(epoch)
		}
		if is := m.fence.open(); is != open {
			open = is
			if is {
				m.log.Info("the lease of the mastership is renewed again: switches are programmed")
				resumed()
			} else {
				m.suspensions.Add(1)
				m.log.Error("the lease of the mastership has ended without having been renewed: switches are not programmed until it is; their flows go on")
			}
		}
	}
}

func orNobody(holder string) string {
	if holder == "" {
		return "nobody"
	}
	return holder
}

// step does what is to be done next. It fails when ctx ends only.
func (m *mastership) step(ctx context.Context) error {
	m.mu.Lock()
	do, wait := m.lease.next(m.now(), pollOf(m.lease.terms))
	limit := max(m.lease.lasts/2, 20*time.Millisecond)
	m.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.kick:
			return nil
		case <-timer.C:
		}
	} else if ctx.Err() != nil {
		return ctx.Err()
	}
	var err error
	switch do {
	case actRead:
		err = m.read(ctx, limit)
	case actWrite:
		err = m.write(ctx, limit)
	}
	if err == nil {
		return nil
	}
	if m.failures.Add(1)%100 == 1 {
		m.log.Warn("the lease of the mastership cannot be read or renewed now; trying again", "error", err)
	}
	m.mu.Lock()
	m.lease.refused()
	m.mu.Unlock()
	if !pause(ctx, limit/8) {
		return ctx.Err()
	}
	return nil
}

func (m *mastership) read(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t, rev, err := m.ledger.read(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.found(m.now(), t, rev); m.lease.lost {
		m.fence.shut()
	}
	return nil
}

func (m *mastership) write(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m.mu.Lock()
	begins := m.lease.epoch == 0
	m.mu.Unlock()
	var fresh uint64
	if begins {
		var err error
		if fresh, err = m.fresh(ctx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	if begins && m.now().Before(m.lease.takeable()) { // it has been promised meanwhile
		m.mu.Unlock()
		return nil
	}
	if m.others != nil {
		m.lease.others = m.others()
	}
	t, over := m.lease.wish(fresh)
	m.lease.writing = begins
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.lease.writing = false
		m.mu.Unlock()
	}()
	sent := m.now()
	rev, done, err := m.ledger.swap(ctx, t, over)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !done {
		m.lease.refused()
		return nil
	}
	m.renewals.Add(1)
	m.lease.granted(sent, m.now(), t, rev)
	m.fence.set(m.lease.deadline())
	return nil
}

// release gives the mastership back, so that others need not wait for its end.
func (m *mastership) release(ctx context.Context) {
	m.mu.Lock()
	l := &m.lease
	held := l.epoch != 0 && !l.lost && !l.doubt
	t, over := l.have, l.rev
	t.Released = true
	limit := l.lasts
	l.epoch = 0 // no promise prolongs it any more
	m.fence.shut()
	m.mu.Unlock()
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, _, err := m.ledger.swap(ctx, t, over); err != nil {
		m.log.Warn("the mastership could not be given back; others have it when its lease ends", "error", err)
	}
}

// pause sleeps; it reports whether ctx still lasts.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
