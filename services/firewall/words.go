package firewall

import (
	"encoding/binary"
	"math/bits"

	"github.com/weft-sdn/weft/flow"
)

// numWords is how many words the header fields of a packet take.
const numWords = 20

// words is the header fields of a packet, or a mask over them, as numbers to
// compare and hash eight octets at a time.
type words [numWords]uint64

// The words that have names.
const (
	wordLink  = 0 // in_port 32, eth_type 16, vlan 16
	wordProto = 1 // eth_dst 48, ip_proto 8, ip_dscp 8
	wordIPv4  = 3 // source 32, destination 32
	wordPorts = 4 // source 16, destination 16, icmp type 8, icmp code 8, arp_op 16
	wordSrc6  = 5
	wordDst6  = 7
)

// The bits of fields within their words.
const (
	bitsEthType = uint64(0xffff) << 16
	bitsProto   = uint64(0xff) << 8
	bitsTPSrc   = uint64(0xffff) << 48
	bitsTPDst   = uint64(0xffff) << 32
)

func be32(b [4]byte) uint64 { return uint64(binary.BigEndian.Uint32(b[:])) }

// pack writes all fields of k.
func (w *words) pack(k *flow.Key) {
	w.packUsual(k)
	w.packIPv6(k)
	w[2] = k.EthSrc.Uint64()<<16 | uint64(k.VLANPCP)<<8 | uint64(k.IPECN)
	w[9] = be32(k.ARPSPA)<<32 | be32(k.ARPTPA)
	w[10] = k.ARPSHA.Uint64()<<16 | uint64(k.MPLSTC)<<8 | uint64(k.MPLSBOS)
	w[11] = k.ARPTHA.Uint64()<<16 | uint64(k.IPFrag)<<8 | uint64(k.MPLSTTL)
	w[12], w[13] = binary.BigEndian.Uint64(k.NDTarget[:8]), binary.BigEndian.Uint64(k.NDTarget[8:])
	w[14] = k.NDSLL.Uint64()<<16 | uint64(k.IPv6Ext)
	w[15] = k.NDTLL.Uint64() << 16
	w[16] = uint64(k.IPv6Label)<<32 | uint64(k.MPLSLabel)
	w[17], w[18] = k.Metadata, k.TunnelID
	w[19] = uint64(k.InPhyPort)<<32 | uint64(k.PBBISID)
}

// packUsual writes the fields that most rules ask for. It leaves IPv6 fields as
// they are if the packet is of another kind: no rule looks at them then.
func (w *words) packUsual(k *flow.Key) {
	w[0] = uint64(k.InPort)<<32 | uint64(k.EthType)<<16 | uint64(k.VLAN)
	w[1] = k.EthDst.Uint64()<<16 | uint64(k.IPProto)<<8 | uint64(k.IPDSCP)
	w[3] = be32(k.IPv4Src)<<32 | be32(k.IPv4Dst)
	w[4] = uint64(k.TPSrc)<<48 | uint64(k.TPDst)<<32 | uint64(k.ICMPType)<<24 | uint64(k.ICMPCode)<<16 | uint64(k.ARPOp)
	if k.EthType == flow.EthTypeIPv6 {
		w.packIPv6(k)
	}
}

func (w *words) packIPv6(k *flow.Key) {
	w[5], w[6] = binary.BigEndian.Uint64(k.IPv6Src[:8]), binary.BigEndian.Uint64(k.IPv6Src[8:])
	w[7], w[8] = binary.BigEndian.Uint64(k.IPv6Dst[:8]), binary.BigEndian.Uint64(k.IPv6Dst[8:])
}

// usualWords are the words that packUsual writes.
const usualWords = uint32(1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8)

// used returns which words are not zero, a bit for each.
func (w *words) used() (set uint32) {
	for i, v := range w {
		if v != 0 {
			set |= 1 << i
		}
	}
	return set
}

// maskOf returns the value and the mask of a condition.
func maskOf(m *flow.Match) (value, mask words) {
	var ones flow.Key
	for s := m.Set; s != 0; s &= s - 1 {
		f := flow.Field(bits.TrailingZeros64(uint64(s)))
		_, fieldMask, _ := m.Get(f)
		ones.Put(f, fieldMask)
	}
	mask.pack(&ones)
	value.pack(&m.Key)
	for i := range value {
		value[i] &= mask[i]
	}
	return value, mask
}

// add adds the bits of another mask.
func (w *words) add(m *words) {
	for i, v := range m {
		w[i] |= v
	}
}

// forget clears an address field of a mask.
func (w *words) forget(f flow.Field) {
	switch {
	case f == flow.FieldIPv4Src:
		w[wordIPv4] &= 0xffffffff
	case f == flow.FieldIPv4Dst:
		w[wordIPv4] &^= 0xffffffff
	case f == flow.FieldIPv6Src:
		w[wordSrc6], w[wordSrc6+1] = 0, 0
	default:
		w[wordDst6], w[wordDst6+1] = 0, 0
	}
}

// mix folds a word into a hash.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
