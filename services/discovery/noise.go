package discovery

import (
	"slices"
	"time"
)

// noise is the delay that this process itself adds to probes at present: the
// recent excess times of probes of known links, and of echoes.
type noise struct {
	ring [noiseRing]struct{ at, excess int64 }
	n    int

	// The result of recent when n was sortedOf, at sortedAt.
	sorted   [noiseRing]int64
	size     int
	sortedOf int
	sortedAt int64
}

const (
	noiseRing   = 64
	noiseFor    = int64(5 * time.Second) // older ones do not count
	noiseLeast  = 16                     // the number needed for a result
	noiseLast   = 8                      // this many of the last must be like the rest
	noiseAtOnce = 4                      // at most so many count per noiseSpan
	noiseSpan   = int64(50 * time.Millisecond)
)

// add records the excess time of a probe or an echo.
func (n *noise) add(now, excess int64) {
	if n.n >= noiseAtOnce && now-n.ring[(n.n-noiseAtOnce)%len(n.ring)].at < noiseSpan {
		return
	}
	s := &n.ring[n.n%len(n.ring)]
	s.at, s.excess = now, max(0, excess)
	n.n++
}

// recent returns the times that count, in order, valid until the next call; false
// if there are too few. It is asked for each probe of a link on trial, so a result
// serves for noiseSpan if there is no new time.
func (n *noise) recent(now int64) ([]int64, bool) {
	if n.n != n.sortedOf || now-n.sortedAt >= noiseSpan {
		list := n.sorted[:0]
		for i := range min(n.n, len(n.ring)) {
			if s := n.ring[i]; now-s.at <= noiseFor {
				list = append(list, s.excess)
			}
		}
		slices.Sort(list)
		n.size, n.sortedOf, n.sortedAt = len(list), n.n, now
	}
	return n.sorted[:n.size], n.size >= noiseLeast
}

// level returns the median; known is false if there are too few times.
func (n *noise) level(now int64) (median int64, known bool) {
	list, known := n.recent(now)
	if !known {
		return 0, false
	}
	return list[len(list)/2], true
}

// beyond returns the share of times longer than limit. quiet is false if there
// are too few times, or if half of them, or of the last few, are longer.
func (n *noise) beyond(now, limit int64) (share float64, quiet bool) {
	list, known := n.recent(now)
	if !known {
		return 0, false
	}
	last := 0
	for i := range noiseLast {
		if n.ring[(n.n-1-i)%len(n.ring)].excess > limit {
			last++
		}
	}
	i, _ := slices.BinarySearch(list, limit+1)
	return float64(len(list)-i+1) / float64(len(list)+1), last <= noiseLast/2 && i > len(list)/2
}
