package session

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// A session stands by while this process is not master of its switch: it is
// slave there, answers echoes and keeps the ports up to date, and the rest of
// the system does not know it. To become master it sends one role request;
// after its reply the switch sends the messages for its master.

// establish makes a connection that has become a switch a session.
func (s *Session) establish() error {
	if err := s.shared.owner.Claim(s); err != nil {
		return err
	}
	if err := s.Conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	s.known.Store(true)
	s.account.Establish()
	s.mu.Lock()
	s.since = time.Now()
	s.mu.Unlock()
	return s.shared.owner.AddSession(s)
}

// Activate makes the switch known to the system; the reading goroutine calls
// it.
func (s *Session) Activate() {
	s.active = true
	s.Role.begin(time.Now())
	s.pipeline = s.shared.Open(s.DPID, s.applyRemote)
	s.floods.filter = admission.NewFilter(s.shared.Config.Load().Flood, s.account)
	s.floods.backlog.away, _ = s.pipeline.(awayer)
	var left []recovery.LeftOver
	s.outgoing, left = s.shared.recovery.Begin(s.DPID)
	s.progress.Ring = s.outgoing.Ring
	s.resume(left)
	s.shared.owner.Join(s)
	s.alive.beginBeats()
}

// deactivate undoes Activate when the session ends.
func (s *Session) deactivate(cause error) {
	s.pipeline.Close()
	s.alive.endBeats(cause)
	s.shared.owner.Leave(s, cause)
}

// takeOver is activate for a session that stood by.
func (s *Session) takeOver() error {
	s.Activate()
	return s.handleAsync(s.in.ws.packet.Time)
}

// Idle is the pipeline of a session that stands by: it gets no packets.
type Idle struct{}

func (Idle) Packet(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Drop }
func (Idle) Flush()                                             {}
func (Idle) Returned() (all, probes uint64)                     { return 0, 0 }
func (Idle) Close()                                             {}

// Renew makes a session begin now, or later by as much as it takes to differ
// from the last begin: events give the begin in seconds.
func (s *Session) Renew(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next := s.since.Truncate(time.Second).Add(time.Second); now.Before(next) {
		now = next
	}
	s.since = now
}
