package socket

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare sets the options of a connection; what cannot be set is left.
func prepare(conn net.Conn) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = t.SetNoDelay(true)
	remote, _ := t.RemoteAddr().(*net.TCPAddr)
	if raw, err := t.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if remote != nil && remote.IP.IsLoopback() {
				// Where the system's choice is BBR, it paces even what stays here.
				_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
			}
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		})
	}
}

// meter is a connection that counts what comes.
type meter struct {
	net.Conn
	octets atomic.Uint64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.octets.Add(uint64(n))
	return n, err
}

// NetConn returns the connection below.
func (m *meter) NetConn() net.Conn { return m.Conn }

// Incoming returns what tells how many octets have come on a connection of
// this package, or on the one below.
func Incoming(conn net.Conn) func() uint64 {
	for {
		if m, ok := conn.(*meter); ok {
			return m.octets.Load
		}
		below, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return func() uint64 { return 0 }
		}
		conn = below.NetConn()
	}
}

// Unix returns the Unix socket that a connection of this package is, or that is
// below it.
func Unix(conn net.Conn) (*net.UnixConn, error) {
	for {
		switch c := conn.(type) {
		case *net.UnixConn:
			return c, nil
		case *counted:
			conn = c.raw
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil, fmt.Errorf("a %T is no Unix socket", conn)
		}
	}
}

// Outgoing tells whether a write to a socket would wait for its peer. One
// goroutine at a time uses it.
type Outgoing struct {
	raw  syscall.RawConn
	room int // what may be written before the kernel is asked again
}

// NewOutgoing returns it for a connection, or for the one below it.
func NewOutgoing(conn net.Conn) *Outgoing {
	for {
		if c, ok := conn.(syscall.Conn); ok {
			raw, err := c.SyscallConn()
			if err != nil {
				raw = nil
			}
			return &Outgoing{raw: raw}
		}
		below, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return &Outgoing{}
		}
		conn = below.NetConn()
	}
}

// A write of up to atOnce octets is sure not to wait while no more than
// outstanding are on their way, nor are writes of unasked octets together. The
// smallest buffers of Linux hold more, also when each write takes one of its
// own.
const atOnce, unasked, outstanding = 16 << 10, 8 << 10, 4 << 10

// Room says whether n octets can be written without waiting for the peer, and
// takes it that they are going to be. It errs on the side of false.
func (o *Outgoing) Room(n int) bool {
	if n <= o.room {
		o.room -= n
		return true
	}
	o.room = 0
	if o.raw == nil || n > atOnce {
		return false
	}
	queued := outstanding + 1
	if err := o.raw.Control(func(fd uintptr) {
		if q, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			queued = q
		}
	}); err != nil || queued > outstanding {
		return false
	}
	o.room = max(unasked-n, 0)
	return true
}
