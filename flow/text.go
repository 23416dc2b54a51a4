package flow

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Text returns the condition as OXM names and values, the form of the command
// line, JSON and YAML: "in_port": "1", "eth_dst":
// "01:00:00:00:00:00/01:00:00:00:00:00", "ipv4_dst": "10.0.0.0/8", "vlan_vid":
// "5", "none" or "any". ParseMatch reads it back.
func (m *Match) Text() map[string]string {
	t := make(map[string]string, bits.OnesCount64(uint64(m.Set)))
	for s := m.Set & (1<<NumFields - 1); s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		t[f.String()] = string(m.appendField(nil, f))
	}
	return t
}

// String returns the condition as "in_port=1,eth_dst=02:00:00:00:00:01", in the
// order of OXM numbers; "any" if every packet meets it.
func (m Match) String() string { return string(m.appendText(nil)) }

func (m *Match) appendText(b []byte) []byte {
	if m.Set == 0 {
		return append(b, "any"...)
	}
	for s := m.Set & (1<<NumFields - 1); s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		b = append(append(b, f.String()...), '=')
		b = m.appendField(b, f)
		if s&(s-1) != 0 {
			b = append(b, ',')
		}
	}
	return b
}

// appendField appends the value of a field in Set, and its mask.
func (m *Match) appendField(b []byte, f Field) []byte {
	value, mask, _ := m.Get(f)
	if !m.Masked.Has(f) {
		return appendValue(b, f, value)
	}
	_, ml := unalign(f, mask)
	switch f.format() {
	case formatIPv4:
		if n, ok := prefixLen(32, ml); ok {
			return strconv.AppendInt(append(appendValue(b, f, value), '/'), int64(n), 10)
		}
	case formatIPv6:
		mh, ml := unalign(f, mask)
		hi, ok := prefixLen(64, mh)
		if lo, ok2 := prefixLen(64, ml); ok && ok2 && (hi == 64 || lo == 0) {
			return strconv.AppendInt(append(appendValue(b, f, value), '/'), int64(hi+lo), 10)
		}
	case formatVLAN:
		if _, v := unalign(f, value); v == uint64(VLANPresent) && ml == uint64(VLANPresent) {
			return append(b, "any"...)
		}
		return appendHex(append(appendHex(b, f, value), '/'), f, mask)
	case formatCTState:
		if s, ok := ctStateText(uint32(getUint32([4]byte(value[:4]))), uint32(ml)); ok {
			return append(b, s...)
		}
		return appendHex(append(appendHex(b, f, value), '/'), f, mask)
	case formatDecimal:
		return appendHex(append(appendHex(b, f, value), '/'), f, mask)
	}
	return appendValue(append(appendValue(b, f, value), '/'), f, mask)
}

// format is the text format of a field's value.
type format uint8

const (
	formatDecimal format = iota
	formatHex
	formatPort
	formatMAC
	formatVLAN
	formatIPv4
	formatIPv6
	formatCTState
)

func (f Field) format() format {
	switch f {
	case FieldInPort, FieldInPhyPort:
		return formatPort
	case FieldEthDst, FieldEthSrc, FieldARPSHA, FieldARPTHA, FieldNDSLL, FieldNDTLL:
		return formatMAC
	case FieldVLAN:
		return formatVLAN
	case FieldIPv4Src, FieldIPv4Dst, FieldARPSPA, FieldARPTPA:
		return formatIPv4
	case FieldIPv6Src, FieldIPv6Dst, FieldNDTarget:
		return formatIPv6
	case FieldCTState:
		return formatCTState
	case FieldCTMark, FieldEthType, FieldMetadata, FieldTunnelID, FieldIPv6FLabel, FieldPBBISID, FieldIPv6ExtHdr:
		return formatHex
	}
	return formatDecimal
}

