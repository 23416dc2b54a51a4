package l2vpn

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// A vlanList is VLANs as numbers and ranges, in order and joined where they can be, such as 10-20,30.
type vlanList string

// maxRanges is how many numbers and ranges a list may have.
const maxRanges = 64

// A vlanRange is the VLANs from first to last.
type vlanRange struct{ first, last uint16 }

// parseVLAN reads a VLAN identifier.
func parseVLAN(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > 4094 {
		return 0, fmt.Errorf("VLAN %.20q: want a number from 1 to 4094", text)
	}
	return uint16(n), nil
}

// parseVLANs reads numbers and ranges in any order.
func parseVLANs(text string) (vlanList, error) {
	var list []vlanRange
	for part := range strings.SplitSeq(text, ",") {
		from, to, is := strings.Cut(part, "-")
		if !is {
			to = from
		}
		first, err := parseVLAN(from)
		if err != nil {
			return "", err
		}
		last, err := parseVLAN(to)
		switch {
		case err != nil:
			return "", err
		case last < first:
			return "", fmt.Errorf("VLANs %.20q: want the lower number first", part)
		}
		list = append(list, vlanRange{first, last})
	}
	all := joined(list)
	if n := len(all.ranges()); n > maxRanges {
		return "", fmt.Errorf("%d numbers and ranges of VLANs: want at most %d", n, maxRanges)
	}
	return all, nil
}

// joined returns ranges as a list.
func joined(list []vlanRange) vlanList {
	slices.SortFunc(list, func(x, y vlanRange) int { return int(x.first) - int(y.first) })
	var all []vlanRange
	for _, r := range list {
		if n := len(all); n > 0 && r.first <= all[n-1].last+1 {
			all[n-1].last = max(all[n-1].last, r.last)
		} else {
			all = append(all, r)
		}
	}
	var parts []string
	for _, r := range all {
		text := strconv.Itoa(int(r.first))
		if r.last > r.first {
			text += "-" + strconv.Itoa(int(r.last))
		}
		parts = append(parts, text)
	}
	return vlanList(strings.Join(parts, ","))
}

// ranges returns the numbers and ranges of a list.
func (l vlanList) ranges() (list []vlanRange) {
	for part := range strings.SplitSeq(string(l), ",") {
		from, to, is := strings.Cut(part, "-")
		if !is {
			to = from
		}
		first, err := parseVLAN(from)
		last, err2 := parseVLAN(to)
		if err == nil && err2 == nil {
			list = append(list, vlanRange{first, last})
		}
	}
	return list
}

// each calls f for each VLAN of a list, in order.
func (l vlanList) each(f func(vlan uint16)) {
	for _, r := range l.ranges() {
		for v := r.first; v <= r.last; v++ {
			f(v)
		}
	}
}

// meets reports whether two lists have a VLAN in common.
func (l vlanList) meets(o vlanList) bool {
	for _, r := range l.ranges() {
		if slices.ContainsFunc(o.ranges(), func(x vlanRange) bool { return r.first <= x.last && x.first <= r.last }) {
			return true
		}
	}
	return false
}

// has reports whether a VLAN is in a list.
func (l vlanList) has(vlan uint16) bool { return l.meets(joined([]vlanRange{{vlan, vlan}})) }

// blocks returns a list as blocks; a switch needs one entry for each.
func (l vlanList) blocks() (list []flow.VLANBlock) {
	for _, r := range l.ranges() {
		for at := uint32(r.first); at <= uint32(r.last); {
			size := uint32(1) << min(bits.TrailingZeros32(at), bits.Len32(uint32(r.last)-at+1)-1)
			list = append(list, flow.VLANBlock{ID: uint16(at), Mask: 0xfff &^ uint16(size-1)})
			at += size
		}
	}
	return list
}
