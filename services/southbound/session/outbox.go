package session

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/secure"
)

// errQueueFull is why the outbox drops a message to a switch that reads too
// slowly.
var errQueueFull = errors.New("the send queue of the switch is full: it reads too slowly")

// blockMax is about how much of a long queue is written before urgent messages
// get their turn.
const blockMax = 64 << 10

// heldMost is how much is held for one switch, in bytes.
const heldMost = 32 << 10

// outbox is the bounded send queue of one switch. Any goroutine may fill it;
// one at a time writes, without holding its lock. Whoever fills it writes at
// once as much as the socket takes without blocking and leaves the rest to the
// outbox's own goroutine.
type outbox struct {
	conn  net.Conn
	raw   syscall.RawConn // nil where the connection has no file descriptor
	limit int
	fence *mastership.Fence // closed while this process may not program the switch; nil: never closed

	missed atomic.Bool         // a message was left out because the fence was closed
	shed   func(error, []byte) // counts messages that were queued and are not sent

	mu      sync.Mutex
	queued  []byte // messages that wait, in order
	urgent  []byte // goes out before queued
	spare   []byte // the buffer written last, kept for reuse
	writing bool   // a goroutine is in write
	closed  bool
	stalled int              // bytes that the socket did not take; 0 if it takes all
	kept    admission.Buffer // memory for the waiting messages while stalled is not 0
	room    chan struct{}    // closed when the queue has drained; nil if nobody waits

	rest chan remains // what the socket did not take, for drain; the right to write goes with it
	done chan struct{}

	write func(uintptr) bool // writes what is left in now, for the current writer
	now   []byte

	started atomic.Int64 // when the blocking write began, in ns; 0 if there is none
}

// remains is what drain must still write.
type remains struct {
	b     []byte
	begun bool  // b may begin in the middle of a message
	err   error // set if the waiting messages have no room
}

func newOutbox(conn net.Conn, limit int, f *mastership.Fence, a *admission.Account) *outbox {
	o := &outbox{conn: conn, raw: secure.RawConn(conn), limit: limit, fence: f, shed: func(error, []byte) {}, kept: admission.Buffer{Account: a}, rest: make(chan remains, 1), done: make(chan struct{})}
	o.write = func(fd uintptr) bool {
		for len(o.now) > 0 {
			n, err := writeNow(fd, o.now)
			if err == syscall.EINTR {
				continue
			}
			if err != 0 || n <= 0 {
				return true
			}
			o.now = o.now[n:]
		}
		return true
	}
	return o
}

// put queues whole messages and writes what the socket takes. The caller may
// reuse b afterwards. It never blocks. While the fence is closed it leaves out
// messages that would program the switch and returns errFenced.
func (o *outbox) put(b []byte) error {
	if !o.fence.Open() {
		passed := o.pass(b)
		if len(passed) < len(b) {
			if len(passed) > 0 {
				_ = o.enqueue(passed)
			}
			return errFenced
		}
	}
	return o.enqueue(b)
}

// enqueue is put for messages that the fence lets through.
func (o *outbox) enqueue(b []byte) error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return admission.ErrClosed
	}
	if o.writing && len(o.queued) > 0 && len(o.queued)+len(b) > o.limit {
		o.mu.Unlock()
		return errQueueFull
	}
	if o.writing {
		err := o.count(len(b))
		if err == nil {
			o.queued = append(o.queued, b...)
		}
		o.mu.Unlock()
		return err
	}
	o.writing = true
	if o.raw == nil || len(o.queued) > 0 {
		o.queued = append(o.queued, b...)
		o.flush()
		return nil
	}
	o.mu.Unlock()
	done := o.tryWrite(b)
	o.mu.Lock()
	if done == len(b) || o.closed {
		o.flush()
		return nil
	}
	whole := messageEnd(b, done)
	if len(b) > whole {
		o.queued = append(append(o.spare[:0], b[whole:]...), o.queued...) // before what came meanwhile
		o.spare = nil
	}
	if whole == done {
		o.flush()
		return nil
	}
	begun := slices.Clone(b[done:whole]) // the rest of a message: nothing goes before it
	left := o.stall(begun, true)
	o.mu.Unlock()
	o.rest <- left
	return nil
}

// hold queues whole messages until release, so that one write sends what
// several readers have for a switch. The caller may reuse b afterwards. mine
// reports that nobody else will release what is queued now.
func (o *outbox) hold(b []byte) (mine bool, err error) {
	if !o.fence.Open() {
		return false, o.put(b)
	}
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return false, admission.ErrClosed
	}
	if len(o.queued) > 0 && len(o.queued)+len(b) > o.limit {
		o.mu.Unlock()
		return false, errQueueFull
	}
	if err := o.count(len(b)); err != nil {
		o.mu.Unlock()
		return false, err
	}
	mine = !o.writing && len(o.queued) == 0
	o.queued = append(o.queued, b...)
	if !o.writing && len(o.queued) >= heldMost {
		o.writing = true
		o.flush()
		return false, nil
	}
	o.mu.Unlock()
	return mine, nil
}

