package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// LLDPNearestBridge is the group address that no bridge forwards
// (IEEE 802.1AB §7.1).
var LLDPNearestBridge = flow.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}

// The types of LLDP's TLVs (IEEE 802.1AB §8.4).
const (
	TLVEnd          uint8 = 0
	TLVChassisID    uint8 = 1
	TLVPortID       uint8 = 2
	TLVTTL          uint8 = 3
	TLVPortDesc     uint8 = 4
	TLVSystemName   uint8 = 5
	TLVSystemDesc   uint8 = 6
	TLVOrganization uint8 = 127
)

// Subtypes of chassis and port identifiers (IEEE 802.1AB §8.5.2.2, §8.5.3.2).
const (
	ChassisMAC   uint8 = 4
	ChassisLocal uint8 = 7
	PortMAC      uint8 = 3
	PortLocal    uint8 = 7
)

// maxTLV is the longest value of a TLV in octets: its length has 9 bits.
const maxTLV = 511

// LLDP is a view of an LLDP data unit (IEEE 802.1AB): TLVs that are whole, the
// first three being chassis id, port id and time to live.
type LLDP []byte

// ParseLLDP returns the LLDP data unit in a frame, false if there is none or
// IEEE 802.1AB §9.2.7.7 has it dropped: the three mandatory TLVs are not there
// in order and once, a TLV is cut off, or the end TLV is not empty. A missing
// end TLV is let pass, as most implementations do.
func ParseLLDP(frame []byte) (LLDP, bool) {
	var l layers
	if !locate(frame, &l) || l.ethType != flow.EthTypeLLDP || l.l3 == 0 {
		return nil, false
	}
	return lldpAt(frame[l.l3:])
}

func lldpAt(unit []byte) (LLDP, bool) {
	n := 0
	for b := unit; len(b) > 0; n++ {
		if len(b) < 2 {
			return nil, false
		}
		kind, size := b[0]>>1, int(be16(b)&0x1ff)
		if len(b) < 2+size {
			return nil, false
		}
		switch kind {
		case TLVEnd:
			if size != 0 || n < 3 {
				return nil, false
			}
			return LLDP(unit[:len(unit)-len(b)]), true
		case TLVChassisID, TLVPortID:
			if n != int(kind)-1 || size < 2 || size > 256 {
				return nil, false
			}
		case TLVTTL:
			if n != 2 || size < 2 {
				return nil, false
			}
		case TLVOrganization:
			if size < 4 {
				return nil, false
			}
		}
		if n < 3 && kind != uint8(n)+1 {
			return nil, false
		}
		b = b[2+size:]
	}
	return LLDP(unit), n >= 3
}

// next returns the first TLV of b and what follows; kind is TLVEnd at the end.
func next(b []byte) (kind uint8, value, rest []byte) {
	if len(b) < 2 {
		return TLVEnd, nil, nil
	}
	size := min(int(be16(b)&0x1ff), len(b)-2)
	return b[0] >> 1, b[2 : 2+size], b[2+size:]
}

// Find returns the value of the first TLV of a type, false if there is none.
func (u LLDP) Find(kind uint8) ([]byte, bool) {
	for b := []byte(u); len(b) > 0; {
		var k uint8
		var v []byte
		if k, v, b = next(b); k == kind {
			return v, true
		}
	}
	return nil, false
}

// All calls yield with each TLV until yield returns false.
func (u LLDP) All(yield func(kind uint8, value []byte) bool) {
	for b := []byte(u); len(b) > 0; {
		var k uint8
		var v []byte
		if k, v, b = next(b); !yield(k, v) {
			return
		}
	}
}

// ChassisID returns subtype and value of the chassis identifier.
func (u LLDP) ChassisID() (subtype uint8, id []byte) {
	_, v, _ := next(u)
	return v[0], v[1:]
}

// PortID returns subtype and value of the port identifier.
func (u LLDP) PortID() (subtype uint8, id []byte) {
	_, _, rest := next(u)
	_, v, _ := next(rest)
	return v[0], v[1:]
}

// TTL returns for how many seconds the information is valid.
func (u LLDP) TTL() uint16 {
	_, _, rest := next(u)
	_, _, rest = next(rest)
	_, v, _ := next(rest)
	return be16(v)
}

// Organization returns the value of the first organisation-specific TLV with
// this identifier and subtype, false if there is none. Its offset from the
// start of the view is what a signature may cover.
func (u LLDP) Organization(oui [3]byte, subtype uint8) ([]byte, bool) {
	for b := []byte(u); len(b) > 0; {
		var k uint8
		var v []byte
		if k, v, b = next(b); k == TLVOrganization && [3]byte(v[0:3]) == oui && v[3] == subtype {
			return v[4:], true
		}
	}
	return nil, false
}

// LLDPFields is an LLDP data unit to be built.
type LLDPFields struct {
	ChassisSubtype uint8
	ChassisID      []byte // 1 to 255 octets
	PortSubtype    uint8
	PortID         []byte // 1 to 255 octets
	TTL            uint16 // seconds
	SystemName     string // left out if empty
	Organization   []OrgTLV
}

// OrgTLV is an organisation-specific TLV (IEEE 802.1AB §8.6).
type OrgTLV struct {
	OUI     [3]byte
	Subtype uint8
	Value   []byte // up to 507 octets
}

// AppendLLDP appends a frame with an LLDP data unit. Values beyond the length
// that a TLV can have are cut off.
func AppendLLDP(b []byte, e Ether, f LLDPFields) []byte {
	b = AppendEthernet(b, e, flow.EthTypeLLDP)
	b = appendTLV(b, TLVChassisID, []byte{f.ChassisSubtype}, f.ChassisID[:min(len(f.ChassisID), 255)])
	b = appendTLV(b, TLVPortID, []byte{f.PortSubtype}, f.PortID[:min(len(f.PortID), 255)])
	b = append(b, TLVTTL<<1, 2)
	b = binary.BigEndian.AppendUint16(b, f.TTL)
	if f.SystemName != "" {
		b = AppendTLV(b, TLVSystemName, []byte(f.SystemName[:min(len(f.SystemName), 255)]))
	}
	for _, o := range f.Organization {
		b = appendTLV(b, TLVOrganization, []byte{o.OUI[0], o.OUI[1], o.OUI[2], o.Subtype}, o.Value)
	}
	return append(b, 0, 0)
}

// AppendTLV appends one TLV, for data units built piece by piece: end them with
// the octets 0, 0.
func AppendTLV(b []byte, kind uint8, value []byte) []byte {
	return appendTLV(b, kind, nil, value)
}

// appendTLV appends a TLV whose value is in two parts.
func appendTLV(b []byte, kind uint8, head, value []byte) []byte {
	value = value[:min(len(value), maxTLV-len(head))]
	b = binary.BigEndian.AppendUint16(b, uint16(kind)<<9|uint16(len(head)+len(value)))
	b = append(b, head...)
	return append(b, value...)
}
