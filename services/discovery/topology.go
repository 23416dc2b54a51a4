package discovery

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A topology holds the switches, ports and links. It only decides: its methods
// take the time (nanoseconds since 1970, never running back), change the state,
// and append the changes to events. It is not safe for concurrent use.
type topology struct {
	*registry
	*history
	*roles
	*linkTable
	*cadence
	*probing
	*judge
	cleaned int64
	floor   int64 // links count as heard at this time, at least
}

// newTopology makes the maps in one order, for a run in virtual time hands out the seeds of
// maps in turn, and what it records depends on them.
func newTopology(cfg *Config, seed uint64) *topology {
	j := &judge{trials: map[*trial]struct{}{}, passing: map[*trial]struct{}{}}
	policy := newLinkPolicy(cfg)
	r := newRegistry(cfg, seed)
	links := &linkTable{registry: r, linkPolicy: policy, pairs: map[pair]*flaps{}, held: map[*flaps]struct{}{}}
	h := newHistory(r)
	r.outbox = outbox{dirty: map[flow.DPID]struct{}{}}
	own := &roles{registry: r, history: h, unsettled: map[flow.DPID]*datapath{}, doubted: map[flow.DPID]struct{}{}}
	c := &cadence{registry: r, stretch: 1}
	j.registry, j.roles, j.linkTable, j.cadence = r, own, links, c
	return &topology{
		registry: r, history: h, cadence: c, probing: &probing{registry: r, cadence: c}, roles: own, linkTable: links, judge: j,
	}
}

// connect handles a switch that has connected, with all its ports.
func (t *topology) connect(now int64, id flow.DPID, hybrid *flow.Hybrid, ports []*api.Port) {
	dp := t.datapath(id)
	t.setHybrid(now, dp, hybrid)
	if dp.connected {
		t.resume(now, dp)
	} else {
		dp.returned = now
		for _, p := range dp.ports {
			p.edge = false
		}
	}
	dp.connected, dp.since, dp.trapped, dp.echo = true, now, 0, echo{}
	for _, p := range dp.ports {
		p.proved, p.refusing = false, refusing{}
	}
	dp.start(t.cfg, now)
	listed := map[flow.Port]bool{}
	for _, p := range ports {
		if n := flow.Port(p.GetPort()); n.Physical() {
			listed[n] = true
			if old := dp.port(n); old != nil && old.mac != macOf(p) {
				t.replace(now, old)
			}
			t.setPort(now, dp, p)
		}
	}
	for _, p := range dp.ports {
		if !listed[p.at.Port] {
			t.lowerPort(now, p, true)
			t.abandon(now, p)
		}
	}
	t.reviewPorts(now, dp)
	if len(t.past) > 0 {
		for _, p := range dp.ports {
			t.recallPort(now, p)
		}
		t.recallMissing(now, dp)
	}
	dp.view.set(dp.ports)
	t.unsettled[id] = dp
	t.settleSwitches(now)
}

// disconnect handles the loss of a switch.
func (t *topology) disconnect(now int64, id flow.DPID) {
	dp := t.switches[id]
	if dp == nil || !dp.connected {
		return
	}
	dp.connected, dp.since, dp.trapped, dp.doubt = false, now, 0, 0
	delete(t.doubted, id)
	for _, p := range dp.ports {
		t.unlink(now, p, "switch_gone")
		t.endTrials(now, p, "switch_gone")
		t.settleRole(now, p)
	}
	t.forgetPorts(dp)
	delete(t.unsettled, id)
	t.events = append(t.events, event{settled: &api.RolesSettled{Dpid: id.String(), Gone: true}})
}

// changePort handles a port that was added, modified or removed.
func (t *topology) changePort(now int64, id flow.DPID, msg *api.Port, removed bool) {
	dp := t.switches[id]
	n := flow.Port(msg.GetPort())
	if dp == nil || !dp.connected || !n.Physical() {
		return
	}
	if removed {
		if p := dp.port(n); p != nil {
			t.lowerPort(now, p, true)
		}
		return
	}
	count := len(dp.ports)
	t.setPort(now, dp, msg)
	if n := len(dp.ports); n != count {
		p := dp.ports[n-1]
		dp.view.ports.Put(p.at.Port, p.view)
	}
}

