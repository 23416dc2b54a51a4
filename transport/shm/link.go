package shm

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/transport/mux"
)

// prefix is the octets before a message: its length, little-endian.
const prefix = 4

// firstRead bounds the memory that a message gets before any of it has come.
const firstRead = 64 << 10

// link is a mux.Link over two rings.
type link struct {
	side  side
	conn  net.Conn // ends with the peer
	bell  *doorbell
	heard atomic.Uint64

	readable chan struct{} // dialing: there may be something to read, or an answer is due
	writable chan struct{} // there may be room
	asleep   atomic.Bool   // the reader waits for the doorbell
	blocked  atomic.Bool   // a writer waits for the doorbell
	ended    chan struct{} // closed when the socket has ended
	closed   chan struct{} // closed by Close
	closing  sync.Once

	reading sync.Mutex // guards in and brief
	in      ring
	brief   brief
	writing sync.Mutex // guards out
	out     ring
}

func newLink(conn net.Conn, u *net.UnixConn, bell *doorbell, m []byte, s side) *link {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // its Close would speak TLS
	}
	l := &link{
		side: s, conn: conn, bell: bell,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	l.in, l.out = rings(m, s)
	var work sync.WaitGroup
	if s == dialing {
		work.Go(l.attend)
	}
	go func() {
		l.outlive(u)
		work.Wait()
		l.free(m)
	}()
	return l
}

// outlive waits until the socket ends, and has those who sleep see it.
func (l *link) outlive(u *net.UnixConn) {
	_, _ = u.Read(make([]byte, 1)) // nothing is said on it, so it is the end
	close(l.ended)
	l.bell.silence()
}

// free gives the memory back when the link is closed and nobody uses it any
// more.
func (l *link) free(m []byte) {
	<-l.closed
	l.reading.Lock()
	defer l.reading.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.in, l.out = ring{}, ring{}
	_ = unix.Munmap(m) // fails for what is not mapped only
	l.bell.close()
}

// attend answers the doorbell at the dialing side, where the reader waits for
// other things, too.
func (l *link) attend() {
	for l.bell.wait(l.rung) == nil {
		notify(l.readable)
	}
}

// rung reports whether the reader was to be woken, and wakes the writer if that
// was. What the peer wrote before it rang says who was meant: so a
// ring that nobody heard is not lost.
func (l *link) rung() bool {
	l.unblock()
	return l.in.waiting.Load() == 0 && l.asleep.CompareAndSwap(true, false)
}

