package heartbeat

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/object"
)

// The states of a switch, as the API writes them.
const (
	waiting = "waiting"
	alive   = "alive"
	late    = "late"
	lost    = "lost"
	away    = "away"
)

// figures is the metrics of latencies and beats.
type figures struct {
	latency       func(seconds float64)
	beats, missed func(float64)
}

// monitor keeps the standing order of the southbound, and passes on what comes
// of it.
type monitor struct {
	cfg     atomic.Pointer[Config]
	log     *slog.Logger
	order   func(context.Context, *api.OrderBeatsRequest) (*api.BeatCounts, error)
	ask     func(ctx context.Context, dpid string) (*api.ListBeatsResponse, error)
	publish func(*api.HeartbeatChanged)
	figures figures
	changed chan struct{} // holds one: the configuration is another

	mu     sync.Mutex        // guards what follows
	states map[string]string // of the switches that are connected
	gone   map[string]bool   // lost since that was last logged
	why    string            // of the last of them
	last   *api.BeatCounts   // the latest; nil before the first
	silent bool              // the southbound does not answer
}

func newMonitor(cfg Config, log *slog.Logger) *monitor {
	m := &monitor{log: log, changed: make(chan struct{}, 1), states: map[string]string{}, gone: map[string]bool{}}
	m.cfg.Store(&cfg)
	return m
}

// configure applies another configuration.
func (m *monitor) configure(cfg Config) {
	m.cfg.Store(&cfg)
	object.Notify(m.changed)
}

const (
	// renewEvery is how often the order is given again and the counts are read.
	renewEvery = time.Second
	// patienceLeast is for how long the southbound may fail to answer before
	// its switches count as lost, at least.
	patienceLeast = 3 * time.Second
)

// patience is for how long the southbound may fail to answer.
func (c *Config) patience() time.Duration {
	return max(patienceLeast, time.Duration(c.LostAfter)*c.interval())
}

// run keeps the order until ctx ends.
func (m *monitor) run(ctx context.Context) {
	for heard := time.Now(); ; {
		cfg := m.cfg.Load()
		call, cancel := context.WithTimeout(ctx, renewEvery)
		counts, err := m.order(call, &api.OrderBeatsRequest{
			IntervalUs: micros(cfg.interval()), DeadlineUs: micros(cfg.deadline()), LostAfter: uint32(cfg.LostAfter),
		})
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			heard = time.Now()
			m.counted(counts)
			m.resume(ctx)
		case time.Since(heard) > cfg.patience():
			m.fail(err)
		}
		m.logLost()
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
		case <-time.After(renewEvery):
		}
	}
}

// fail makes all switches lost, because the southbound does not answer.
func (m *monitor) fail(err error) {
	m.mu.Lock()
	var list []*api.HeartbeatChanged
	if !m.silent {
		m.silent = true
		for dpid := range m.states {
			list = append(list, m.become(dpid, lost, 0, err.Error()))
		}
	}
	m.mu.Unlock()
	m.tell(list...)
}

// resume asks for the states again if the southbound did not answer before.
func (m *monitor) resume(ctx context.Context) {
	m.mu.Lock()
	silent := m.silent
	m.mu.Unlock()
	if !silent {
		return
	}
	call, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	resp, err := m.ask(call, "")
	if err != nil {
		return // until the next time
	}
	m.mu.Lock()
	m.silent = false
	var list []*api.HeartbeatChanged
	for _, s := range resp.Switches {
		list = append(list, m.become(s.Dpid, s.State, s.MissedInRow, ""))
	}
	m.mu.Unlock()
	m.tell(list...)
}

// beatChanged takes a change that the southbound reports.
func (m *monitor) beatChanged(e *api.BeatChanged) {
	m.mu.Lock()
	changed := m.become(e.GetDpid(), e.GetState(), e.GetMissedInRow(), e.GetReason())
	m.mu.Unlock()
	m.tell(changed)
}

