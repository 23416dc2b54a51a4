package southbound

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// A session stands by while this process is not master of its switch: it is
// slave there, answers echoes and keeps the ports up to date, and the rest of
// the system does not know it. To become master it sends one role request;
// after its reply the switch sends the messages for its master.

// mandate reports whether this process is master of a switch. epoch is the
// epoch of its mastership, or the highest epoch that it knows.
func (h *hub) mandate(sw dpid) (epoch uint64, master bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch.Load(), h.takes(sw)
}

// enlist adds a session whose handshake is over.
func (h *hub) enlist(s *session) error {
	s.known.Store(true)
	s.account.establish()
	s.mu.Lock()
	s.since = time.Now()
	s.mu.Unlock()
	h.mu.Lock()
	if s.mastered || s.version == openflow.V10 && h.takes(s.dpid) {
		h.mu.Unlock()
		return s.activate()
	}
	h.standing[s] = true
	claim, epoch, guest := h.takes(s.dpid), h.epoch.Load(), !h.owns(s.dpid)
	h.mu.Unlock()
	h.log.Info("switch held ready", "dpid", s.dpid, "peer", s.conn.RemoteAddr(), "version", s.version, "of_another_partition", guest)
	if claim { // this process became master during the handshake
		return s.claim(epoch)
	}
	return nil
}

// activate makes the switch known to the system; the reading goroutine calls
// it.
func (s *session) activate() error {
	s.hub.mu.Lock()
	delete(s.hub.standing, s)
	s.hub.mu.Unlock()
	s.active = true
	return s.hub.join(s)
}

// takeOver is activate for a session that stood by.
func (s *session) takeOver() error {
	if err := s.activate(); err != nil {
		return err
	}
	return s.hear(s.in.ws.packet.Time)
}

// promote makes this process master of all its switches under an epoch, or
// moves it to a higher one.
func (h *hub) promote(epoch uint64) {
	h.mu.Lock()
	h.epoch.Store(epoch)
	h.master = true
	list := make([]*session, 0, len(h.standing))
	for s := range h.standing {
		if h.takes(s.dpid) {
			list = append(list, s)
		}
	}
	h.mu.Unlock()
	for _, s := range list {
		if err := s.claim(epoch); err != nil {
			s.end(err.Error())
		}
	}
}

// all returns the sessions that are up and those that stand by.
func (h *hub) all() []*session {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*session, 0, int(h.up.count.Load())+len(h.standing))
	for _, s := range h.up.all() {
		list = append(list, s)
	}
	for s := range h.standing {
		list = append(list, s)
	}
	return list
}

// held returns how many sessions stand by.
func (h *hub) held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.standing)
}

// idle is the pipeline of a session that stands by: it gets no packets.
type idle struct{}

func (idle) Packet(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Drop }
func (idle) Flush()                                             {}
func (idle) Returned() (all, probes uint64)                     { return 0, 0 }
func (idle) Close()                                             {}

// resume announces the switches that missed messages while the mastership was
// in doubt, as if their sessions began anew, so that their state is checked
// again: an event for an unchanged session would have no effect.
func (h *hub) resume() {
	for _, s := range h.up.all() {
		if s.out.missed.Swap(false) {
			s.renew(time.Now())
			h.switchChanged(newSwitchChanged(s))
		}
	}
}

// renew makes a session begin now, or later by as much as it takes to differ
// from the last begin: events give the begin in seconds.
func (s *session) renew(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next := s.since.Truncate(time.Second).Add(time.Second); now.Before(next) {
		now = next
	}
	s.since = now
}

// claim asks the switch for the role of master. A switch without roles
// (OpenFlow 1.0) has no master; claim sends it a barrier.
func (s *session) claim(epoch uint64) error {
	xid := s.xid.Add(1)
	msg := s.version.AppendBarrierRequest(nil, xid)
	if s.version == openflow.V13 {
		var err error
		if msg, err = s.version.AppendRoleRequest(nil, xid, openflow.RoleMaster, epoch); err != nil {
			return err
		}
	}
	s.claiming.Store(xid)
	return s.out.put(msg)
}

