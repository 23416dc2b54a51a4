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

// damping is what is known of the false alarms of a session, which end at once,
// as cuts do not: one that has many, on a machine that is busy, is given more time.
type damping struct {
	up     time.Time   // when the session was last reported up,
	flaps  uint32      // and its count of changes then
	alarms []time.Time // of late
	factor time.Duration
	raised time.Time
}

const (
	alarmTime  = 3 * time.Second // a session that is up again after this had no false alarm
	manyAlarms = 3               // within alarmSpan double the interval
	alarmSpan  = time.Minute
	calm       = 10 * time.Minute // without being raised halves it
	mostFactor = 16
)

// damp notes what the report of a port says of its session. It is called with mu held.
func (n *node) damp(p *api.NodePort, now time.Time) {
	if p.Bfd != bfdUp {
		return
	}
	d := n.damped[p.Port]
	if d == nil {
		d = &damping{factor: 1}
		n.damped[p.Port] = d
	}
	if !d.up.IsZero() && p.BfdFlaps > d.flaps && now.Sub(d.up) < alarmTime {
		d.alarms = append(d.alarms, now)
		if len(d.alarms) > manyAlarms {
			d.alarms = d.alarms[1:]
		}
		if len(d.alarms) == manyAlarms && now.Sub(d.alarms[0]) < alarmSpan {
			d.factor, d.raised, d.alarms = min(2*d.factor, mostFactor), now, nil
		}
	}
	d.up, d.flaps = now, p.BfdFlaps
}

// factorOf returns by how much the interval of a port's session is stretched. It
// is called with mu held.
func (n *node) factorOf(port uint32, now time.Time) time.Duration {
	d := n.damped[port]
	if d == nil {
		return 1
	}
	for d.factor > 1 && now.Sub(d.raised) >= calm {
		d.factor /= 2
		d.raised = d.raised.Add(calm)
	}
	return d.factor
}

// interval returns how often the sessions of an agent's nodes send. It is called
// with mu held.
func (b *book) interval(agent string, nodes int) time.Duration {
	if b.cfg.BFD == 0 || nodes == 0 {
		return b.cfg.BFD
	}
	sessions := 0
	for _, n := range b.nodes {
		if n.agent == agent && n.wanted != nil {
			sessions += len(n.wanted.Bfd) + len(n.wanted.Tunnels)
		}
	}
	least := time.Duration(sessions) * time.Second / time.Duration(b.cfg.BFDRate)
	return min(max(b.cfg.BFD, least.Round(10*time.Millisecond)), mostBFD)
}

// want returns what is wanted of a node. It is called with mu held.
func (b *book) want(n *node, interval time.Duration) *api.NodeWanted {
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
// another node; where it leads nowhere now, as long as it has one, since a port
// behind a silent cut without one would be alive. It is called with mu held.
func (b *book) asks(n *node, p *api.NodePort) bool {
	far, linked := b.links[flow.Location{Switch: n.dpid, Port: flow.Port(p.Port)}]
	if !linked {
		return p.Bfd != ""
	}
	o := b.nodes[far.Switch]
	return o != nil && o.port(uint32(far.Port)) != nil
}

// stretched returns the interval of a port's session, in milliseconds, which is
// that of the more damped end.
func (b *book) stretched(n *node, port uint32, interval time.Duration) uint32 {
	now := b.now()
	factor := n.factorOf(port, now)
	if far, linked := b.links[flow.Location{Switch: n.dpid, Port: flow.Port(port)}]; linked {
		if o := b.nodes[far.Switch]; o != nil {
			factor = max(factor, o.factorOf(uint32(far.Port), now))
		}
	}
	return uint32(min(interval*factor, mostBFD).Milliseconds())
}