// appendValue appends an exact value of a field.
func appendValue(b []byte, f Field, value [16]byte) []byte {
	_, v := unalign(f, value)
	switch f.format() {
	case formatPort:
		return append(b, Port(v).String()...)
	case formatMAC:
		return append(b, MACFrom(v).String()...)
	case formatVLAN:
		if v&uint64(VLANPresent) == 0 {
			if v == 0 {
				return append(b, "none"...)
			}
			return appendHex(b, f, value)
		}
		return strconv.AppendUint(b, v&0xfff, 10)
	case formatIPv4:
		return netip.AddrFrom4(toIPv4(v)).AppendTo(b)
	case formatIPv6:
		return netip.AddrFrom16(value).AppendTo(b)
	case formatCTState:
		if s, ok := ctStateText(uint32(v), 1<<len(ctStateNames)-1); ok && v>>len(ctStateNames) == 0 {
			return append(b, s...)
		}
		return appendHex(b, f, value)
	case formatHex:
		return appendHex(b, f, value)
	}
	return strconv.AppendUint(b, v, 10)
}

func appendHex(b []byte, f Field, value [16]byte) []byte {
	_, v := unalign(f, value)
	if f == FieldEthType {
		return fmt.Appendf(b, "%#04x", v)
	}
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// ParseMatch reads a condition from OXM names and values as Text writes them;
// numbers may be decimal or 0x hex, and masks are given as "/mask", or as a
// prefix length with addresses of IP. The match is normal, and Check finds
// nothing wrong with it. Errors say field, value and what is allowed.
func ParseMatch(text map[string]string) (Match, error) {
	names := make([]string, 0, len(text))
	for name := range text {
		names = append(names, name)
	}
	slices.Sort(names) // so that of several mistakes it always reports the same
	var m Match
	for _, name := range names {
		if err := m.parseField(name, text[name]); err != nil {
			return Match{}, err
		}
	}
	if err := m.Check(); err != nil {
		return Match{}, err
	}
	return m, nil
}

// ParseMatchString reads a condition as String writes it: "in_port=1,ip_proto=6",
// commas or spaces between; "any" or nothing matches every packet.
func ParseMatchString(s string) (Match, error) {
	text := map[string]string{}
	for _, item := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			if strings.EqualFold(item, "any") {
				continue
			}
			return Match{}, fmt.Errorf("match %q: want FIELD=VALUE, such as in_port=1", item)
		}
		if _, double := text[name]; double {
			return Match{}, fmt.Errorf("match: field %s is given twice", name)
		}
		text[name] = value
	}
	return ParseMatch(text)
}

// parseField adds one condition.
func (m *Match) parseField(name, s string) error {
	f, err := ParseField(name)
	if err != nil {
		return err
	}
	if m.Set.Has(f) {
		return fmt.Errorf("match: field %v is given twice", f)
	}
	value, mask, masked, err := f.parseMasked(s)
	switch {
	case err != nil:
		return fmt.Errorf("match %v=%s: %w", f, s, err)
	case !masked:
		m.Put(f, value)
	case !f.Maskable():
		return fmt.Errorf("match %v=%s: the field takes no mask; give the exact value", f, s)
	default:
		m.PutMasked(f, value, mask)
	}
	return nil
}

// parseMasked reads a value and, behind a slash, its mask.
func (f Field) parseMasked(s string) (value, mask [16]byte, masked bool, err error) {
	if f == FieldVLAN && strings.EqualFold(s, "any") {
		return align(f, 0, uint64(VLANPresent)), align(f, 0, uint64(VLANPresent)), true, nil
	}
	if f == FieldCTState && strings.ContainsAny(s, "+-") {
		v, m, err := parseCTState(s)
		return align(f, 0, uint64(v)), align(f, 0, uint64(m)), true, err
	}
	v, m, masked := strings.Cut(s, "/")
	if !masked {
		value, err = f.parseValue(s)
		return value, mask, false, err
	}
	switch kind := f.format(); kind {
	case formatVLAN: // the bits of the field, OFPVID_PRESENT among them
		if value, err = f.parseNumber(v); err == nil {
			mask, err = f.parseNumber(m)
		}
		return value, mask, true, err
	case formatIPv4, formatIPv6:
		if n, e := strconv.ParseUint(m, 10, 8); e == nil {
			if int(n) > f.Bits() {
				return value, mask, true, fmt.Errorf("want a prefix length of at most %d", f.Bits())
			}
			if kind == formatIPv4 {
				mask = align(f, 0, prefixMask(32, int(n)))
			} else {
				mask = align(f, prefixMask(64, min(int(n), 64)), prefixMask(64, max(int(n)-64, 0)))
			}
			value, err = f.parseValue(v)
			return value, mask, true, err
		}
	}
	if value, err = f.parseValue(v); err == nil {
		mask, err = f.parseValue(m)
	}
	return value, mask, true, err
}