// stand handles a message of a switch whose master this process is not, or not
// yet. done is false if the message needs no special treatment.
func (s *session) stand(msg []byte) (done bool, err error) {
	h, err := openflow.ParseHeader(msg)
	if err != nil || h.Version != s.version {
		return false, err
	}
	claimed := h.Xid == s.claiming.Load() && h.Xid != 0
	switch h.Type {
	case openflow.TypeEchoRequest, openflow.TypeEchoReply, openflow.TypePortStatus, openflow.TypeFeaturesReply:
		return false, nil
	case openflow.TypeBarrierReply:
		if claimed && s.version == openflow.V10 {
			return true, s.takeOver()
		}
	case openflow.TypeRoleReply:
		role, generation, err := s.version.DecodeRoleReply(msg)
		switch {
		case err != nil:
			return true, err
		case h.Xid == s.asking.Load() && h.Xid != 0:
			return true, s.surpassed(generation)
		case claimed && role == openflow.RoleMaster:
			s.role = role
			return true, s.takeOver()
		case claimed:
			return true, fmt.Errorf("switch %v answered the request for master with %v", s.dpid, role)
		}
	case openflow.TypeError:
		e, err := s.version.DecodeError(msg)
		if err != nil || !claimed {
			return true, err
		}
		return true, s.denied(e)
	}
	return true, nil
}

// denied handles the switch's refusal of a claim.
func (s *session) denied(e openflow.Error) error {
	if !staleRole(&e) {
		s.role = openflow.RoleEqual
		s.hub.log.Info("switch has no roles, used as it is", "dpid", s.dpid, "error", e.Error())
		return s.takeOver()
	}
	xid := s.xid.Add(1)
	msg, err := s.version.AppendRoleRequest(nil, xid, openflow.RoleNoChange, 0)
	if err != nil {
		return err
	}
	s.asking.Store(xid)
	return s.out.put(msg)
}

// surpassed handles a switch that reports a higher generation than that of this
// process, which believes to be its master.
func (s *session) surpassed(theirs uint64) error {
	if s.hub.surpassed(theirs) {
		return nil // the switch is claimed again under a higher epoch, or the session ends
	}
	return s.laterMaster(theirs)
}

func (s *session) laterMaster(theirs uint64) error {
	return fmt.Errorf("switch %v has a later master (generation %d, ours %d): another controller, or this one with an older clock, has programmed it", s.dpid, theirs, s.hub.epoch.Load())
}

func staleRole(e *openflow.Error) bool {
	return e.Type == openflow.ErrRoleRequestFailed && e.Code == openflow.RoleRequestFailedStale
}

// requestRole asks for a role and waits for the answer, during the handshake.
func (s *session) requestRole(role openflow.Role, generation uint64) (openflow.Role, uint64, error) {
	xid := s.xid.Add(1)
	msg, err := s.version.AppendRoleRequest(nil, xid, role, generation)
	if err == nil {
		err = s.out.put(msg)
	}
	if err == nil {
		msg, err = s.reply(xid, openflow.TypeRoleReply)
	}
	if err != nil {
		return 0, 0, err
	}
	return s.version.DecodeRoleReply(msg)
}

// takeRole becomes master under this run's epoch, or slave while another
// process is master. It uses a switch without roles as it is.
func (s *session) takeRole() error {
	epoch, master := s.hub.mandate(s.dpid)
	if !master {
		return s.takeSlave(epoch)
	}
	role, _, err := s.requestRole(openflow.RoleMaster, epoch)
	var refused *openflow.Error
	switch {
	case err == nil && role == openflow.RoleMaster:
		s.role, s.mastered = role, true
		return nil
	case err == nil:
		return fmt.Errorf("switch %v answered the request for master with %v", s.dpid, role)
	case errors.As(err, &refused) && staleRole(refused):
		_, theirs, _ := s.requestRole(openflow.RoleNoChange, 0)
		if s.hub.surpassed(theirs) {
			return s.takeSlave(theirs) // until the epoch is higher
		}
		return s.laterMaster(theirs)
	case errors.As(err, &refused):
		s.role, s.mastered = openflow.RoleEqual, true
		s.hub.log.Info("switch has no roles, used as it is", "dpid", s.dpid, "error", refused)
		return nil
	}
	return err
}

// takeSlave becomes slave. If the switch knows a higher generation than this
// process, takeSlave asks for it and uses that. It keeps a switch without roles
// as it is.
func (s *session) takeSlave(generation uint64) error {
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
