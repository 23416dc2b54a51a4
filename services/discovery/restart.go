package discovery

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// How a topology continues after a restart, its own or the southbound's.
//
// After its own restart, ports are at once what they were when last saved, if
// that is fresh: nothing that is established is disturbed, and probes find out
// within the timeout what has changed meanwhile.
//
// A restart of the southbound shows as a switch that connects without having
// left: its state stays, and the other switches are in doubt until they return.

// recallPort restores the former role of a port of a newly connected switch. The
// caller has recorded the present state of all ports of the switch.
func (t *topology) recallPort(now int64, p *port) {
	defer func() { p.view.role.Store(uint32(p.role)) }()
	m, ok := t.past[p.at]
	if !ok || now > t.fresh {
		delete(t.past, p.at)
		return
	}
	switch {
	case !p.up, m.role == flow.RoleUnsettled:
		t.giveUp(p.at, "port_status")
	case m.role == flow.RoleEdge:
		p.edge, p.hosts = true, m.since
		p.view.host.Store(m.host)
		if m.quiet {
			p.quiet = now + doubtFor // by then l2vpn has said what circuits are there
		}
		delete(t.past, p.at)
	default:
		q := t.at(m.far)
		switch back, mutual := t.past[m.far]; {
		case q == nil || !q.dp.connected:
			p.presumed = now + doubtFor
		case q.up && mutual && back.far == p.at && q.out == nil && q.in == nil:
			t.reviveLinks(now, p, q)
		default:
			t.giveUp(p.at, "port_status")
		}
	}
	t.settleRole(now, p)
	if p.role == flow.RoleUnsettled { // subscribers may still have its former role
		p.shown = true
		t.events = append(t.events, event{role: &api.PortRoleChanged{Port: p.message()}})
	}
}

// reviveLinks restores the links between two ports.
func (t *topology) reviveLinks(now int64, p, q *port) {
	var links []*link
	f := t.pairOf(p, q)
	for _, end := range []*port{p, q} {
		m, far := t.past[end.at], q
		if end == q {
			far = p
		}
		delete(t.past, end.at)
		end.presumed = 0
		if !m.out {
			continue
		}
		if m.held > now && f.until == 0 {
			f.until, f.last = m.held, int64(t.cfg.Flap.Hold)
			t.held[f] = struct{}{}
			t.schedule(f.until)
		}
		l := t.join(now, end, far, m.latency)
		l.since = m.since
		end.judged = !m.trial
		if m.trial && !t.allowed[f.pair] && t.cfg.Latency.Max > 0 {
			t.startProbation(now, l)
		}
		links = append(links, l)
	}
	for _, l := range links {
		if l.state = l.wantedState(now); l.since == 0 {
			l.since = now
		}
		t.setState(now, l, l.state, "restart")
	}
	t.settleRole(now, p)
	t.settleRole(now, q)
}

// resume handles a switch that connects without having left: the southbound has
// restarted. Switches that have not returned yet are in doubt.
func (t *topology) resume(now int64, dp *datapath) {
	if dp.doubt == 0 {
		for _, other := range t.switches {
			if other != dp && other.connected {
				other.doubt = now + doubtFor
			}
		}
	}
	t.confirmSwitch(now, dp)
	t.renew(now, dp)
}

// confirmSwitch handles evidence that a switch is connected.
func (t *topology) confirmSwitch(now int64, dp *datapath) {
	if dp.doubt != 0 {
		dp.doubt = 0
		t.renew(now, dp)
	}
}

// renew restarts the timeouts of a switch's links.
func (t *topology) renew(now int64, dp *datapath) {
	for _, p := range dp.ports {
		for _, l := range []*link{p.out, p.in} {
			if l != nil {
				l.heard, l.src.unanswered = now, 0
			}
		}
	}
}

// recordSent records that the southbound has sent a probe of each port, signed at
// stamp. Only a probe that was sent can be missing.
func (t *topology) recordSent(now int64, ports []*port, stamp int64) {
	for _, p := range ports {
		t.confirmSwitch(now, p.dp)
		p.told++
		if p.newest < stamp {
			p.unanswered++
		}
	}
}

// recordUnreached records that probes could not be sent to switches that seem to be
// connected. Their southbound is unreachable, so probes that they receive are
// missing, too. Their links stay up meanwhile.
func (t *topology) recordUnreached(now int64, ports []*port) {
	for _, p := range ports {
		if p.dp.connected {
			p.dp.doubt = now + doubtFor
		}
	}
}
