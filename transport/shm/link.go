package shm

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/transport/mux"
)

// bell is what the doorbell sends.
const bell = 1

// prefix is the octets before a message: its length, little-endian.
const prefix = 4

// firstRead bounds the memory that a message gets before any of it has come.
const firstRead = 64 << 10

// link is a mux.Link over two rings.
type link struct {
	side   side
	conn   net.Conn // the socket
	socket syscall.RawConn
	heard  atomic.Uint64

	readable chan struct{} // there may be something to read
	writable chan struct{} // there may be room
	ended    chan struct{} // closed when the socket has ended
	closed   chan struct{} // closed by Close
	closing  sync.Once

	reading sync.Mutex // guards in and poll
	in      ring
	poll    poll
	writing sync.Mutex // guards out
	out     ring
}

func newLink(conn net.Conn, u *net.UnixConn, m []byte, s side) *link {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // its Close would speak TLS
	}
	l := &link{
		side: s, conn: conn,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	l.in, l.out = rings(m, s)
	l.socket, _ = u.SyscallConn() // never fails
	go l.attend(u, m)
	return l
}

// attend waits for the doorbell until the socket ends, and unmaps the memory
// when nobody uses it any more.
func (l *link) attend(u *net.UnixConn, m []byte) {
	b := make([]byte, 64)
	for {
		if _, err := u.Read(b); err != nil {
			break
		}
		notify(l.readable)
		notify(l.writable)
	}
	close(l.ended)
	<-l.closed
	l.reading.Lock()
	defer l.reading.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.in, l.out = ring{}, ring{}
	_ = unix.Munmap(m) // fails for what is not mapped only
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ring rings the doorbell of the peer. If the socket is full, bells are on
// their way; if it has ended, attend sees it.
func (l *link) ring() {
	_ = l.socket.Control(func(fd uintptr) {
		_ = unix.Sendto(int(fd), []byte{bell}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	})
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
			l.ring()
		}
	}
	return nil
}

// await waits until there may be something to read.
func (l *link) await() error {
	for polled := false; ; {
		if l.side == listening && !polled {
			polled = true
			if l.poll.wait(&l.in) {
				return nil
			}
		}
		l.in.asleep.Store(1)
		if n, err := l.in.filled(); n > 0 || err != nil {
			l.in.asleep.Store(0)
			return err
		}
		select {
		case <-l.readable:
		case <-l.closed:
			return net.ErrClosed
		case <-l.ended:
			if n, err := l.in.filled(); n > 0 || err != nil { // what it wrote before
				return err
			}
			return io.EOF
		}
		if l.side == dialing && l.in.asleep.Load() != 0 { // the bell is our own: an answer is due
			l.in.asleep.Store(0)
			if l.poll.wait(&l.in) {
				return nil
			}
		}
	}
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
		notify(l.readable) // to poll for the answer
	}
	return nil
}

func (l *link) publish() {
	if l.out.publish() {
		l.ring()
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
		l.out.full.Store(1)
		if n, err := l.out.free(); n > 0 || err != nil {
			l.out.full.Store(0)
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