// confirmTrap handles the confirmation of a switch's LLDP trap. From now on probes
// are worth sending, and missing probes count. Further confirmations in
// the same session change nothing.
func (t *topology) confirmTrap(now int64, id flow.DPID) {
	dp := t.switches[id]
	if dp == nil || !dp.connected || dp.trapped != 0 {
		return
	}
	dp.trapped = now
	for _, p := range dp.ports {
		if p.up && p.out == nil {
			p.burst(now)
			t.settleRole(now, p)
		}
	}
	dp.next = now
	t.reviewPorts(now, dp)
}

// setPort sets the present state of a port.
func (t *topology) setPort(now int64, dp *datapath, msg *api.Port) {
	at := flow.Location{Switch: dp.id, Port: flow.Port(msg.GetPort())}
	p := dp.port(at.Port)
	if p == nil {
		if len(dp.ports) >= maxPorts {
			return
		}
		p = &port{at: at, dp: dp, view: t.views[at], changed: now}
		if p.view == nil {
			p.view = &portView{}
		}
		delete(t.views, at)
		p.actions = []flow.Action{flow.Output(at.Port)}
		if far, ok := t.known[at]; ok && p.listedRole() == flow.RoleUnsettled {
			m := t.past[at]
			p.was, p.judged = far, !m.trial
			t.expect(now, p)
			if m.role == flow.RoleUnsettled && m.since != 0 && !msg.GetUp() {
				p.changed = min(now, m.since) // it has been down ever since: what comes may be something else
			}
		}
		dp.ports = append(dp.ports, p)
		dp.put(at.Port, p)
	}
	p.mac = macOf(msg)
	if p.frame == nil {
		p.frame = newProbe(at, uint16(time.Duration(t.cfg.Timeout)/time.Second)+1)
	}
	p.removed = false
	t.setSpeed(now, p, msg.GetSpeedKbps())
	switch {
	case msg.GetUp() && !p.up:
		t.raisePort(now, dp, p)
	case !msg.GetUp() && p.up:
		t.lowerPort(now, p, false)
	case p.up && p.out == nil && p.in == nil: // the switch has reconnected
		p.burst(now)
		t.settleRole(now, p)
	}
	dp.next = min(dp.next, now)
}

// setSpeed sets the speed of a port, and updates links whose cost changes.
func (t *topology) setSpeed(now int64, p *port, kbps uint32) {
	if p.speed == kbps {
		return
	}
	p.speed = kbps
	for _, l := range []*link{p.out, p.in} {
		if l != nil {
			t.refresh(now, l, "port_status")
		}
	}
}

// raisePort handles a port that has come up. It keeps its past if it was down only
// for a moment.
func (t *topology) raisePort(now int64, dp *datapath, p *port) {
	switch down := now - p.changed; {
	case down > int64(max(t.cfg.Timeout, t.cfg.HostMemory)):
		t.forget(p)
	case down > int64(t.cfg.Timeout):
		t.forgetNeighbour(p)
	}
	t.expect(now, p)
	p.up, p.changed, p.edge, p.refusing = true, now, false, refusing{}
	p.burst(now)
	dp.next = now
	t.settleRole(now, p)
}

// lowerPort handles a port that has gone down or was removed.
func (t *topology) lowerPort(now int64, p *port, removed bool) {
	p.removed = removed
	if !p.up {
		t.settleRole(now, p) // publishes that it is gone
		return
	}
	p.up, p.changed, p.blocked, p.presumed = false, now, 0, 0
	t.unlink(now, p, "port_status")
	t.endTrials(now, p, "port_status")
	t.settleRole(now, p)
}

// countLinks counts the links in a state.
func (t *topology) countLinks(s linkState) (n int) {
	for tr := range t.trials {
		if tr.state() == s {
			n++
		}
	}
	for _, l := range t.links {
		if l.state == s {
			n++
		}
	}
	return n
}

// replace clears what a port was, because it is another device now.
func (t *topology) replace(now int64, p *port) {
	t.lowerPort(now, p, p.removed)
	t.abandon(now, p)
	t.forget(p)
	p.changed = now
}
