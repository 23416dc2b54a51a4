package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// Ether is the addressing of a frame to be built.
type Ether struct {
	Dst, Src flow.MAC
	VLAN     uint16 // flow.VLANPresent | VLAN identifier, as in flow.Key; 0 is untagged
	PCP      uint8  // priority in the tag, 0 to 7
}

// MinFrame is the length of the shortest Ethernet frame without its check
// sequence (IEEE 802.3); Pad brings frames to it.
const MinFrame = 60

// AppendEthernet appends an Ethernet header, with a tag of IEEE 802.1Q where
// e.VLAN asks for one.
func AppendEthernet(b []byte, e Ether, ethType uint16) []byte {
	b = append(b, e.Dst[:]...)
	b = append(b, e.Src[:]...)
	if e.VLAN&flow.VLANPresent != 0 {
		b = binary.BigEndian.AppendUint16(b, flow.EthTypeVLAN)
		b = binary.BigEndian.AppendUint16(b, uint16(e.PCP&7)<<13|e.VLAN&0xfff)
	}
	return binary.BigEndian.AppendUint16(b, ethType)
}

// Pad appends zeros to a frame that is shorter than MinFrame.
func Pad(frame []byte) []byte {
	var zeros [MinFrame]byte
	if n := len(frame); n < MinFrame {
		frame = append(frame, zeros[n:]...)
	}
	return frame
}

// Payload returns what an Ethernet frame carries behind its VLAN tags, and the
// type of that; false if the frame is too short. Padding is part of it.
func Payload(frame []byte) (ethType uint16, payload []byte, ok bool) {
	var l layers
	if !locate(frame, &l) || l.l3 == 0 {
		return l.ethType, nil, false
	}
	return l.ethType, frame[l.l3:], true
}

// Tag is one VLAN tag: its tag protocol identifier (0x8100 or 0x88a8), VLAN
// identifier, priority and drop-eligible bit.
type Tag struct {
	TPID uint16
	VID  uint16
	PCP  uint8
	DEI  bool
}

// Tags appends the VLAN tags of a frame to list, the outer one first.
func Tags(list []Tag, frame []byte) []Tag {
	for at := 12; len(frame) >= at+vlanLen+2; at += vlanLen {
		tpid := be16(frame[at:])
		if tpid != flow.EthTypeVLAN && tpid != flow.EthTypeQinQ {
			break
		}
		tci := be16(frame[at+2:])
		list = append(list, Tag{tpid, tci & 0xfff, uint8(tci >> 13), tci&0x1000 != 0})
	}
	return list
}
