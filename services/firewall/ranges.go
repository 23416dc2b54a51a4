package firewall

import "math/bits"

// maskedPort is the ports that agree with value in the bits of mask.
type maskedPort struct{ value, mask uint16 }

// masks returns the fewest masked ports that cover the range, at most 30.
func (r portRange) masks() (list []maskedPort) {
	from, to := uint32(r.from), uint32(r.to)
	for from <= to {
		size := uint32(1) << 16
		if from != 0 {
			size = 1 << bits.TrailingZeros32(from)
		}
		for from+size-1 > to {
			size >>= 1
		}
		list = append(list, maskedPort{uint16(from), uint16(0x10000 - size)})
		from += size
	}
	return list
}
