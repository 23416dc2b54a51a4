package discovery

import (
	"slices"
	"time"
)

// delays remembers how long recent probes took, to tell a relayed one, which
// also crosses whatever relays it, from one that has crossed a cable.
type delays struct {
	ring [256]int64
	n    int
}

// add takes the time that a probe took.
func (d *delays) add(ns int64) {
	d.ring[d.n%len(d.ring)] = ns
	d.n++
}

// outlier reports whether a time is far beyond the usual: the third quartile
// and three times the distance between the quartiles, and a millisecond. With
// fewer than 16 to compare it never is.
func (d *delays) outlier(ns int64) bool {
	n := min(d.n, len(d.ring))
	if n < 16 {
		return false
	}
	sorted := slices.Sorted(slices.Values(d.ring[:n]))
	q1, q3 := sorted[n/4], sorted[3*n/4]
	return ns > q3+3*(q3-q1)+int64(time.Millisecond)
}
