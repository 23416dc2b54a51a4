package balancer

import (
	"time"
)

// checkKind is the kind of a health check.
type checkKind uint8

const (
	checkNone checkKind = iota
	checkTCP
	checkICMP
	checkARP
	checkHTTP2
)

var checkKinds = [...]string{"none", "tcp", "icmp", "arp", "http2"}

// connects reports whether a check opens a connection.
func (k checkKind) connects() bool { return k == checkTCP || k == checkHTTP2 }

// check is a VIP's health check.
type check struct {
	kind              checkKind
	interval, timeout time.Duration
	idle              time.Duration // interval of a member that needs none; 0: none is so
	rise, fall        int
	port              uint16 // of tcp checks; 0: the member's
}

// verdict is the known health of a member.
type verdict uint8

const (
	unknown verdict = iota
	good
	bad
)

var verdicts = [...]string{"unknown", "up", "down"}

// health is the state of one member's checks. Times are nanoseconds.
type health struct {
	verdict verdict
	row     int    // results in a row that contradict the verdict
	reason  string // why it is down
	next    int64  // when the next check begins
	ends    int64  // deadline of the check under way; 0: none
	token   uint32 // of the check under way
	opened  bool   // its connection is established
	speaks  bool   // the member has answered a check by HTTP/2
	good    int64  // when it was last seen to serve, by a check or by its traffic
	read    int64  // when its traffic was last read
	silent  bool   // it has been sent something since, and what it answered shows nothing
}

// calm reports whether a member needs no check yet: it is up, and was seen to serve
// lately; if it has connections, nothing that it was sent since is unanswered.
func (h *health) calm(c *check, connections int, now int64) bool {
	return h.verdict == good && h.row == 0 && !h.silent && now-h.good < int64(c.idle) &&
		(connections == 0 || now-h.read < int64(2*watchTick))
}

// hasten has a member that is not good checked at once: what it lacked may be there
// now.
func (h *health) hasten() {
	if h.verdict != good {
		h.next = 0
	}
}

// refusedAgain is after which time a check that has been refused is repeated.
const refusedAgain = 50 * time.Millisecond

// repeat schedules the next check soon after a refused one, unless the member is down
// already: a member that is only slow does not refuse.
func (h *health) repeat(now int64) {
	if h.verdict != bad {
		h.next = now + int64(refusedAgain)
	}
}

// result takes the outcome of a check; it reports whether the verdict has
// changed. The first result, good or bad, settles an unknown verdict.
func (h *health) result(c *check, ok bool, reason string, now int64) (changed bool) {
	if h.ends, h.next = 0, now+int64(c.interval); ok {
		h.good, h.silent = now, false
	}
	want, need := good, c.rise
	if !ok {
		want, need = bad, c.fall
	}
	if h.verdict == want {
		h.row = 0
		if !ok {
			h.reason = reason
		}
		return false
	}
	h.row++
	if h.verdict == unknown && ok {
		need = 1
	}
	if h.row < need {
		return false
	}
	h.verdict, h.row, h.reason = want, 0, ""
	if !ok {
		h.reason = reason
	}
	return true
}

// watchTick is how often the counters of the entries of members are read that are
// checked seldom while they serve.
const watchTick = 500 * time.Millisecond
