package flowrules

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
)

// state is the progress of a desired entry.
type state uint8

const (
	requested state = iota // to be sent
	sent                   // on its way; not confirmed by barrier yet
	confirmed              // the switch has it
	failed                 // the switch has refused it, or repeatedly not confirmed it
)

// String returns the state as the API writes it.
func (s state) String() string {
	return [...]string{"requested", "sent", "confirmed", "failed"}[s]
}

// Reasons of states that do not come from the switch.
const (
	reasonAway    = "switch away"
	reasonRoom    = "waiting for room in the table"
	reasonTold    = "the switch tells this entry differently from how it was written"
	reasonDeleted = "deleted by somebody else"
	reasonLacks   = "the switch confirms this entry and does not have it, again and again"
	reasonLacked  = "the switch had confirmed this entry and did not have it; it is written and read again"
)

// lateMax is how many times in a row a switch may fail to confirm an entry before
// the entry counts as failed; attempts continue all the same.
const lateMax = 3

// quirkMax is how many times in a row an entry is repaired before the switch's
// report of it is taken to be its way of reporting it.
const quirkMax = 3

// lackMax is how many times a switch may lack an entry that it has confirmed before
// the entry counts as failed. It counts so until the switch has had it at every
// reading for lackFor.
const (
	lackMax = 3
	lackFor = 10 * time.Minute
)

// lack counts the readings that lacked an entry although it was confirmed.
type lack struct {
	times int
	last  time.Time
	seen  time.Time // when a reading had it last
}

// isMissing reports whether a reading lacked the entry and none has had it since.
func (n *lack) isMissing() bool { return n != nil && n.last.After(n.seen) }

// rule is one desired entry of one switch.
type rule struct {
	id      entryID
	app     string    // that asked for it; empty: the operator, or a service
	compact           // its cookie is the one on the switch, where known
	expires time.Time // zero is never; operator's entries only
	added   time.Time
	order   uint64 // of its request, among those for its switch
	page    *page  // where it is stored; nil: nowhere. worker.storing guards it

	progress
	delivered bool  // has been confirmed at least once
	restores  int32 // times that somebody else has deleted it, in a row
	crowded   bool  // waits for removals from this switch to make room
	lost      bool  // deleted by somebody else while on its way
	told      *seen // as the switch reported it when it was last repaired
}

// newRule returns the rule of an entry asked for at the given time.
func newRule(e *flow.Entry, added time.Time) *rule {
	return &rule{id: idOf(e), compact: pack(e), added: added, progress: progress{since: added}}
}

// recordConfirmed records that the switch has the entry.
func (r *rule) recordConfirmed(now time.Time) {
	r.crowded, r.lost, r.delivered = false, false, true
	r.progress.recordConfirmed(now)
}

// progress is the progress of something that a switch should have: an entry, a
// group or a meter.
type progress struct {
	state     state
	full      bool      // its last failure was for lack of room
	lacking   bool      // the switch confirms it and does not have it, again and again
	refusals  int32     // in a row
	late      int32     // transient failures in a row
	quirks    int32     // times in a row that it was repaired
	since     time.Time // when it came into this state
	reason    string
	due       time.Time // when to send it
	announced string    // the failure that was published
	settled   chan struct{}
}

// become changes the state, and notifies those who wait for the rule to settle.
func (r *progress) become(s state, reason string, now time.Time) {
	if r.state != s {
		r.since = now
	}
	r.state, r.reason = s, reason
	if s == confirmed || s == failed {
		r.closeWaiters()
	}
}

func (r *progress) closeWaiters() {
	if r.settled != nil {
		close(r.settled)
		r.settled = nil
	}
}

// settledChan returns a channel that is closed when the rule is confirmed or has
// failed; nil if it is or has already.
func (r *progress) settledChan() <-chan struct{} {
	if r.state == confirmed || r.state == failed {
		return nil
	}
	if r.settled == nil {
		r.settled = make(chan struct{})
	}
	return r.settled
}

// wantedEntry returns the entry to write at now.
func (r *rule) wantedEntry(now time.Time) flow.Entry {
	e := *r.entry()
	if !r.expires.IsZero() {
		e.HardTimeout = remaining(r.expires, now)
	}
	return e
}

// recordConfirmed records that the switch has it.
func (r *progress) recordConfirmed(now time.Time) {
	r.refusals, r.late, r.full, r.announced = 0, 0, false, ""
	r.become(confirmed, "", now)
}

// byItself reports whether the switch itself has refused it, or does not keep it; not
// if the switch is late or away, or another owner's entry is in its place.
func (r *progress) byItself() bool {
	return r.state == failed && (r.refusals > 0 || r.full || r.lacking)
}

// latePause returns the pause after the n-th attempt in a row that failed because
// the switch, or the store, was late.
func latePause(n int) time.Duration {
	return backoff.Exponential{First: 100 * time.Millisecond, Last: longestPause}.After(n)
}

// longestPause is how long what was late waits for another try at most.
const longestPause = 10 * time.Second

// refusalPause returns the pause after the n-th refusal in a row.
func refusalPause(cfg *Config, n int) time.Duration {
	return backoff.Exponential{First: cfg.RetryAfter, Factor: 4, Last: time.Hour}.After(n)
}

// recordFailure records a failure and returns whether the rule is to be retried, at
// due. Kinds of failure: the switch was late or away (transient), its table is
// full, or it rejects the entry.
func (r *progress) recordFailure(f failure, cfg *Config, now time.Time) (again bool) {
	r.full = f.kind == failedFull
	switch f.kind {
	case failedLate:
		r.late++
		r.due = now.Add(latePause(int(r.late)))
		if r.late < lateMax {
			r.become(requested, f.text, now)
		} else {
			r.become(failed, f.text, now)
		}
		return true
	case failedFull:
		r.due = now.Add(cfg.RetryFull)
		r.become(failed, f.text, now)
		return true
	}
	r.refusals++
	r.due = now.Add(refusalPause(cfg, int(r.refusals)))
	r.become(failed, f.text, now)
	return int(r.refusals) <= cfg.Retries
}

// removal is an entry to be removed from a switch.
type removal struct {
	entry   flow.Entry
	due     time.Time
	late    int
	settled chan struct{} // closed when the switch has confirmed, or the removal is void
}

// failure is the outcome of one operation that did not succeed.
type failure struct {
	kind failureKind
	text string
}

// failureKind distinguishes failures by how to handle them.
type failureKind uint8

const (
	failedLate    failureKind = iota // transient: away, late or queue full
	failedFull                       // no room in the table
	failedRefused                    // the switch rejects it
)

// String returns the kind as metrics label it.
func (k failureKind) String() string {
	return [...]string{"late", "table_full", "refused"}[k]
}

// kindOf returns the kind of a failure, by the error of a switch of the given
// OpenFlow version: no room is OFPFMFC_TABLE_FULL (OpenFlow 1.3.5 §7.4.4.6) or
// OFPFMFC_ALL_TABLES_FULL (OpenFlow 1.0.0 §5.4.4).
func kindOf(version string, transient bool, errorType, code uint32) failureKind {
	switch {
	case transient:
		return failedLate
	case version != "1.0" && errorType == 5 && code == 1, version == "1.0" && errorType == 3 && code == 0:
		return failedFull
	}
	return failedRefused
}
