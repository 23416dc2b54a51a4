package mux

import (
	"sync"
	"sync/atomic"
)

const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
	// keepBuffer is the largest buffer that goes back to a pool.
	keepBuffer = 2 * maxPending
)

// Buffer is one message of a link in pooled memory. Its holder owns it until
// Release.
type Buffer struct {
	B    []byte
	refs atomic.Int32
}

var (
	smallPool = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, smallBuffer)} }}
	largePool = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, largeBuffer)} }}
)

// NewBuffer returns an empty buffer with room for n octets and more than 4 KiB
// in any case.
func NewBuffer(n int) *Buffer {
	pool := &smallPool
	if n > smallBuffer {
		pool = &largePool
	}
	b := pool.Get().(*Buffer)
	if cap(b.B) < n {
		b.B = make([]byte, 0, n)
	}
	b.B = b.B[:0]
	b.refs.Store(1)
	return b
}

// Release gives up the buffer; it returns to its pool once all holders have
// released it.
func (b *Buffer) Release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	switch c := cap(b.B); {
	case c > keepBuffer:
	case c >= largeBuffer:
		largePool.Put(b)
	default:
		smallPool.Put(b)
	}
}

// hold adds a holder.
func (b *Buffer) hold() *Buffer {
	b.refs.Add(1)
	return b
}
