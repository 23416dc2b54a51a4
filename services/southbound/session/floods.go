package session

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// roll ends a window of the session's admission. It publishes which ports are
// now limited and which no longer are, and writes or removes their meters.
func (s *Session) roll(now int64, behind bool) {
	s.admission.Rule = s.shared.Config.Load().Flood
	before := len(s.admission.Limited)
	by := admission.Pressure{Full: behind || s.alive.queueFull(now), Elsewhere: s.shared.sending.Add(now, &s.sent, s.admission.Rate)}
	changes := s.admission.Roll(now, by, nil)
	for _, c := range changes {
		if c.Ended {
			s.removeLimiter(c.Limit)
		}
		s.floodChanged(c)
	}
	if len(s.admission.Limited) == 0 {
		if before > 0 {
			s.limits.Store(nil)
		}
		return
	}
	var list []*api.PortLimit
	for _, l := range s.admission.Limited {
		s.writeLimiter(l, now)
		list = append(list, s.describeLimit(l))
	}
	s.limits.Store(&list)
}

// floodChanged publishes that the limit of a port began or ended.
func (s *Session) floodChanged(c admission.Change) {
	l := s.describeLimit(c.Limit)
	if c.Ended {
		s.shared.Log.Info("flood over", "dpid", s.DPID, "port", l.Port, "shed", l.Shed, "since", l.Since)
	} else {
		s.shared.total.floods.Add(1)
		s.shared.Log.Warn("flood of packet-ins limited", "dpid", s.DPID, "port", l.Port, "class", l.Class, "per_second", int(l.Offered), "limit", int(l.Limit))
	}
	s.shared.FloodChanged(&api.FloodChanged{Limit: l, Ended: c.Ended})
}

// Settle adds the counts of a session that is over to the totals, and
// publishes that its limits are over. Nobody reads the session any more.
func (s *Session) Settle() {
	s.shared.total.addClosed(&s.count)
	s.limits.Store(nil)
	for _, l := range s.admission.Limited {
		s.floodChanged(admission.Change{Limit: l, Ended: true})
	}
}

func (s *Session) describeLimit(l *admission.PortLimit) *api.PortLimit {
	p := &api.PortLimit{
		Dpid: s.DPID.String(), Port: uint32(l.Port), Class: l.Class.String(), Offered: l.Offered, Limit: l.Rate, Where: "controller",
		Since: time.Unix(0, l.Since).UTC().Format(time.RFC3339), Shed: l.Shed,
	}
	if l.Limiter.Pushed != 0 {
		p.Where = "switch"
	}
	if l.MAC != (flow.MAC{}) {
		p.Mac = l.MAC.String()
	}
	return p
}
