package southbound

import (
	"github.com/weft-sdn/weft/openflow"
)

// said is the messages that a switch sends on its own while it is at its
// handshake, in order. Those about ports are dealt with behind its description,
// the others when the session is up.
type said struct {
	messages []byte
	kept     buffer
}

// Bounds of what is kept of one switch, in octets. Packet-ins beyond theirs are
// shed, and counted; whoever exceeds the other is disconnected.
const (
	saidMost      = 4 << 20
	saidPacketIns = 1 << 20
)

// keep keeps a message; others than those that a switch sends on its own it
// leaves out. An error ends the session.
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

// each calls f for the messages that are kept.
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

// hearPorts brings the ports of the description up to date with what was said of
// them meanwhile.
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

// hear deals with the rest of what was said; on the reading goroutine of a session
// that is up.
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
		if err := s.message(msg); err != nil || len(ws.scratch) < flushAt {
			return err
		}
		return s.flush()
	})
	s.said.messages = nil
	_ = s.said.kept.resize(0) // less is never refused
	if err != nil {
		return err
	}
	return s.flush()
}
