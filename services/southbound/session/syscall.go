package session

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls return at once. They do not report to Go's scheduler that the
// thread is in the kernel: the scheduler would take its processor away if a
// call lasted long, and the thread would wait for one behind all ready
// goroutines.

// readNow is read(2) from a nonblocking socket.
func readNow(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// writeNow is write(2) to a nonblocking socket.
func writeNow(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// epollNow is epoll_wait(2) with a timeout of 0.
func epollNow(epoll int, events []unix.EpollEvent) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
