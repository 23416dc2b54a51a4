package nodes

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

const (
	leastBFD = 10 * time.Millisecond
	mostBFD  = 10 * time.Second
)

// A session is what is known of a BFD session, besides its last report.
type session struct {
	up    time.Time // when it was last reported up,
	flaps uint32    // and its count of changes then
	damping
}

// damping is by how much intervals are stretched because of false alarms. These end at
// once, as cuts do not: a machine that is busy is given more time.
type damping struct {
	alarms []time.Time // of late
	factor time.Duration
	raised time.Time
}

const (
	alarmTime  = 3 * time.Second // a session that is up again after this had no false alarm
	manyAlarms = 3               // of a session within alarmSpan double its interval
	alarmSpan  = time.Minute
	manyLinks  = 2                // with an alarm at once double the intervals of their machine
	calm       = 10 * time.Minute // without being raised halves it
	mostFactor = 16
)

// at returns the factor, at least 1.
func (d *damping) at(now time.Time) time.Duration {
	for d.factor > 1 && now.Sub(d.raised) >= calm {
		d.factor /= 2
		d.raised = d.raised.Add(calm)
	}
	return max(d.factor, 1)
}

// raise doubles the factor.
func (d *damping) raise(now time.Time) {
	d.factor, d.raised, d.alarms = min(2*d.at(now), mostFactor), now, nil
}

// alarm notes a false alarm.
func (d *damping) alarm(now time.Time) {
	d.alarms = append(d.alarms, now)
	if len(d.alarms) > manyAlarms {
		d.alarms = d.alarms[1:]
	}
	if len(d.alarms) == manyAlarms && now.Sub(d.alarms[0]) < alarmSpan {
		d.raise(now)
	}
}

// damp notes what the report of a port says of its session, and returns whether it has
// had a false alarm. It is called with mu held.
func (n *node) damp(p *api.NodePort, now time.Time) bool {
	if p.Bfd != bfdUp {
		return false
	}
	s := n.session(p.Port)
	alarm := !s.up.IsZero() && p.BfdFlaps > s.flaps && now.Sub(s.up) < alarmTime
	if alarm {
		s.alarm(now)
	}
	s.up, s.flaps = now, p.BfdFlaps
	return alarm
}

func (n *node) session(port uint32) *session {
	s := n.sessions[port]
	if s == nil {
		s = &session{}
		n.sessions[port] = s
	}
	return s
}

// damp notes false alarms that one report tells of. Those of several links at once are
// of the machine, whose Open vSwitch was not given time: all that it has to do is made
// less, before it does none of it in time. It is called with mu held.
func (b *registry) damp(agent string, alarms []flow.Location, now time.Time) {
	links := map[flow.Location]bool{}
	for _, at := range alarms {
		if far, linked := b.far(at); !linked || !links[far] {
			links[at] = true
		}
	}
	if len(links) < manyLinks {
		return
	}
	d := b.damped[agent]
	if d == nil {
		d = &damping{}
		b.damped[agent] = d
	}
	if now.Sub(d.raised) >= alarmTime { // of one pause, reports come one after the other
		d.raise(now)
	}
}

// learn takes over the factors that the sessions of a node have which has not been heard
// of since the start. It is called with mu held.
func (n *node) learn(interval time.Duration, now time.Time) {
	for _, p := range n.report.Ports {
		for f := time.Duration(2); f <= mostFactor; f *= 2 {
			if uint32((f * interval).Milliseconds()) == p.BfdIntervalMs {
				s := n.session(p.Port)
				s.factor, s.raised = f, now
			}
		}
	}
}

// factorOf returns by how much the interval of a port's session is stretched. It
// is called with mu held.
func (b *registry) factorOf(n *node, port uint32, now time.Time) time.Duration {
	f := time.Duration(1)
	if d := b.damped[n.agent]; d != nil {
		f = d.at(now)
	}
	if s := n.sessions[port]; s != nil {
		f = max(f, s.at(now))
	}
	return f
}

// interval returns how often the sessions of an agent's nodes send. It is called
// with mu held.
func (b *registry) interval(agent string) time.Duration {
	if b.cfg.BFD == 0 {
		return 0
	}
	sessions := 0
	for _, n := range b.nodes {
		switch {
		case n.agent != agent:
		case n.wanted != nil:
			sessions += len(n.wanted.Bfd) + len(n.wanted.Tunnels)
		default: // what it has from before
			for _, p := range n.report.Ports {
				if hasSession(p) {
					sessions++
				}
			}
		}
	}
	least := time.Duration(sessions) * time.Second / time.Duration(b.cfg.BFDRate)
	return min(max(b.cfg.BFD, least.Round(10*time.Millisecond)), mostBFD)
}

// want returns what is wanted of a node. It is called with mu held.
func (b *registry) want(n *node, interval time.Duration) *api.NodeWanted {
	w := &api.NodeWanted{Dpid: n.dpid.String()}
	if n.state == stateLive {
		w.Tunnels = b.wantTunnels(n, interval)
		for _, p := range n.report.Ports {
			if interval > 0 && p.Role == flow.RoleLink.String() && b.asks(n, p) {
				w.Bfd = append(w.Bfd, &api.WantedBFD{Port: p.Port, IntervalMs: b.stretched(n, p.Port, interval)})
			}
		}
	} else if n.wanted != nil {
		w.Tunnels, w.Bfd = n.wanted.Tunnels, n.wanted.Bfd // its switch is away: nothing changes meanwhile
	} else {
		return w // version 0: that is not said
	}
	w.Version = version(w)
	return w
}

// asks reports whether a port of a node has a session: where its link leads to
// another node. Where that is not known, it is as it is: a node that has not reported
// since the start may have the other end, and behind a silent cut a port without a
// session would be alive. It is called with mu held.
func (b *registry) asks(n *node, p *api.NodePort) bool {
	far, linked := b.far(flow.Location{Switch: n.dpid, Port: flow.Port(p.Port)})
	if !linked {
		return hasSession(p)
	}
	if o := b.nodes[far.Switch]; o != nil {
		return o.port(uint32(far.Port)) != nil
	}
	hybrid, connected := b.hybrid(far.Switch)
	return hasSession(p) && (hybrid || !connected)
}

// hasSession reports whether a port has a session now.
func hasSession(p *api.NodePort) bool { return p.Bfd != "" || p.BfdIntervalMs > 0 }

// stretched returns the interval of a port's session, in milliseconds, which is
// that of the more damped end.
func (b *registry) stretched(n *node, port uint32, interval time.Duration) uint32 {
	now := b.now()
	factor := b.factorOf(n, port, now)
	if far, linked := b.far(flow.Location{Switch: n.dpid, Port: flow.Port(port)}); linked {
		if o := b.nodes[far.Switch]; o != nil {
			factor = max(factor, b.factorOf(o, uint32(far.Port), now))
		}
	}
	return uint32(min(interval*factor, mostBFD).Milliseconds())
}
