package tunnels

import "time"

// held is the tunnels that move to a better path when it has been there for the same
// time.
type held struct {
	all    map[string]*status
	later  map[string]*status // not looked at with the others, since they lacked something
	looked time.Time          // up to which better link all have been
}

// improvements are when links have become better, and the tunnels that move to better paths
// then. The store's mu guards them.
type improvements struct {
	last  time.Time               // when a link has last become better
	holds map[time.Duration]*held // by hold time
}

// hold enters a tunnel among those with its hold time.
func (m *improvements) hold(s *status, now time.Time) {
	hold, ok := s.tunnel.hold()
	if !ok || s.tunnel.overlay() {
		return
	}
	h := m.holds[hold]
	if h == nil {
		h = &held{all: map[string]*status{}, later: map[string]*status{}}
		if !now.Before(m.last.Add(hold)) {
			h.looked = m.last // its path is sought with the link as it is
		}
		m.holds[hold] = h
	}
	h.all[s.tunnel.name] = s
}

// unhold takes a tunnel out of those with its hold time.
func (m *improvements) unhold(s *status) {
	hold, _ := s.tunnel.hold()
	if h := m.holds[hold]; h != nil {
		delete(h.later, s.tunnel.name)
		if delete(h.all, s.tunnel.name); len(h.all) == 0 {
			delete(m.holds, hold)
		}
	}
}

// hold returns how long a better path has to be there before a tunnel moves to it;
// false if it never does.
func (t *tunnel) hold() (time.Duration, bool) {
	switch s := t.wanted.RevertAfterS; {
	case s < 0:
		return 0, false
	case s == 0:
		return time.Minute, true
	default:
		return time.Duration(s) * time.Second, true
	}
}
