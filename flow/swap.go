package flow

import "encoding/binary"

// niciraMove is the number of the action (NXAST_REG_MOVE).
const niciraMove = 6

// The fields of addresses and of metadata as OpenFlow's extensible match names them, with
// the length of their values (OXM_OF_ETH_DST, OXM_OF_ETH_SRC and OXM_OF_METADATA).
const (
	oxmMetadata uint32 = 0x80000408
	oxmEthDst   uint32 = 0x80000606
	oxmEthSrc   uint32 = 0x80000806
)

// moveMAC returns Open vSwitch's action move (ovs-actions(7)) of the first 48 bits of a field.
func moveMAC(from, to uint32) Action {
	b := binary.BigEndian.AppendUint16(nil, niciraMove)
	b = append(b, 0, 48, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, from)
	return nicira(binary.BigEndian.AppendUint32(b, to))
}

// SwapMACs returns the actions of Open vSwitch that exchange a frame's source and destination
// addresses. They leave one of them in the metadata.
func SwapMACs() []Action {
	return []Action{moveMAC(oxmEthSrc, oxmMetadata), moveMAC(oxmEthDst, oxmEthSrc), moveMAC(oxmMetadata, oxmEthDst)}
}
