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
// If it has become slave while this process has the mandate, it asks for the
// role again, and ends the session if that does not help.

const (
	// askedAgain is how long a question about the role waits for its answer
	// before there is another.
	askedAgain = 400 * time.Millisecond
	// deposedMost is how long a master may be slave before its session ends.
	deposedMost = 2 * time.Second
)

// reign is what a session knows of its mastership.
type reign struct {
	master  atomic.Bool   // the switch has made this session its master
	xid     atomic.Uint32 // of the last question about the role
	asked   atomic.Int64  // when that was, in ns
	doubted atomic.Bool   // the switch has refused a message as a slave's since
	deposed atomic.Int64  // since when the switch has been saying slave, in ns; 0 if it does not
}

// checkRole asks the switch for the session's role if the last answer is older
// than every. It ends the session of a switch that keeps it a slave though this
// process is to be master.
func (s *Session) checkRole(now time.Time, every time.Duration) {
	if !s.reign.master.Load() {
		return
	}
	if s.reign.doubted.Load() {
		every = askedAgain
	}
	since := s.reign.deposed.Load()
	if since == 0 {
		s.askRole(now, every)
		return
	}
	epoch, mandate := s.mandate()
	switch {
	case !mandate: // it goes to another partition, or to a standby
		s.askRole(now, every)
	case now.Sub(time.Unix(0, since)) > deposedMost:
		s.End("another controller is master of the switch, and the switch does not make this one its master again")
	case s.mayAsk(now, askedAgain):
		s.sendRole(openflow.RoleMaster, epoch)
	}
}

// mandate returns the epoch of this process, and whether it is to be master of the
// switch now. A process whose lease has ended unrenewed is not: another may have
// become master, and speaks for the switch, so the session stays as it is.
func (s *Session) mandate() (epoch uint64, master bool) {
	epoch, master = s.shared.owner.Mandate(s.DPID)
	return epoch, master && s.out.fence.Open()
}

// askRole asks the switch for the session's role, unless it was asked something
// about it less than a time ago.
func (s *Session) askRole(now time.Time, unless time.Duration) {
	if s.mayAsk(now, unless) {
		s.sendRole(openflow.RoleNoChange, 0)
	}
}

// mayAsk reports whether the last question is older than a time, and records
// one if it is.
func (s *Session) mayAsk(now time.Time, unless time.Duration) bool {
	last := s.reign.asked.Load()
	if now.Sub(time.Unix(0, last)) < unless || !s.reign.asked.CompareAndSwap(last, now.UnixNano()) {
		return false
	}
	s.reign.doubted.Store(false)
	return true
}

func (s *Session) sendRole(role openflow.Role, epoch uint64) {
	xid := s.xid.Add(1)
	s.reign.xid.Store(xid)
	if msg, err := s.Version.AppendRoleRequest(nil, xid, role, epoch); err == nil {
		_ = s.out.put(msg)
	}
}

// roleTold handles the answer to the last question about the role. It returns
// false for another answer.
func (s *Session) roleTold(xid uint32, msg []byte) (mine bool, err error) {
	if xid != s.reign.xid.Load() || !s.reign.master.Load() {
		return false, nil
	}
	role, generation, err := s.Version.DecodeRoleReply(msg)
	if err != nil {
		return true, err
	}
	now := s.in.ws.packet.Time
	epoch, mandate := s.mandate()
	switch {
	case role == openflow.RoleMaster:
		if since := s.reign.deposed.Swap(0); since != 0 {
			s.shared.Log.Info("switch has this controller as its master again", "dpid", s.DPID, "after", time.Duration(now-since))
			s.shared.owner.Restored(s)
		}
	case role != openflow.RoleSlave || !mandate:
	case int64(generation-epoch) > 0 && generation != noGeneration: // the demand would be refused
		s.depose(now)
		return true, s.surpassed(generation)
	default:
		if s.depose(now) { // else checkRole asks again
			s.sendRole(openflow.RoleMaster, epoch)
		}
	}
	return true, nil
}

// noGeneration is what a switch says that has heard of no generation.
const noGeneration = ^uint64(0)

// depose records that the switch has another master; it returns false if that
// was known.
func (s *Session) depose(now int64) bool {
	if !s.reign.deposed.CompareAndSwap(0, now) {
		return false
	}
	s.shared.Log.Warn("another controller has become master of the switch; this one asks for the role again", "dpid", s.DPID)
	return true
}

// roleRefused handles an error that says that this session is a slave, or that
// answers the last question about the role. It returns true for the latter.
func (s *Session) roleRefused(e openflow.Error) (mine bool) {
	switch {
	case !s.reign.master.Load():
		return false
	case e.Type == openflow.ErrBadRequest && e.Code == openflow.BadRequestIsSlave:
		s.reign.doubted.Store(true)
		s.askRole(time.Unix(0, s.in.ws.packet.Time), askedAgain)
		return false
	case e.Xid != s.reign.xid.Load():
		return false
	case staleRole(&e):
		s.sendRole(openflow.RoleNoChange, 0)
	default:
		s.reign.master.Store(false) // it cannot say
	}
	return true
}
