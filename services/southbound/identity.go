package southbound

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/openflow"
)

// An identity belongs to the first connection that finishes its handshake with
// it. A connection that stalls therefore holds none, however many do. While
// that connection lasts, others with the same identity are refused.

// doubt is how long a switch may take to answer an echo while another
// connection claims its identity.
const doubt = 2 * time.Second

// vacant returns an error if another connection has the identity of a session.
// It claims nothing: another may have it when the handshake is over.
func (h *hub) vacant(s *session) error { return h.unlessTaken(s, func() {}) }

// claim gives a session whose handshake is over its identity. It ends the other
// sessions with this identity that are still in their handshake.
func (h *hub) claim(s *session) error {
	var others []*session
	err := h.unlessTaken(s, func() {
		h.claimed[s.dpid] = s
		for _, o := range h.conns {
			if o != s && o.identified && o.dpid == s.dpid && !o.ending.Load() {
				others = append(others, o)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, o := range others {
		h.duplicate(o)
		o.end(inUse(s).Error())
	}
	if len(others) > 0 {
		s.confirmRole()
	}
	return nil
}

// unlessTaken runs take, with the lock held, if no other connection has the
// identity of a session. It waits for one that is closing. A connection that
// has the identity gets an echo request at once, so that a switch that lost its
// connection unnoticed is not kept out for long.
func (h *hub) unlessTaken(s *session, take func()) error {
	h.mu.Lock()
	first := h.claimed[s.dpid]
	for first != nil && first.ending.Load() {
		h.mu.Unlock()
		select {
		case <-first.over:
		case <-time.After(h.cfg.Load().HandshakeTimeout):
			return fmt.Errorf("datapath id %v: the connection that had it does not end", s.dpid)
		}
		h.mu.Lock()
		first = h.claimed[s.dpid]
	}
	if first == nil {
		s.identified = true
		take()
		h.mu.Unlock()
		return nil
	}
	h.mu.Unlock()
	h.duplicate(s)
	first.doubted.Store(true)
	if first.asked.Load() == 0 {
		first.askEcho(time.Now())
	}
	return inUse(first)
}

// duplicate counts a session that is refused because another has its identity.
func (h *hub) duplicate(s *session) {
	if s.counted.Swap(true) {
		return
	}
	h.mu.Lock()
	h.record(s.dpid).duplicates++
	h.mu.Unlock()
	h.total.refused.duplicate.Add(1)
}

func inUse(first *session) error {
	return fmt.Errorf("datapath id %v is in use by %v: a second connection with it is refused; give every bridge its own other-config:datapath-id", first.dpid, first.conn.RemoteAddr())
}

// confirmRole asks a switch again for the role of master: a second connection
// of the same switch may have got the role meanwhile, so that this one lost it
// (OpenFlow 1.3.5 §6.3.6).
func (s *session) confirmRole() {
	epoch, master := s.hub.mandate(s.dpid)
	if s.role != openflow.RoleMaster || !master {
		return
	}
	if msg, err := s.version.AppendRoleRequest(nil, s.xid.Add(1), openflow.RoleMaster, epoch); err == nil {
		_ = s.out.put(msg)
	}
}
