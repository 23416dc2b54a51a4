package southbound

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// aheadFrom is how much has to have been read for it to be looked through for
// what is urgent: a dozen packet-ins, which take longer than that.
const aheadFrom = 1 << 10

// ahead deals with what is real-time in what has been read, before packet-ins
// that came earlier: echoes, port status, answers about roles, and probes. The
// order of such messages among themselves stays. OpenFlow promises no order but by
// barriers (1.3.5 §6.2); their replies, and errors, stay where they are. A message that has been dealt with becomes a hello, which says nothing.
func (s *session) ahead() error {
	buf := s.in.waiting()
	if len(buf) < aheadFrom {
		return nil
	}
	probe := probeAt(s.version)
	for len(buf) >= openflow.HeaderLen {
		n := int(binary.BigEndian.Uint16(buf[2:]))
		if n < openflow.HeaderLen || n > len(buf) {
			break // a message that is broken is found in its turn
		}
		msg := buf[:n:n]
		buf = buf[n:]
		if msg[0] != byte(s.version) {
			break
		}
		if msg[1] == byte(openflow.TypePacketIn) {
			if !probe.is(msg) {
				continue
			}
		} else if h, err := openflow.ParseHeader(msg); err != nil || !urgent(h.Type) {
			continue
		}
		if err := s.message(msg); err != nil {
			return err
		}
		msg[1] = byte(openflow.TypeHello)
	}
	return s.flushUrgent()
}

// urgent reports whether messages of a type are dealt with before packet-ins.
func urgent(t openflow.Type) bool {
	switch t {
	case openflow.TypeEchoRequest, openflow.TypeEchoReply, openflow.TypePortStatus, openflow.TypeRoleReply:
		return true
	}
	return false
}

// probes tells packet-ins with LLDP by their octets: where the frame begins,
// and, in versions with a match of variable length before it, where that is.
type probes struct{ frame, match int }

// probeAt returns how probes look in a version.
func probeAt(v openflow.Version) probes {
	if v == openflow.V10 {
		return probes{frame: 18} // OpenFlow 1.0.1 §5.4.1
	}
	return probes{frame: 26, match: 24} // OpenFlow 1.3.5 §7.4.1: 24 octets, the match, 2 of padding
}

// is reports whether a packet-in holds an untagged LLDP frame.
func (p probes) is(msg []byte) bool {
	at := p.frame + 12
	if p.match > 0 {
		if len(msg) < p.match+4 {
			return false
		}
		at += (int(binary.BigEndian.Uint16(msg[p.match+2:])) + 7) &^ 7
	}
	return len(msg) >= at+2 && binary.BigEndian.Uint16(msg[at:]) == flow.EthTypeLLDP
}

// flushUrgent sends answers to echoes, before what is queued for the switch.
func (s *session) flushUrgent() error {
	ws := s.in.ws
	if len(ws.urgent) == 0 {
		return nil
	}
	err := s.out.putFirst(ws.urgent)
	if err == errQueueFull { // of answers: then the switch waits for them in order
		ws.scratch = append(ws.scratch, ws.urgent...)
		err = nil
	}
	ws.urgent = ws.urgent[:0]
	return err
}
