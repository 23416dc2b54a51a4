package hosts

import "sync/atomic"

// refusal says why a packet was rejected as evidence of a host.
type refusal uint8

// The reasons.
const (
	accepted     refusal = iota
	unsettled            // the role of the port is not known yet
	blocked              // the port is out of use
	onLink               // an unknown sender, on a link between switches
	tunnel               // a frame of a tunnel, for which the switch has no entry yet
	source               // the sender's address is zero or a group's
	gateway              // the sender claims an address of the network's own
	spoofed              // it contradicts itself, or what a live host has
	bound                // it contradicts a binding
	unverified           // a claim that is being verified
	quarantined          // the claimant of a silent host waits, or the host moves too often
	portLimit            // too many hosts behind the port
	addressLimit         // too many addresses of the host; its packets pass all the same
	tableLimit           // too many hosts, or claims, in all
	refusals
)

// String returns the reason as ListHosts and metrics name it.
func (r refusal) String() string {
	return [...]string{"accepted", "unsettled_port", "blocked_port", "link_port", "tunnel", "source", "gateway", "spoofed",
		"bound", "unverified", "quarantined", "port_limit", "address_limit", "table_limit"}[r]
}

// counter is a metric that only grows.
type counter interface{ Add(float64) }

// tally counts refusals by reason.
type tally struct {
	n       [refusals]atomic.Uint64
	metrics [refusals]counter
}

// add counts one and returns how many there are now.
func (t *tally) add(why refusal) uint64 {
	if c := t.metrics[why]; c != nil {
		c.Add(1)
	}
	return t.n[why].Add(1)
}

// list returns the counts that are not zero.
func (t *tally) list() map[string]uint64 {
	m := map[string]uint64{}
	for r := accepted + 1; r < refusals; r++ {
		if n := t.n[r].Load(); n > 0 {
			m[r.String()] = n
		}
	}
	return m
}
