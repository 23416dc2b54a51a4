package discovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The causes for which a port takes no traffic, as PortRole names them.
const (
	causeDown      = "down"
	causeSettling  = "settling"
	causeNeighbour = "neighbour"
	causeWaiting   = "waiting"
	causeHeld      = "held"
	causeBlocked   = "blocked"
	causeRelay     = "relay"
	causeJoined    = "joined"
	causeRefuses   = "refuses"
)

// explain returns the role of a port; if the port takes no traffic, also the
// cause and the remedy.
func (r *roles) explain(now int64, p *port) *api.PortRole {
	m := p.message()
	say := func(cause string, until int64, remedy, format string, args ...any) {
		m.Cause, m.Reason, m.Remedy = cause, fmt.Sprintf(format, args...), remedy
		if until > now {
			m.Until = rfc3339(until)
		}
	}
	waits, isHeld := p.onTrial()
	switch {
	case !p.up:
		say(causeDown, 0, "plug the cable in, or set the port up at the switch", "the port is down")
	case p.refusing.since != 0 && p.out == nil:
		say(causeRefuses, p.refusing.until, "look at the port in the switch's own configuration: it may be in a VLAN, a trunk or a mode that OpenFlow does not have; take it down if it is not for this network",
			"the switch refuses packets for it: %s; it is probed ever more rarely, and no link can be found there", p.refusing.reason)
	case p.role == flow.RoleLink || p.role == flow.RoleInternal || p.role == flow.RoleTunnel:
	case p.role == flow.RoleAccess || p.role == flow.RoleEdge && p.isCustomers():
		if far := p.rival; far != (flow.Location{}) && now-p.rivalAt < 3*int64(r.cfg.Interval) {
			say(causeJoined, 0, "if that is a cable between switches, take the ports out of the nodes' access lists, or circuits off the ports; else find out how the customer, or a circuit, joins them",
				"probes pass between it and port %v: a customer is plugged in twice, or two circuits form a loop", far)
		}
	case p.role == flow.RoleEdge:
		if far := p.rival; far != (flow.Location{}) && now-p.rivalAt < 3*int64(r.cfg.Interval) {
			say(causeRelay, 0, fmt.Sprintf("if it is a cable: weft link allow %s %s, or take the port down for %v; else look for who relays",
				portName(p.at), portName(far), max(r.cfg.Timeout, r.cfg.HostMemory)),
				"probes of port %v arrive, but hosts have been at both ports for longer than discovery.lock_after: they may relay, so it is no link", far)
		}
	case isHeld:
		tr := p.heldTrial()
		say(causeHeld, 0, fmt.Sprintf("if it is a cable: weft link allow %s %s", portName(tr.from.at), portName(tr.to.at)),
			"the new link between %v and %v may be a relay between hosts: %s", tr.from.at, tr.to.at, tr.reason)
	case p.blocked > now:
		say(causeBlocked, p.blocked, "remove the loop or the hub, or add the port to discovery.link_ports if that is set",
			"its own switch, a second neighbour, or the probe of a port that may not be a link has been heard there")
	case waits:
		say(causeWaiting, 0, "wait: it comes up, or is held, within seconds", "the probes of a new link are slower than a cable so far")
	case p.was != (flow.Location{}) && r.waitsUntil(p) > now:
		r.explainNeighbour(now, p, say)
	default:
		say(causeSettling, max(p.again, now+1), "wait", "the port has come up and is probed for a neighbour")
	}
	return m
}

// explainNeighbour explains the wait for the old neighbour of a port.
func (r *roles) explainNeighbour(now int64, p *port, say func(cause string, until int64, remedy, format string, args ...any)) {
	until, far := r.waitsUntil(p), r.at(p.was)
	mend := fmt.Sprintf("if the cable was removed, take the port down for %v, or weft switch forget %v, which has this switch learnt anew", r.cfg.Timeout, p.at.Switch)
	switch {
	case far == nil || !far.dp.connected:
		say(causeNeighbour, until, fmt.Sprintf("connect switch %v; if it is gone for good: weft switch forget %v", p.was.Switch, p.was.Switch),
			"it was a link to %v, whose switch is away and may still forward", p.was)
	case !far.up:
		say(causeNeighbour, until, mend, "it was a link to %v, which is down", p.was)
	default:
		say(causeNeighbour, until, "mend the cable: both switches are connected, and no probe arrives; "+mend,
			"it was a link to %v, which has been silent for %v", p.was, time.Duration(now-p.silent).Round(time.Second))
	}
}

// listPorts returns the roles of all ports of connected switches.
func (r *roles) listPorts(now int64) []*api.PortRole {
	var list []*api.PortRole
	for _, dp := range r.switches {
		if !dp.connected {
			continue
		}
		for _, p := range dp.ports {
			if !p.removed {
				list = append(list, r.explain(now, p))
			}
		}
	}
	slices.SortFunc(list, func(a, b *api.PortRole) int { return compareLocations(a.At, b.At) })
	return list
}
