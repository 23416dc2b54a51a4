package discovery

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A refusing port is one whose packets the switch refuses: it is probed ever more
// rarely, and named.
type refusing struct {
	since  int64 // 0: the switch refuses nothing
	heard  int64 // when the switch was last heard to refuse
	tried  int64 // when it was last probed since
	tries  int
	until  int64 // no probes until then
	reason string
}

// The pauses between probes of a port for which the switch refuses packets; and how
// long a probe must have been out without a refusal, which southbound publishes once a
// minute, until the port counts as well.
const (
	refusingFirst = int64(5 * time.Second)
	refusingMost  = int64(15 * time.Minute)
	refusingOver  = int64(150 * time.Second)
)

// recordRefusal records that a switch refused a packet-out for a port.
func (t *topology) recordRefusal(now int64, at flow.Location, reason string) {
	p := t.at(at)
	if p == nil || !p.up {
		return
	}
	r := &p.refusing
	if r.since == 0 {
		*r = refusing{since: now, until: now + refusingFirst}
	}
	r.heard, r.reason = now, reason
}

// isSilenced reports whether a port is not probed now because its switch refuses
// packets for it.
func (r *refusing) isSilenced(now int64) bool {
	if r.since != 0 && r.tried > r.heard && now-r.tried > refusingOver {
		*r = refusing{}
	}
	return now < r.until
}

// probe records a probe of the port.
func (r *refusing) probe(now int64) {
	if r.since == 0 {
		return
	}
	r.tries++
	r.tried, r.until = now, now+min(refusingFirst<<min(r.tries, 20), refusingMost)
}
