package localsocket

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiagAnswers: what is not the answer to the question lets nobody in.
func TestDiagAnswers(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, 8), make([]byte, 16), make([]byte, 20), make([]byte, 200)} {
		if uid, err := diagOwner(b, 5); err == nil {
			t.Errorf("%d octets: user %d", len(b), uid)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there := l.Addr().(*net.TCPAddr).AddrPort()
	if uid, err := ownerOfTCP(there, there); err == nil {
		t.Errorf("a listener is taken for a connection, of user %d", uid)
	}
}

// as runs f on a thread of another user; root may.
func as(t *testing.T, uid int, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to become somebody else; run the tests as root")
	}
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

// TestNobodyTakesTheirPlace: a connection that somebody else's process has given
// up, and to whose port root's is connected now, is not root's.
func TestNobodyTakesTheirPlace(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	l := Peers(raw)
	next := func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial := func(from net.Addr) *net.TCPConn {
		c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Error(err)
			return nil
		}
		return c.(*net.TCPConn)
	}
	var port net.Addr
	as(t, 65533, func() {
		if c := dial(&net.TCPAddr{IP: net.IPv4(127, 77, 0, 1)}); c != nil { // whose ports nobody else takes
			port = c.LocalAddr()
			c.Write([]byte("POST"))
			c.SetLinger(0) // what is sent arrives; the port is free at once
			c.Close()
		}
	})
	if port == nil {
		t.FailNow()
	}
	given := next()
	if c := dial(port); c == nil {
		t.FailNow()
	} else {
		defer c.Close()
	}
	own := next()
	if uid, err := UserAt(given.RemoteAddr()); err == nil {
		t.Errorf("what user 65533 has sent is of user %d", uid)
	}
	if uid, err := UserAt(own.RemoteAddr()); err != nil || uid != 0 {
		t.Errorf("what root has sent is of user %d, %v", uid, err)
	}
	var mine *net.TCPConn
	as(t, 65533, func() { mine = dial(nil) })
	if mine == nil {
		t.FailNow()
	}
	defer mine.Close()
	if uid, err := UserAt(next().RemoteAddr()); err != nil || uid != 65533 {
		t.Errorf("what user 65533 has sent is of user %d, %v", uid, err)
	}
	if _, err := UserAt(mine.RemoteAddr()); err == nil {
		t.Error("an address of another listener is of a user")
	}
}

// TestProxied: what proxies add is recognised, what clients send is not.
func TestProxied(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Forwarded-For": true, "x-forwarded-user": true, "Forwarded": true, "Via": true, "X-Real-IP": true,
		"Authorization": false, "User-Agent": false, "Content-Type": false, "Te": false, "Grpc-Timeout": false, "Origin": false, "Upgrade": false,
	} {
		if got := Proxied(map[string][]string{name: {"x"}}); (got != "") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
