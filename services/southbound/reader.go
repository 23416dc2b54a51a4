package southbound

import (
	"net"

	"weft/openflow"
)

// The receive buffer starts small, because most switches are quiet, and grows
// while reads fill it, because busy ones deserve few system calls.
const (
	bufferMin = 8 << 10
	bufferMax = 256 << 10
)

// reader cuts whole messages off a connection. Messages point into its buffer
// and are valid until the next fill.
type reader struct {
	conn       net.Conn
	buf        []byte
	start, end int
	filled     bool // the last read left no room
}

func newReader(conn net.Conn) *reader { return &reader{conn: conn, buf: make([]byte, bufferMin)} }

// take returns the next whole message that has been received, nil if there is
// none; it does no I/O.
func (r *reader) take() ([]byte, error) {
	msg, _, err := openflow.Next(r.buf[r.start:r.end])
	r.start += len(msg)
	return msg, err
}

// partial reports whether the beginning of a message waits for its end.
func (r *reader) partial() bool { return r.start < r.end }

// fill reads once. What was taken before is gone.
func (r *reader) fill() error {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.start = 0
	}
	if r.filled && len(r.buf) < bufferMax {
		grown := make([]byte, min(4*len(r.buf), bufferMax))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	n, err := r.conn.Read(r.buf[r.end:])
	r.end += n
	r.filled = r.end == len(r.buf)
	if n > 0 {
		return nil
	}
	return err
}

// next returns the next message, waiting for it.
func (r *reader) next() ([]byte, error) {
	for {
		msg, err := r.take()
		if msg != nil || err != nil {
			return msg, err
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}
