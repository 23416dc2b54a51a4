package mastership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// Ledger keeps the tenure of a partition's mastership.
type Ledger interface {
	// Read returns the tenure and its revision, 0 if there is none.
	Read(ctx context.Context) (Tenure, uint64, error)
	// Swap replaces the tenure of the revision over; done is false if that is
	// no longer the last one. After an error the result is unknown.
	Swap(ctx context.Context, t Tenure, over uint64) (rev uint64, done bool, err error)
	// Prove writes another key, which shows that the store accepts writes.
	Prove(ctx context.Context) error
}

// ErrLost is why a service ends when it is no longer master: it starts again,
// as a standby.
var ErrLost = errors.New("this process is not master of the switches any more")

// Fence is closed to all that programs switches unless this process holds the
// mastership at that very moment. It uses only this process's clock: a process
// that has slept for too long finds it closed.
type Fence struct {
	now   func() time.Time
	base  time.Time
	until atomic.Int64 // ns since base; 0: closed
}

// openForever is the value of until for a mastership without an end.
const openForever = math.MaxInt64

func newFence(now func() time.Time) *Fence { return &Fence{now: now, base: now()} }

// Open reports whether switches may be programmed. A nil fence is open.
func (f *Fence) Open() bool {
	if f == nil {
		return true
	}
	until := f.until.Load()
	return until == openForever || until != 0 && int64(f.now().Sub(f.base)) < until
}

// set opens the fence until a time.
func (f *Fence) set(until time.Time, forever bool) {
	if forever {
		f.until.Store(openForever)
	} else {
		f.until.Store(int64(until.Sub(f.base)))
	}
}

// Shut closes the fence.
func (f *Fence) Shut() { f.until.Store(0) }

// Mastership runs the lease.
type Mastership struct {
	ledger Ledger
	Fence  *Fence
	Log    *slog.Logger
	now    func() time.Time
	Fresh  func(context.Context) (uint64, error) // the least epoch of a new tenure
	Others func() []string                       // instances that may take the mastership; nil: nobody
	Ask    asker                                 // asks one of them
	faith  faith

	Mu    sync.Mutex // guards lease
	Lease lease
	kick  chan struct{} // the state that the lease waits for may have changed

	Renewals, Failures, Suspensions, Pledges atomic.Uint64
}

// New returns a mastership that is not held yet.
func New(l Ledger, t Terms, self Tenure, log *slog.Logger) *Mastership {
	return &Mastership{
		ledger: l, Fence: newFence(time.Now), Log: log, now: time.Now, Lease: lease{Terms: t, self: self}, kick: make(chan struct{}, 1),
		Fresh: func(context.Context) (uint64, error) { return uint64(time.Now().Unix()), nil },
	}
}

// SetTerms changes the times of the lease while it runs.
func (m *Mastership) SetTerms(t Terms, holder string) {
	m.Mu.Lock()
	t.others = m.Lease.others
	m.Lease.Terms, m.Lease.self.Holder = t, holder
	m.Mu.Unlock()
	m.wake()
}

func (m *Mastership) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// Raise continues the mastership under an epoch that is not lower than the
// given one: a switch has come that saw higher epochs in its former partition.
// The store grants it like a renewal.
func (m *Mastership) Raise(epoch uint64) {
	m.Mu.Lock()
	m.Lease.floor = max(m.Lease.floor, epoch)
	m.Mu.Unlock()
	m.wake()
}

// Look reads the store at once: another process seems to be master.
func (m *Mastership) Look() {
	m.Mu.Lock()
	m.Lease.recordRefusal()
	m.Mu.Unlock()
	m.wake()
}

// Holder returns the master and its epoch as far as this process knows.
func (m *Mastership) Holder() (name string, epoch uint64, here bool) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if m.Lease.rev == 0 || m.Lease.have.Released {
		return "", m.Lease.have.Epoch, false
	}
	return m.Lease.have.Holder, m.Lease.have.Epoch, m.Lease.isHeld(m.now()) || m.Fence.until.Load() == openForever
}

// Left returns how long the mastership lasts without a renewal.
func (m *Mastership) Left() time.Duration {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if m.Lease.epoch == 0 || m.Lease.lost {
		return 0
	}
	return max(0, m.Lease.until.Sub(m.now()))
}

// pollOf returns how often a process that waits for the mastership reads the
// store.
func pollOf(t Terms) time.Duration { return max(t.Lasts/16, time.Millisecond) }

