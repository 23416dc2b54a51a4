package sim

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// frameLen is the length of the frames of a load, without check sequence.
const frameLen = 64

// Offsets in a frame of a load: IPv4 header checksum and addresses, and, in
// the UDP payload or behind the ARP packet, the packet's identity and mark, and
// the index of the switch that sent it.
const (
	frameSum   = 24
	frameIPs   = 26
	frameID    = 42
	frameMark  = 46
	frameOwner = 54
)

// mark tells frames of a load from others: "WEFTsim1".
const mark = 0x574546547369_6d31

// layout is where the fields that vary are in the packet-ins of one version.
type layout struct {
	version  openflow.Version
	size     int // of a packet-in
	bufferID int
	inPort   int // of its last two octets; a higher port number is not used
	frame    int
}

// newLayout returns the layout of v and a packet-in of it with all that does
// not vary filled in but the frame.
func newLayout(v openflow.Version, cookie flow.Cookie) (layout, []byte) {
	be := binary.BigEndian
	if v == openflow.V10 { // OpenFlow 1.0.1 §5.4.1
		l := layout{version: v, size: 18 + frameLen, bufferID: 8, inPort: 14, frame: 18}
		b := make([]byte, l.size)
		b[0], b[1] = byte(v), byte(openflow.TypePacketIn)
		be.PutUint16(b[2:], uint16(l.size))
		be.PutUint16(b[12:], frameLen)
		return l, b
	}
	l := layout{version: v, size: 42 + frameLen, bufferID: 8, inPort: 34, frame: 42} // OpenFlow 1.3.5 §7.4.1
	b := make([]byte, l.size)
	b[0], b[1] = byte(v), byte(openflow.TypePacketIn)
	be.PutUint16(b[2:], uint16(l.size))
	be.PutUint16(b[12:], frameLen)
	be.PutUint64(b[16:], uint64(cookie))
	be.PutUint16(b[24:], 1) // OXM match
	be.PutUint16(b[26:], 12)
	be.PutUint32(b[28:], 0x80000004) // in_port, 4 octets
	return l, b
}

// answer is what layout.answer finds in a message.
type answer struct {
	id    uint32    // as the controller sent it
	out   flow.Port // where the packet goes: a port, PortFlood, or 0 for nowhere
	owner int       // byFrame: index of the switch whose packet it is
	kind  answerKind
}

type answerKind uint8

const (
	notAnAnswer  answerKind = iota
	byBuffer                // names the packet by its buffer_id
	byFrame                 // brings the frame back
	nameless                // a flow-mod that adds or modifies an entry for no packet
	brokenAnswer            // does not hold together; the codec will say how
)

// answer reads a flow-mod or packet-out as the answer to a packet. msg is one
// whole message of this version.
func (l *layout) answer(msg []byte) answer {
	switch openflow.Type(msg[1]) {
	case openflow.TypeFlowMod:
		if l.version == openflow.V10 {
			return flowMod10(msg)
		}
		return flowMod13(msg)
	case openflow.TypePacketOut:
		if l.version == openflow.V10 {
			return packetOut(msg, 14, 16, actions10)
		}
		return packetOut(msg, 16, 24, actions13)
	}
	return answer{}
}

// flowMod10 reads OpenFlow 1.0.1 §5.3.3.
func flowMod10(msg []byte) answer {
	if len(msg) < 72 {
		return answer{kind: brokenAnswer}
	}
	id := binary.BigEndian.Uint32(msg[64:])
	switch {
	case msg[57] > byte(flow.ModifyStrict):
		return answer{}
	case id == flow.BufferNone:
		return answer{kind: nameless}
	}
	return answer{id: id, out: actions10(msg[72:]), kind: byBuffer}
}

// flowMod13 reads OpenFlow 1.3.5 §7.3.4.1.
func flowMod13(msg []byte) answer {
	if len(msg) < 56 {
		return answer{kind: brokenAnswer}
	}
	id := binary.BigEndian.Uint32(msg[32:])
	switch {
	case msg[25] > byte(flow.ModifyStrict):
		return answer{}
	case id == flow.BufferNone:
		return answer{kind: nameless}
	}
	at := 48 + (int(binary.BigEndian.Uint16(msg[50:]))+7)&^7
	a := answer{id: id, kind: byBuffer}
	for at+8 <= len(msg) {
		kind, n := binary.BigEndian.Uint16(msg[at:]), int(binary.BigEndian.Uint16(msg[at+2:]))
		if n < 8 || at+n > len(msg) {
			return answer{kind: brokenAnswer}
		}
		if kind == 3 || kind == 4 { // write-actions, apply-actions
			if a.out = actions13(msg[at+8 : at+n]); a.out != 0 {
				break
			}
		}
		at += n
	}
	return a
}

// packetOut reads OpenFlow 1.0.1 §5.3.6 or 1.3.5 §7.3.7; the length of the
// actions is at lenAt and the actions start at head.
func packetOut(msg []byte, lenAt, head int, actions func([]byte) flow.Port) answer {
	if len(msg) < head {
		return answer{kind: brokenAnswer}
	}
	data := head + int(binary.BigEndian.Uint16(msg[lenAt:]))
	if data > len(msg) {
		return answer{kind: brokenAnswer}
	}
	a := answer{id: binary.BigEndian.Uint32(msg[8:]), kind: byBuffer}
	if a.id == flow.BufferNone {
		f := msg[data:]
		if len(f) < frameOwner+4 || binary.BigEndian.Uint64(f[frameMark:]) != mark {
			return answer{}
		}
		a.id, a.owner, a.kind = binary.BigEndian.Uint32(f[frameID:]), int(binary.BigEndian.Uint32(f[frameOwner:])), byFrame
	}
	a.out = actions(msg[head:data])
	return a
}

// actions10 returns the port of the first output of OpenFlow 1.0 actions.
func actions10(b []byte) flow.Port {
	for len(b) >= 8 {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if binary.BigEndian.Uint16(b) == 0 && n == 8 {
			p := flow.Port(binary.BigEndian.Uint16(b[4:]))
			if p > maxPorts {
				p |= 0xffff0000
			}
			return everywhere(p)
		}
		if n < 8 || n > len(b) {
			return 0
		}
		b = b[n:]
	}
	return 0
}

// actions13 returns the port of the first output of OpenFlow 1.3 actions.
func actions13(b []byte) flow.Port {
	for len(b) >= 8 {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if binary.BigEndian.Uint16(b) == 0 && n == 16 && len(b) >= 16 {
			return everywhere(flow.Port(binary.BigEndian.Uint32(b[4:])))
		}
		if n < 8 || n > len(b) {
			return 0
		}
		b = b[n:]
	}
	return 0
}

// everywhere makes one port of those that reach all others.
func everywhere(p flow.Port) flow.Port {
	if p == flow.PortAll || p == flow.PortNormal {
		return flow.PortFlood
	}
	return p
}
