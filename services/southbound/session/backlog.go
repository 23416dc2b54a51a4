package session

import "time"

// backlog detects whether packet-ins of a session wait to be handled: either
// each read has for a while brought as much as it could, or for as long many
// packets have been on their way through stages in other processes.
type backlog struct {
	away  awayer // nil if the number is unknown
	since int64  // ns; 0: nothing waits
}

// awayer counts the packets on their way through stages in other processes.
type awayer interface{ Away() int64 }

const (
	behindAfter = int64(50 * time.Millisecond)
	awayMost    = 2048 // packets of one session; some milliseconds' worth
)

// evaluate evaluates a read, and reports whether the session is behind.
func (b *backlog) evaluate(r *reader, now int64) bool {
	if !r.wasFull() && (b.away == nil || b.away.Away() < awayMost) {
		b.since = 0
		return false
	}
	if b.since == 0 {
		b.since = now
	}
	return now-b.since >= behindAfter
}
