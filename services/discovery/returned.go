package discovery

import "github.com/weft-sdn/weft/flow"

// How a topology learns a switch anew that was gone and has returned: its
// cables may have changed meanwhile, and no port status says so.
//
// A port with another Ethernet address is another device. Nothing that the
// port was counts any more, as if it had been down for long. A port with the
// same address keeps its history of hosts, for a host can cut neither the power
// nor the control channel of a switch, and must not gain by either. Its old
// neighbour, however, is waited for only as long as probes take to prove a
// cable: bothBack timeouts once the switches of both ends trap probes, oneBack
// timeouts if the other switch has not returned.
//
// A switch may also have been gone while nobody saw it: while the southbound or
// discovery was away. Its links stay up then until they are silent. One of which
// no probe has arrived since is like one whose switches have both returned.
const (
	bothBack = 2
	oneBack  = 4
)

// waitsUntil returns until when a port that was the end of a link waits for
// its old neighbour before it may become an edge port.
func (t *topology) waitsUntil(p *port) int64 {
	timeout := int64(t.cfg.Timeout)
	switch far := t.at(p.was); {
	case far != nil && far.dp.connected:
		if p.unproved || max(p.dp.returned, far.dp.returned) >= p.silent {
			return min(p.until, max(p.dp.silenceCountsFrom(), far.dp.silenceCountsFrom())+bothBack*timeout)
		}
	case p.dp.returned > p.silent:
		return min(p.until, p.dp.returned+oneBack*timeout)
	}
	return p.until
}

// facing returns the port that waits for p as its old neighbour, nil if none does.
func (t *topology) facing(p *port) *port {
	q := t.at(p.was)
	if q == nil || q.was != p.at || q.neighbour() != nil {
		return nil
	}
	return q
}

// replace clears what a port was, because it is another device now.
func (t *topology) replace(now int64, p *port) {
	t.lowerPort(now, p, p.removed)
	t.abandon(now, p)
	t.forget(p)
	p.changed = now
}

// abandon ends the wait of the port that p was linked to: p is linked to
// another one, is another device, or exists no more.
func (t *topology) abandon(now int64, p *port) {
	q := t.facing(p)
	if q == nil {
		return
	}
	t.forgetNeighbour(q)
	if q.isUp() {
		q.changed = now // its cable has changed
		q.burst(now)
		q.dp.next = now
	}
	t.settleRole(now, q)
}

// reviewPorts checks again the ports that wait for ports of a switch.
func (t *topology) reviewPorts(now int64, dp *datapath) {
	for _, p := range dp.ports {
		if p.was == (flow.Location{}) {
			continue
		}
		if q := t.facing(p); q != nil {
			t.settleRole(now, q)
		}
	}
}
