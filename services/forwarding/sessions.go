package forwarding

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// sessions puts events about a switch from two services in order: the
// southbound's that it connected, and those of flowrules about what it has.
// Events of one publisher arrive in order, those of two do not: a report may
// arrive before the connection that it belongs to, and is kept until then. It
// belongs to the goroutine of the events.
type sessions struct {
	of    map[flow.DPID]session
	early map[flow.DPID][]*api.FlowsObserved // the last of each owner, if of another session
}

// session identifies one connection of a switch, as the southbound gives it.
type session struct{ since, address string }

// earlyMost bounds the switches for which reports are kept. Other switches are
// asked again (engine.ask).
const earlyMost = 1 << 14

func newSessions() *sessions {
	return &sessions{of: map[flow.DPID]session{}, early: map[flow.DPID][]*api.FlowsObserved{}}
}

// handleSwitch handles the southbound's event about a switch. It reports whether the
// event repeats the known session, and returns the reports that arrived before
// their session.
func (s *sessions) handleSwitch(ev *api.SwitchChanged) (again bool, heard []*api.FlowsObserved) {
	sw, err := flow.ParseDPID(ev.Switch.Dpid)
	if err != nil {
		return false, nil
	}
	if !ev.Switch.Connected {
		delete(s.of, sw)
		return false, nil
	}
	now := session{ev.Switch.Since, ev.Switch.Address}
	old, known := s.of[sw]
	s.of[sw] = now
	var others []*api.FlowsObserved
	for _, o := range s.early[sw] {
		if (session{o.Since, o.Address}) == now {
			heard = append(heard, o)
		} else {
			others = append(others, o)
		}
	}
	s.keepReports(sw, others)
	return known && old == now && now.since != "", heard
}

// acceptReport reports whether a report belongs to the known session and must be
// handled now. It stores other reports for their own sessions.
func (s *sessions) acceptReport(ev *api.FlowsObserved) bool {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil {
		return false
	}
	others := slices.DeleteFunc(s.early[sw], func(o *api.FlowsObserved) bool { return o.Owner == ev.Owner })
	now, known := s.of[sw]
	take := ev.Since == "" || known && now == session{ev.Since, ev.Address} // former builds give no session
	if !take {
		others = append(others, ev)
	}
	s.keepReports(sw, others)
	return take
}

// keepReports stores the reports of a switch that belong to other sessions.
func (s *sessions) keepReports(sw flow.DPID, list []*api.FlowsObserved) {
	switch _, has := s.early[sw]; {
	case len(list) == 0:
		delete(s.early, sw)
	case has || len(s.early) < earlyMost:
		s.early[sw] = list
	}
}
