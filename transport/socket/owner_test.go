package socket

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/testwait"
)

// offered listens and returns where, and what is accepted.
func offered(t *testing.T, address string) (*Listener, <-chan net.Conn) {
	t.Helper()
	l, err := Listen(address, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	in := make(chan net.Conn, 8)
	for _, from := range []net.Listener{l.HTTP1(), l.HTTP2()} {
		go func() {
			for {
				c, err := from.Accept()
				if err != nil {
					return
				}
				in <- c
			}
		}()
	}
	return l, in
}

// addresses are sockets of every kind that needs no TLS.
func addresses(t *testing.T) []string {
	return []string{
		"127.0.0.1:0", "127.9.8.7:0", "[::1]:0",
		"unix:" + filepath.Join(t.TempDir(), "s"), fmt.Sprintf("unix:@weft-owner-%d", os.Getpid()),
	}
}

// TestOwnUserIsLetIn: over every kind of socket, also from an IPv6 socket to an
// IPv4 address.
func TestOwnUserIsLetIn(t *testing.T) {
	for _, address := range addresses(t) {
		l, in := offered(t, address)
		network, where, _ := Split(l.Address())
		dial := func() (net.Conn, error) { return net.Dial(network, where) }
		for range 2 {
			c, err := dial()
			if err != nil {
				t.Fatalf("%s: %v", address, err)
			}
			defer c.Close()
			io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
			select {
			case <-in:
			case <-time.After(testwait.Limit):
				t.Fatalf("%s: not let in", address)
			}
			dial = func() (net.Conn, error) { return dialMapped(network, where) }
		}
	}
}

// dialMapped connects an IPv6 socket to an IPv4 address; others as usual.
func dialMapped(network, where string) (net.Conn, error) {
	to, err := net.ResolveTCPAddr("tcp4", where)
	if network != "tcp" || err != nil {
		return net.Dial(network, where)
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP.To16())}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// as runs f on a thread of another user; root may.
func as(t *testing.T, uid int, f func()) {
	t.Helper()
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0))
		if errno == 0 {
			f()
		}
		done <- errno
	}()
	if errno := <-done; errno != 0 {
		t.Fatal(errno)
	}
}

// TestOtherUsersAreTurnedAway: who is on the machine but is not the user of the
// process gets nowhere without certificates, and is told why.
func TestOtherUsersAreTurnedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to become somebody else; run the tests as root")
	}
	for _, address := range addresses(t) {
		if strings.HasPrefix(address, "unix:/") {
			continue // the file's mode keeps them out
		}
		l, in := offered(t, address)
		network, where, _ := Split(l.Address())
		as(t, 65534, func() {
			c, err := net.Dial(network, where)
			if err != nil {
				t.Errorf("%s: %v", address, err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(testwait.Limit))
			io.WriteString(c, "GET /weft/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
			text, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 403 ") || !strings.Contains(string(text), "you are user 65534") {
				t.Errorf("%s: %q, %v", address, text, err)
			}
			// Who sends and closes at once is not taken for root, whose a socket
			// without a process seems to be.
			for range 50 {
				if c, err := net.Dial(network, where); err == nil {
					io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
					c.Close()
				}
			}
		})
		c, err := net.Dial(network, where)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
		mine := c.LocalAddr().String()
		for got := net.Conn(nil); ; {
			select {
			case got = <-in:
			case <-time.After(testwait.Limit):
				t.Fatalf("%s: nobody is let in any more", address)
			}
			if network == "unix" || got.RemoteAddr().String() == mine {
				break
			}
			t.Errorf("%s: somebody else was let in: %v", address, got.RemoteAddr())
		}
		c.Close()
		if len(in) != 0 {
			t.Errorf("%s: %d others were let in", address, len(in))
		}
	}
}
