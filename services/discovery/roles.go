package discovery

import (
	"math"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// roles decides the roles of ports.
type roles struct {
	*registry
	*history
	unsettled map[flow.DPID]*datapath // the connected switches that settleSwitches has not reported
	doubted   map[flow.DPID]struct{}  // the switches that are to answer before their silence counts
}

// settleRole updates the role of a port, and schedules the next update if time
// alone may change it.
func (r *roles) settleRole(now int64, p *port) {
	if p.presumed != 0 && p.presumed <= now { // its far end has not come
		p.presumed = 0
		r.giveUp(p.at, "silent")
	}
	role, again := r.roleOf(now, p)
	gone := p.removed || !p.dp.connected
	if gone {
		role, again = flow.RoleUnsettled, 0
	}
	if p.again = again; again != 0 {
		p.dp.settle = min(p.dp.settle, again)
		r.schedule(again)
	}
	if role == flow.RoleEdge && !p.edge {
		p.edge = true
		r.forgetNeighbour(p)
		if p.hosts == 0 {
			p.hosts = now
		}
	}
	if role != p.role {
		r.dirty[p.at.Switch] = struct{}{}
	} else if !gone || !p.shown {
		return
	}
	p.role, p.shown = role, !gone
	p.view.role.Store(uint32(role))
	r.events = append(r.events, event{role: &api.PortRoleChanged{Port: p.message(), Gone: gone}})
}

// roleOf decides the role of a port, and when to decide again (0: when
// something happens).
func (r *roles) roleOf(now int64, p *port) (role flow.PortRole, again int64) {
	dp := p.dp
	waits, isHeld := p.onTrial()
	listed := p.listedRole()
	switch {
	case !p.up || !dp.connected:
		return flow.RoleUnsettled, 0
	case listed != flow.RoleUnsettled:
		return listed, 0
	case p.blocked > now:
		return flow.RoleBlocked, p.blocked
	case p.out != nil || p.in != nil:
		return flow.RoleLink, 0
	case isHeld && !r.isLocked(now, p):
		return flow.RoleBlocked, 0
	case p.edge:
		return flow.RoleEdge, 0
	case p.presumed > now:
		return flow.RoleLink, p.presumed
	case waits && !p.edge:
		return flow.RoleUnsettled, 0
	}
	from := p.changed
	if dp.trapped == 0 {
		from = max(from, dp.since+trapGrace)
	} else {
		from = max(from, dp.trapped)
	}
	at := from + int64(r.cfg.Settle)
	if p.was != (flow.Location{}) { // a silent switch is behind it
		at = max(at, r.waitsUntil(p))
	}
	if at > now {
		return flow.RoleUnsettled, at
	}
	if p.was != (flow.Location{}) && at < p.until && !r.isAnswering(p, at) {
		return flow.RoleUnsettled, min(p.until, now+int64(echoEvery))
	}
	if p.waits {
		return flow.RoleUnsettled, now + paceAgain
	}
	if p.told < len(burstGaps) {
		return flow.RoleUnsettled, max(p.soon, now) + burstGaps[0]
	}
	if dp.hybrid != nil {
		return flow.RoleAccess, 0
	}
	return flow.RoleEdge, 0
}

// blockPort takes a port out of use while it receives probes that must not be
// there: from its own switch, or from a second neighbour. A host cannot do this to a
// port that hosts have lived on for long, or to a link: there, it is only
// counted.
func (r *roles) blockPort(now int64, p *port) {
	if p.out != nil || p.in != nil || r.isLocked(now, p) {
		return
	}
	p.blocked = now + int64(r.cfg.Timeout)
	r.settleRole(now, p)
}

// settleDue updates the ports whose role time alone may have changed.
func (r *roles) settleDue(now int64) {
	for _, dp := range r.order {
		if dp.settle > now {
			r.schedule(dp.settle)
			continue
		}
		dp.settle = math.MaxInt64
		for _, p := range dp.ports {
			switch {
			case p.again == 0:
			case p.again <= now:
				r.settleRole(now, p)
			default:
				dp.settle = min(dp.settle, p.again)
				r.schedule(p.again)
			}
		}
	}
}

// isLocked reports whether a port has been an edge port with hosts for long.
func (r *roles) isLocked(now int64, p *port) bool {
	return r.cfg.LockAfter > 0 && p.hosts != 0 && now-p.hosts >= int64(r.cfg.LockAfter) && p.view.host.Load()
}

// expect gives the neighbour from before a short down, or from an earlier run,
// ten timeouts to be heard again.
func (r *roles) expect(now int64, p *port) {
	p.silent, p.until = now, now+min(10*int64(r.cfg.Timeout), int64(r.cfg.Forget))
}

// trapGrace is how long ports wait for their switch to confirm the LLDP trap
// before they settle without it.
const trapGrace = int64(3 * time.Second)

// waitsUntil returns until when a port that was the end of a link waits for
// its old neighbour before it may become an edge port.
func (r *roles) waitsUntil(p *port) int64 {
	timeout := int64(r.cfg.Timeout)
	switch far := r.at(p.was); {
	case far != nil && far.dp.connected:
		if p.unproved || max(p.dp.returned, far.dp.returned) >= p.silent {
			return min(p.until, max(p.dp.silenceCountsFrom(), far.dp.silenceCountsFrom())+bothBack*timeout)
		}
	case p.dp.returned > p.silent:
		return min(p.until, p.dp.returned+oneBack*timeout)
	}
	return p.until
}

// How a switch is learnt anew that was gone and has returned: its
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
//
// After these waits, which are short, the switches must have answered an echo, too: what their
// control channels hold up comes before the answer.
const (
	bothBack = 2
	oneBack  = 4
)

// isAnswering reports whether the switches of a former link have answered what they were asked
// after a time. If they have not, they are asked: probes that wait in a control channel are not
// missing.
func (r *roles) isAnswering(p *port, after int64) bool {
	both := []*datapath{p.dp}
	if far := r.at(p.was); far != nil && far.dp.connected {
		both = append(both, far.dp)
	}
	yes := true
	for _, dp := range both {
		if dp.answered <= after {
			r.doubted[dp.id] = struct{}{}
			yes = false
		}
	}
	return yes
}

// facing returns the port that waits for p as its old neighbour, nil if none does.
func (r *roles) facing(p *port) *port {
	q := r.at(p.was)
	if q == nil || q.was != p.at || q.neighbour() != nil {
		return nil
	}
	return q
}

// abandon ends the wait of the port that p was linked to: p is linked to
// another one, is another device, or exists no more.
func (r *roles) abandon(now int64, p *port) {
	q := r.facing(p)
	if q == nil {
		return
	}
	r.forgetNeighbour(q)
	if q.isUp() {
		q.changed = now // its cable has changed
		q.burst(now)
		q.dp.next = now
	}
	r.settleRole(now, q)
}

// reviewPorts checks again the ports that wait for ports of a switch.
func (r *roles) reviewPorts(now int64, dp *datapath) {
	for _, p := range dp.ports {
		if p.was == (flow.Location{}) {
			continue
		}
		if q := r.facing(p); q != nil {
			r.settleRole(now, q)
		}
	}
}
