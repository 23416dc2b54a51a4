package mux

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/transport"
)

const (
	// maxPart is the most of a message in one frame, so that others fit between
	// the parts of a large one.
	maxPart = 128 << 10
	// maxPending is how many bytes may wait to be written before writers wait.
	maxPending = 512 << 10
	// maxText is the longest error text on the wire.
	maxText = 16 << 10
)

// MaxMessage is at least the length of the longest message on a link.
const MaxMessage = 4 * maxPending

// Link carries messages between two processes, whole and in order. One
// goroutine reads and one at a time writes.
type Link interface {
	// Read returns the next message, which is the caller's to release.
	Read() (*Buffer, error)
	// Write sends a message and releases it. It waits if there is no room.
	Write(b *Buffer) error
	// Room reports whether a Write of n bytes would not wait. It is called
	// before every Write.
	Room(n int) bool
	// Heard is how many octets have come so far, of whole messages or parts.
	Heard() uint64
	// Close ends the link: reads and writes in progress return.
	Close() error
}

// writer packs frames into messages and writes these to a link. A goroutine
// that finds no other one writing writes at once, for itself and those that
// arrive meanwhile; so a single frame needs no hand-over, and many at once
// become one message. A background goroutine writes what the link has no room
// for, so that no caller's deadline depends on the link.
type writer struct {
	link Link
	wake chan struct{} // the goroutine has something to write
	// large is how many large messages have been written: while it grows, the
	// peer is busy, not silent.
	large atomic.Uint64

	mu      sync.Mutex    // guards all below
	pending *Buffer       // frames to be written; nil if none
	busy    bool          // a goroutine is writing
	room    chan struct{} // closed when pending is taken; nil if nobody waits for it
	failed  *transport.Error
}

func (w *writer) init(link Link) {
	w.link, w.wake = link, make(chan struct{}, 1)
}

// message writes a message in as many frames as it takes; f is the first, and
// its Body the whole. It waits while too much is pending, but not beyond ctx.
func (w *writer) message(ctx context.Context, f Frame, body []byte) *transport.Error {
	f.Total = uint64(len(body))
	for {
		part := body[:min(len(body), maxPart)]
		body = body[len(part):]
		f.Body, f.More = part, len(body) > 0
		if err := w.put(ctx, &f); err != nil || !f.More {
			return err
		}
		f = Frame{Kind: Data, ID: f.ID}
	}
}

// put writes a frame, after waiting while too much is pending.
func (w *writer) put(ctx context.Context, f *Frame) *transport.Error {
	w.mu.Lock()
	for w.failed == nil && w.pending != nil && len(w.pending.B) > maxPending {
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return transport.ErrorOf(ctx.Err())
		}
		w.mu.Lock()
	}
	return w.add(f)
}

// putNow writes a small frame without waiting, unless too much is pending.
func (w *writer) putNow(f *Frame) {
	w.mu.Lock()
	if w.pending != nil && len(w.pending.B) > 2*maxPending {
		w.mu.Unlock()
		return
	}
	_ = w.add(f) // if the link has failed, its reader knows
}

// cancel writes a Cancel without waiting. There are no more Cancels than
// messages that found room.
func (w *writer) cancel(id uint64) {
	w.mu.Lock()
	_ = w.add(&Frame{Kind: Cancel, ID: id}) // if the link has failed, all is cancelled
}

// signs counts the peer's signs of life.
func (w *writer) signs() uint64 { return w.link.Heard() + w.large.Load() }

// idle reports whether the link has everything.
func (w *writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil || !w.busy
}

// add adds a frame to the pending ones and makes sure that a goroutine writes
// it. It is called with the lock held and releases it.
func (w *writer) add(f *Frame) *transport.Error {
	if w.failed != nil {
		defer w.mu.Unlock()
		return w.failed
	}
	if w.pending == nil {
		w.pending = NewBuffer(headroom + len(f.Name) + len(f.Body))
	}
	w.pending.B = f.Append(w.pending.B)
	if w.busy {
		w.mu.Unlock()
		return nil
	}
	w.busy = true
	for rounds := 0; w.pending != nil; rounds++ {
		if w.failed != nil {
			break
		}
		// A caller writes for a few rounds only: it has its own work to do.
		if rounds == 4 || !w.link.Room(len(w.pending.B)) { // the goroutine asks again
			w.wake <- struct{}{} // empty: busy has been false since it was taken
			w.mu.Unlock()
			return nil
		}
		w.writeLocked()
	}
	w.busy = false
	w.mu.Unlock()
	return nil
}

// writeLocked writes what is pending. The lock is held before and after.
func (w *writer) writeLocked() {
	b := w.pending
	w.pending = nil
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
	w.mu.Unlock()
	size := len(b.B)
	err := w.link.Write(b)
	if size > maxPart/2 {
		w.large.Add(1)
	}
	w.mu.Lock()
	if err != nil && w.failed == nil {
		w.failed = transport.Errorf(transport.Unavailable, "the connection is lost: %v", err)
		_ = w.link.Close() // the reader notices and reports it
	}
}

// run writes in the background until the link has failed.
func (w *writer) run(ended <-chan struct{}) {
	for {
		select {
		case <-w.wake:
		case <-ended:
			return
		}
		w.mu.Lock()
		for w.pending != nil && w.failed == nil {
			_ = w.link.Room(len(w.pending.B)) // it may wait here
			w.writeLocked()
		}
		w.busy = false
		w.mu.Unlock()
	}
}

// fail ends all present and later writing.
func (w *writer) fail(err *transport.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}
