// Package loglinear divides times into buckets: sixteen of equal width to each
// doubling, so that a bucket is at most 6 % wide. Their number is fixed.
package loglinear

import (
	"math/bits"
	"time"
)

const (
	shift = 4  // of the buckets of a doubling
	least = 7  // times below 2^least ns share the first bucket
	most  = 34 // those from 2^most ns on, 17 s, the last
)

// Buckets is how many there are.
const Buckets = (most-least)<<shift + 2

// Of returns the bucket of a time.
func Of(d time.Duration) int {
	if d < 1<<least {
		return 0
	}
	octave := bits.Len64(uint64(d)) - 1
	if octave >= most {
		return Buckets - 1
	}
	return (octave-least)<<shift + int(uint64(d)>>(octave-shift)&(1<<shift-1)) + 1
}

// Bounds returns from which time on a bucket is, and up to which. The last one
// ends where it begins.
func Bounds(bucket int) (from, to time.Duration) {
	if bucket == 0 {
		return 0, 1 << least
	}
	if bucket >= Buckets-1 {
		return 1 << most, 1 << most
	}
	octave, part := (bucket-1)>>shift+least, time.Duration((bucket-1)&(1<<shift-1))
	return (1<<shift + part) << (octave - shift), (1<<shift + part + 1) << (octave - shift)
}
