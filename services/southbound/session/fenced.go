package session

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/weft-sdn/weft/openflow"
)

// errFenced is the error for a message that would program a switch: this
// process is not master, or cannot be sure of it at that moment.
var errFenced = errors.New("this process is not master of the switch now; who is can do it")

// errHalf is why a connection ends if the switch was sent only part of a block
// when the mastership ended: the rest can neither be sent nor left out.
var errHalf = errors.New("the mastership ended with a message half sent")

// allowedForSlave reports whether a process that is not master may send a message: it
// asks, answers, or sets up the connection itself, and changes nothing else in
// the switch.
func allowedForSlave(msg []byte) bool {
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		return false
	}
	switch h.Type {
	case openflow.TypeHello, openflow.TypeError, openflow.TypeEchoRequest, openflow.TypeEchoReply, openflow.TypeFeaturesRequest,
		openflow.TypeGetConfigRequest, openflow.TypeSetConfig, openflow.TypeBarrierRequest, openflow.TypeQueueGetConfigRequest,
		openflow.TypeRoleRequest, openflow.TypeGetAsyncRequest, openflow.TypeSetAsync:
		return true
	case openflow.TypeMultipartRequest: // table features with a body set them (OpenFlow 1.3.5 §7.3.5.5)
		const head, tableFeatures = openflow.HeaderLen + 8, 12
		return len(msg) < head || binary.BigEndian.Uint16(msg[openflow.HeaderLen:]) != tableFeatures || h.Version == openflow.V10 ||
			int(binary.BigEndian.Uint16(msg[2:])) == head
	case openflow.TypeExperimenter: // Nicira: role, formats, messages for this connection, its number
		const head, nicira = openflow.HeaderLen + 8, 0x2320
		return len(msg) >= head && binary.BigEndian.Uint32(msg[openflow.HeaderLen:]) == nicira &&
			slices.Contains([]uint32{10, 12, 16, 19, 20, 27}, binary.BigEndian.Uint32(msg[openflow.HeaderLen+4:]))
	}
	return false
}

// pass returns those of the whole messages in b that may be sent now: all of
// them while the fence is open. Its caller writes them right afterwards.
func (o *outbox) pass(b []byte) []byte {
	if o.fence.Open() {
		return b
	}
	kept := make([]byte, 0, len(b))
	eachMessage(b, func(msg []byte, harmless bool) {
		if harmless {
			kept = append(kept, msg...)
		} else {
			o.missed.Store(true)
		}
	})
	return kept
}

// eachMessage calls f for each of the messages in b.
func eachMessage(b []byte, f func(msg []byte, harmless bool)) {
	for rest := b; len(rest) > 0; {
		n := len(rest)
		if n >= openflow.HeaderLen {
			n = min(n, max(openflow.HeaderLen, int(binary.BigEndian.Uint16(rest[2:]))))
		}
		f(rest[:n], n >= openflow.HeaderLen && allowedForSlave(rest))
		rest = rest[n:]
	}
}

// programming counts the messages in b that program the switch, and the packet-outs
// among them.
func programming(b []byte) (messages, packetOuts uint64) {
	eachMessage(b, func(msg []byte, harmless bool) {
		if harmless {
			return
		}
		messages++
		if h, err := openflow.ParseHeader(msg); err == nil && h.Type == openflow.TypePacketOut {
			packetOuts++
		}
	})
	return messages, packetOuts
}
