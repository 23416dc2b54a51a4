package southbound

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// An identity belongs to the first connection that finishes its handshake with
// it. A connection that stalls therefore holds none, however many do. While
// that connection lasts, others with the same identity are refused.

// Identify gives a session its switch, unless it belongs to another partition
// or another connection has it. It claims nothing: another may have it when the
// handshake is over.
func (h *hub) Identify(s *session.Session, sw flow.DPID) error {
	if err := h.mine.Load().Admits(sw); err != nil && !h.cfg.Load().HoldOthers {
		s.Refuse(session.RefusedElsewhere)
		return err
	}
	s.DPID = sw
	return h.claimIdentity(s, func(*member) {})
}

// Claim gives a session whose handshake is over its identity. It ends the other
// sessions with this identity that are still in their handshake.
func (h *hub) Claim(s *session.Session) error {
	var others []*session.Session
	err := h.claimIdentity(s, func(m *member) {
		h.claimed[s.DPID] = m
		h.record(s.DPID) // counts the others
		for _, o := range h.members {
			if o != m && o.identified && o.DPID == s.DPID && !o.Ending() {
				others = append(others, o.Session)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, o := range others {
		h.countDuplicate(o)
		o.End(inUse(s).Error())
	}
	if len(others) > 0 {
		s.Role.Confirm()
	}
	return nil
}

// claimIdentity runs take, with the lock held, if no other connection has the
// identity of a session. It waits for one that is closing. A connection that
// has the identity gets an echo request at once, so that a switch that lost its
// connection unnoticed is not kept out for long.
func (h *hub) claimIdentity(s *session.Session, take func(*member)) error {
	h.mu.Lock()
	first := h.claimed[s.DPID]
	for first != nil && first.Ending() {
		h.mu.Unlock()
		select {
		case <-first.over:
		case <-time.After(h.cfg.Load().HandshakeTimeout):
			return fmt.Errorf("datapath id %v: the connection that had it does not end", s.DPID)
		}
		h.mu.Lock()
		first = h.claimed[s.DPID]
	}
	if first == nil {
		if m := h.members[s]; m != nil { // it has not given way
			m.identified = true
			take(m)
		}
		h.mu.Unlock()
		return nil
	}
	h.mu.Unlock()
	h.countDuplicate(s)
	first.Doubt()
	return inUse(first.Session)
}

// countDuplicate counts a session that is refused because another has its identity.
func (h *hub) countDuplicate(s *session.Session) {
	if s.Refuse(session.RefusedDuplicate) {
		h.mu.Lock()
		if r := h.records[s.DPID]; r != nil {
			r.duplicates++
		}
		h.mu.Unlock()
	}
}

func inUse(first *session.Session) error {
	return fmt.Errorf("datapath id %v is in use by %v: a second connection with it is refused; give every bridge its own other-config:datapath-id", first.DPID, first.Conn.RemoteAddr())
}
