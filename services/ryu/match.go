package ryu

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// matchKeys are the names of match fields that Ryu takes besides those of OXM.
var matchKeys = map[string]string{
	"dl_dst": "eth_dst", "dl_src": "eth_src", "dl_type": "eth_type", "dl_vlan": "vlan_vid",
	"nw_src": "ipv4_src", "nw_dst": "ipv4_dst", "nw_proto": "ip_proto",
}

// shownKeys are the names that Ryu gives to fields in answers.
var shownKeys = map[flow.Field]string{
	flow.FieldEthSrc: "dl_src", flow.FieldEthDst: "dl_dst", flow.FieldEthType: "dl_type", flow.FieldVLAN: "dl_vlan",
	flow.FieldIPv4Src: "nw_src", flow.FieldIPv4Dst: "nw_dst", flow.FieldIPProto: "nw_proto",
	flow.FieldTCPSrc: "tp_src", flow.FieldTCPDst: "tp_dst", flow.FieldUDPSrc: "tp_src", flow.FieldUDPDst: "tp_dst",
}

// readMatch reads the match of a request: fields by Ryu's old names or by those
// of OXM. An unknown field is an error, because without it the entry would match
// more than was meant.
func readMatch(d dict) (flow.Match, error) {
	var m flow.Match
	for _, key := range slices.Sorted(maps.Keys(d)) { // so that of several mistakes it always reports the same
		v := d[key]
		f, err := matchField(d, key)
		if err != nil {
			return m, err
		}
		if m.Set.Has(f) {
			return m, bad("match: %v is given twice, once as %s", f, key)
		}
		value, mask, masked, err := readValue(f, v)
		if err != nil {
			return m, bad("match %s: %v", key, err)
		}
		switch {
		case !masked:
			m.Put(f, value)
		case !f.Maskable():
			return m, bad("match %s: takes no mask", key)
		default:
			m.PutMasked(f, value, mask)
		}
	}
	return m, nil
}

// matchField returns the field that a key stands for.
func matchField(d dict, key string) (flow.Field, error) {
	is := func(old, name string, want ...uint64) bool {
		for _, k := range []string{old, name} {
			n, err := d.number(k, math.MaxUint64, math.MaxUint64)
			for _, w := range want {
				if err == nil && n == w {
					return true
				}
			}
		}
		return false
	}
	switch key {
	case "nw_src", "nw_dst":
		if is("dl_type", "eth_type", uint64(flow.EthTypeARP)) {
			f := map[string]flow.Field{"nw_src": flow.FieldARPSPA, "nw_dst": flow.FieldARPTPA}[key]
			if _, both := d[f.String()]; !both {
				return f, nil
			}
		}
	case "tp_src", "tp_dst":
		for proto, prefix := range map[uint8]string{flow.IPProtoTCP: "tcp", flow.IPProtoUDP: "udp", flow.IPProtoSCTP: "sctp"} {
			if is("nw_proto", "ip_proto", uint64(proto)) {
				return flow.ParseField(prefix + key[2:])
			}
		}
		return 0, bad("match %s: needs nw_proto 6 (TCP), 17 (UDP) or 132 (SCTP)", key)
	}
	name := key
	if n, ok := matchKeys[key]; ok {
		name = n
	}
	if f, err := flow.ParseField(name); err == nil && name == f.String() {
		return f, nil
	}
	return 0, bad("match: unknown field %.40q", key)
}

// readValue reads the value of a field in a match, and its mask.
func readValue(f flow.Field, v any) (value, mask [16]byte, masked bool, err error) {
	text, isText := v.(string)
	if f == flow.FieldVLAN {
		return readVLAN(v)
	}
	if isText && f.Maskable() {
		if first, second, ok := strings.Cut(text, "/"); ok {
			if value, err = fieldValue(f, first); err == nil {
				mask, err = readMask(f, second)
			}
			return value, mask, true, err
		}
	}
	value, err = fieldValue(f, v)
	return value, mask, false, err
}

// readMask reads a mask: a value of the field with the significant bits set, or
// the prefix length of an IP address.
func readMask(f flow.Field, text string) (mask [16]byte, err error) {
	switch f {
	case flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldIPv6Src, flow.FieldIPv6Dst:
		n, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			break
		}
		if int(n) > f.Bits() {
			return mask, fmt.Errorf("prefix of %d bits: want at most %d", n, f.Bits())
		}
		for i := range int(n) {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		return mask, nil
	}
	return fieldValue(f, text)
}

