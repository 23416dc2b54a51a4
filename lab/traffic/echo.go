package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// echoer sends ICMP echo requests from one address to another and takes the
// answers, stamped by the kernel as they arrive. It uses Linux's unprivileged
// ICMP sockets: the kernel chooses the identifier and keeps others' answers away.
type echoer struct {
	file *os.File
	raw  syscall.RawConn
	to   unix.Sockaddr
	kind [2]byte // ICMP types of request and answer
	body []byte
}

// newEchoer makes the socket in this thread's namespace.
func newEchoer(from, to netip.Addr, size int) (*echoer, error) {
	domain, proto := unix.AF_INET, unix.IPPROTO_ICMP
	e := &echoer{kind: [2]byte{8, 0}, body: make([]byte, 8+size)}
	if to.Is6() {
		domain, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
		e.kind = [2]byte{128, 129}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, fmt.Errorf("open an ICMP socket: %w", err)
	}
	if err = unix.Bind(fd, sockaddr(from)); err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("prepare an ICMP socket on %s: %w", from, err)
	}
	e.to = sockaddr(to)
	e.body[0] = e.kind[0]
	e.file = os.NewFile(uintptr(fd), "icmp")
	e.raw, err = e.file.SyscallConn()
	return e, err
}

func sockaddr(a netip.Addr) unix.Sockaddr {
	if a.Is6() {
		return &unix.SockaddrInet6{Addr: a.As16()}
	}
	return &unix.SockaddrInet4{Addr: a.As4()}
}

func (e *echoer) close() { e.file.Close() }

// send sends one request; the kernel fills in identifier and checksum.
func (e *echoer) send(seq uint16) error {
	binary.BigEndian.PutUint16(e.body[6:], seq)
	var err error
	cerr := e.raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), e.body, 0, e.to) })
	return errors.Join(err, cerr)
}

// receive calls got for each answer until the socket is closed.
func (e *echoer) receive(got func(seq uint16, at time.Time)) {
	buf := make([]byte, len(e.body)+64)
	oob := make([]byte, 128)
	for {
		var n, oobn int
		var err error
		rerr := e.raw.Read(func(fd uintptr) bool {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), buf, oob, 0)
			return err != unix.EAGAIN
		})
		if rerr != nil {
			return
		}
		if err == nil && n >= 8 && buf[0] == e.kind[1] {
			got(binary.BigEndian.Uint16(buf[6:]), stamp(oob[:oobn]))
		}
	}
}

// stamp is the kernel's time of arrival, now if it gave none.
func stamp(oob []byte) time.Time {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return time.Now()
	}
	for _, m := range msgs {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Now()
}
