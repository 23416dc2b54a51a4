package secure

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/weft-sdn/weft/services/southbound/admission"
)

// recordHeader is the length of the header of a TLS record: type, version and
// the length of what follows (RFC 8446 §5.1).
const recordHeader = 5

// recordMax is the longest TLS record, of TLS 1.2 (RFC 5246 §6.2.3).
const recordMax = recordHeader + 1<<14 + 2048

// Records is the connection under TLS. It hands TLS no more than the rest of
// the current record, so that TLS keeps nothing back: all that was received but
// not read is here. So a session can wait for a record without the memory in
// which it handles it, and can handle all records that have arrived as one
// batch.
type Records struct {
	net.Conn
	raw    syscall.RawConn // nil where the connection has no file descriptor
	spaces *recordSpaces
	buf    *recordSpace // nil if all that was received has been read
	start  int
	end    int
	left   int              // bytes of the current record not yet read
	kept   admission.Buffer // memory for buf while it waits for the rest of a record
	hands  admission.Buffer // memory for what TLS keeps during its handshake
	handed int              // bytes handed to TLS during the handshake; -1 after it
}

// recordSpace holds received bytes: always less than a whole record, and room
// for another one.
type recordSpace [2 * recordMax]byte

// recordSpaces is a pool of unused ones.
type recordSpaces struct{ pool sync.Pool }

func (p *recordSpaces) get() *recordSpace {
	if b, ok := p.pool.Get().(*recordSpace); ok {
		return b
	}
	return &recordSpace{}
}

func newRecords(conn net.Conn, spaces *recordSpaces, a *admission.Account) *Records {
	return &Records{Conn: conn, raw: RawConn(conn), spaces: spaces, kept: admission.Buffer{Account: a}, hands: admission.Buffer{Account: a}}
}

// finishHandshake records that the TLS handshake is over, and that TLS buffers
// nothing more.
func (r *Records) finishHandshake() {
	r.handed = -1
	_ = r.hands.Resize(0) // shrinking never fails
}

// count accounts for the memory held while nothing can be read.
func (r *Records) count() error {
	if r.buf == nil {
		return r.kept.Resize(0)
	}
	return r.kept.Resize(len(r.buf))
}

// release gives the memory back when all of it was read.
func (r *Records) release() {
	if r.buf != nil && r.start == r.end {
		r.spaces.pool.Put(r.buf)
		r.buf, r.start, r.end = nil, 0, 0
	}
}

// next returns the length of the current record with its header, 0 if the
// header has not arrived.
func (r *Records) next() int {
	if r.end-r.start < recordHeader {
		return 0
	}
	return recordHeader + int(binary.BigEndian.Uint16(r.buf[r.start+3:]))
}

// Whole reports whether a whole record has arrived.
func (r *Records) Whole() bool {
	n := r.next()
	return r.left == 0 && n > 0 && (r.end-r.start >= n || n > recordMax) // TLS refuses one too long
}

// Wait returns when a whole record has arrived.
func (r *Records) Wait() error {
	for !r.Whole() {
		if err := r.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads once, as soon as there is something to read. While it waits with
// an empty buffer, it needs no memory.
func (r *Records) fill() error {
	take := func() []byte {
		if r.buf == nil {
			r.buf = r.spaces.get()
		}
		if r.start > 0 {
			r.end = copy(r.buf[:], r.buf[r.start:r.end])
			r.start = 0
		}
		return r.buf[r.end:]
	}
	if r.raw == nil {
		if err := r.count(); err != nil {
			return err
		}
		n, err := r.Conn.Read(take())
		r.end += n
		if n > 0 {
			return nil
		}
		return err
	}
	var n int
	var failed, refused error
	err := r.raw.Read(func(fd uintptr) bool {
		for {
			n, failed = syscall.Read(int(fd), take())
			if !errors.Is(failed, syscall.EINTR) {
				break
			}
		}
		if failed == syscall.EAGAIN {
			r.release()
			refused = r.count()
			return refused != nil
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case refused != nil:
		return refused
	case failed != nil:
		return failed
	case n <= 0:
		return io.EOF
	}
	r.end += n
	return nil
}

// Read returns bytes of the current record only (net.Conn).
func (r *Records) Read(b []byte) (int, error) {
	for r.left == 0 {
		if r.left = r.next(); r.left > 0 {
			break
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	if r.start == r.end {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b[:min(len(b), r.left)], r.buf[r.start:r.end])
	r.start += n
	r.left -= n
	r.release()
	if r.handed < 0 {
		return n, nil
	}
	r.handed += n
	return n, r.hands.Resize(r.handed)
}

// RawConn returns access to a connection's file descriptor, nil if it has none.
func RawConn(conn net.Conn) syscall.RawConn {
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}
