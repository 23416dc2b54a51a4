package discovery

import (
	"time"

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

// trustFor is how long after the last sign of life of an earlier run its memory
// is reliable. The sign comes every aliveEvery, and the runtime makes all
// services forget after ten seconds what is not published again.
const trustFor = int64(15 * time.Second)

// doubtFor bounds how long links stay up if their switch may have gone with the
// southbound: after ten seconds the runtime reports that it is gone. Ports of links stay
// so for as long after a restart of our own: switches return within eight seconds.
const doubtFor = int64(15 * time.Second)

// remember restores what a port was in an earlier run.
func (t *topology) remember(at flow.Location, m memory) {
	t.past[at] = m
	t.pastOf[at.Switch] = append(t.pastOf[at.Switch], at)
	if m.role != flow.RoleEdge {
		t.known[at] = m.far
	}
}

// trust sets until when the restored state is trusted. The stage uses it at
// once: packets may arrive before the event about their switch.
func (t *topology) trust(now, until int64) {
	t.fresh = until
	if now > until {
		return
	}
	ports := map[flow.DPID][]*port{}
	for at, m := range t.past {
		v := &portView{}
		v.role.Store(uint32(m.role))
		v.host.Store(m.host)
		t.views[at] = v
		ports[at.Switch] = append(ports[at.Switch], &port{at: at, view: v})
	}
	for id, list := range ports {
		t.datapath(id).view.set(list)
	}
}

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

// recallMissing gives up the links of ports that a switch no longer has.
func (t *topology) recallMissing(now int64, dp *datapath) {
	for _, at := range t.pastOf[dp.id] {
		if _, there := t.past[at]; there && dp.port(at.Port) == nil {
			if now <= t.fresh {
				t.giveUp(at, "port_status")
			}
			delete(t.past, at)
		}
	}
	delete(t.pastOf, dp.id)
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
		l.set(t, now, l.state, "restart")
	}
	t.settleRole(now, p)
	t.settleRole(now, q)
}

// giveUp publishes that a remembered port no longer has its link.
func (t *topology) giveUp(at flow.Location, cause string) {
	m := t.past[at]
	delete(t.past, at)
	if m.role != flow.RoleLink {
		return
	}
	back, ok := t.past[m.far]
	mutual := ok && back.far == at
	if mutual {
		delete(t.past, m.far)
	}
	if m.out {
		t.events = append(t.events, event{link: &api.LinkChanged{Link: m.link(at), Removed: true, Cause: cause}})
	}
	if mutual && back.out {
		t.events = append(t.events, event{link: &api.LinkChanged{Link: back.link(m.far), Removed: true, Cause: cause}})
	}
}

// forgetFormerRole drops the role of a port in an earlier run, because the port has
// a link now. It must not get that role again when its switch reconnects.
func (t *topology) forgetFormerRole(p *port, far flow.Location) {
	if m, ok := t.past[p.at]; ok && m.role == flow.RoleLink && m.far != far {
		t.giveUp(p.at, "port_status")
	}
	delete(t.past, p.at)
}

// link returns the link of an earlier run that left a port.
func (m memory) link(at flow.Location) *api.Link {
	return &api.Link{Src: api.NewLocation(at), Dst: api.NewLocation(m.far), State: oneWay.String(), Since: rfc3339(m.since)}
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

// memories returns what to save of the ports of a switch; false if the saved
// state must stay, because the switch is away.
func (t *topology) memories(now int64, id flow.DPID) (map[flow.Port]memory, bool) {
	ports := map[flow.Port]memory{}
	dp := t.switches[id]
	if dp == nil {
		return ports, true
	}
	if !dp.connected {
		return nil, false
	}
	for _, p := range dp.ports {
		far, known := t.known[p.at]
		switch {
		case p.out != nil:
			m := memory{role: flow.RoleLink, far: p.out.dst.at, trial: !p.judged, out: true, latency: p.out.latency, since: p.out.since}
			if p.out.flaps.until > now {
				m.held = p.out.flaps.until
			}
			ports[p.at.Port] = m
		case p.in != nil:
			ports[p.at.Port] = memory{role: flow.RoleLink, far: p.in.src.at, trial: !p.judged}
		case known:
			m := memory{role: flow.RoleUnsettled, far: far, trial: !p.judged}
			if !p.up {
				m.since = p.changed
			}
			ports[p.at.Port] = m
		case p.role == flow.RoleEdge:
			p.saved = p.view.host.Load()
			ports[p.at.Port] = memory{role: flow.RoleEdge, since: p.hosts, host: p.saved}
		}
	}
	return ports, true
}
