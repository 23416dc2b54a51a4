package beats

// ring is the latest echo requests to one switch. By it answers are known
// whenever they come, and nothing else passes for one.
type ring struct {
	sent [ringSize]sent // by number modulo ringSize
	next uint32         // number of the next request
	open uint32         // number of the oldest that is not settled
}

// ringSize is how many requests a switch may be behind for its answers to be
// measured.
const ringSize = 16

// sent is one request. It is settled when it has been answered in time or its
// time is over.
type sent struct {
	xid         uint32
	answered    bool
	inTime      bool
	at          int64 // when it was sent, in ns
	from, until int64 // since when its latency counts, and its deadline, which is not 0
}

// put adds a request. It returns 1 if it takes the place of one that was not
// answered and whose time was not over, else 0.
func (r *ring) put(s sent) (missed uint64) {
	if r.next-r.open == ringSize {
		r.open++
		missed = 1
	}
	r.sent[r.next%ringSize] = s
	r.next++
	return missed
}

// take marks the request that an answer at at belongs to and returns it; ok is
// false if there is none that has not been answered before.
func (r *ring) take(xid uint32, at int64) (of sent, ok bool) {
	for i := uint32(1); i <= ringSize; i++ {
		s := &r.sent[(r.next-i)%ringSize]
		if s.until == 0 || s.xid != xid || s.answered {
			continue
		}
		s.answered = true
		s.inTime = at <= s.until && r.next-i-r.open < ringSize // else its time is over already
		of = *s
		r.skipAnswered()
		return of, true
	}
	return sent{}, false
}

// skipAnswered skips the requests that were answered in time.
func (r *ring) skipAnswered() {
	for r.open != r.next && r.sent[r.open%ringSize].inTime {
		r.open++
	}
}

// expire ends the time of requests whose deadline is over at at, and returns
// how many of them were not answered in time.
func (r *ring) expire(at int64) (missed uint64) {
	for r.skipAnswered(); r.open != r.next && r.sent[r.open%ringSize].until <= at; r.skipAnswered() {
		r.open++
		missed++
	}
	return missed
}

// allSettled reports whether no request waits for an answer in time.
func (r *ring) allSettled() bool { return r.open == r.next }
