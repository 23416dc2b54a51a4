package shm

import (
	"fmt"
	"sync/atomic"
)

// positions is what the two sides of a ring know of each other, in shared
// memory. Positions count octets modulo 2^32. Fields that different sides write
// are on different cache lines.
type positions struct {
	written atomic.Uint32 // where the writer goes on
	_       [124]byte
	read    atomic.Uint32 // where the reader goes on
	_       [124]byte
	waiting atomic.Uint32 // how the reader waits: inFutex, or for the doorbell
	_       [124]byte
	full    atomic.Uint32 // 1: the writer waits for the doorbell
}

// The ways in which a reader waits.
const (
	atDoorbell = 1
	inFutex    = 2
)

// ring is one direction of a connection, for one side of it. The peer can write
// anything into positions and data at any time, so each position is read once,
// checked, and used only if it makes sense; its own position a side knows by
// itself.
type ring struct {
	*positions
	data []byte
	own  uint32 // position of this side
}

// errNonsense says that a position is not possible.
type errNonsense uint32

func (e errNonsense) Error() string {
	return fmt.Sprintf("the peer breaks the protocol: %d octets in a ring of %d", uint32(e), ringSize)
}

// filled returns how many octets there are to read.
func (r *ring) filled() (uint32, error) {
	n := r.written.Load() - r.own
	if n > ringSize {
		return 0, errNonsense(n)
	}
	return n, nil
}

// free returns how many octets can be written.
func (r *ring) free() (uint32, error) {
	n := r.own - r.read.Load()
	if n > ringSize {
		return 0, errNonsense(n)
	}
	return ringSize - n, nil
}

// take moves n octets, which are filled, to p.
func (r *ring) take(p []byte) {
	at := r.own % ringSize
	n := copy(p, r.data[at:])
	copy(p[n:], r.data)
	r.own += uint32(len(p))
}

// put writes p, for which there is room. The peer sees it after publish.
func (r *ring) put(p []byte) {
	at := r.own % ringSize
	n := copy(r.data[at:], p)
	copy(r.data, p[n:])
	r.own += uint32(len(p))
}

// publish shows the peer what has been written, and returns how it waited; 0 if
// it did not.
func (r *ring) publish() (waiting uint32) {
	r.written.Store(r.own)
	if r.waiting.Load() == 0 {
		return 0
	}
	return r.waiting.Swap(0)
}

// release gives the peer the room of what has been taken, and reports whether
// it waits for that: it is let wait until much of the ring is free.
func (r *ring) release() (waits bool) {
	r.read.Store(r.own)
	if r.full.Load() == 0 {
		return false
	}
	n, err := r.filled()
	return err == nil && n <= ringSize/2 && r.full.Swap(0) != 0
}
