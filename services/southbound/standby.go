package southbound

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// Mandate reports whether this process is master of a switch. epoch is the
// epoch of its mastership, or the highest epoch that it knows.
func (h *hub) Mandate(sw flow.DPID) (epoch uint64, master bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch.Load(), h.takes(sw)
}

// Surpassed handles a generation of a switch that is higher than ours.
func (h *hub) Surpassed(generation uint64) bool { return h.onSurpassed(generation) }

// Enlist adds a session whose handshake is over.
func (h *hub) Enlist(s *session.Session) error {
	h.mu.Lock()
	if s.Mastered || s.Version == openflow.V10 && h.takes(s.DPID) {
		h.mu.Unlock()
		s.Activate()
		return nil
	}
	h.standing[s] = true
	claim, epoch, guest := h.takes(s.DPID), h.epoch.Load(), !h.owns(s.DPID)
	h.mu.Unlock()
	h.Log.Info("switch standing by", "dpid", s.DPID, "peer", s.Conn.RemoteAddr(), "version", s.Version, "of_another_partition", guest)
	if claim { // this process became master during the handshake
		return s.AskMaster(epoch)
	}
	return nil
}

// promote makes this process master of all its switches under an epoch, or
// moves it to a higher one.
func (h *hub) promote(epoch uint64) {
	h.mu.Lock()
	h.epoch.Store(epoch)
	h.master = true
	list := make([]*session.Session, 0, len(h.standing))
	for s := range h.standing {
		if h.takes(s.DPID) {
			list = append(list, s)
		}
	}
	h.mu.Unlock()
	for _, s := range list {
		if err := s.AskMaster(epoch); err != nil {
			s.End(err.Error())
		}
	}
}

// all returns the sessions that are up and those that stand by.
func (h *hub) all() []*member {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*member, 0, len(h.claimed))
	for sw, m := range h.claimed {
		if h.Session(sw) == m.Session || h.standing[m.Session] {
			list = append(list, m)
		}
	}
	return list
}

// held returns how many sessions stand by.
func (h *hub) held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.standing)
}

// resume announces the switches that missed messages while the mastership was
// in doubt, as if their sessions began anew, so that their state is checked
// again: an event for an unchanged session would have no effect.
func (h *hub) resume() {
	for _, s := range h.Up.All() {
		if s.MissedMessages() {
			h.Restored(s)
		}
	}
}

// Restored announces a switch that may have refused or missed messages, as if
// its session began anew.
func (h *hub) Restored(s *session.Session) {
	s.Renew(time.Now())
	h.SwitchChanged(newSwitchChanged(s))
}
