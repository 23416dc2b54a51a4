// Package localsocket asks the kernel about sockets within a machine: who owns
// the other end of a connection, and whether a file is a socket that may be
// replaced. Listeners import it; it imports nothing of ours.
package localsocket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Owner returns the user of the process at the other end of a connection within
// this machine. It returns an error if the kernel does not know such a socket,
// or if either end is closed: then another socket may have taken its place.
func Owner(conn net.Conn) (uid int, err error) {
	switch c := conn.(type) {
	case *net.UnixConn:
		raw, err := c.SyscallConn()
		if err != nil {
			return 0, err
		}
		var cred *unix.Ucred
		if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
			return 0, e
		}
		if err != nil {
			return 0, os.NewSyscallError("getsockopt", err)
		}
		return int(cred.Uid), nil
	case *net.TCPConn:
		there, okThere := c.RemoteAddr().(*net.TCPAddr)
		here, okHere := c.LocalAddr().(*net.TCPAddr)
		if !okThere || !okHere {
			return 0, errors.New("it has no addresses")
		}
		if uid, err = ownerOfTCP(there.AddrPort(), here.AddrPort()); err != nil {
			return 0, err
		}
		// While our end exists, no other socket can be connected to it.
		return uid, open(c)
	}
	return 0, fmt.Errorf("it is a %T", conn)
}

// open returns an error for a TCP connection that the kernel has closed.
func open(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil {
		return e
	}
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if info.State == tcpClose {
		return errors.New("it is closed")
	}
	return nil
}

// States of TCP of linux/tcp_states.h.
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpClose       = 7
)

// Lengths of what sock_diag(7) is asked and answers: struct inet_diag_req_v2,
// and struct inet_diag_msg with the fields that matter here.
const (
	diagRequest  = unix.SizeofNlMsghdr + 56
	diagState    = unix.SizeofNlMsghdr + 1
	diagPeerPort = unix.SizeofNlMsghdr + 6
	diagUID      = unix.SizeofNlMsghdr + 64
	diagInode    = unix.SizeofNlMsghdr + 68
	diagAnswer   = unix.SizeofNlMsghdr + 72
)

// sockDiagByFamily is SOCK_DIAG_BY_FAMILY of linux/sock_diag.h.
const sockDiagByFamily = 20

// ownerOfTCP asks the kernel for the owner of the socket that is at from and
// connected to to (sock_diag(7)).
func ownerOfTCP(from, to netip.AddrPort) (uid int, err error) {
	from, to = netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Sendto(fd, diagQuestion(from, to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, os.NewSyscallError("sendto", err)
	}
	b := make([]byte, 8<<10)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return 0, os.NewSyscallError("recvfrom", err)
	}
	return diagOwner(b[:n], to.Port())
}

// diagQuestion asks for one TCP socket, by its own address and its peer's.
func diagQuestion(from, to netip.AddrPort) []byte {
	b := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(b, diagRequest)
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	q := b[unix.SizeofNlMsghdr:]
	q[0], q[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if from.Addr().Is4() {
		q[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(q[4:], 0xffffffff) // in any state
	binary.BigEndian.PutUint16(q[8:], from.Port())
	binary.BigEndian.PutUint16(q[10:], to.Port())
	copy(q[12:28], from.Addr().AsSlice())
	copy(q[28:44], to.Addr().AsSlice())
	binary.NativeEndian.PutUint64(q[48:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	return b
}

// diagOwner reads the answer about a socket that is connected to a port.
func diagOwner(b []byte, port uint16) (uid int, err error) {
	if len(b) < unix.SizeofNlMsghdr+4 {
		return 0, errors.New("the kernel's answer is cut short")
	}
	switch kind := binary.NativeEndian.Uint16(b[4:]); {
	case kind == unix.NLMSG_ERROR:
		if code := int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])); code != 0 {
			return 0, os.NewSyscallError("sock_diag", unix.Errno(-code))
		}
		return 0, errors.New("the kernel's answer is empty")
	case kind != sockDiagByFamily || len(b) < diagAnswer:
		return 0, errors.New("the kernel's answer is of another kind")
	case binary.BigEndian.Uint16(b[diagPeerPort:]) != port:
		return 0, errors.New("the kernel knows no such connection") // but somebody who listens there
	}
	switch b[diagState] {
	case tcpEstablished, tcpFinWait1, tcpFinWait2:
	default: // a later socket, which connects from the same port
		return 0, errors.New("it is not connected")
	}
	// A socket that its process has closed has no owner; the kernel shows root.
	if binary.NativeEndian.Uint32(b[diagInode:]) == 0 {
		return 0, errors.New("its process has closed it")
	}
	return int(binary.NativeEndian.Uint32(b[diagUID:])), nil
}
