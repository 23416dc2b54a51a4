package deploy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/backoff"
)

// membership is what a process knows of the processes of the plan: the plan in force,
// their entries in the directory, and the connections to the others. It has the
// process's own entry too, and writes it to the directory.
type membership struct {
	directory *members.Directory
	links     members.Links
	log       *slog.Logger
	self      uint64                                 // incarnation of this process
	ahead     time.Duration                          // the store's clock minus this machine's
	handle    func(process string, e *members.Entry) // handles a change of an entry

	publishing sync.Mutex // held while our entry is written to the directory
	mu         sync.Mutex // guards what follows
	current    *members.Current
	since      time.Time                 // when the current plan came into force
	entries    map[string]*members.Entry // of all processes, by name
	peers      map[string]*members.Peer  // of the others
	entry      members.Entry             // our own
	latest     map[members.RunOf]uint64  // the latest epoch of each service that others have run
	left       bool                      // this process has left the plan
	successor  bool                      // the directory has another run of this process
}

// storeClock is a store with a clock. All processes use it, because the clocks
// of their machines may differ.
type storeClock interface {
	Now(ctx context.Context) (time.Time, error)
}

// now returns the time of day by the store's clock.
func (m *membership) now() time.Time { return time.Now().Add(m.ahead) }

// plan returns the plan in force; nil if this process has not seen it yet.
func (m *membership) plan() *members.Current {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

// others returns the other processes.
func (m *membership) others() map[string]*members.Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.peers)
}

// updatePeer updates the peer of a process whose entry has changed. The caller holds the
// lock.
func (m *membership) updatePeer(process string, e *members.Entry) {
	p := m.peers[process]
	if p != nil && (e == nil || p.Entry.Load().Incarnation != e.Incarnation) {
		delete(m.peers, process)
		go p.Close()
		p = nil
	}
	switch {
	case e == nil:
	case p == nil:
		m.peers[process] = members.NewPeer(&m.links, e)
	default:
		p.Entry.Store(e)
	}
}

// watchPeers pings peers whose answer is overdue, and hangs up on those that do
// not answer the ping.
func (m *membership) watchPeers(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var asked sync.WaitGroup
	defer asked.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range m.others() {
			if p.Slow() {
				asked.Go(func() { p.Check(ctx) })
			}
		}
	}
}

// lists reports whether the entry of a process lists a run of a service.
func (m *membership) lists(service string, epoch uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if s := e.Service(service); s != nil && s.Epoch == epoch {
			return true
		}
	}
	return false
}

// alive returns the epochs of all runs of a service that have not died.
func (m *membership) alive(service string) map[uint64]bool {
	m.mu.Lock()
	entries, peers, over := maps.Clone(m.entries), maps.Clone(m.peers), m.links.View.Load().Superseded
	m.mu.Unlock()
	epochs := map[uint64]bool{}
	for process, e := range entries {
		s := e.Service(service)
		if s == nil || s.State == members.StateStandby || over[members.RunOf{Service: service, Partition: e.Partition, Epoch: s.Epoch}] {
			continue
		}
		if p := peers[process]; p == nil || !p.Dead(context.Background()) {
			epochs[s.Epoch] = true
		}
	}
	return epochs
}

// partitionOf returns the partition of a run of a process; false if it is
// unknown.
func (m *membership) partitionOf(incarnation uint64) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.Incarnation == incarnation {
			return e.Partition, true
		}
	}
	return "", false
}

// nextEpoch returns the epoch of a run that begins now: the time, or one more
// than the latest epoch that the directory has shown if the clock was set back.
func (m *membership) nextEpoch() uint64 {
	epoch := uint64(m.now().UnixNano())
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		for i := range e.Services {
			epoch = max(epoch, e.Services[i].Epoch+1)
		}
	}
	for _, latest := range m.latest {
		epoch = max(epoch, latest+1)
	}
	return epoch
}

// noteRuns notes the runs that an entry of another process shows. The caller holds the lock.
func (m *membership) noteRuns(e *members.Entry) {
	for i := range e.Services {
		if s := &e.Services[i]; s.State == members.StateReady || s.State == members.StateSyncing {
			of := members.RunOf{Service: s.Name, Partition: e.Partition}
			m.latest[of] = max(m.latest[of], s.Epoch)
		}
	}
}

// overtaken reports whether another process has begun a run of a service later than the run
// here. Replicas do not replace each other, so they are never overtaken.
func (m *membership) overtaken(s *local.Service) bool {
	if s.Spec.Scale == weft.Any {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest[members.RunOf{Service: s.Spec.Name, Partition: m.entry.Partition}] > s.Epoch.Load()
}

// setState changes the state of a service in our entry; an empty state removes
// the service.
func (m *membership) setState(s *local.Service, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry.Services = slices.DeleteFunc(m.entry.Services, func(x members.ServiceState) bool { return x.Name == s.Spec.Name })
	if state == "" {
		return
	}
	st := members.ServiceState{Name: s.Spec.Name, Epoch: s.Epoch.Load(), State: state}
	for _, sub := range s.Spec.Wants() {
		st.Subscribes = append(st.Subscribes, sub.SubjectName())
	}
	m.entry.Services = append(m.entry.Services, st)
}

// publish writes our entry to the directory.
func (m *membership) publish(ctx context.Context) error {
	m.publishing.Lock() // the last write has the latest state
	defer m.publishing.Unlock()
	m.mu.Lock()
	e := m.entry
	e.Services = slices.Clone(e.Services)
	m.mu.Unlock()
	for pauses := (backoff.Exponential{First: members.RedialAfter, Last: time.Second}); ; {
		err := m.directory.PutEntry(ctx, &e)
		if err == nil {
			break
		}
		if kind := api.KindOf(err); ctx.Err() != nil || kind != codes.Unavailable && kind != codes.DeadlineExceeded {
			return fmt.Errorf("write the directory entry of this process: %w", err)
		}
		m.log.Warn("the directory entry of this process cannot be written now; trying again", "error", err)
		_ = pauses.Wait(ctx) // writing fails when ctx has ended
	}
	m.handle(e.Process, &e) // without waiting for the echo
	return nil
}
