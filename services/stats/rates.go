package stats

import (
	"math"
	"time"
)

// unsupported is the value of a counter that a switch does not count (OpenFlow
// 1.3.5 §7.3.5.6).
const unsupported = math.MaxUint64

// counted returns a counter's value, 0 if the switch does not count.
func counted(v uint64) uint64 {
	if v == unsupported {
		return 0
	}
	return v
}

// growth returns how much a counter has grown. A counter that has become smaller
// has wrapped, if it was in the upper half of its 32 or 64 bits and is now in the
// lower; else it was reset, and its growth is unknown.
func growth(before, after uint64) (n uint64, known bool) {
	if before == unsupported || after == unsupported {
		return 0, false
	}
	if after >= before {
		return after - before, true
	}
	for _, half := range []uint64{1 << 31, 1 << 63} {
		if n = (after - before) & (half | (half - 1)); before/half == 1 && after < half && n < half {
			return n, true
		}
	}
	return 0, false
}

// perSecond returns growth per second, 0 if it is unknown.
func perSecond(before, after uint64, dt time.Duration) float64 {
	n, known := growth(before, after)
	if !known || dt <= 0 {
		return 0
	}
	return float64(n) / dt.Seconds()
}
