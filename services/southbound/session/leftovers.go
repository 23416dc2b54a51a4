package session

import (
	"time"

	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// againAfter is how long a switch must be back before its packet-ins are
// handled again: by then others know the roles of its ports.
const againAfter = time.Second

// leftOvers is what an earlier process left of a session's switch and is not
// handled yet. Only the reading goroutine uses it.
type leftOvers struct {
	list []recovery.LeftOver // the last first
	due  int64               // ns
}

// resume takes what was left: the session handles it, or loses it.
func (s *Session) resume(left []recovery.LeftOver) {
	if len(left) == 0 {
		return
	}
	s.progress.Pending.Add(int64(len(left)))
	s.leftOvers = leftOvers{left, time.Now().Add(againAfter).UnixNano()}
	// The answer wakes the goroutine in case the switch sends nothing else.
	time.AfterFunc(againAfter, func() { s.alive.askEcho(time.Now()) })
}

// handleLeftOvers handles what was left as if it had arrived now.
func (s *Session) handleLeftOvers(now int64) error {
	if s.leftOvers.list == nil || now < s.leftOvers.due {
		return nil
	}
	list := s.leftOvers.list
	s.leftOvers.list = nil
	ws := s.in.ws
	for i := len(list) - 1; i >= 0; i-- {
		l := list[i]
		if now-l.At > int64(recovery.LeftOverFor) || l.Msg[0] != byte(s.Version) {
			s.progress.Lose(1)
			continue
		}
		ws.packet.Switch, ws.packet.Time = s.DPID, now
		s.progress.Tally.Again.Add(1)
		if err := s.packetIn(l.Msg); err != nil {
			return err
		}
		if len(ws.own) >= flushAt {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	s.shared.Log.Info("packet-ins of an earlier process handled", "dpid", s.DPID, "packets", len(list))
	return s.flush()
}
