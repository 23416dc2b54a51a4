package beats

import (
	"math/bits"
	"time"
)

// latencies is a distribution of latencies in one kilobyte: microseconds up to
// 32, from there 16 steps for each doubling, so that a value is at most 1/16 too
// large. It holds up to a second; longer ones count as a second.
type latencies struct {
	steps [steps]uint32
	count uint64
	last  time.Duration
	max   time.Duration
}

const (
	linear   = 16 // steps for each doubling
	longest  = uint64(time.Second / time.Microsecond)
	steps    = 16*linear + linear // more than stepOf(longest)
	stepFull = ^uint32(0)
)

// stepOf returns the step of a latency in microseconds.
func stepOf(us uint64) int {
	us = min(us, longest)
	if us < 2*linear {
		return int(us)
	}
	shift := bits.Len64(us) - 5
	return shift*linear + int(us>>shift)
}

// most returns the largest latency of a step, in microseconds.
func most(step int) uint64 {
	if step < 2*linear {
		return uint64(step)
	}
	shift := step/linear - 1
	return uint64(step-shift*linear+1)<<shift - 1
}

// add records a latency.
func (l *latencies) add(d time.Duration) {
	l.last, l.max = d, max(l.max, d)
	s := &l.steps[stepOf(uint64(max(0, d.Microseconds())))]
	if *s == stepFull {
		return
	}
	*s++
	l.count++
}

// quantile returns the latency that a share q of all, 0 to 1, does not exceed.
func (l *latencies) quantile(q float64) time.Duration {
	if l.count == 0 {
		return 0
	}
	rank := uint64(q*float64(l.count-1)) + 1
	for step, n := range l.steps {
		if uint64(n) >= rank {
			return min(l.max, time.Duration(most(step))*time.Microsecond)
		}
		rank -= uint64(n)
	}
	return l.max
}