// Win waits until this process is master, and returns its epoch.
func (m *Mastership) Win(ctx context.Context) (epoch uint64, err error) {
	for told := ""; ; {
		if err := m.step(ctx); err != nil {
			return 0, err
		}
		m.Mu.Lock()
		l := &m.Lease
		epoch, holder := l.epoch, l.have.Holder
		waits := l.Known && l.rev != 0 && !l.have.Released && l.have.Run != l.self.Run
		m.Mu.Unlock()
		if epoch != 0 {
			return epoch, nil
		}
		if waits && holder != told {
			told = holder
			m.Log.Info("standing by: another process is master of the switches", "master", holder)
		}
	}
}

// Keep renews the mastership until ctx ends or it is lost. It calls changed
// with every new epoch, and resumed when the fence opens again after a late
// renewal had closed it.
func (m *Mastership) Keep(ctx context.Context, epoch uint64, changed func(epoch uint64), resumed func()) error {
	defer m.Fence.Shut()
	open := true
	for {
		err := m.step(ctx)
		m.Mu.Lock()
		lost, now, holder := m.Lease.lost, m.Lease.epoch, m.Lease.have.Holder
		m.Mu.Unlock()
		switch {
		case lost:
			return fmt.Errorf("%w: %s is; it starts again as a standby", ErrLost, orNobody(holder))
		case err != nil:
			return err
		}
		if now != epoch {
			epoch = now
			changed(epoch)
		}
		if is := m.Fence.Open(); is != open {
			open = is
			if is {
				m.Log.Info("the lease of the mastership is renewed again: switches are programmed")
				resumed()
			} else {
				m.Suspensions.Add(1)
				m.Log.Error("the lease of the mastership has ended without having been renewed: switches are not programmed until it is; their flows go on")
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

// step takes the next action. It fails only when ctx ends.
func (m *Mastership) step(ctx context.Context) error {
	m.Mu.Lock()
	do, wait := m.Lease.next(m.now(), pollOf(m.Lease.Terms))
	limit := m.Lease.patience()
	m.Mu.Unlock()
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
	begin := m.now()
	switch do {
	case actRead:
		err = m.read(ctx, limit)
	case actWrite:
		err = m.write(ctx, limit)
	}
	if err == nil {
		return nil
	}
	if m.Failures.Add(1)%100 == 1 {
		m.Log.Warn("the lease of the mastership cannot be read or renewed now; trying again", "error", err)
	}
	m.Mu.Lock()
	m.Lease.recordTimeout(m.now().Sub(begin))
	m.Mu.Unlock()
	if backoff.Sleep(ctx, limit/8) != nil {
		return ctx.Err()
	}
	return nil
}

func (m *Mastership) read(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := m.now()
	t, rev, err := m.ledger.Read(ctx)
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if err != nil {
		return err
	}
	m.Lease.recordLatency(m.now().Sub(sent))
	if m.Lease.recordRead(m.now(), t, rev); m.Lease.lost {
		m.Fence.Shut()
	}
	return nil
}

func (m *Mastership) write(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m.Mu.Lock()
	begins := m.Lease.epoch == 0
	m.Mu.Unlock()
	var fresh uint64
	if begins {
		var err error
		if fresh, err = m.Fresh(ctx); err != nil {
			return err
		}
	}
	m.Mu.Lock()
	if begins && m.now().Before(m.Lease.takeableAt()) { // promised to another meanwhile
		m.Mu.Unlock()
		return nil
	}
	if m.Others != nil {
		m.Lease.others = m.Others()
	}
	t, over := m.Lease.wantedTenure(fresh)
	m.Lease.writing = begins
	sent := m.now()
	if m.Lease.sends(sent, t) {
		m.Fence.set(m.Lease.heldUntil())
	}
	m.Mu.Unlock()
	rev, done, err := m.ledger.Swap(ctx, t, over)
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Lease.writing = false
	if err != nil {
		return err
	}
	m.Lease.recordLatency(m.now().Sub(sent))
	if !done {
		m.Lease.recordRefusal()
		return nil
	}
	m.Renewals.Add(1)
	m.Lease.recordWrite(sent, m.now(), t, rev)
	m.Fence.set(m.Lease.heldUntil())
	return nil
}

// Release gives the mastership back, so that others need not wait for its end.
func (m *Mastership) Release(ctx context.Context) {
	m.Mu.Lock()
	l := &m.Lease
	held := l.epoch != 0 && !l.lost && !l.doubt
	t, over := l.have, l.rev
	t.Released = true
	limit := l.Lasts
	l.epoch = 0 // no promise prolongs it any more
	m.Fence.Shut()
	m.Mu.Unlock()
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, _, err := m.ledger.Swap(ctx, t, over); err != nil {
		m.Log.Warn("the mastership could not be given back; others have it when its lease ends", "error", err)
	}
}
