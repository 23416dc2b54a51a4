package flow

// Field numbers a match field: the OXM field of OpenFlow 1.3.5 §7.2.3.7,
// table 12.
type Field uint8

// The match fields, in the order of their OXM numbers.
const (
	FieldInPort Field = iota
	FieldInPhyPort
	FieldMetadata
	FieldEthDst
	FieldEthSrc
	FieldEthType
	FieldVLAN
	FieldVLANPCP
	FieldIPDSCP
	FieldIPECN
	FieldIPProto
	FieldIPv4Src
	FieldIPv4Dst
	FieldTCPSrc
	FieldTCPDst
	FieldUDPSrc
	FieldUDPDst
	FieldSCTPSrc
	FieldSCTPDst
	FieldICMPv4Type
	FieldICMPv4Code
	FieldARPOp
	FieldARPSPA
	FieldARPTPA
	FieldARPSHA
	FieldARPTHA
	FieldIPv6Src
	FieldIPv6Dst
	FieldIPv6FLabel
	FieldICMPv6Type
	FieldICMPv6Code
	FieldNDTarget
	FieldNDSLL
	FieldNDTLL
	FieldMPLSLabel
	FieldMPLSTC
	FieldMPLSBOS
	FieldPBBISID
	FieldTunnelID
	FieldIPv6ExtHdr
	FieldCTState // Open vSwitch's: conntrack state of a packet, CT* bits
	FieldCTZone  // Open vSwitch's: the zone that it was tracked in
	FieldCTMark  // Open vSwitch's: the mark of its connection
	FieldMPLSTTL // Open vSwitch's: the time to live of the outer label
	FieldIPFrag  // Open vSwitch's: whether the packet is a fragment, Frag* bits
	NumFields
)

// FieldSet is a set of fields, one bit per OXM number.
type FieldSet uint64

// Bit returns the set of f alone.
func (f Field) Bit() FieldSet { return 1 << f }

// Has reports whether f is in the set.
func (s FieldSet) Has(f Field) bool { return s&(1<<f) != 0 }

// VLANPresent is the bit of Key.VLAN that says that a frame carries a VLAN tag
// (OFPVID_PRESENT); a VLAN of zero is a frame without a tag.
const VLANPresent uint16 = 0x1000

// The bits of Key.IPFrag (FLOW_NW_FRAG_* of Open vSwitch): the first fragment of
// a packet has FragAny alone, later ones have both, a whole packet none.
const (
	FragAny   uint8 = 1 << iota // a fragment
	FragLater                   // and not the first: it has no transport header
)

// Key is the header fields of one packet, as a switch extracts them; fields
// that the packet does not have are zero. Values are in host order, addresses
// as on the wire. The transport ports stand for TCP, UDP and SCTP alike, told
// apart by IPProto, and the ICMP fields for both versions.
type Key struct {
	InPort    Port
	InPhyPort Port
	Metadata  uint64
	TunnelID  uint64
	EthDst    MAC
	EthSrc    MAC
	EthType   uint16
	VLAN      uint16 // VLANPresent | VLAN identifier
	TPSrc     uint16
	TPDst     uint16
	ARPOp     uint16
	IPv6Ext   uint16 // OFPIEH_* bits, 9 of them
	VLANPCP   uint8
	IPDSCP    uint8
	IPECN     uint8
	IPProto   uint8
	ICMPType  uint8
	ICMPCode  uint8
	MPLSTC    uint8
	MPLSBOS   uint8
	MPLSLabel uint32
	PBBISID   uint32
	IPv6Label uint32
	IPv4Src   [4]byte
	IPv4Dst   [4]byte
	ARPSPA    [4]byte
	ARPTPA    [4]byte
	ARPSHA    MAC
	ARPTHA    MAC
	IPv6Src   [16]byte
	IPv6Dst   [16]byte
	NDTarget  [16]byte
	NDSLL     MAC
	NDTLL     MAC
	CTState   uint32 // CT* bits; these three are for conditions: a packet-in does not have them
	CTMark    uint32
	CTZone    uint16
	MPLSTTL   uint8
	IPFrag    uint8 // Frag* bits
}

// Match is the condition of a flow entry: for every field in Set the packet's
// value must equal Key's; where the field is also in Masked, only in the bits
// that are one in Mask. Fields outside Set, and masks outside Masked, are zero,
// and Key is zero where Mask is (see Normalize), so that equal conditions are
// equal values and a Match can be the key of a map.
type Match struct {
	Set    FieldSet
	Masked FieldSet
	Key    Key
	Mask   Key
}
