package forwarding

import "sync/atomic"

// replicas is the place of this instance among several instances of forwarding.
// All instances keep all routes, and any may program one, because a packet may
// come to any of them. For later events each pair of hosts has one owner that
// handles them; the first instance maintains the broadcast tree, which exists
// only once. For a moment after instances have come or gone, two may believe to
// be the owner: all that an owner does may be done twice.
type replicas struct {
	n       atomic.Uint64 // index << 32 | count
	changes atomic.Uint32
}

// set sets this instance's number, from 0, and the number of instances. It
// returns the former values.
func (s *replicas) set(index, count int) (oldIndex, oldCount int) {
	old := s.n.Swap(uint64(max(index, 0))<<32 | uint64(max(count, 1)))
	s.changes.Add(1)
	return int(old >> 32), int(uint32(old))
}

// isAlone reports whether this is the only instance.
func (s *replicas) isAlone() bool { return uint32(s.n.Load()) <= 1 }

// isLeader reports whether this instance does the work that only one may do.
func (s *replicas) isLeader() bool { return s.n.Load()>>32 == 0 }

// owns reports whether this instance handles the events of a pair's routes, in
// either direction. Rendezvous hashing (Thaler and Ravishankar, 1998) decides:
// when instances come or go, few pairs change owners.
func (s *replicas) owns(p pair) bool {
	n := s.n.Load()
	index, count := n>>32, n&0xffffffff
	if count <= 1 {
		return true
	}
	key := p.hashBothWays()
	best, owner := uint64(0), uint64(0)
	for i := range count {
		if score := mix(key ^ mix(i+1)); score > best {
			best, owner = score, i
		}
	}
	return owner == index
}

// hashBothWays returns a hash of a pair of hosts that is the same in both directions.
func (p pair) hashBothWays() uint64 {
	a, b := p.src.Uint64(), p.dst.Uint64()
	if a > b {
		a, b = b, a
	}
	return mix(mix(a)^b) ^ uint64(p.vlan)
}

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
