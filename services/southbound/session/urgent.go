package session

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// aheadFrom is how many bytes must have been read before ahead scans them for
// urgent messages: a dozen packet-ins, which take longer than the scan.
const aheadFrom = 1 << 10

// survey counts the packet-ins among whole messages, and reports whether there
// may be others, or probes.
func survey(b []byte, v openflow.Version) (packetIns int64, urgent bool) {
	probe := probeAt(v)
	for len(b) >= openflow.HeaderLen {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < openflow.HeaderLen || n > len(b) {
			break // incomplete, or malformed, which is found in its turn
		}
		if b[1] != byte(openflow.TypePacketIn) {
			urgent = true
		} else {
			packetIns++
			urgent = urgent || probe.isProbe(b[:n])
		}
		b = b[n:]
	}
	return packetIns, urgent
}

// handleUrgent handles the real-time messages among those that were read, before
// packet-ins that came earlier: echoes, port status, answers about roles, and
// probes. These messages keep their order among themselves. OpenFlow promises
// no order except by barriers (1.3.5 §6.2); barrier replies and errors stay
// where they are. A handled message becomes a hello, which means nothing.
func (s *Session) handleUrgent() error {
	buf := s.in.waiting()
	if len(buf) < aheadFrom {
		return nil
	}
	probe := probeAt(s.Version)
	for len(buf) >= openflow.HeaderLen {
		n := int(binary.BigEndian.Uint16(buf[2:]))
		if n < openflow.HeaderLen || n > len(buf) {
			break // a malformed message is found in its turn
		}
		msg := buf[:n:n]
		buf = buf[n:]
		if msg[0] != byte(s.Version) {
			break
		}
		if msg[1] == byte(openflow.TypePacketIn) {
			if !probe.isProbe(msg) {
				continue
			}
		} else if h, err := openflow.ParseHeader(msg); err != nil || !isUrgent(h.Type) {
			continue
		}
		if err := s.message(msg); err != nil {
			return err
		}
		msg[1] = byte(openflow.TypeHello)
	}
	return s.flushUrgent()
}

// isUrgent reports whether messages of a type are handled before packet-ins.
func isUrgent(t openflow.Type) bool {
	switch t {
	case openflow.TypeEchoRequest, openflow.TypeEchoReply, openflow.TypePortStatus, openflow.TypeRoleReply:
		return true
	}
	return false
}

// probes recognises packet-ins with LLDP by their bytes: frame is where the
// frame begins, match where a match of variable length begins before it (0:
// none).
type probes struct{ frame, match int }

// probeAt returns what probes look like in a version.
func probeAt(v openflow.Version) probes {
	if v == openflow.V10 {
		return probes{frame: 18} // OpenFlow 1.0.1 §5.4.1
	}
	return probes{frame: 26, match: 24} // OpenFlow 1.3.5 §7.4.1: 24 octets, the match, 2 of padding
}

// isProbe reports whether a packet-in holds an untagged LLDP frame.
func (p probes) isProbe(msg []byte) bool {
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
func (s *Session) flushUrgent() error {
	ws := s.in.ws
	if len(ws.urgent) == 0 {
		return nil
	}
	err := s.out.putFirst(ws.urgent)
	if err == errQueueFull { // of answers: then the switch waits for them in order
		ws.own = append(ws.own, ws.urgent...)
		err = nil
	}
	ws.urgent = ws.urgent[:0]
	return err
}