// become notes the state of a switch and returns the event for it; nil if
// there is no news. mu is held.
func (m *monitor) become(dpid, state string, row uint64, why string) *api.HeartbeatChanged {
	old, known := m.states[dpid]
	switch {
	case state == away:
		delete(m.states, dpid)
	case old == state:
		return nil
	default:
		m.states[dpid] = state
	}
	if state == waiting || state == away && !known {
		return nil
	}
	if state == lost {
		m.gone[dpid], m.why = true, why
	}
	return &api.HeartbeatChanged{Dpid: dpid, State: state, MissedInRow: row, Reason: why}
}

// tell publishes events.
func (m *monitor) tell(list ...*api.HeartbeatChanged) {
	for _, e := range list {
		if e != nil {
			m.publish(e)
		}
	}
}

// logLost logs which switches were lost since the last time.
func (m *monitor) logLost() {
	m.mu.Lock()
	gone, why := slices.Sorted(maps.Keys(m.gone)), m.why
	clear(m.gone)
	m.mu.Unlock()
	if len(gone) > 0 {
		m.log.Warn("switches do not answer heartbeats", "switches", len(gone), "first", gone[0], "missed", m.cfg.Load().LostAfter, "reason", why)
	}
}

// counted adds to the metrics what has been counted since the last time. What a
// southbound had counted before this process began does not count here.
func (m *monitor) counted(c *api.BeatCounts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last
	switch {
	case last == nil:
		m.last = c
		return
	case c.GetSince() < last.GetSince(): // from a southbound that has ended
		return
	case c.GetSince() > last.GetSince():
		last = &api.BeatCounts{}
	}
	now := &api.BeatCounts{Since: c.GetSince(), Beats: max(c.GetBeats(), last.GetBeats()), Missed: max(c.GetMissed(), last.GetMissed())}
	m.figures.beats(float64(now.Beats - last.GetBeats()))
	m.figures.missed(float64(now.Missed - last.GetMissed()))
	for i, b := range c.GetBuckets() {
		old := &api.BeatBucket{}
		if i < len(last.GetBuckets()) {
			old = last.Buckets[i]
		}
		if b.GetCount() <= old.GetCount() { // of an answer that was overtaken
			b = old
		}
		now.Buckets = append(now.Buckets, b)
		for n, each := b.GetCount()-old.GetCount(), mean(i, old, b); n > 0; n-- {
			m.figures.latency(each)
		}
	}
	m.last = now
}

// mean returns the mean latency, in seconds, of the answers that a bucket has
// got, within its bounds.
func mean(i int, old, now *api.BeatBucket) float64 {
	n := now.GetCount() - old.GetCount()
	if n == 0 || i > len(api.BeatBounds) {
		return 0
	}
	s := (float64(now.GetSumUs()) - float64(old.GetSumUs())) / 1e6 / float64(n)
	if i < len(api.BeatBounds) {
		s = min(s, api.BeatBounds[i])
	}
	if i > 0 {
		s = max(s, math.Nextafter(api.BeatBounds[i-1], math.Inf(1)))
	}
	return s
}

// count returns the number of switches in a state.
func (m *monitor) count(state string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.states {
		if s == state {
			n++
		}
	}
	return n
}

// list answers api.ListHeartbeats.
func (m *monitor) list(ctx context.Context, req *api.ListHeartbeatsRequest) (*api.ListHeartbeatsResponse, error) {
	beats, err := m.ask(ctx, req.GetDpid())
	if err != nil {
		return nil, err
	}
	m.counted(beats.GetCounts())
	cfg := m.cfg.Load()
	return &api.ListHeartbeatsResponse{Switches: beats.GetSwitches(), Rate: cfg.Rate, DeadlineUs: micros(cfg.deadline())}, nil
}

func micros(d time.Duration) uint64 { return uint64(max(0, d.Microseconds())) }
