package discovery

import (
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// settleRole updates the role of a port, and schedules the next update if time
// alone may change it.
func (t *topology) settleRole(now int64, p *port) {
	if p.presumed != 0 && p.presumed <= now { // its far end has not come
		p.presumed = 0
		t.giveUp(p.at, "silent")
	}
	role, again := t.roleOf(now, p)
	gone := p.removed || !p.dp.connected
	if gone {
		role, again = flow.RoleUnsettled, 0
	}
	if p.again = again; again != 0 {
		p.dp.settle = min(p.dp.settle, again)
		t.schedule(again)
	}
	if role == flow.RoleEdge && !p.edge {
		p.edge = true
		t.forgetNeighbour(p)
		if p.hosts == 0 {
			p.hosts = now
		}
	}
	if role != p.role {
		t.dirty[p.at.Switch] = struct{}{}
	} else if !gone || !p.shown {
		return
	}
	p.role, p.shown = role, !gone
	p.view.role.Store(uint32(role))
	t.events = append(t.events, event{role: &api.PortRoleChanged{Port: p.message(), Gone: gone}})
}

// roleOf decides the role of a port, and when to decide again (0: when
// something happens).
func (t *topology) roleOf(now int64, p *port) (role flow.PortRole, again int64) {
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
	case isHeld && !t.isLocked(now, p):
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
	at := from + int64(t.cfg.Settle)
	if p.was != (flow.Location{}) { // a silent switch is behind it
		at = max(at, t.waitsUntil(p))
	}
	if at > now {
		return flow.RoleUnsettled, at
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
func (t *topology) blockPort(now int64, p *port) {
	if p.out != nil || p.in != nil || t.isLocked(now, p) {
		return
	}
	p.blocked = now + int64(t.cfg.Timeout)
	t.settleRole(now, p)
}

// advance does the work that is due by time, on silent links, ports that
// settle, and links to be released.
func (t *topology) advance(now int64) {
	defer t.settleSwitches(now)
	if now < t.deadline {
		return
	}
	t.deadline = math.MaxInt64
	t.expire(now)
	t.endSilentTrials(now)
	t.releaseHeld(now)
	t.settleDue(now)
	t.orderSwitches(now)
	t.clean(now)
}

// settleDue updates the ports whose role time alone may have changed.
func (t *topology) settleDue(now int64) {
	for _, dp := range t.order {
		if dp.settle > now {
			t.schedule(dp.settle)
			continue
		}
		dp.settle = math.MaxInt64
		for _, p := range dp.ports {
			switch {
			case p.again == 0:
			case p.again <= now:
				t.settleRole(now, p)
			default:
				dp.settle = min(dp.settle, p.again)
				t.schedule(p.again)
			}
		}
	}
}

// extendLinks extends the life of all links by half a timeout, because the process
// stood still and could not receive probes.
func (t *topology) extendLinks(now int64) { t.floor = now - t.cfg.linkTimeout()/2 }

// clean forgets what no longer matters: ports removed, switches gone and pairs
// quiet for longer than Forget. It looks once a minute.
func (t *topology) clean(now int64) {
	if now-t.cleaned < int64(time.Minute) {
		return
	}
	t.cleaned = now
	old := func(since int64) bool { return now-since > int64(t.cfg.Forget) }
	for key, f := range t.pairs {
		if f.links[0] == nil && f.links[1] == nil && f.until == 0 &&
			(len(f.downs) == 0 || old(f.downs[len(f.downs)-1])) && old(f.quiet) {
			delete(t.pairs, key)
		}
	}
	forgotten := false
	for id, dp := range t.switches {
		if !dp.connected && dp.since != 0 && old(dp.since) {
			delete(t.switches, id)
			t.dirty[id] = struct{}{}
			forgotten = true
			continue
		}
		t.sweep(dp, old)
	}
	if forgotten {
		t.order = slices.DeleteFunc(t.order, func(dp *datapath) bool { return t.switches[dp.id] != dp })
	}
}

// sweep forgets the ports of a switch that were removed long ago.
func (t *topology) sweep(dp *datapath, old func(int64) bool) {
	kept := dp.ports[:0]
	for _, p := range dp.ports {
		if p.removed && !p.up && old(p.changed) {
			t.forget(p)
			dp.put(p.at.Port, nil)
			continue
		}
		kept = append(kept, p)
	}
	if len(kept) < len(dp.ports) {
		clear(dp.ports[len(kept):])
		dp.ports = kept
		dp.view.set(kept)
	}
}
