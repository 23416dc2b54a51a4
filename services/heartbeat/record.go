package heartbeat

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// state is whether a switch answers.
type state uint8

const (
	waiting state = iota // not asked yet
	alive                // the last beat was answered in time
	late                 // the last beat was not
	lost                 // the last beats, as many as configured, were not
	away                 // not connected
)

// String returns the state as the API writes it.
func (s state) String() string { return [...]string{"waiting", "alive", "late", "lost", "away"}[s] }

// record is the beats of one switch since it connected.
type record struct {
	sw      flow.DPID
	name    string // of sw
	session string // identifies the connection
	slot    int
	place   int // in slot.members

	state     state
	since     time.Time
	beats     uint64
	missed    uint64
	row       uint64    // consecutive missed ones, up to now
	heard     time.Time // when the latest answered beat was due
	latencies latencies
}

// answered records an answer in time; it reports whether the state has changed.
func (r *record) answered(took time.Duration, due, now time.Time) bool {
	r.beats++
	r.row = 0
	if due.After(r.heard) {
		r.heard = due
	}
	r.latencies.add(took)
	return r.become(alive, now)
}

// miss records n beats that were not answered in time; it reports whether the
// state has changed. A beat counts as missed when its deadline is over, which may
// be after a later one has been answered.
func (r *record) miss(n uint64, lostAfter int, due, now time.Time) bool {
	r.beats += n
	r.missed += n
	if due.Before(r.heard) {
		return false
	}
	r.row += n
	if r.row >= uint64(lostAfter) {
		return r.become(lost, now)
	}
	return r.become(late, now)
}

func (r *record) become(s state, now time.Time) bool {
	if r.state == s {
		return false
	}
	r.state, r.since = s, now
	return true
}

// changed returns the event that publishes the state.
func (r *record) changed(reason string) *api.HeartbeatChanged {
	return &api.HeartbeatChanged{Dpid: r.name, State: r.state.String(), MissedInRow: r.row, Reason: reason}
}

func (r *record) describe() *api.SwitchHeartbeat {
	return &api.SwitchHeartbeat{
		Dpid: r.name, State: r.state.String(), Since: r.since.UTC().Format(time.RFC3339),
		Beats: r.beats, Missed: r.missed, MissedInRow: r.row,
		LastUs: micros(r.latencies.last), MaxUs: micros(r.latencies.max),
		P50Us: micros(r.latencies.quantile(.5)), P99Us: micros(r.latencies.quantile(.99)),
	}
}

func micros(d time.Duration) uint64 { return uint64(max(0, d.Microseconds())) }

func micro(us uint64) time.Duration { return time.Duration(us) * time.Microsecond }
