package session

import (
	"fmt"
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

// roleState is the role that a session has at its switch, and the requests about it.
// The reading goroutine sets the role; any goroutine may ask for one.
type roleState struct {
	*channel
	role             openflow.Role
	Mastered         bool          // the handshake made this process master
	claiming         atomic.Uint32 // xid of a later request for mastership
	asking           atomic.Uint32 // xid of the request for the switch's generation
	announceRestored func()        // the switch has this process as its master again

	master  atomic.Bool   // the switch has made this session its master
	request atomic.Uint32 // xid of the last request about the role
	asked   atomic.Int64  // time of that request, in ns
	doubted atomic.Bool   // the switch has since refused a message as a slave's
	demoted atomic.Int64  // time since when the switch reports slave, in ns; 0 if it does not
}

// begin begins the time in which the session is the one that programs its switch.
func (r *roleState) begin(now time.Time) {
	r.asked.Store(now.UnixNano())
	r.master.Store(r.role == openflow.RoleMaster)
}

// checkRole asks the switch for the session's role if the last answer is older
// than every. It ends the session if the switch keeps it a slave although
// this process owns the switch.
func (r *roleState) checkRole(now time.Time, every time.Duration) {
	if !r.master.Load() {
		return
	}
	if r.doubted.Load() {
		every = roleRetry
	}
	since := r.demoted.Load()
	if since == 0 {
		r.askRole(now, every)
		return
	}
	epoch, owner := r.isOwner()
	switch {
	case !owner: // it goes to another partition, or to a standby
		r.askRole(now, every)
	case now.Sub(time.Unix(0, since)) > demotedLimit:
		r.End("another controller is master of the switch, and the switch does not make this one its master again")
	case r.mayAsk(now, roleRetry):
		r.sendRole(openflow.RoleMaster, epoch)
	}
}

// isOwner returns the epoch of this process, and whether it must be master of the
// switch now. A process whose lease has expired must not: another may have become
// master, so the session stays as it is.
func (r *roleState) isOwner() (epoch uint64, master bool) {
	epoch, master = r.shared.owner.IsOwner(r.DPID)
	return epoch, master && r.out.fence.Open()
}

// askRole asks the switch for the session's role, unless the last request is newer
// than a time.
func (r *roleState) askRole(now time.Time, unless time.Duration) {
	if r.mayAsk(now, unless) {
		r.sendRole(openflow.RoleNoChange, 0)
	}
}

// mayAsk reports whether the last request is older than a time. If so, it records
// a new one.
func (r *roleState) mayAsk(now time.Time, unless time.Duration) bool {
	last := r.asked.Load()
	if now.Sub(time.Unix(0, last)) < unless || !r.asked.CompareAndSwap(last, now.UnixNano()) {
		return false
	}
	r.doubted.Store(false)
	return true
}

// sendRole sends a role request.
func (r *roleState) sendRole(role openflow.Role, epoch uint64) {
	xid := r.xid.Add(1)
	r.request.Store(xid)
	if msg, err := r.Version.AppendRoleRequest(nil, xid, role, epoch); err == nil {
		_ = r.out.put(msg)
	}
}

// handleRoleReply handles the reply to the last request about the role. It returns
// false for any other reply.
func (r *roleState) handleRoleReply(xid uint32, msg []byte) (mine bool, err error) {
	if xid != r.request.Load() || !r.master.Load() {
		return false, nil
	}
	role, generation, err := r.Version.DecodeRoleReply(msg)
	if err != nil {
		return true, err
	}
	now := r.in.ws.packet.Time
	epoch, owner := r.isOwner()
	switch {
	case role == openflow.RoleMaster:
		if since := r.demoted.Swap(0); since != 0 {
			r.shared.Log.Info("switch has this controller as its master again", "dpid", r.DPID, "after", time.Duration(now-since))
			r.announceRestored()
		}
	case role != openflow.RoleSlave || !owner:
	case int64(generation-epoch) > 0 && generation != noGeneration: // the demand would be refused
		r.demote(now)
		return true, r.handleHigherGeneration(generation)
	default:
		if r.demote(now) { // else checkRole asks again
			r.sendRole(openflow.RoleMaster, epoch)
		}
	}
	return true, nil
}

// noGeneration is the generation of a switch that has received none.
const noGeneration = ^uint64(0)

// demote records that the switch has another master. It returns false if that was
// known.
func (r *roleState) demote(now int64) bool {
	if !r.demoted.CompareAndSwap(0, now) {
		return false
	}
	r.shared.Log.Warn("another controller has become master of the switch; this one asks for the role again", "dpid", r.DPID)
	return true
}

// handleRoleError handles an error that shows that this session is a slave, or that
// answers the last request about the role. It returns true for the latter.
func (r *roleState) handleRoleError(e openflow.Error) (mine bool) {
	switch {
	case !r.master.Load():
		return false
	case e.Type == openflow.ErrBadRequest && e.Code == openflow.BadRequestIsSlave:
		r.doubted.Store(true)
		r.askRole(time.Unix(0, r.in.ws.packet.Time), roleRetry)
		return false
	case e.Xid != r.request.Load():
		return false
	case staleRole(&e):
		r.sendRole(openflow.RoleNoChange, 0)
	default:
		r.master.Store(false) // it cannot say
	}
	return true
}

// Claim asks the switch for the role of master. A switch without roles
// (OpenFlow 1.0) has no master; claim sends it a barrier.
func (r *roleState) Claim(epoch uint64) error {
	xid := r.xid.Add(1)
	msg := r.Version.AppendBarrierRequest(nil, xid)
	if r.Version == openflow.V13 {
		var err error
		if msg, err = r.Version.AppendRoleRequest(nil, xid, openflow.RoleMaster, epoch); err != nil {
			return err
		}
	}
	r.claiming.Store(xid)
	return r.out.put(msg)
}

// slaveOutcome is what became of a message to a session that stands by.
type slaveOutcome int

const (
	unhandled slaveOutcome = iota // it needs no special treatment
	handled
	becameMaster
)

// handleWhileSlave handles a message of a switch while this process is not, or not
// yet, its master.
func (r *roleState) handleWhileSlave(msg []byte) (slaveOutcome, error) {
	h, err := openflow.ParseHeader(msg)
	if err != nil || h.Version != r.Version {
		return unhandled, err
	}
	claimed := h.Xid == r.claiming.Load() && h.Xid != 0
	switch h.Type {
	case openflow.TypeEchoRequest, openflow.TypeEchoReply, openflow.TypePortStatus, openflow.TypeFeaturesReply:
		return unhandled, nil
	case openflow.TypeBarrierReply:
		if claimed && r.Version == openflow.V10 {
			return becameMaster, nil
		}
	case openflow.TypeRoleReply:
		role, generation, err := r.Version.DecodeRoleReply(msg)
		switch {
		case err != nil:
			return handled, err
		case h.Xid == r.asking.Load() && h.Xid != 0:
			return handled, r.handleHigherGeneration(generation)
		case claimed && role == openflow.RoleMaster:
			r.role = role
			return becameMaster, nil
		case claimed:
			return handled, fmt.Errorf("switch %v answered the request for master with %v", r.DPID, role)
		}
	case openflow.TypeError:
		e, err := r.Version.DecodeError(msg)
		if err != nil || !claimed {
			return handled, err
		}
		return r.handleClaimError(e)
	}
	return handled, nil
}

// handleClaimError handles the switch's refusal of a claim to be master.
func (r *roleState) handleClaimError(e openflow.Error) (slaveOutcome, error) {
	if !staleRole(&e) {
		r.role = openflow.RoleEqual
		r.shared.Log.Info("switch has no roles, used as it is", "dpid", r.DPID, "error", e.Error())
		return becameMaster, nil
	}
	xid := r.xid.Add(1)
	msg, err := r.Version.AppendRoleRequest(nil, xid, openflow.RoleNoChange, 0)
	if err != nil {
		return handled, err
	}
	r.asking.Store(xid)
	return handled, r.out.put(msg)
}

// handleHigherGeneration handles a switch that reports a higher generation than that
// of this process, which is its master as far as it knows.
func (r *roleState) handleHigherGeneration(theirs uint64) error {
	if r.shared.owner.HandleHigherGeneration(theirs) {
		return nil // the switch is claimed again under a higher epoch, or the session ends
	}
	return r.laterMaster(theirs)
}

func (r *roleState) laterMaster(theirs uint64) error {
	ours, _ := r.shared.owner.IsOwner(r.DPID)
	return fmt.Errorf("switch %v has a later master (generation %d, ours %d): another controller, or this one with an older clock, has programmed it", r.DPID, theirs, ours)
}

// Confirm asks a switch again for the role of master: a second connection
// of the same switch may have got the role meanwhile, so that this one lost it
// (OpenFlow 1.3.5 §6.3.6).
func (r *roleState) Confirm() {
	epoch, master := r.shared.owner.IsOwner(r.DPID)
	if r.role != openflow.RoleMaster || !master {
		return
	}
	if msg, err := r.Version.AppendRoleRequest(nil, r.xid.Add(1), openflow.RoleMaster, epoch); err == nil {
		_ = r.out.put(msg)
	}
}

func staleRole(e *openflow.Error) bool {
	return e.Type == openflow.ErrRoleRequestFailed && e.Code == openflow.RoleRequestFailedStale
}
