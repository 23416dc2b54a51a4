package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// A session stands by while this process is not master of its switch: it is
// slave there, answers echoes and keeps the ports up to date, and the rest of
// the system does not know it. To become master it sends one role request;
// after its reply the switch sends the messages for its master.

// establish ends the handshake.
func (s *Session) establish() error {
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
	s.admission = admission.NewFilter(s.shared.Config.Load().Flood, s.account)
	s.backlog.away, _ = s.pipeline.(awayer)
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

// requestRole asks for a role and waits for the answer, during the handshake.
func (s *Session) requestRole(role openflow.Role, generation uint64) (openflow.Role, uint64, error) {
	xid := s.xid.Add(1)
	msg, err := s.Version.AppendRoleRequest(nil, xid, role, generation)
	if err == nil {
		err = s.out.put(msg)
	}
	if err == nil {
		msg, err = s.reply(xid, openflow.TypeRoleReply, "role reply")
	}
	if err != nil {
		return 0, 0, err
	}
	return s.Version.DecodeRoleReply(msg)
}

// takeRole becomes master under this run's epoch, or slave while another
// process is master. It uses a switch without roles as it is.
func (s *Session) takeRole() error {
	epoch, master := s.shared.owner.IsOwner(s.DPID)
	if !master {
		return s.takeSlave(epoch)
	}
	role, _, err := s.requestRole(openflow.RoleMaster, epoch)
	var refused *openflow.Error
	switch {
	case err == nil && role == openflow.RoleMaster:
		s.Role.role, s.Role.Mastered = role, true
		return nil
	case err == nil:
		return fmt.Errorf("switch %v answered the request for master with %v", s.DPID, role)
	case errors.As(err, &refused) && staleRole(refused):
		_, theirs, _ := s.requestRole(openflow.RoleNoChange, 0)
		if s.shared.owner.HandleHigherGeneration(theirs) {
			return s.takeSlave(theirs) // until the epoch is higher
		}
		return s.Role.laterMaster(theirs)
	case errors.As(err, &refused):
		s.Role.role, s.Role.Mastered = openflow.RoleEqual, true
		s.shared.Log.Info("switch has no roles, used as it is", "dpid", s.DPID, "error", refused)
		return nil
	}
	return err
}

// takeSlave becomes slave. If the switch knows a higher generation than this
// process, takeSlave asks for it and uses that. It keeps a switch without roles
// as it is.
func (s *Session) takeSlave(generation uint64) error {
	role, _, err := s.requestRole(openflow.RoleSlave, generation)
	var refused *openflow.Error
	if errors.As(err, &refused) && staleRole(refused) {
		if _, generation, err = s.requestRole(openflow.RoleNoChange, 0); err == nil {
			role, _, err = s.requestRole(openflow.RoleSlave, generation)
		}
	}
	switch {
	case errors.As(err, &refused) && !staleRole(refused):
		s.Role.role = openflow.RoleEqual
		return nil
	case err != nil:
		return err
	}
	s.Role.role = role
	return nil
}
