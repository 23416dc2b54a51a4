package session

import (
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// asyncMessages holds the messages that a switch sends on its own during its handshake,
// in order. Those about ports are handled after its description, the others
// when the session is up.
type asyncMessages struct {
	messages []byte
	kept     admission.Buffer
}

// Bounds on what is kept of one switch, in bytes. Packet-ins beyond theirs are
// shed and counted; a switch that exceeds the other is disconnected.
const (
	AsyncMost      = 4 << 20
	asyncPacketIns = 1 << 20
)

// keepAsync keeps a message if it is one that a switch sends on its own. An error
// ends the session.
func (hs *handshake) keepAsync(t openflow.Type, msg []byte) error {
	k := &hs.async
	switch t {
	case openflow.TypePacketIn:
		if len(k.messages)+len(msg) > asyncPacketIns {
			hs.count.packetIns.Add(1)
			hs.shared.total.unheard.Add(1)
			return nil
		}
	case openflow.TypePortStatus, openflow.TypeFlowRemoved, openflow.TypeError:
		if len(k.messages)+len(msg) > AsyncMost {
			return admission.NewExcess(admission.BoundEvents, AsyncMost)
		}
	default:
		return nil
	}
	if err := k.kept.Resize(len(k.messages) + len(msg)); err != nil {
		return err
	}
	k.messages = append(k.messages, msg...)
	return nil
}

// each calls f for each message kept.
func (k *asyncMessages) each(f func(t openflow.Type, msg []byte) error) error {
	for rest := k.messages; ; {
		msg, more, err := openflow.Next(rest)
		if msg == nil || err != nil {
			return err
		}
		rest = more
		h, err := openflow.ParseHeader(msg)
		if err == nil {
			err = f(h.Type, msg)
		}
		if err != nil {
			return err
		}
	}
}

// handleAsyncPorts updates the ports with the port-status messages that arrived
// meanwhile.
func (hs *handshake) handleAsyncPorts() error {
	return hs.async.each(func(t openflow.Type, msg []byte) error {
		if t != openflow.TypePortStatus {
			return nil
		}
		reason, desc, err := hs.Version.DecodePortStatus(msg)
		if err != nil {
			return err
		}
		return hs.ports.record(reason, &desc)
	})
}

// handleAsync handles the rest of the messages kept, on the reading goroutine of a
// session that is up.
func (s *Session) handleAsync(now int64) error {
	if len(s.handshake.async.messages) == 0 {
		return nil
	}
	if s.in.ws == nil {
		s.in.acquire()
	}
	ws := s.in.ws
	ws.packet.Switch, ws.packet.Time = s.DPID, now
	err := s.handshake.async.each(func(t openflow.Type, msg []byte) error {
		if t == openflow.TypePortStatus {
			return nil
		}
		read, _ := survey(msg, s.Version)
		s.progress.Read(read)
		if err := s.message(msg); err != nil || len(ws.own) < flushAt {
			return err
		}
		return s.flush()
	})
	s.handshake.async.messages = nil
	_ = s.handshake.async.kept.Resize(0) // shrinking never fails
	if err != nil {
		return err
	}
	return s.flush()
}
