package forwarding

import "sync/atomic"

// replicas says which of several instances of forwarding this one is. All
// instances keep all routes, and any may program one, for a packet comes to
// whichever it comes to. But what befalls a route later, each pair of hosts has
// one owner that deals with it; and what there is once only, the broadcast
// tree, the first instance does. For a moment after instances have come or
// gone, two may take themselves for the owner: whatever an owner does is the
// same when it is done twice.
type replicas struct {
	n       atomic.Uint64 // index << 32 | count
	changes atomic.Uint32
}

// set takes this instance's number, from 0, and how many there are. It returns
// what they were.
func (s *replicas) set(index, count int) (oldIndex, oldCount int) {
	old := s.n.Swap(uint64(max(index, 0))<<32 | uint64(max(count, 1)))
	s.changes.Add(1)
	return int(old >> 32), int(uint32(old))
}

// alone reports whether there is no other instance.
func (s *replicas) alone() bool { return uint32(s.n.Load()) <= 1 }

// first reports whether this is the instance that does what there is once.
func (s *replicas) first() bool { return s.n.Load()>>32 == 0 }

// owns reports whether this instance deals with what befalls a pair's routes,
// in either direction. It is decided by rendezvous hashing (Thaler and
// Ravishankar, 1998): when instances come or go, few pairs change hands.
func (s *replicas) owns(p pair) bool {
	n := s.n.Load()
	index, count := n>>32, n&0xffffffff
	if count <= 1 {
		return true
	}
	key := p.between()
	best, owner := uint64(0), uint64(0)
	for i := range count {
		if score := mix(key ^ mix(i+1)); score > best {
			best, owner = score, i
		}
	}
	return owner == index
}

// regroup takes the number of instances, and takes over what has become this
// one's. It is called by one goroutine at a time.
func (e *engine) regroup(f *flooding, index, count int) {
	_, before := e.replicas.set(index, count)
	takesOver := f.appoint(index == 0)
	e.takenOver()
	e.connectAgain()
	f.share()
	if takesOver || index == 0 && count < before { // it may not have told all
		e.askAgain()
	}
}

// between is a hash of a pair of hosts, the same in both directions.
func (p pair) between() uint64 {
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
