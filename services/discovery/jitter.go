package discovery

import (
	"slices"
	"time"
)

// jitter is the delay that this process adds to probes at present, measured by
// the recent excess times of echoes and of probes of known links.
type jitter struct {
	ring [jitterRing]struct{ at, excess int64 }
	n    int

	// The result of listRecent when n was sortedOf, at sortedAt.
	sorted   [jitterRing]int64
	size     int
	sortedOf int
	sortedAt int64
}

const (
	jitterRing   = 64
	jitterFor    = int64(5 * time.Second) // older times do not count
	jitterLeast  = 16                     // the number needed for a result
	jitterLast   = 8                      // this many of the last must be like the rest
	jitterAtOnce = 4                      // at most so many count per jitterSpan
	jitterSpan   = int64(50 * time.Millisecond)
)

// add records the excess time of a probe or an echo.
func (n *jitter) add(now, excess int64) {
	if n.n >= jitterAtOnce && now-n.ring[(n.n-jitterAtOnce)%len(n.ring)].at < jitterSpan {
		return
	}
	s := &n.ring[n.n%len(n.ring)]
	s.at, s.excess = now, max(0, excess)
	n.n++
}

// listRecent returns the recent times in order, valid until the next call, or false
// if there are too few. It is called for each probe of a link on trial, so it
// caches a result for jitterSpan if there is no new time.
func (n *jitter) listRecent(now int64) ([]int64, bool) {
	if n.n != n.sortedOf || now-n.sortedAt >= jitterSpan {
		list := n.sorted[:0]
		for i := range min(n.n, len(n.ring)) {
			if s := n.ring[i]; now-s.at <= jitterFor {
				list = append(list, s.excess)
			}
		}
		slices.Sort(list)
		n.size, n.sortedOf, n.sortedAt = len(list), n.n, now
	}
	return n.sorted[:n.size], n.size >= jitterLeast
}

// median returns the median; known is false if there are too few times.
func (n *jitter) median(now int64) (median int64, known bool) {
	list, known := n.listRecent(now)
	if !known {
		return 0, false
	}
	return list[len(list)/2], true
}

// shareBeyond returns the share of times longer than limit. quiet is false if there
// are too few times, or if half of them, or of the last few, are longer.
func (n *jitter) shareBeyond(now, limit int64) (share float64, quiet bool) {
	list, known := n.listRecent(now)
	if !known {
		return 0, false
	}
	last := 0
	for i := range jitterLast {
		if n.ring[(n.n-1-i)%len(n.ring)].excess > limit {
			last++
		}
	}
	i, _ := slices.BinarySearch(list, limit+1)
	return float64(len(list)-i+1) / float64(len(list)+1), last <= jitterLast/2 && i > len(list)/2
}
