package flow

import "encoding/binary"

// niciraMove is the number of the action (NXAST_REG_MOVE).
const niciraMove = 6

// The fields of addresses and of metadata as OpenFlow's extensible match names them, with
// the length of their values (OXM_OF_ETH_DST, OXM_OF_ETH_SRC and OXM_OF_METADATA), and the
// whole control information of the outer tag as Open vSwitch does (NXM_OF_VLAN_TCI).
const (
	nxmVLANTCI  uint32 = 0x00000802
	oxmMetadata uint32 = 0x80000408
	oxmEthDst   uint32 = 0x80000606
	oxmEthSrc   uint32 = 0x80000806
)

// move returns Open vSwitch's action move (ovs-actions(7)) of the first bits of a field.
func move(bits uint8, from, to uint32) Action {
	b := binary.BigEndian.AppendUint16(nil, niciraMove)
	b = append(b, 0, bits, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, from)
	return nicira(binary.BigEndian.AppendUint32(b, to))
}

// SwapMACs returns the actions of Open vSwitch that exchange a frame's source and destination
// addresses. They leave one of them in the metadata.
func SwapMACs() []Action {
	return []Action{move(48, oxmEthSrc, oxmMetadata), move(48, oxmEthDst, oxmEthSrc), move(48, oxmMetadata, oxmEthDst)}
}

// SaveTag and RestoreTag are the actions of Open vSwitch that write VLAN and priority of the
// outer tag to the metadata, and back.
func SaveTag() Action    { return move(16, nxmVLANTCI, oxmMetadata) }
func RestoreTag() Action { return move(16, oxmMetadata, nxmVLANTCI) }
