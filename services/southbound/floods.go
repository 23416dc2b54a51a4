package southbound

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// roll ends a window of the session's admission. It publishes which ports are
// now limited and which no longer are, and writes or removes their meters.
func (s *session) roll(now int64, behind bool) {
	s.admission.rule = s.hub.config.Load().flood
	before := len(s.admission.limited)
	by := pressure{full: behind || s.queueFull(now), elsewhere: s.hub.sending.add(now, &s.sent, s.admission.rate)}
	changes := s.admission.roll(now, by, nil)
	for _, c := range changes {
		if c.ended {
			s.unguard(c.limit)
		}
		s.floodChanged(c)
	}
	if len(s.admission.limited) == 0 {
		if before > 0 {
			s.limits.Store(nil)
		}
		return
	}
	var list []*api.PortLimit
	for _, l := range s.admission.limited {
		s.guard(l, now)
		list = append(list, s.describeLimit(l))
	}
	s.limits.Store(&list)
}

// floodChanged publishes that the limit of a port began or ended.
func (s *session) floodChanged(c change) {
	l := s.describeLimit(c.limit)
	if c.ended {
		s.hub.log.Info("flood over", "dpid", s.dpid, "port", l.Port, "shed", l.Shed, "since", l.Since)
	} else {
		s.hub.total.floods.Add(1)
		s.hub.log.Warn("flood of packet-ins limited", "dpid", s.dpid, "port", l.Port, "class", l.Class, "per_second", int(l.Offered), "limit", int(l.Limit))
	}
	s.hub.floodChanged(&api.FloodChanged{Limit: l, Ended: c.ended})
}

// settleMetrics adds the counts of a session that is over to the totals, and
// publishes that its limits are over. Nobody reads the session any more.
func (s *session) settleMetrics() {
	s.hub.total.closed(&s.count)
	s.limits.Store(nil)
	for _, l := range s.admission.limited {
		s.floodChanged(change{l, true})
	}
}

func (s *session) describeLimit(l *portLimit) *api.PortLimit {
	p := &api.PortLimit{
		Dpid: s.dpid.String(), Port: uint32(l.port), Class: l.class.String(), Offered: l.offered, Limit: l.rate, Where: "controller",
		Since: time.Unix(0, l.since).UTC().Format(time.RFC3339), Shed: l.shed,
	}
	if l.guard.pushed != 0 {
		p.Where = "switch"
	}
	if l.mac != (flow.MAC{}) {
		p.Mac = l.mac.String()
	}
	return p
}

// slowEcho is the least time that an echo takes if the queue of a switch is
// full; slowFactor is how many times its fastest echo it takes then.
const (
	slowEcho   = 100 * time.Millisecond
	slowFactor = 4
)

// queueFull reports whether an answer of the switch takes so long that the
// queue before it must be full.
func (s *session) queueFull(now int64) bool {
	since := s.echoes.oldest()
	if at := s.asked.Load(); at != 0 && (since == 0 || at < since) {
		since = at
	}
	return since != 0 && now-since > max(int64(slowEcho), slowFactor*s.fastest.Load())
}
