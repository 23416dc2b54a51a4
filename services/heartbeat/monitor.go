package heartbeat

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// figures is the metrics of latencies and beats.
type figures struct {
	latency       func(seconds float64)
	beats, missed func(float64)
}

// monitor asks all connected switches, each once per interval. It divides the
// interval into slots, and asks the switches of a slot by one call, so that the
// work is spread evenly and many switches cost few calls.
type monitor struct {
	cfg     atomic.Pointer[Config]
	log     *slog.Logger
	ask     func(ctx context.Context, dpids []string, deadline time.Duration) ([]*api.SwitchEcho, error)
	publish func(*api.HeartbeatChanged)
	figures figures
	bell    chan struct{} // holds one: there is a switch where there was none
	retimed chan struct{} // holds one: the interval has changed

	mu       sync.Mutex // guards what follows
	switches map[flow.DPID]*record
	slots    []slot
}

// slot is the switches that are asked together.
type slot struct {
	members []*record
	asking  int // calls under way
}

// add adds a switch to the slot.
func (s *slot) add(r *record) {
	r.place = len(s.members)
	s.members = append(s.members, r)
}

// drop undoes add.
func (s *slot) drop(r *record) {
	last := len(s.members) - 1
	moved := s.members[last]
	s.members[r.place], s.members[last] = moved, nil
	moved.place = r.place
	s.members = s.members[:last]
}

// Bounds of slots: more of them spread the work better, and cost more timers.
const (
	slotsMost = 50
	slotLeast = 5 * time.Millisecond
)

// askingMost is how many calls of a slot may be under way. A call to a switch
// that does not answer lasts until the deadline and, if the process is busy,
// until the grace is over.
func (c *Config) askingMost() int { return 2 + int((c.deadline()+grace-1)/c.interval()) }

func newMonitor(cfg Config, log *slog.Logger) *monitor {
	m := &monitor{
		log: log, bell: make(chan struct{}, 1), retimed: make(chan struct{}, 1), switches: map[flow.DPID]*record{}, slots: cfg.slots(),
		publish: func(*api.HeartbeatChanged) {},
		figures: figures{func(float64) {}, func(float64) {}, func(float64) {}},
	}
	m.cfg.Store(&cfg)
	return m
}

// slots returns the empty slots of an interval.
func (c *Config) slots() []slot {
	return make([]slot, min(slotsMost, max(1, int(c.interval()/slotLeast))))
}

// configure applies another configuration. The records of the switches stay.
func (m *monitor) configure(cfg Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	retimed := cfg.interval() != m.cfg.Load().interval()
	m.cfg.Store(&cfg)
	if !retimed {
		return
	}
	m.slots = cfg.slots()
	i := 0
	for _, r := range m.switches {
		r.slot = i % len(m.slots)
		m.slots[r.slot].add(r)
		i++
	}
	object.Notify(m.retimed)
}

// switchChanged adds a switch that has connected, and drops one that has gone.
func (m *monitor) switchChanged(s *api.Switch, now time.Time) {
	sw, err := flow.ParseDPID(s.GetDpid())
	if err != nil {
		return
	}
	m.mu.Lock()
	session := s.GetSince() + " " + s.GetAddress()
	old := m.switches[sw]
	if old != nil && s.GetConnected() && old.session == session {
		m.mu.Unlock()
		return
	}
	if old != nil {
		m.slots[old.slot].drop(old)
		delete(m.switches, sw)
	}
	if s.GetConnected() {
		r := &record{sw: sw, name: sw.String(), session: session, since: now}
		for i := range m.slots {
			if len(m.slots[i].members) < len(m.slots[r.slot].members) {
				r.slot = i
			}
		}
		m.switches[sw] = r
		m.slots[r.slot].add(r)
	}
	m.mu.Unlock()
	if !s.GetConnected() {
		m.publish(&api.HeartbeatChanged{Dpid: sw.String(), State: away.String(), Reason: s.GetReason()})
	}
	object.Notify(m.bell)
}

// run asks until ctx ends.
func (m *monitor) run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var interval, tick time.Duration
	start, turn := time.Now(), 0
	retime := func() {
		m.mu.Lock()
		interval = m.cfg.Load().interval()
		tick = interval / time.Duration(len(m.slots))
		m.mu.Unlock()
		start, turn = time.Now(), 0
	}
	for retime(); ; {
		next, some := m.next(turn)
		if !some {
			select {
			case <-ctx.Done():
				return
			case <-m.bell:
			case <-m.retimed:
			}
			retime()
			continue
		}
		turn = next
		due := start.Add(time.Duration(turn) * tick)
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return
		case <-m.retimed:
			retime()
			continue
		case <-timer.C:
		}
		m.mu.Lock()
		slots := len(m.slots)
		m.mu.Unlock()
		if over := time.Since(due) - interval; over > 0 { // the process did not run meanwhile
			beats := overdue(turn, slots, over, interval)
			for i, n := range beats {
				if n > 0 {
					m.skip(i, uint64(n), "the controller did not run in time")
				}
				turn += n
			}
			continue
		}
		m.beat(ctx, turn%slots, due, &asking)
		turn++
	}
}

// next returns the first turn from turn on whose slot has a member, false if none
// has.
func (m *monitor) next(turn int) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.slots {
		if len(m.slots[(turn+i)%len(m.slots)].members) > 0 {
			return turn + i, true
		}
	}
	return 0, false
}