// readVLAN reads a VLAN: as a decimal number it is the identifier of a tagged
// frame, as the text of a hexadecimal one it is the field with its bit
// OFPVID_PRESENT, or without.
func readVLAN(v any) (value, mask [16]byte, masked bool, err error) {
	const f, most = flow.FieldVLAN, uint64(flow.VLANPresent) | 0xfff
	put := func(v any, present uint64) (b [16]byte, err error) {
		n, err := number("VLAN", v, most)
		n |= present
		b[0], b[1] = byte(n>>8), byte(n)
		return b, err
	}
	text, isText := v.(string)
	if first, second, ok := strings.Cut(text, "/"); ok {
		if value, err = put(first, 0); err == nil {
			mask, err = put(second, 0)
		}
		return value, mask, true, err
	}
	if isText {
		if n, e := strconv.ParseUint(text, 10, 16); e == nil { // with zeros in front, too
			value, err = put(new(big.Int).SetUint64(n), uint64(flow.VLANPresent))
		} else {
			value, err = put(text, 0)
		}
	} else {
		value, err = put(v, uint64(flow.VLANPresent))
	}
	return value, mask, false, err
}

// fieldValue reads an exact value of a field as a match and SET_FIELD have it.
func fieldValue(f flow.Field, v any) (value [16]byte, err error) {
	text, isText := v.(string)
	switch f {
	case flow.FieldEthDst, flow.FieldEthSrc, flow.FieldARPSHA, flow.FieldARPTHA, flow.FieldNDSLL, flow.FieldNDTLL:
		if !isText {
			return value, fmt.Errorf("want an Ethernet address as a string")
		}
		mac, err := flow.ParseMAC(text)
		copy(value[:], mac[:])
		return value, err
	case flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldARPSPA, flow.FieldARPTPA:
		a, err := netip.ParseAddr(text)
		if err != nil || !a.Is4() {
			return value, fmt.Errorf("want an IPv4 address as a string")
		}
		copy(value[:], a.AsSlice())
		return value, nil
	case flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldNDTarget:
		a, err := netip.ParseAddr(text)
		if err != nil || a.Is4() || a.Zone() != "" {
			return value, fmt.Errorf("want an IPv6 address as a string")
		}
		return a.As16(), nil
	}
	var n uint64
	if f == flow.FieldInPort {
		p, e := ports.fromUser("port", v, math.MaxUint32)
		n, err = uint64(p), e
	} else {
		n, err = number(f.String(), v, math.MaxUint64>>(64-f.Bits()))
	}
	for i := range f.Len() {
		value[i] = byte(n >> (8 * (f.Len() - 1 - i)))
	}
	return value, err
}

// showMatch returns a match in Ryu's names and forms.
func showMatch(m *flow.Match) map[string]any {
	out := map[string]any{}
	for f := range flow.NumFields {
		if !m.Set.Has(f) {
			continue
		}
		key := f.String()
		if k, ok := shownKeys[f]; ok {
			key = k
		}
		value := m.Key.Get(f)
		var v any
		switch masked := m.Masked.Has(f); {
		case f == flow.FieldVLAN:
			v = showVLAN(value, m.Mask.Get(f), masked)
		case f == flow.FieldInPort:
			v = ports.toUser(uint32(fieldNumber(f, value)))
		case masked:
			v = fmt.Sprint(showValue(f, value), "/", showValue(f, m.Mask.Get(f)))
		default:
			v = showValue(f, value)
		}
		if _, before := out[key]; !before {
			out[key] = v
		}
	}
	return out
}

func showVLAN(value, mask [16]byte, masked bool) string {
	v := fieldNumber(flow.FieldVLAN, value)
	switch {
	case masked:
		return fmt.Sprintf("0x%04x/0x%04x", v, fieldNumber(flow.FieldVLAN, mask))
	case v&uint64(flow.VLANPresent) != 0:
		return strconv.FormatUint(v&^uint64(flow.VLANPresent), 10)
	}
	return fmt.Sprintf("0x%04x", v)
}

// showValue returns the value of a field: an address as text, else a number.
func showValue(f flow.Field, value [16]byte) any {
	switch f {
	case flow.FieldEthDst, flow.FieldEthSrc, flow.FieldARPSHA, flow.FieldARPTHA, flow.FieldNDSLL, flow.FieldNDTLL:
		return flow.MAC(value[:6]).String()
	case flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldARPSPA, flow.FieldARPTPA:
		return netip.AddrFrom4([4]byte(value[:4])).String()
	case flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldNDTarget:
		return netip.AddrFrom16(value).String()
	}
	return fieldNumber(f, value)
}

// fieldNumber returns the value of a field of at most eight octets.
func fieldNumber(f flow.Field, value [16]byte) (n uint64) {
	for i := range f.Len() {
		n = n<<8 | uint64(value[i])
	}
	return n
}
