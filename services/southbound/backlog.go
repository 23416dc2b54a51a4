package southbound

import "time"

// backlog tells whether packet-ins of a session wait to be dealt with: when it
// has read as much as it could each time for a while, or when many are on their
// way through stages in other processes for as long.
type backlog struct {
	away  awayer // nil if nobody can tell
	since int64  // ns; 0: nothing waits
}

// awayer tells how many packets are on their way through stages elsewhere.
type awayer interface{ Away() int64 }

const (
	behindAfter = int64(50 * time.Millisecond)
	awayMost    = 2048 // packets of one session; some milliseconds' worth
)

// look takes what a read has brought, and reports whether the session is behind.
func (b *backlog) look(r *reader, now int64) bool {
	if !r.brimful() && (b.away == nil || b.away.Away() < awayMost) {
		b.since = 0
		return false
	}
	if b.since == 0 {
		b.since = now
	}
	return now-b.since >= behindAfter
}
