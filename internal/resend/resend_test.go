package resend_test

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/resend"
)

// TestSoon: a connection has the options that the kernel knows; one that is not over
// TCP is left alone.
func TestSoon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resend.Soon(c)
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for option, want := range map[int]int{unix.TCP_THIN_LINEAR_TIMEOUTS: 1, unix.TCP_RTO_MIN_US: 50_000, unix.TCP_RTO_MAX_MS: 1000} {
			if is, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); errors.Is(err, unix.ENOPROTOOPT) {
				t.Logf("this kernel has no option %d", option)
			} else if err != nil || is < want || is > want+want/5 { // a kernel counts in ticks
				t.Errorf("option %d is %d, %v; want %d", option, is, err, want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	resend.Soon(a)
}
