package forwarding

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// sessions orders what two others say of a switch: the southbound that it has
// connected, flowrules what it had then. Events of one publisher come in order,
// those of two do not: what a switch has may be told of before its connection
// is, and is kept until then. It belongs to the goroutine of the events.
type sessions struct {
	of    map[flow.DPID]session
	early map[flow.DPID][]*api.FlowsObserved // the last of each owner, if of another session
}

// session tells the connections of a switch apart, in the southbound's words.
type session struct{ since, address string }

// earlyMost bounds the switches of which something is kept. Any more are asked
// again (engine.ask).
const earlyMost = 1 << 14

func newSessions() *sessions {
	return &sessions{of: map[flow.DPID]session{}, early: map[flow.DPID][]*api.FlowsObserved{}}
}

// connection takes the event that a switch has connected or gone.
func (e *engine) connection(f *flooding, ev *api.SwitchChanged) {
	again, heard := e.sessions.changed(ev)
	e.switchChanged(ev)
	if again {
		f.changed()
	} else {
		f.switchChanged(ev)
	}
	for _, o := range heard {
		e.observed(o)
		f.observed(o)
	}
}

// told takes the event of what a switch has.
func (e *engine) told(f *flooding, ev *api.FlowsObserved) {
	if e.sessions.observed(ev) {
		e.observed(ev)
		f.observed(ev)
	}
}

// changed takes what the southbound says of a switch. It reports whether that is
// of the session that is known, told once more, and returns what has been heard
// of the session already.
func (s *sessions) changed(ev *api.SwitchChanged) (again bool, heard []*api.FlowsObserved) {
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
	s.keep(sw, others)
	return known && old == now && now.since != "", heard
}

// observed reports whether what a switch has is to be taken now, for it is of
// the session that is known. If not, it is kept for that of which it is.
func (s *sessions) observed(ev *api.FlowsObserved) bool {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil {
		return false
	}
	others := slices.DeleteFunc(s.early[sw], func(o *api.FlowsObserved) bool { return o.Owner == ev.Owner })
	now, known := s.of[sw]
	take := ev.Since == "" || known && now == session{ev.Since, ev.Address} // a former build does not say
	if !take {
		others = append(others, ev)
	}
	s.keep(sw, others)
	return take
}

// keep keeps what has been told of other sessions of a switch than the present.
func (s *sessions) keep(sw flow.DPID, list []*api.FlowsObserved) {
	switch _, has := s.early[sw]; {
	case len(list) == 0:
		delete(s.early, sw)
	case has || len(s.early) < earlyMost:
		s.early[sw] = list
	}
}
