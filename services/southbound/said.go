package southbound

import (
	"github.com/weft-sdn/weft/openflow"
)

// said holds the messages that a switch sends on its own during its handshake,
// in order. Those about ports are handled after its description, the others
// when the session is up.
type said struct {
	messages []byte
	kept     buffer
}

// Bounds on what is kept of one switch, in bytes. Packet-ins beyond theirs are
// shed and counted; a switch that exceeds the other is disconnected.
const (
	saidMost      = 4 << 20
	saidPacketIns = 1 << 20
)

// keep keeps a message if it is one that a switch sends on its own. An error
// ends the session.
func (s *session) keep(t openflow.Type, msg []byte) error {
	k := &s.said
	switch t {
	case openflow.TypePacketIn:
		if len(k.messages)+len(msg) > saidPacketIns {
			s.count.packetIns.Add(1)
			s.hub.total.unheard.Add(1)
			return nil
		}
	case openflow.TypePortStatus, openflow.TypeFlowRemoved, openflow.TypeError:
		if len(k.messages)+len(msg) > saidMost {
			return &excess{boundEvents, saidMost}
		}
	default:
		return nil
	}
	if err := k.kept.resize(len(k.messages) + len(msg)); err != nil {
		return err
	}
	k.messages = append(k.messages, msg...)
	return nil
}

// each calls f for each message kept.
func (k *said) each(f func(t openflow.Type, msg []byte) error) error {
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

// hearPorts updates the ports with the port-status messages that arrived
// meanwhile.
func (s *session) hearPorts() error {
	return s.said.each(func(t openflow.Type, msg []byte) error {
		if t != openflow.TypePortStatus {
			return nil
		}
		reason, desc, err := s.version.DecodePortStatus(msg)
		if err != nil {
			return err
		}
		return s.portStatus(reason, &desc)
	})
}

// hear handles the rest of the messages kept, on the reading goroutine of a
// session that is up.
func (s *session) hear(now int64) error {
	if len(s.said.messages) == 0 {
		return nil
	}
	if s.in.ws == nil {
		s.in.acquire()
	}
	ws := s.in.ws
	ws.packet.Switch, ws.packet.Time = s.dpid, now
	err := s.said.each(func(t openflow.Type, msg []byte) error {
		if t == openflow.TypePortStatus {
			return nil
		}
		s.progress.read(packetIns(msg))
		if err := s.message(msg); err != nil || len(ws.own) < flushAt {
			return err
		}
		return s.flush()
	})
	s.said.messages = nil
	_ = s.said.kept.resize(0) // shrinking never fails
	if err != nil {
		return err
	}
	return s.flush()
}
