package southbound

import (
	"fmt"
	"time"
)

// doubt is how long a switch may take to answer an echo while another
// connection claims its identity.
const doubt = 2 * time.Second

// timeouts are the times after which a session is asked for an echo, or ends.
type timeouts struct{ echoInterval, deadAfter, writeTimeout time.Duration }

// check sends an echo to a silent switch and ends the session of a switch that
// does not answer, does not read, or does not finish a message. It also sends
// packets and events that are held for too long.
func (s *session) check(now time.Time, t *timeouts) {
	s.releaseHeld(now)
	s.out.release() // the reader that holds packets for it may itself be held up
	silent := now.Sub(time.Unix(0, s.lastRead.Load()))
	partial, asked := s.partial.Load(), s.asked.Load()
	switch {
	case s.doubted.Load() && asked != 0 && now.Sub(time.Unix(0, asked)) > doubt:
		s.end("another connection claims this datapath id, and this one does not answer")
	case s.out.stuck(now) > t.writeTimeout:
		s.end(fmt.Sprintf("the switch has not read for %v", t.writeTimeout))
	case silent > t.deadAfter:
		s.end(fmt.Sprintf("the switch has been silent for %v", t.deadAfter))
	case partial != 0 && now.Sub(time.Unix(0, partial)) > t.deadAfter:
		s.end(fmt.Sprintf("the switch has not finished a message within %v", t.deadAfter))
	case silent > t.echoInterval && asked == 0:
		s.askEcho(now)
	}
}

// doubtIt gives a switch whose identity another connection claims a short time
// to answer an echo.
func (s *session) doubtIt() {
	s.doubted.Store(true)
	if s.asked.Load() == 0 {
		s.askEcho(time.Now())
	}
}

// askEcho sends the switch an echo request.
func (s *session) askEcho(now time.Time) {
	s.asked.Store(now.UnixNano())
	if msg, err := s.version.AppendEchoRequest(nil, s.xid.Add(1), nil); err == nil {
		_ = s.out.put(msg)
	}
}
