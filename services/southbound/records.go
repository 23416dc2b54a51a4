package southbound

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// recordHeader is the length of the header of a TLS record: type, version and
// the length of what follows (RFC 8446 §5.1).
const recordHeader = 5

// recordMax is the longest TLS record, of TLS 1.2 (RFC 5246 §6.2.3).
const recordMax = recordHeader + 1<<14 + 2048

// records is the connection under TLS. It hands TLS never more than the rest of
// the record that it is at, so that TLS keeps nothing back: what has been
// received and not been read is here. By that a session can wait for a record
// without the memory in which it is dealt with, and deal with all records that
// have come as one batch.
type records struct {
	net.Conn
	raw    syscall.RawConn // nil where the connection has no file descriptor
	spaces *recordSpaces
	buf    *recordSpace // nil if nothing is received that has not been read
	start  int
	end    int
	left   int    // of the record that is being read
	kept   buffer // buf's, while it waits for the rest of a record
	hands  buffer // what TLS has been handed and keeps, during its handshake
	handed int    // octets, during the handshake; -1 after it
}

// recordSpace holds what has been received: never a whole record and as much as
// another one more.
type recordSpace [2 * recordMax]byte

// recordSpaces are those that nobody uses now.
type recordSpaces struct{ pool sync.Pool }

func (p *recordSpaces) get() *recordSpace {
	if b, ok := p.pool.Get().(*recordSpace); ok {
		return b
	}
	return &recordSpace{}
}

func newRecords(conn net.Conn, spaces *recordSpaces, a *account) *records {
	return &records{Conn: conn, raw: rawConn(conn), spaces: spaces, kept: buffer{account: a}, hands: buffer{account: a}}
}

// agreed takes it that the handshake of TLS is over, and with it what TLS kept.
func (r *records) agreed() {
	r.handed = -1
	_ = r.hands.resize(0) // less is never refused
}

// count counts the memory that is kept while nothing can be read.
func (r *records) count() error {
	if r.buf == nil {
		return r.kept.resize(0)
	}
	return r.kept.resize(len(r.buf))
}

// release gives the memory back when all is read.
func (r *records) release() {
	if r.buf != nil && r.start == r.end {
		r.spaces.pool.Put(r.buf)
		r.buf, r.start, r.end = nil, 0, 0
	}
}

// next returns the length of the record at hand, with its header; 0 if that has
// not come yet.
func (r *records) next() int {
	if r.end-r.start < recordHeader {
		return 0
	}
	return recordHeader + int(binary.BigEndian.Uint16(r.buf[r.start+3:]))
}

// whole reports whether a whole record has come.
func (r *records) whole() bool {
	n := r.next()
	return r.left == 0 && n > 0 && (r.end-r.start >= n || n > recordMax) // TLS refuses one too long
}

// wait returns when a whole record has come.
func (r *records) wait() error {
	for !r.whole() {
		if err := r.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads once, as soon as there is something to read. While it waits, and
// nothing is kept, it needs no memory.
func (r *records) fill() error {
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

// Read hands over what is left of a record, at most (net.Conn).
func (r *records) Read(b []byte) (int, error) {
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
	return n, r.hands.resize(r.handed)
}
