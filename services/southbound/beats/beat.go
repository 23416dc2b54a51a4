package beats

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
)

// Peer is the connection of a switch.
type Peer interface {
	// NextXid returns the transaction number of the next message.
	NextXid() uint32
	// SendBeat sends a message, without blocking.
	SendBeat(msg []byte) error
}

// state is whether a switch answers.
type state uint8

const (
	waiting state = iota // not asked yet
	alive                // the last beat was answered in time
	late                 // the last beat was not
	lost                 // the last beats, as many as ordered, were not
	away                 // not connected
	untold               // for Beat.told: none was reported
)

// String returns the state as the API writes it.
func (s state) String() string { return [...]string{"waiting", "alive", "late", "lost", "away"}[s] }

// never is a time that does not come.
const never = math.MaxInt64

// Beat is the beats of one switch since it connected.
type Beat struct {
	of          *Beats
	peer        Peer
	name        string
	slot, place int          // in the wheel; Beats.mu guards them
	request     []byte       // encoded beforehand, but for the xid, which turn sets
	soon        atomic.Int64 // from when on the next may go with what is written

	mu        sync.Mutex // guards what follows
	ring      ring
	due       int64 // the next
	joined    bool  // the next has gone already
	failed    error // why the last was not sent
	state     state
	told      state // the state that was last reported
	listed    bool  // it is in Beats.changes
	since     time.Time
	beats     uint64
	missed    uint64
	row       uint64 // consecutive missed ones, up to now
	left      string // why it is away
	latencies latencies
}

// Join appends the echo request of the next beat to messages that are about to
// be written, if it is due soon. at is the time as Beats.At gives it, and may
// be some milliseconds old.
func (m *Beat) Join(b []byte, at int64) []byte {
	if at < m.soon.Load() {
		return b
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.of.order.Load()
	if o == nil || m.soon.Load() == never { // somebody else was faster
		return b
	}
	m.soon.Store(never)
	m.joined = true
	now := m.of.At(time.Now())
	xid := m.note(min(now, m.due), now, o)
	b = append(b, m.request...)
	binary.BigEndian.PutUint32(b[len(b)-len(m.request)+4:], xid)
	return b
}

// note puts a request whose latency counts from a time on into the ring, and
// returns its xid; mu is held.
func (m *Beat) note(from, now int64, o *Order) uint32 {
	xid := m.peer.NextXid()
	if n := m.ring.put(sent{xid: xid, at: now, from: from, until: from + int64(o.Deadline)}); n > 0 {
		m.recordMiss(n, o)
	}
	return xid
}

// sendDue sends the beat that was due at a time; the next is due at the time next.
// Beats.mu is held.
func (m *Beat) sendDue(due, next, at int64, o *Order) {
	if !m.prepare(due, next, at, o) {
		return
	}
	if err := m.peer.SendBeat(m.request); err != nil {
		m.mu.Lock()
		m.failed = err
		m.mu.Unlock()
	}
}

// prepare prepares the request for turn; it returns false if none is to be sent.
func (m *Beat) prepare(due, next, at int64, o *Order) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due = next
	m.countMissed(at, o)
	if m.joined {
		m.joined = false
		m.rearm(o)
		return false
	}
	m.soon.Store(never)
	if at-due >= int64(o.Deadline) {
		m.failed = errLate
		m.recordMiss(1, o)
		return false
	}
	m.failed = nil
	binary.BigEndian.PutUint32(m.request[4:], m.note(due, at, o))
	return true
}

// rearm lets the next beat go with what is written, if no other is under way;
// mu is held.
func (m *Beat) rearm(o *Order) {
	if !m.joined && m.ring.allSettled() {
		m.soon.Store(m.due - int64(o.Interval)/joinShare)
	}
}

// joinShare is the share of the interval by which a beat may be early: one
// joinShare-th.
const joinShare = 2

// countMissed counts as missed the beats whose time is over; mu is held.
func (m *Beat) countMissed(at int64, o *Order) {
	if n := m.ring.expire(at); n > 0 {
		m.recordMiss(n, o)
	}
}

// skip counts beats that were due while the process did not run.
func (m *Beat) skip(n uint64, at int64, o *Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.countMissed(at, o)
	if m.joined { // the first of them has been sent
		m.joined = false
		n--
	}
	m.soon.Store(never)
	if m.failed = errLate; n > 0 {
		m.recordMiss(n, o)
	}
}

// recordMiss counts beats that were not answered in time; mu is held.
func (m *Beat) recordMiss(n uint64, o *Order) {
	m.of.counts.beats.Add(n)
	m.of.counts.missed.Add(n)
	m.beats += n
	m.missed += n
	m.row += n
	if m.row >= uint64(o.LostAfter) {
		m.become(lost)
	} else {
		m.become(late)
	}
}

// Answered takes an echo reply that was read an age ago and returns the round
// trip; ok is false if it answers no beat.
func (m *Beat) Answered(xid uint32, age time.Duration) (trip time.Duration, ok bool) {
	at := m.of.At(time.Now()) - int64(age)
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.ring.take(xid, at)
	if !ok {
		return 0, false
	}
	took := time.Duration(max(0, at-s.from))
	m.of.counts.answered(took)
	m.latencies.add(took)
	if s.inTime {
		m.of.counts.beats.Add(1)
		m.beats++
		m.row = 0
		m.become(alive)
		if o := m.of.order.Load(); o != nil {
			m.rearm(o)
		}
	}
	return time.Duration(max(0, at-s.at)), true
}

// become changes the state; mu is held.
func (m *Beat) become(s state) {
	if m.state == s || m.state == away {
		return
	}
	m.state, m.since = s, time.Now()
	m.changed()
}

// list reports the state if it was not.
func (m *Beat) list() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed()
}

// changed adds it to those whose state has changed; mu is held.
func (m *Beat) changed() {
	if !m.listed {
		m.listed = true
		m.of.changed(m)
	}
}

// Describe returns how the switch has answered.
func (m *Beat) Describe() *api.SwitchHeartbeat {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &api.SwitchHeartbeat{
		Dpid: m.name, State: m.state.String(), Since: m.since.UTC().Format(time.RFC3339),
		Beats: m.beats, Missed: m.missed, MissedInRow: m.row,
		LastUs: micros(m.latencies.last), MaxUs: micros(m.latencies.max),
		P50Us: micros(m.latencies.quantile(.5)), P99Us: micros(m.latencies.quantile(.99)),
	}
}

// changeEvent returns the event of a state that was not published yet, else nil.
func (m *Beat) changeEvent() *api.BeatChanged {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed = false
	if m.state == m.told || m.state == away && m.told == untold {
		return nil
	}
	m.told = m.state
	return &api.BeatChanged{Dpid: m.name, State: m.state.String(), MissedInRow: m.row, Reason: m.missReason()}
}

// missReason returns why the last beat was missed, or the switch is away; mu is held.
func (m *Beat) missReason() string {
	switch {
	case m.state == away:
		return m.left
	case m.state != late && m.state != lost:
		return ""
	case m.failed != nil:
		return m.failed.Error()
	}
	return "no answer in time"
}

func micros(d time.Duration) uint64 { return uint64(max(0, d.Microseconds())) }
