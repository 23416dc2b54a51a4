package session

import (
	"fmt"
	"time"
)

// doubt is how long a switch may take to answer an echo while another
// connection claims its identity.
const doubt = 2 * time.Second

// Timeouts are the times after which a session is asked for an echo, or ends.
type Timeouts struct{ EchoInterval, DeadAfter, WriteTimeout time.Duration }

// Check sends an echo to a silent switch and ends the session of a switch that
// does not answer, does not read, does not finish a message, or obeys another
// master. It also sends packets and events that are held for too long.
func (s *Session) Check(now time.Time, t *Timeouts) {
	s.ports.releaseHeld(now)
	s.Role.checkRole(now, t.EchoInterval)
	s.out.release() // the reader that holds packets for it may itself be held up
	silent := now.Sub(time.Unix(0, s.lastRead.Load()))
	partial, asked := s.partial.Load(), s.asked.Load()
	switch {
	case s.doubted.Load() && asked != 0 && now.Sub(time.Unix(0, asked)) > doubt:
		s.End("another connection claims this datapath id, and this one does not answer")
	case s.out.stuckFor(now) > t.WriteTimeout:
		s.End(fmt.Sprintf("the switch has not read for %v", t.WriteTimeout))
	case silent > t.DeadAfter:
		s.End(fmt.Sprintf("the switch has been silent for %v", t.DeadAfter))
	case partial != 0 && now.Sub(time.Unix(0, partial)) > t.DeadAfter:
		s.End(fmt.Sprintf("the switch has not finished a message within %v", t.DeadAfter))
	case silent > t.EchoInterval && asked == 0:
		s.askEcho(now)
	}
}

// Doubt gives a switch whose identity another connection claims a short time
// to answer an echo.
func (s *Session) Doubt() {
	s.doubted.Store(true)
	if s.asked.Load() == 0 {
		s.askEcho(time.Now())
	}
}

// askEcho sends the switch an echo request.
func (s *Session) askEcho(now time.Time) {
	s.asked.Store(now.UnixNano())
	if msg, err := s.Version.AppendEchoRequest(nil, s.xid.Add(1), nil); err == nil {
		_ = s.out.put(msg)
	}
}
