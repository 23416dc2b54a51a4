// Package resend has TCP send again soon what was lost. A connection that crosses
// a link which fails silently would otherwise wait, after the network has found
// another way, for as long again as the failure took.
package resend

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Times of a connection. The first is above the 40 ms for which a receiver may wait
// with its acknowledgement.
const (
	Least = 50 * time.Millisecond // before something is sent again,
	Most  = time.Second           // however often that has been done
	end   = time.Minute           // without an acknowledgement ends the connection
)

// Soon sets the options of a connection over TCP: what is lost is sent again after
// Least, six times, and then at ever longer intervals up to Most. A kernel that lacks
// an option goes on as it does: the times are of Linux 6.15 and 6.18.
func Soon(conn net.Conn) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		// BBR knows no thin streams, whose intervals do not grow; every kernel has reno.
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
		for _, o := range []struct{ option, value int }{
			{unix.TCP_THIN_LINEAR_TIMEOUTS, 1},
			{unix.TCP_RTO_MIN_US, int(Least.Microseconds())},
			{unix.TCP_RTO_MAX_MS, int(Most.Milliseconds())},
			{unix.TCP_USER_TIMEOUT, int(end.Milliseconds())},
		} {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, o.option, o.value)
		}
	})
}
