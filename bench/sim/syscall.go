package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls do not tell the Go scheduler that the thread is in the kernel,
// which costs as much as a short call itself, and on one processor makes the
// runtime's monitor wake up every 20 µs to look after it. The loop yields by
// itself; see Network.wait.

// readNow is read(2) on a socket that does not block.
func readNow(fd int, b []byte) (int, unix.Errno) {
	n, _, err := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), err
}

// writeNow is write(2) on a socket that does not block; MSG_NOSIGNAL keeps a
// connection reset from raising SIGPIPE.
func writeNow(fd int, b []byte) (int, unix.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), err
}

// waitBriefly is epoll_wait(2) for at most a few milliseconds.
func waitBriefly(epoll int, events []unix.EpollEvent, ms int) (int, error) {
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(ms), 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// stamped reads with the time at which what is read has arrived.
type stamped struct {
	control [64]byte
	head    unix.Msghdr
	vec     unix.Iovec
}

// read is recvmsg(2) on a socket that does not block. The time, by the clock of
// the day, is when the last of what is read reached the socket; 0 if the socket
// does not say (SO_TIMESTAMPNS).
func (s *stamped) read(fd int, b []byte) (n int, at int64, err unix.Errno) {
	s.vec = unix.Iovec{Base: unsafe.SliceData(b)}
	s.vec.SetLen(len(b))
	s.head = unix.Msghdr{Iov: &s.vec, Control: &s.control[0]}
	s.head.SetIovlen(1)
	s.head.SetControllen(len(s.control))
	got, _, err := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&s.head)), 0)
	if err != 0 || int(s.head.Controllen) < unix.SizeofCmsghdr+int(unsafe.Sizeof(unix.Timespec{})) {
		return int(got), 0, err
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&s.control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_TIMESTAMPNS {
		return int(got), 0, err
	}
	return int(got), (*unix.Timespec)(unsafe.Pointer(&s.control[unix.CmsgLen(0)])).Nano(), err
}
