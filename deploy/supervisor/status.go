package supervisor

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"time"
)

// State is what a process is doing.
type State string

// The states of a process.
const (
	Starting     State = "starting"     // it runs and has not yet answered a probe
	Up           State = "up"           // it runs, and answers if there is a probe
	Unresponsive State = "unresponsive" // it did not answer for too long and is being killed
	BackingOff   State = "backing-off"  // it is down; its next start waits
	Stopping     State = "stopping"     // it is being ended
	Stopped      State = "stopped"      // it is down and not to be started before the next Set
)

// Status is what is known of one process.
type Status struct {
	Name      string
	PID       int // 0 if it does not run
	State     State
	Since     time.Time // when it came into this state
	Started   time.Time // when the process was started; zero if it does not run
	Adopted   bool      // started by an earlier supervisor
	Restarts  int       // starts after the first that Set did not ask for
	LastExit  *Exit     // nil if it has not ended yet
	Unapplied []Unapplied
}

// Unapplied is a limit that a process runs without.
type Unapplied struct {
	Limit  string // nice, real-time, cpus, memory, cpu_quota, cgroup
	Reason string
}

// Exit is how a process ended.
type Exit struct {
	Time   time.Time
	PID    int            // 0 if it could not be started
	Code   int            // exit status; -1 if it was ended by a signal, or is not known
	Signal syscall.Signal // that ended it; 0 if none
	// OutOfMemory: the kernel killed it because it was at its memory limit.
	OutOfMemory bool
	Text        string // all of that, and why, in words
	LastWords   string // the last line that it printed, if its status is above 0
}

// Status returns what is known of all processes, by name.
func (s *Supervisor) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot()
}

// snapshot is Status for those who hold mu.
func (s *Supervisor) snapshot() []Status {
	list := make([]Status, 0, len(s.children))
	for _, name := range slices.Sorted(maps.Keys(s.children)) {
		status := s.children[name].status
		status.Unapplied = slices.Clone(status.Unapplied)
		if status.LastExit != nil {
			e := *status.LastExit
			status.LastExit = &e
		}
		list = append(list, status)
	}
	return list
}

// Watch returns a channel with Status now and after every change; a reader
// that is slower than the changes misses some, never the last. It is closed
// when ctx or the supervisor ends.
func (s *Supervisor) Watch(ctx context.Context) <-chan []Status {
	w := make(chan []Status, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	w <- s.snapshot()
	if s.closed {
		close(w)
		return w
	}
	s.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.watchers[w]; ok {
			delete(s.watchers, w)
			close(w)
		}
	})
	return w
}

// notify tells the watchers of a change; the caller holds mu.
func (s *Supervisor) notify() {
	if len(s.watchers) == 0 {
		return
	}
	for w := range s.watchers {
		select {
		case <-w: // not yet read, and now old
		default:
		}
		w <- s.snapshot()
	}
}
