// Package supervisor keeps a set of operating-system processes as wanted: it
// starts them with their priority, CPUs, quota and memory limit, starts again what
// dies or no longer answers, and ends what is no longer wanted. The processes
// outlive it; a supervisor started later on the same directory adopts them. It
// knows nothing of services.
//
// Package deploy and cmd/weft may import it. It imports the standard library,
// internal/rootpart and golang.org/x/sys, and needs Linux 5.3 or later (pidfd).
package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// Config is what a Supervisor needs to know. Only Directory must be set.
type Config struct {
	// Directory keeps the state and, in NAME.log, what the processes print. It
	// is made if it does not exist; one supervisor uses it at a time.
	Directory string
	Log       *slog.Logger // default none
	// RootPart is the socket of what applies limits in this process's place, as
	// Rights does; default none.
	RootPart string

	// Probe asks a process for a sign of life and returns what is wrong, within
	// ctx. Default none: a process that runs is up.
	Probe func(ctx context.Context, name string) error
	// ProbeEvery is the time between probes, default 500 ms.
	ProbeEvery time.Duration
	// UnresponsiveAfter is how long the probes of a process that once answered
	// may fail before it is killed and started again; default 3 s. The time that
	// it is busy does not count.
	UnresponsiveAfter time.Duration
	// BusyTimeout is how long they may fail while it is busy: has a processor, or
	// waits for one, for half of the time; default 2 min: hundreds of switches that
	// connect at once may keep a processor busy for that long.
	BusyTimeout time.Duration
	// StartTimeout is the same for a process just started or adopted, which has
	// not yet answered; default 30 s.
	StartTimeout time.Duration

	// BackOffMin is the delay before the second restart, doubled with each
	// further one up to BackOffMax; the first is at once. Default 100 ms and 10 s.
	BackOffMin, BackOffMax time.Duration
	// StableAfter is how long a process must have run for its restarts to count
	// anew; default 10 s.
	StableAfter time.Duration
	// Hurry, once it is closed, has processes that are to end killed without more
	// time after SIGTERM; nil is never.
	Hurry <-chan struct{}
	// StopTimeout is the time from SIGTERM to SIGKILL; default 10 s.
	StopTimeout time.Duration
	// LogSize is the size in bytes at which NAME.log becomes NAME.log.1, the one
	// older file that is kept; default 16 MiB. It is looked at every second.
	LogSize int64
}

// withDefaults fills in what is not set, and checks.
func (c Config) withDefaults() (Config, error) {
	if c.Directory == "" {
		return c, errors.New("no directory for the state and the logs; set Config.Directory")
	}
	dir, err := filepath.Abs(c.Directory)
	if err != nil {
		return c, err
	}
	c.Directory = dir
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.ProbeEvery = cmp.Or(c.ProbeEvery, 500*time.Millisecond)
	c.UnresponsiveAfter = cmp.Or(c.UnresponsiveAfter, 3*time.Second)
	c.BusyTimeout = cmp.Or(c.BusyTimeout, 2*time.Minute)
	c.StartTimeout = cmp.Or(c.StartTimeout, 30*time.Second)
	c.BackOffMin = cmp.Or(c.BackOffMin, 100*time.Millisecond)
	c.BackOffMax = cmp.Or(c.BackOffMax, 10*time.Second)
	c.StableAfter = cmp.Or(c.StableAfter, 10*time.Second)
	c.StopTimeout = cmp.Or(c.StopTimeout, 10*time.Second)
	c.LogSize = cmp.Or(c.LogSize, 16<<20)
	for _, d := range []time.Duration{c.ProbeEvery, c.UnresponsiveAfter, c.BusyTimeout, c.StartTimeout, c.BackOffMin, c.BackOffMax, c.StableAfter, c.StopTimeout, time.Duration(c.LogSize)} {
		if d < 0 {
			return c, fmt.Errorf("a negative time or size (%d); leave it 0 for the default", d)
		}
	}
	return c, nil
}

// Supervisor keeps processes. Its methods may be called from any goroutine.
type Supervisor struct {
	config Config
	log    *slog.Logger
	lock   *os.File
	places places
	rights rights
	boot   string // names this boot of the machine

	setting sync.Mutex // held by Set, Close and Leave: one at a time
	mu      sync.Mutex // guards what follows
	// children are the processes known; each has a goroutine of its own
	children map[string]*child
	watchers map[chan []Status]struct{}
	closed   bool

	done chan struct{} // closed by Close and Leave
}

