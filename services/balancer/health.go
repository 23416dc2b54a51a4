package balancer

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
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

// readCheck returns the check that a message describes; none if the message is
// nil.
func readCheck(m *api.HealthCheck, at service) (c check, err error) {
	if c.kind, err = wordOf[checkKind](checkKinds[:], m.GetKind()); err != nil {
		return c, fmt.Errorf("kind %w", err)
	}
	def := func(v, otherwise uint32) uint32 {
		if v == 0 {
			return otherwise
		}
		return v
	}
	interval, timeout := def(m.GetIntervalMs(), 2000), def(m.GetTimeoutMs(), 1000)
	rise, fall := def(m.GetRise(), 2), def(m.GetFall(), 3)
	switch {
	case interval < 100 || interval > 3_600_000:
		return c, fmt.Errorf("interval_ms %d: want 100 to 3600000", interval)
	case m.GetIdleIntervalMs() != 0 && (m.GetIdleIntervalMs() < interval || m.GetIdleIntervalMs() > 3_600_000):
		return c, fmt.Errorf("idle_interval_ms %d: want interval_ms, %d, to 3600000, or 0", m.GetIdleIntervalMs(), interval)
	case !c.kind.connects() && m.GetIdleIntervalMs() != 0:
		return c, fmt.Errorf("idle_interval_ms %d: only checks of kind tcp and http2 have one", m.GetIdleIntervalMs())
	case timeout < 10 || timeout > 60_000:
		return c, fmt.Errorf("timeout_ms %d: want 10 to 60000", timeout)
	case rise > 100 || fall > 100:
		return c, fmt.Errorf("rise %d, fall %d: want 1 to 100", rise, fall)
	case m.GetPort() > 65535:
		return c, fmt.Errorf("port %d: want at most 65535", m.GetPort())
	case !c.kind.connects() && m.GetPort() != 0:
		return c, fmt.Errorf("port %d: only checks of kind tcp and http2 have one", m.GetPort())
	case c.kind.connects() && at.proto == 0 && m.GetPort() == 0:
		return c, fmt.Errorf("port 0: a VIP of protocol any has none; say which port is to be checked")
	}
	c.interval, c.timeout = time.Duration(interval)*time.Millisecond, time.Duration(timeout)*time.Millisecond
	c.rise, c.fall, c.port, c.idle = int(rise), int(fall), uint16(m.GetPort()), time.Duration(m.GetIdleIntervalMs())*time.Millisecond
	return c, nil
}

func (c *check) message() *api.HealthCheck {
	if c.kind == checkNone {
		return &api.HealthCheck{Kind: checkKinds[checkNone]}
	}
	return &api.HealthCheck{
		Kind: checkKinds[c.kind], IntervalMs: uint32(c.interval.Milliseconds()), TimeoutMs: uint32(c.timeout.Milliseconds()),
		Rise: uint32(c.rise), Fall: uint32(c.fall), Port: uint32(c.port), IdleIntervalMs: uint32(c.idle.Milliseconds()),
	}
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