// parseValue reads an exact value.
func (f Field) parseValue(s string) (value [16]byte, err error) {
	switch f.format() {
	case formatPort:
		p, err := ParsePort(s)
		return align(f, 0, uint64(p)), err
	case formatMAC:
		a, err := ParseMAC(s)
		return align(f, 0, a.Uint64()), err
	case formatVLAN:
		if strings.EqualFold(s, "none") {
			return value, nil
		}
		v, err := strconv.ParseUint(s, 0, 16)
		if err != nil || v > uint64(VLANPresent|0xfff) {
			return value, fmt.Errorf("want a VLAN from 0 to 4095, none (untagged) or any (every VLAN)")
		}
		return align(f, 0, v|uint64(VLANPresent)), nil
	case formatIPv4:
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return value, fmt.Errorf("want an IPv4 address, with /LENGTH or /MASK if part of it counts")
		}
		return align(f, 0, getUint32(a.As4())), nil
	case formatIPv6:
		a, err := netip.ParseAddr(s)
		if err != nil || a.Is4() || a.Zone() != "" {
			return value, fmt.Errorf("want an IPv6 address, with /LENGTH or /MASK if part of it counts")
		}
		return a.As16(), nil
	}
	if f == FieldCTState && strings.ContainsAny(s, "+-") {
		v, m, err := parseCTState(s)
		if _, all := f.ones(); err == nil && uint64(m) != all {
			err = fmt.Errorf("want every flag, with + or -")
		}
		return align(f, 0, uint64(v)), err
	}
	return f.parseNumber(s)
}

// parseNumber reads a number of the field's width.
func (f Field) parseNumber(s string) (value [16]byte, err error) {
	v, err := strconv.ParseUint(s, 0, 64)
	if _, most := f.ones(); err != nil || v > most {
		return value, fmt.Errorf("want a number from 0 to %d (%#x)", most, most)
	}
	return align(f, 0, v), nil
}

// String returns the entry for people: "table=0 priority=100 in_port=1
// actions=output:2", with those other instructions, timeouts and flags that it
// has.
func (e Entry) String() string {
	b := fmt.Appendf(nil, "table=%d priority=%d ", e.Table, e.Priority)
	b = e.Match.appendText(b)
	if o := e.Cookie.Owner(); o != OwnerForeign {
		b = fmt.Appendf(b, " owner=%v id=%d", o, e.Cookie.ID())
	} else if e.Cookie != 0 {
		b = fmt.Appendf(b, " cookie=%#x", uint64(e.Cookie))
	}
	if e.IdleTimeout != 0 {
		b = fmt.Appendf(b, " idle_timeout=%ds", e.IdleTimeout)
	}
	if e.HardTimeout != 0 {
		b = fmt.Appendf(b, " hard_timeout=%ds", e.HardTimeout)
	}
	for i, name := range [...]string{"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"} {
		if e.Flags&(1<<i) != 0 {
			b = append(append(b, ' '), name...)
		}
	}
	if e.Meter != 0 {
		b = fmt.Appendf(b, " meter=%d", e.Meter)
	}
	if len(e.Apply) > 0 || !e.HasWrite && !e.Clear && e.Goto == 0 {
		b = append(append(b, " actions="...), FormatActions(e.Apply)...)
	}
	if e.Clear {
		b = append(b, " clear_actions"...)
	}
	if e.HasWrite {
		b = append(append(b, " write_actions="...), FormatActions(e.Write)...)
	}
	if e.MetaMask != 0 {
		b = fmt.Appendf(b, " write_metadata=%#x/%#x", e.Metadata, e.MetaMask)
	}
	if e.Goto != 0 {
		b = fmt.Appendf(b, " goto_table=%d", e.Goto)
	}
	return string(b)
}