// New opens the directory and adopts those processes of an earlier supervisor
// that still run; they run on as they are until Set. It fails if another
// supervisor uses the directory.
func New(c Config) (*Supervisor, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	if err := needPidfd(); err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	lock, err := lockDirectory(c.Directory)
	if err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	s := &Supervisor{
		config: c, log: c.Log, lock: lock, places: findPlaces(), boot: boot(),
		children: map[string]*child{}, watchers: map[chan []Status]struct{}{}, done: make(chan struct{}),
	}
	s.rights = own{&s.places}
	if c.RootPart != "" {
		s.rights = asked{c.RootPart}
	}
	s.adopt()
	return s, nil
}

// Set makes the list what runs. It starts what is new, ends what is not
// listed, and ends and starts again what has another Path, Args or Env; other
// limits are applied to the running process. It returns when all that is
// done; what could not be started is in the error and is tried again, what
// could not be applied is in Status. A list with a mistake changes nothing.
func (s *Supervisor) Set(ctx context.Context, list []Process) error {
	if err := check(list); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	for {
		// One that an earlier Set gave up waiting for may end just now, when it
		// is wanted again.
		if err := s.set(ctx, list); !errors.Is(err, errGone) {
			return err
		}
	}
}

// errGone is returned for orders to a child that has ended.
var errGone = errors.New("gone")

func (s *Supervisor) set(ctx context.Context, list []Process) error {
	orders := map[*child]order{}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.New("supervisor: it is closed")
	}
	listed := map[string]bool{}
	for _, p := range list {
		listed[p.Name] = true
		c := s.children[p.Name]
		if c == nil {
			c = s.add(record{Name: p.Name})
			go c.keep(nil)
		}
		orders[c] = order{kind: want, process: p.clone(), done: make(chan error, 1)}
	}
	for name, c := range s.children {
		if !listed[name] {
			orders[c] = order{kind: end, done: make(chan error, 1)}
		}
	}
	s.mu.Unlock()
	return s.give(ctx, orders)
}

// give hands out orders and waits until they are carried out. Those not yet
// taken when ctx ends are taken back, the others are completed all the same.
func (s *Supervisor) give(ctx context.Context, orders map[*child]order) error {
	errs := make(chan error, len(orders))
	for c, o := range orders {
		go func() {
			select {
			case c.orders <- o:
			case <-c.gone:
				if o.kind == want {
					errs <- errGone
				} else {
					errs <- nil
				}
				return
			case <-ctx.Done():
				errs <- fmt.Errorf("supervisor: %s is still stopping: %w", c.name, ctx.Err())
				return
			}
			select {
			case err := <-o.done:
				errs <- err
			case <-ctx.Done():
				errs <- fmt.Errorf("supervisor: %s is not yet as wanted: %w", c.name, ctx.Err())
			}
		}()
	}
	var all []error
	for range orders {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// add makes a child known; the caller holds mu or is alone.
func (s *Supervisor) add(r record) *child {
	c := &child{
		name: r.Name, s: s, orders: make(chan order), gone: make(chan struct{}), record: r,
		status: Status{Name: r.Name, State: Stopped, Since: time.Now(), Restarts: r.Restarts},
		delays: restarts{pauses: backoff.Exponential{First: s.config.BackOffMin, Last: s.config.BackOffMax}, stable: s.config.StableAfter},
	}
	s.children[r.Name] = c
	return c
}

// remove makes a child unknown.
func (s *Supervisor) remove(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, c.name)
	s.save()
	s.notify()
}

// change changes what is known of a child, and tells the watchers.
func (s *Supervisor) change(c *child, f func(*Status, *record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, before := c.status.State, c.record
	f(&c.status, &c.record)
	if c.status.State != state {
		c.status.Since = time.Now()
	}
	if c.record != before {
		s.save()
	}
	s.notify()
}

// Run blocks until ctx ends, then ends all processes as Close does, or until
// Close or Leave is called.
func (s *Supervisor) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return s.Close()
	case <-s.done:
		return nil
	}
}

// Close ends all processes, with SIGTERM and after StopTimeout SIGKILL, and
// returns when they are gone. After Close or Leave it does nothing.
func (s *Supervisor) Close() error { return s.finish(end) }

// Leave ends the supervisor and leaves the processes running, to be adopted by
// the next one. After Close or Leave it does nothing.
func (s *Supervisor) Leave() error { return s.finish(leave) }

func (s *Supervisor) finish(k kind) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	children := slices.Collect(maps.Values(s.children))
	s.mu.Unlock()
	tell := func(k kind) error {
		orders := map[*child]order{}
		for _, c := range children {
			orders[c] = order{kind: k, done: make(chan error, 1)}
		}
		return s.give(context.Background(), orders)
	}
	err := tell(k)
	_ = tell(leave) // those that could not be ended
	for _, c := range children {
		<-c.gone
	}
	s.mu.Lock()
	for w := range s.watchers {
		close(w)
	}
	clear(s.watchers)
	s.mu.Unlock()
	close(s.done)
	return errors.Join(err, s.lock.Close())
}
