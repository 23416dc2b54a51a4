package discovery

import (
	"slices"
	"time"
)

// noise is what delays of our own add to probes at present: how much longer
// than it might recent probes of links that are known took, and echoes.
type noise struct {
	ring [64]struct{ at, excess int64 }
	n    int
}

const (
	noiseFor    = int64(5 * time.Second) // what is older counts no more
	noiseLeast  = 16                     // so many it takes to know
	noiseLast   = 8                      // the last so many must be like the rest
	noiseAtOnce = 4                      // so many at most count of noiseSpan: a moment is not the present
	noiseSpan   = int64(50 * time.Millisecond)
)

// add takes by how much longer a probe or an echo took than it might.
func (n *noise) add(now, excess int64) {
	if n.n >= noiseAtOnce && now-n.ring[(n.n-noiseAtOnce)%len(n.ring)].at < noiseSpan {
		return
	}
	s := &n.ring[n.n%len(n.ring)]
	s.at, s.excess = now, max(0, excess)
	n.n++
}

// recent returns what counts, in order, false if that is too little.
func (n *noise) recent(now int64) ([]int64, bool) {
	list := make([]int64, 0, len(n.ring))
	for i := range min(n.n, len(n.ring)) {
		if s := n.ring[i]; now-s.at <= noiseFor {
			list = append(list, s.excess)
		}
	}
	slices.Sort(list)
	return list, len(list) >= noiseLeast
}

// level returns the median; known is false if there is too little to say.
func (n *noise) level(now int64) (median int64, known bool) {
	list, known := n.recent(now)
	if !known {
		return 0, false
	}
	return list[len(list)/2], true
}

// beyond returns which share is longer than a time. quiet is false if there is
// too little to say, or if half of all that counts, or of the last few, is longer.
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
