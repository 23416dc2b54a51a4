package southbound

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// IsOwner reports whether this process is master of a switch. epoch is the
// epoch of its mastership, or the highest epoch that it knows.
func (h *hub) IsOwner(sw flow.DPID) (epoch uint64, master bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch.Load(), h.isMasterOf(sw)
}

// HandleHigherGeneration handles a generation of a switch that is higher than ours.
func (h *hub) HandleHigherGeneration(generation uint64) bool { return h.onHigherGeneration(generation) }

// AddSession adds a session whose handshake is over.
func (h *hub) AddSession(s *session.Session) error {
	h.mu.Lock()
	if s.Role.Mastered || s.Version == openflow.V10 && h.isMasterOf(s.DPID) {
		h.mu.Unlock()
		s.Activate()
		return nil
	}
	h.standby[s] = true
	claim, epoch, guest := h.isMasterOf(s.DPID), h.epoch.Load(), !h.owns(s.DPID)
	h.mu.Unlock()
	h.Log.Info("switch standing by", "dpid", s.DPID, "peer", s.Conn.RemoteAddr(), "version", s.Version, "of_another_partition", guest)
	if claim { // this process became master during the handshake
		return s.Role.Claim(epoch)
	}
	return nil
}

// promote makes this process master of all its switches under an epoch, or
// moves it to a higher one.
func (h *hub) promote(epoch uint64) {
	h.mu.Lock()
	h.epoch.Store(epoch)
	h.master = true
	list := make([]*session.Session, 0, len(h.standby))
	for s := range h.standby {
		if h.isMasterOf(s.DPID) {
			list = append(list, s)
		}
	}
	h.mu.Unlock()
	for _, s := range list {
		if err := s.Role.Claim(epoch); err != nil {
			s.End(err.Error())
		}
	}
}

// allMembers returns the sessions that are up and the standby sessions.
func (h *hub) allMembers() []*member {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*member, 0, len(h.claimed))
	for sw, m := range h.claimed {
		if h.Session(sw) == m.Session || h.standby[m.Session] {
			list = append(list, m)
		}
	}
	return list
}

// countStandby returns the number of standby sessions.
func (h *hub) countStandby() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.standby)
}

// announceMissed announces the switches that missed messages while the mastership was
// in doubt, as if their sessions began anew, so that their state is checked
// again: an event for an unchanged session would have no effect.
func (h *hub) announceMissed() {
	for _, s := range h.Up.All() {
		if s.MissedMessages() {
			h.AnnounceRestored(s)
		}
	}
}

// AnnounceRestored announces a switch that may have refused or missed messages, as if
// its session began anew.
func (h *hub) AnnounceRestored(s *session.Session) {
	s.Renew(time.Now())
	h.SwitchChanged(newSwitchChanged(s))
}