// unblock wakes a writer that was to be woken.
func (l *link) unblock() {
	if l.blocked.Load() && l.out.full.Load() == 0 && l.blocked.CompareAndSwap(true, false) {
		l.bell.heard()
		notify(l.writable)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *link) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Read returns the next message (mux.Link).
func (l *link) Read() (*mux.Buffer, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.isClosed() {
		return nil, net.ErrClosed
	}
	var size [prefix]byte
	if err := l.readFull(size[:]); err != nil {
		return nil, err
	}
	left := int64(binary.LittleEndian.Uint32(size[:]))
	if left == 0 || left > mux.MaxMessage {
		return nil, fmt.Errorf("the peer breaks the protocol: a message of %d octets", left)
	}
	b := mux.NewBuffer(int(min(left, firstRead)))
	for left > 0 {
		if len(b.B) == cap(b.B) {
			grown := mux.NewBuffer(int(min(2*int64(cap(b.B)), int64(cap(b.B))+left)))
			grown.B = append(grown.B, b.B...)
			b.Release()
			b = grown
		}
		start := len(b.B)
		b.B = b.B[:start+int(min(left, int64(cap(b.B)-start)))]
		if err := l.readFull(b.B[start:]); err != nil {
			b.Release()
			return nil, err
		}
		left -= int64(len(b.B) - start)
	}
	return b, nil
}

// readFull fills p from the ring, waiting for what is missing.
func (l *link) readFull(p []byte) error {
	for len(p) > 0 {
		n, err := l.in.filled()
		if err != nil {
			return err
		}
		if n == 0 {
			if err := l.await(); err != nil {
				return err
			}
			continue
		}
		part := p[:min(len(p), int(n))]
		l.in.take(part)
		p = p[len(part):]
		l.heard.Add(uint64(len(part)))
		if l.in.release() {
			l.bell.ring()
		}
		if l.side == listening { // nobody else answers the doorbell
			l.unblock()
		}
	}
	return nil
}

// await waits until there may be something to read.
func (l *link) await() error {
	if l.side == listening && l.brief.wait(&l.in) {
		return nil
	}
	for {
		l.asleep.Store(true)
		l.in.waiting.Store(atDoorbell)
		if n, err := l.in.filled(); n > 0 || err != nil {
			l.wake()
			return err
		}
		if l.side == listening {
			if l.bell.wait(l.rung) == nil {
				return nil
			}
			return l.last()
		}
		select {
		case <-l.readable:
		case <-l.closed:
			return net.ErrClosed
		case <-l.ended:
			return l.last()
		}
		if !l.asleep.Load() { // it has rung
			return nil
		}
		l.wake() // an answer is due
		if l.brief.wait(&l.in) {
			return nil
		}
	}
}

// wake is for a reader that wakes by itself.
func (l *link) wake() {
	if l.in.waiting.Swap(0) == 0 && l.asleep.Load() {
		l.bell.heard()
	}
	l.asleep.Store(false)
}

// last returns nil if there is something left to read of a peer that has gone.
func (l *link) last() error {
	if l.isClosed() {
		return net.ErrClosed
	}
	if n, err := l.in.filled(); n > 0 || err != nil {
		return err
	}
	return io.EOF
}

// Write sends a message and releases it (mux.Link).
func (l *link) Write(b *mux.Buffer) error {
	defer b.Release()
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.isClosed() {
		return net.ErrClosed
	}
	var size [prefix]byte
	binary.LittleEndian.PutUint32(size[:], uint32(len(b.B)))
	if err := l.write(size[:]); err != nil {
		return err
	}
	if err := l.write(b.B); err != nil {
		return err
	}
	l.publish()
	if l.side == dialing {
		notify(l.readable) // to wait briefly for the answer
	}
	return nil
}

func (l *link) publish() {
	switch l.out.publish() {
	case atDoorbell:
		l.bell.ring()
	case inFutex:
		futexWake(&l.out.waiting)
	}
}

// write puts p into the ring, waiting for room. The caller publishes the rest.
func (l *link) write(p []byte) error {
	for {
		n, err := l.out.free()
		if err != nil {
			return err
		}
		part := p[:min(len(p), int(n))]
		l.out.put(part)
		if p = p[len(part):]; len(p) == 0 {
			return nil
		}
		l.publish()
		l.blocked.Store(true)
		l.out.full.Store(1)
		if n, err := l.out.free(); n > 0 || err != nil {
			if l.out.full.Swap(0) == 0 && l.blocked.Load() {
				l.bell.heard()
			}
			l.blocked.Store(false)
			continue
		}
		select {
		case <-l.writable:
		case <-l.ended:
			return io.ErrClosedPipe
		case <-l.closed:
			return net.ErrClosed
		}
	}
}

// Room reports whether a Write of n octets would not wait (mux.Link).
func (l *link) Room(n int) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.isClosed() {
		return true // it fails at once
	}
	free, err := l.out.free()
	return err != nil || n+prefix <= int(free)
}

// Heard is how many octets have come (mux.Link).
func (l *link) Heard() uint64 { return l.heard.Load() }

// Close ends the link (mux.Link).
func (l *link) Close() error {
	var err error
	l.closing.Do(func() {
		close(l.closed)
		err = l.conn.Close()
	})
	return err
}
