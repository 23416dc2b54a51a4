package southbound

import (
	"time"

	"github.com/weft-sdn/weft/openflow"
)

// Mandate reports whether this process is master of a switch. epoch is the
// epoch of its mastership, or the highest epoch that it knows.
func (h *hub) Mandate(sw dpid) (epoch uint64, master bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch.Load(), h.takes(sw)
}

// Surpassed handles a generation of a switch that is higher than ours.
func (h *hub) Surpassed(generation uint64) bool { return h.onSurpassed(generation) }

// Enlist adds a session whose handshake is over.
func (h *hub) Enlist(s *session) error {
	h.mu.Lock()
	if s.mastered || s.version == openflow.V10 && h.takes(s.dpid) {
		h.mu.Unlock()
		s.activate()
		return nil
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
func (h *hub) all() []*member {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*member, 0, len(h.claimed))
	for sw, m := range h.claimed {
		if h.session(sw) == m.session || h.standing[m.session] {
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
	for _, s := range h.up.all() {
		if s.missedMessages() {
			s.renew(time.Now())
			h.switchChanged(newSwitchChanged(s))
		}
	}
}
