package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Bytes is an amount of memory in octets.
type Bytes uint64

// units from the largest; B is the smallest.
var units = []struct {
	name string
	size Bytes
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns the amount in the largest unit in which it is whole, as
// ParseBytes reads it.
func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.size && b%u.size == 0 {
			return strconv.FormatUint(uint64(b/u.size), 10) + u.name
		}
	}
	return "0B"
}

// ParseBytes reads an amount of memory: a whole number and a unit, one of B,
// KiB, MiB, GiB and TiB.
func ParseBytes(s string) (Bytes, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
		if high, low := bits.Mul64(n, uint64(u.size)); err == nil && high == 0 {
			return Bytes(low), nil
		}
		break
	}
	return 0, fmt.Errorf("want an amount of memory, such as 512MiB or 2GiB, not %q", s)
}

// parseCPUs checks a list of processors in the form of Linux' cpulists.
func parseCPUs(s string) error {
	const most = 4096
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 32)
		last, err2 := strconv.ParseUint(to, 10, 32)
		if err != nil || err2 != nil || last < first || last >= most {
			return fmt.Errorf("want processors as \"0\", \"0,2\" or \"0-3\", numbered from 0 to %d, not %q", most-1, s)
		}
	}
	return nil
}
