package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Service is one running instance of a service, and the weft.Runtime that it
// sees.
type Service struct {
	network
	registrations
	settings

	worker    *Worker
	Group     *Group
	Epoch     atomic.Uint64 // identifies this run: its start, ns since 1970
	Prefix    string        // of its buckets
	Log       *slog.Logger
	metric    *Metrics
	inbox     *inbox
	panics    weft.Counter
	slow      weft.Counter // times that a publisher waited longer than a second for the inbox
	busy      atomic.Int64 // calls and batches of packets in progress
	Standby   atomic.Bool  // it is a standby; another process is active
	Serving   atomic.Bool  // its stage takes packets, and it has received what others retain
	synced    chan struct{}
	syncOnce  sync.Once   // closes synced
	Stale     atomic.Bool // it read incomplete state from the store and must restart
	Clustered bool        // it is clustered across partitions
	sent      *sent       // what it has sent to others

	number atomic.Uint64 // index<<32 | count

	Context context.Context // of its Run
	cancel  context.CancelFunc
	Ended   chan struct{} // closed when Run and the handling of events have ended
	err     error         // of Run; valid once ended
}

// ReportConfirmation records what a switch has confirmed, for those who watch packets.
func (s *Service) ReportConfirmation(c *flow.Confirmation) { s.worker.recorder.confirmed(c) }

// Replicas returns this instance's number and the count of all.
func (s *Service) Replicas() (index, count int) {
	n := s.number.Load()
	return int(n >> 32), int(uint32(n))
}

// SetReplicas notifies the service of the number of instances.
func (s *Service) SetReplicas(index, count int) {
	n := uint64(index)<<32 | uint64(count)
	if s.number.Swap(n) == n || s.replicas.handler == nil {
		return
	}
	s.replicas.PutNow(n)
}

// StandbyPeers returns the other instances of this instance's worker, if it has
// standbys.
func (s *Service) StandbyPeers() []string { return s.worker.cluster.StandbyPeers(s) }

// AskPeer sends a question to this service in another instance.
func (s *Service) AskPeer(ctx context.Context, instance string, question []byte) ([]byte, error) {
	return s.worker.cluster.AskPeer(ctx, s, instance, question)
}

// Ready reports mistakes in the set-up, or waits until all services of the
// group are set up.
func (s *Service) Ready(ctx context.Context) error {
	first, err := s.complete()
	if err != nil {
		return err
	}
	if first {
		s.Group.arrived <- s
	}
	select {
	case <-s.Group.started:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Synced returns a channel that is closed once the service has handled the
// retained events (weft.Runtime).
func (s *Service) Synced() <-chan struct{} { return s.synced }

// MarkSynced closes the channel of Synced. Further calls have no effect.
func (s *Service) MarkSynced() { s.syncOnce.Do(func() { close(s.synced) }) }

// Partition returns the partition that the service was started for; empty if it
// works for all.
func (s *Service) Partition() string { return strings.TrimSuffix(s.Prefix, ".") }

// Bucket opens durable state.
func (s *Service) Bucket(name string) (weft.Bucket, error) {
	b, err := s.worker.config.Store.Bucket(s.Context, s.Prefix+name)
	if err != nil {
		return nil, api.Errorf(codes.Unavailable, "open bucket %s: %w", name, err)
	}
	return b, nil
}

// Specs returns all services of the system.
func (s *Service) Specs() []weft.Spec { return s.worker.cluster.Specs() }

// run runs the service and its events until its context ends.
func (s *Service) run(failed chan<- *Service) {
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		s.deliver()
	}()
	s.err = s.protect()
	if s.Context.Err() == nil {
		failed <- s
	}
	s.cancel()
	s.inbox.close()
	<-delivered
	close(s.Ended)
}

// protect calls Run and turns its panic into an error.
func (s *Service) protect() (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			err = fmt.Errorf("panic in Run: %v\n%s", p, debug.Stack())
		}
	}()
	if standIn := s.worker.config.StandIns[s.Spec.Name]; standIn != nil {
		return standIn(s.Context, s)
	}
	return s.Spec.Run(s.Context, weft.NewEnv(s.Spec, s, s.Configured(), s.Log, s.metric))
}

// Leaving reports whether the service, once started, is stopping.
func (s *Service) Leaving() bool {
	select {
	case <-s.Group.started:
		return s.Context.Err() != nil
	default:
		return false
	}
}

// EndedEarly returns an error that says that Run returned before a stop; if Run
// returned an error, stop reports that.
func (s *Service) EndedEarly() error {
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("service %s stopped by itself without an error; its Run must last until its context ends (weft.Serve does)", s.Spec.Name)
}

// Stopping reports whether the service is to end, or has ended.
func (s *Service) Stopping() bool { return s.Context.Err() != nil }

// Working reports whether calls or batches of packets are in progress.
func (s *Service) Working() bool { return s.busy.Load() > 0 }

// Pending returns how many events wait for the service.
func (s *Service) Pending() int64 { return s.inbox.pending.Load() }

// Takes reports whether the service's stage takes packets now; if so, the
// service is working until done is called.
func (s *Service) Takes() bool {
	s.busy.Add(1) // before the check, so that it does not stop meanwhile
	if !s.Serving.Load() {
		s.Done()
		return false
	}
	return true
}

func (s *Service) Done() { s.busy.Add(-1) }

// Now returns the time of day by the clock that all processes share.
func (s *Service) Now() time.Time {
	return s.worker.cluster.Now()
}

// Stop ends the service, waits for that, and removes its handlers.
func (s *Service) Stop() error {
	timeout := s.worker.config.StopTimeout
	s.cancel()
	s.inbox.close()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-s.Ended:
	case <-timer.C:
		return fmt.Errorf("service %s has not stopped within %v; its Run or one of its event handlers does not heed its context", s.Spec.Name, timeout)
	}
	for _, m := range s.methods {
		m.handler.Store(nil)
	}
	s.metric.removeAll()
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		return fmt.Errorf("service %s: %w", s.Spec.Name, s.err)
	}
	return nil
}

// TakeOver passes the running service a configuration that differs only in keys
// of Live. If the service fails, takeOver passes it the former one.
func (s *Service) TakeOver(ctx context.Context, config any) error {
	old := s.Configured()
	err := s.give(ctx, old, config)
	if err == nil {
		return nil
	}
	if back := s.give(ctx, config, old); back != nil {
		s.Log.Warn("the service did not go back to its former configuration", "error", back)
	}
	return err
}

func (s *Service) give(ctx context.Context, old, new any) error {
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	t := &takeover{ctx: ctx, old: old, new: new, done: make(chan error, 1)}
	s.inbox.announce()
	if !s.inbox.putNow(delivery{to: s.changes, event: t}) {
		return fmt.Errorf("service %s is being stopped", s.Spec.Name)
	}
	select {
	case err := <-t.done:
		if err != nil {
			return fmt.Errorf("service %s does not take it over: %w", s.Spec.Name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("service %s has not taken it over within %v", s.Spec.Name, takeLimit)
	}
}

// takeLimit is how long a service may take to take over a configuration.
const takeLimit = 10 * time.Second