// overdue returns how many beats of each slot can no longer be answered in time
// if the beat of a turn, and none before it, is late by over: it, and those of
// later turns that were due in that time. Those after them can.
func overdue(turn, slots int, over, interval time.Duration) []int {
	beats := make([]int, slots)
	for i := range beats {
		beats[i] = int(over / interval)
	}
	tick := interval / time.Duration(slots)
	for i := range min(slots, 1+int(over%interval/tick)) {
		beats[(turn+i)%slots]++
	}
	return beats
}

// skip counts beats of a slot that were due and not sent.
func (m *monitor) skip(at int, n uint64, reason string) {
	m.mu.Lock()
	var members []*record
	if at < len(m.slots) { // there may be fewer by now
		members = slices.Clone(m.slots[at].members)
	}
	m.mu.Unlock()
	m.settle(members, time.Now(), n, func(int) (time.Duration, string) { return 0, reason })
}

// beat asks the members of a slot, in the background. If the slot's last calls
// have not returned, its members have missed this beat, too.
func (m *monitor) beat(ctx context.Context, at int, due time.Time, asking *sync.WaitGroup) {
	m.mu.Lock()
	if at >= len(m.slots) { // there are fewer by now
		m.mu.Unlock()
		return
	}
	s := &m.slots[at]
	if s.asking >= m.cfg.Load().askingMost() {
		m.mu.Unlock()
		m.skip(at, 1, "the beats before are still waiting")
		return
	}
	members := slices.Clone(s.members)
	if len(members) == 0 {
		m.mu.Unlock()
		return
	}
	s.asking++
	m.mu.Unlock()
	asking.Go(func() {
		m.round(ctx, members, due)
		m.mu.Lock()
		s.asking--
		m.mu.Unlock()
	})
}

// grace is how long the southbound may take to return after the deadline.
const grace = 100 * time.Millisecond

// round asks switches once and records the results.
func (m *monitor) round(ctx context.Context, members []*record, due time.Time) {
	began := time.Now()
	waited := began.Sub(due)
	left := m.cfg.Load().deadline() - waited
	if left < time.Millisecond {
		m.settle(members, due, 1, func(int) (time.Duration, string) { return 0, "the controller did not ask in time" })
		return
	}
	dpids := make([]string, len(members))
	for i, r := range members {
		dpids[i] = r.name
	}
	call, cancel := context.WithTimeout(ctx, left+grace)
	echoes, err := m.ask(call, dpids, left)
	took := time.Since(began)
	cancel()
	switch {
	case ctx.Err() != nil:
		return
	case err == nil && len(echoes) != len(members):
		err = api.Errorf(codes.Internal, "%d answers for %d switches", len(echoes), len(members))
	}
	if err != nil {
		m.settle(members, due, 1, func(int) (time.Duration, string) { return 0, err.Error() })
		return
	}
	// The time to the southbound and back is the call's time here less its time
	// there. The time spent there after an answer had come does not count: the
	// call waited for others, or the process was busy.
	there := time.Duration(0)
	for _, e := range echoes {
		there = max(there, micro(e.GetCallUs()))
	}
	way := max(0, took-there)
	m.settle(members, due, 1, func(i int) (time.Duration, string) {
		if text := echoes[i].GetError(); text != "" {
			return 0, text
		}
		total := waited + way + micro(echoes[i].GetAskedUs()+echoes[i].GetRttUs())
		if total > m.cfg.Load().deadline() {
			return 0, "answered after " + total.Round(time.Microsecond).String()
		}
		return total, ""
	})
}

// settle records the results of n beats of some switches, the last of which was
// due at due: how long the answer took, or why there is none.
func (m *monitor) settle(members []*record, due time.Time, n uint64, outcome func(i int) (took time.Duration, why string)) {
	now := time.Now()
	var events []*api.HeartbeatChanged
	var gone []string
	var why string
	m.mu.Lock()
	for i, r := range members {
		if m.switches[r.sw] != r {
			continue // it has disconnected meanwhile
		}
		m.figures.beats(float64(n))
		took, text := outcome(i)
		var changed bool
		if text == "" {
			m.figures.latency(took.Seconds())
			changed = r.answered(took, due, now)
		} else {
			m.figures.missed(float64(n))
			changed = r.miss(n, m.cfg.Load().LostAfter, due, now)
		}
		if !changed {
			continue
		}
		events = append(events, r.changed(text))
		if r.state == lost {
			gone, why = append(gone, r.name), text
		}
	}
	m.mu.Unlock()
	if len(gone) > 0 {
		m.log.Warn("switches do not answer heartbeats", "switches", len(gone), "first", gone[0], "missed", m.cfg.Load().LostAfter, "reason", why)
	}
	for _, e := range events {
		m.publish(e)
	}
}

// count returns the number of switches in a state.
func (m *monitor) count(s state) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.switches {
		if r.state == s {
			n++
		}
	}
	return n
}

// list answers api.ListHeartbeats.
func (m *monitor) list(_ context.Context, req *api.ListHeartbeatsRequest) (*api.ListHeartbeatsResponse, error) {
	resp := &api.ListHeartbeatsResponse{Rate: m.cfg.Load().Rate, DeadlineUs: micros(m.cfg.Load().deadline())}
	var only flow.DPID
	if req.GetDpid() != "" {
		sw, err := flow.ParseDPID(req.Dpid)
		if err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
		only = sw
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if req.GetDpid() != "" && m.switches[only] == nil {
		return nil, api.Errorf(codes.NotFound, "switch %v is not connected", only)
	}
	for sw, r := range m.switches {
		if req.GetDpid() == "" || sw == only {
			resp.Switches = append(resp.Switches, r.describe())
		}
	}
	slices.SortFunc(resp.Switches, func(a, b *api.SwitchHeartbeat) int {
		if a.Dpid < b.Dpid {
			return -1
		}
		return 1
	})
	return resp, nil
}
