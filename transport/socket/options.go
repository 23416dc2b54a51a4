package socket

import (
	"net"
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
	if raw, err := t.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		})
	}
}

// Outgoing tells how much of what was written to a socket its peer has not
// taken yet.
type Outgoing struct{ raw syscall.RawConn }

// NewOutgoing returns it for a connection, or for the one below it.
func NewOutgoing(conn net.Conn) Outgoing {
	for {
		if c, ok := conn.(syscall.Conn); ok {
			raw, err := c.SyscallConn()
			if err != nil {
				raw = nil
			}
			return Outgoing{raw}
		}
		below, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return Outgoing{}
		}
		conn = below.NetConn()
	}
}

// atOnce is how much may be written, and beyond how little be outstanding, for
// a write to be sure not to wait. The smallest buffers of Linux hold more.
const atOnce, outstanding = 16 << 10, 4 << 10

// Room says whether n octets can be written without waiting for the peer. It
// errs on the side of false.
func (o Outgoing) Room(n int) bool {
	if o.raw == nil || n > atOnce {
		return false
	}
	queued := outstanding + 1
	if err := o.raw.Control(func(fd uintptr) {
		if q, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			queued = q
		}
	}); err != nil {
		return false
	}
	return queued <= outstanding
}