// release writes the held messages as far as the socket takes them.
func (o *outbox) release() {
	o.mu.Lock()
	if o.writing || o.closed || len(o.queued) == 0 {
		o.mu.Unlock() // somebody else wrote it, or is writing it
		return
	}
	o.writing = true
	o.flush()
}

// messageEnd returns the end offset of the message that contains byte n-1.
func messageEnd(b []byte, n int) int {
	end := 0
	for end < n {
		end += max(openflow.HeaderLen, int(binary.BigEndian.Uint16(b[end+2:])))
	}
	return end
}

// putFirst is put for a short message that goes ahead of the queued ones. It
// waits only for the block that is being written.
func (o *outbox) putFirst(b []byte) error {
	o.mu.Lock()
	if !o.writing {
		o.mu.Unlock()
		return o.put(b)
	}
	defer o.mu.Unlock()
	if o.closed {
		return admission.ErrClosed
	}
	if len(o.urgent)+len(b) > blockMax {
		return errQueueFull
	}
	if err := o.count(len(b)); err != nil {
		return err
	}
	o.urgent = append(o.urgent, b...)
	return nil
}

// roomFirst reports whether n bytes fit before the queued messages.
func (o *outbox) roomFirst(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queued) == 0 && len(o.urgent) == 0 || len(o.urgent)+n <= blockMax
}

// putWait is put that waits for room. Only the goroutine that reads this switch
// calls it: a switch that does not read its answers gets no more requests read.
func (o *outbox) putWait(b []byte) error {
	for {
		err := o.put(b)
		if err != errQueueFull {
			return err
		}
		o.mu.Lock()
		if o.closed || !o.writing || len(o.queued) == 0 || len(o.queued)+len(b) <= o.limit {
			o.mu.Unlock()
			continue
		}
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		<-room
	}
}

// flush writes until the queue is empty or the socket is full. The caller holds
// the lock and has set writing; flush releases the lock.
func (o *outbox) flush() {
	for len(o.urgent)+len(o.queued) > 0 && !o.closed {
		b := o.block()
		if passed := o.pass(b); len(passed) < len(b) {
			o.shed(errFenced, b) // counts those that program the switch: none of them has passed
			b = passed
		}
		if o.room != nil {
			close(o.room)
			o.room = nil
		}
		o.mu.Unlock()
		n := 0
		if o.raw != nil {
			n = o.tryWrite(b)
		}
		o.mu.Lock()
		if n < len(b) {
			left := o.stall(b[n:], n > 0)
			o.mu.Unlock()
			o.rest <- left
			return
		}
		o.recycle(b)
	}
	o.writing = false
	_ = o.kept.Resize(0) // shrinking never fails
	o.mu.Unlock()
}

// stall records what the socket did not take. The caller holds the lock.
func (o *outbox) stall(b []byte, begun bool) remains {
	o.stalled = len(b)
	return remains{b, begun, o.count(0)}
}

// count accounts for the waiting bytes and more bytes besides, if the socket is
// stalled. The caller holds the lock.
func (o *outbox) count(more int) error {
	if o.stalled == 0 {
		return nil
	}
	return o.kept.Resize(o.stalled + len(o.urgent) + len(o.queued) + more)
}

// block takes what to write next: the urgent messages, else the queued ones; of
// a long queue it takes only some whole messages. The caller holds the lock.
func (o *outbox) block() []byte {
	if b := o.urgent; len(b) > 0 {
		o.urgent = nil
		return b
	}
	b := o.queued
	if len(b) <= blockMax {
		o.queued = o.spare[:0]
		o.spare = nil
		return b
	}
	n := messageEnd(b, blockMax)
	o.queued = b[n:]
	return b[:n:n]
}

func (o *outbox) recycle(b []byte) {
	if cap(b) <= 1<<18 {
		o.spare = b[:0]
	}
}

// tryWrite returns how much of b the socket took without blocking.
func (o *outbox) tryWrite(b []byte) int {
	o.now = b
	_ = o.raw.Write(o.write)
	done := len(b) - len(o.now)
	o.now = nil
	return done
}

// drain writes what sockets did not take at once. It runs until the outbox is
// closed and returns the error of a failed write.
func (o *outbox) drain() error {
	for {
		var left remains
		select {
		case left = <-o.rest:
		case <-o.done:
			return nil
		}
		b := left.b
		if !left.begun {
			if b = o.pass(b); len(b) < len(left.b) {
				o.shed(errFenced, left.b)
			}
		} else if !o.fence.Open() {
			return errHalf
		}
		err := left.err
		if err == nil {
			o.started.Store(time.Now().UnixNano())
			_, err = o.conn.Write(b)
			o.started.Store(0)
		}
		o.mu.Lock()
		o.stalled = 0
		if err != nil {
			o.writing = false
			o.mu.Unlock()
			return err
		}
		o.recycle(b)
		o.flush()
	}
}

// stuckFor returns how long the switch has refused to read.
func (o *outbox) stuckFor(now time.Time) time.Duration {
	if at := o.started.Load(); at != 0 {
		return now.Sub(time.Unix(0, at))
	}
	return 0
}

// close refuses further messages and wakes the goroutines that wait for room.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	o.shed(admission.ErrClosed, o.urgent)
	o.shed(admission.ErrClosed, o.queued)
	close(o.done)
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}
