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
	s.roleState.asked.Store(time.Now().UnixNano())
	s.roleState.master.Store(s.role == openflow.RoleMaster)
	s.pipeline = s.shared.Open(s.DPID, s.applyRemote)
	s.admission = admission.NewFilter(s.shared.Config.Load().Flood, s.account)
	s.backlog.away, _ = s.pipeline.(awayer)
	var left []recovery.LeftOver
	s.outgoing, left = s.shared.recovery.Begin(s.DPID)
	s.progress.Ring = s.outgoing.Ring
	s.resume(left)
	s.shared.owner.Join(s)
	s.beginBeats()
}

// deactivate undoes Activate when the session ends.
func (s *Session) deactivate(cause error) {
	s.pipeline.Close()
	s.endBeats(cause)
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

// AskMaster asks the switch for the role of master. A switch without roles
// (OpenFlow 1.0) has no master; claim sends it a barrier.
func (s *Session) AskMaster(epoch uint64) error {
	xid := s.xid.Add(1)
	msg := s.Version.AppendBarrierRequest(nil, xid)
	if s.Version == openflow.V13 {
		var err error
		if msg, err = s.Version.AppendRoleRequest(nil, xid, openflow.RoleMaster, epoch); err != nil {
			return err
		}
	}
	s.claiming.Store(xid)
	return s.out.put(msg)
}

// handleWhileSlave handles a message of a switch while this process is not, or not
// yet, its master. done is false if the message needs no special treatment.
func (s *Session) handleWhileSlave(msg []byte) (done bool, err error) {
	h, err := openflow.ParseHeader(msg)
	if err != nil || h.Version != s.Version {
		return false, err
	}
	claimed := h.Xid == s.claiming.Load() && h.Xid != 0
	switch h.Type {
	case openflow.TypeEchoRequest, openflow.TypeEchoReply, openflow.TypePortStatus, openflow.TypeFeaturesReply:
		return false, nil
	case openflow.TypeBarrierReply:
		if claimed && s.Version == openflow.V10 {
			return true, s.takeOver()
		}
	case openflow.TypeRoleReply:
		role, generation, err := s.Version.DecodeRoleReply(msg)
		switch {
		case err != nil:
			return true, err
		case h.Xid == s.asking.Load() && h.Xid != 0:
			return true, s.handleHigherGeneration(generation)
		case claimed && role == openflow.RoleMaster:
			s.role = role
			return true, s.takeOver()
		case claimed:
			return true, fmt.Errorf("switch %v answered the request for master with %v", s.DPID, role)
		}
	case openflow.TypeError:
		e, err := s.Version.DecodeError(msg)
		if err != nil || !claimed {
			return true, err
		}
		return true, s.handleClaimError(e)
	}
	return true, nil
}

// handleClaimError handles the switch's refusal of a claim to be master.
func (s *Session) handleClaimError(e openflow.Error) error {
	if !staleRole(&e) {
		s.role = openflow.RoleEqual
		s.shared.Log.Info("switch has no roles, used as it is", "dpid", s.DPID, "error", e.Error())
		return s.takeOver()
	}
	xid := s.xid.Add(1)
	msg, err := s.Version.AppendRoleRequest(nil, xid, openflow.RoleNoChange, 0)
	if err != nil {
		return err
	}
	s.asking.Store(xid)
	return s.out.put(msg)
}

// handleHigherGeneration handles a switch that reports a higher generation than that
// of this process, which is its master as far as it knows.
func (s *Session) handleHigherGeneration(theirs uint64) error {
	if s.shared.owner.HandleHigherGeneration(theirs) {
		return nil // the switch is claimed again under a higher epoch, or the session ends
	}
	return s.laterMaster(theirs)
}

func (s *Session) laterMaster(theirs uint64) error {
	ours, _ := s.shared.owner.IsOwner(s.DPID)
	return fmt.Errorf("switch %v has a later master (generation %d, ours %d): another controller, or this one with an older clock, has programmed it", s.DPID, theirs, ours)
}

func staleRole(e *openflow.Error) bool {
	return e.Type == openflow.ErrRoleRequestFailed && e.Code == openflow.RoleRequestFailedStale
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
		s.role, s.Mastered = role, true
		return nil
	case err == nil:
		return fmt.Errorf("switch %v answered the request for master with %v", s.DPID, role)
	case errors.As(err, &refused) && staleRole(refused):
		_, theirs, _ := s.requestRole(openflow.RoleNoChange, 0)
		if s.shared.owner.HandleHigherGeneration(theirs) {
			return s.takeSlave(theirs) // until the epoch is higher
		}
		return s.laterMaster(theirs)
	case errors.As(err, &refused):
		s.role, s.Mastered = openflow.RoleEqual, true
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
		s.role = openflow.RoleEqual
		return nil
	case err != nil:
		return err
	}
	s.role = role
	return nil
}

// ConfirmRole asks a switch again for the role of master: a second connection
// of the same switch may have got the role meanwhile, so that this one lost it
// (OpenFlow 1.3.5 §6.3.6).
func (s *Session) ConfirmRole() {
	epoch, master := s.shared.owner.IsOwner(s.DPID)
	if s.role != openflow.RoleMaster || !master {
		return
	}
	if msg, err := s.Version.AppendRoleRequest(nil, s.xid.Add(1), openflow.RoleMaster, epoch); err == nil {
		_ = s.out.put(msg)
	}
}
