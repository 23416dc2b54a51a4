package discovery

import (
	"math"

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
