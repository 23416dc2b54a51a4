package session

import (
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/openflow"
)

// A switch that makes another connection its master makes this one a slave and
// does not say so (OpenFlow 1.3.5 §6.3.6). The other may be gone a moment later,
// and the switch then has no master. So a master asks the switch from time to
// time what it is, and at once when the switch refuses a message as a slave's.
// If it has become slave while this process owns the switch, it asks for the role
// again, and ends the session if that does not help.

const (
	// roleRetry is the time between two requests about the role.
	roleRetry = 400 * time.Millisecond
	// demotedLimit is how long the session of a master may be slave before it ends.
	demotedLimit = 2 * time.Second
)

// roleState is the state of a session's role at the switch.
type roleState struct {
	master  atomic.Bool   // the switch has made this session its master
	xid     atomic.Uint32 // of the last request about the role
	asked   atomic.Int64  // time of that request, in ns
	doubted atomic.Bool   // the switch has since refused a message as a slave's
	demoted atomic.Int64  // time since when the switch reports slave, in ns; 0 if it does not
}

// checkRole asks the switch for the session's role if the last answer is older
// than every. It ends the session if the switch keeps it a slave although
// this process owns the switch.
func (s *Session) checkRole(now time.Time, every time.Duration) {
	if !s.roleState.master.Load() {
		return
	}
	if s.roleState.doubted.Load() {
		every = roleRetry
	}
	since := s.roleState.demoted.Load()
	if since == 0 {
		s.askRole(now, every)
		return
	}
	epoch, owner := s.isOwner()
	switch {
	case !owner: // it goes to another partition, or to a standby
		s.askRole(now, every)
	case now.Sub(time.Unix(0, since)) > demotedLimit:
		s.End("another controller is master of the switch, and the switch does not make this one its master again")
	case s.mayAsk(now, roleRetry):
		s.sendRole(openflow.RoleMaster, epoch)
	}
}

// isOwner returns the epoch of this process, and whether it must be master of the
// switch now. A process whose lease has expired must not: another may have become
// master, so the session stays as it is.
func (s *Session) isOwner() (epoch uint64, master bool) {
	epoch, master = s.shared.owner.IsOwner(s.DPID)
	return epoch, master && s.out.fence.Open()
}

// askRole asks the switch for the session's role, unless the last request is newer
// than a time.
func (s *Session) askRole(now time.Time, unless time.Duration) {
	if s.mayAsk(now, unless) {
		s.sendRole(openflow.RoleNoChange, 0)
	}
}

// mayAsk reports whether the last request is older than a time. If so, it records
// a new one.
func (s *Session) mayAsk(now time.Time, unless time.Duration) bool {
	last := s.roleState.asked.Load()
	if now.Sub(time.Unix(0, last)) < unless || !s.roleState.asked.CompareAndSwap(last, now.UnixNano()) {
		return false
	}
	s.roleState.doubted.Store(false)
	return true
}

// sendRole sends a role request.
func (s *Session) sendRole(role openflow.Role, epoch uint64) {
	xid := s.xid.Add(1)
	s.roleState.xid.Store(xid)
	if msg, err := s.Version.AppendRoleRequest(nil, xid, role, epoch); err == nil {
		_ = s.out.put(msg)
	}
}

// handleRoleReply handles the reply to the last request about the role. It returns
// false for any other reply.
func (s *Session) handleRoleReply(xid uint32, msg []byte) (mine bool, err error) {
	if xid != s.roleState.xid.Load() || !s.roleState.master.Load() {
		return false, nil
	}
	role, generation, err := s.Version.DecodeRoleReply(msg)
	if err != nil {
		return true, err
	}
	now := s.in.ws.packet.Time
	epoch, owner := s.isOwner()
	switch {
	case role == openflow.RoleMaster:
		if since := s.roleState.demoted.Swap(0); since != 0 {
			s.shared.Log.Info("switch has this controller as its master again", "dpid", s.DPID, "after", time.Duration(now-since))
			s.shared.owner.AnnounceRestored(s)
		}
	case role != openflow.RoleSlave || !owner:
	case int64(generation-epoch) > 0 && generation != noGeneration: // the demand would be refused
		s.demote(now)
		return true, s.handleHigherGeneration(generation)
	default:
		if s.demote(now) { // else checkRole asks again
			s.sendRole(openflow.RoleMaster, epoch)
		}
	}
	return true, nil
}

// noGeneration is the generation of a switch that has received none.
const noGeneration = ^uint64(0)

// demote records that the switch has another master. It returns false if that was
// known.
func (s *Session) demote(now int64) bool {
	if !s.roleState.demoted.CompareAndSwap(0, now) {
		return false
	}
	s.shared.Log.Warn("another controller has become master of the switch; this one asks for the role again", "dpid", s.DPID)
	return true
}

// handleRoleError handles an error that shows that this session is a slave, or that
// answers the last request about the role. It returns true for the latter.
func (s *Session) handleRoleError(e openflow.Error) (mine bool) {
	switch {
	case !s.roleState.master.Load():
		return false
	case e.Type == openflow.ErrBadRequest && e.Code == openflow.BadRequestIsSlave:
		s.roleState.doubted.Store(true)
		s.askRole(time.Unix(0, s.in.ws.packet.Time), roleRetry)
		return false
	case e.Xid != s.roleState.xid.Load():
		return false
	case staleRole(&e):
		s.sendRole(openflow.RoleNoChange, 0)
	default:
		s.roleState.master.Store(false) // it cannot say
	}
	return true
}
