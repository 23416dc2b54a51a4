package session

import (
	"syscall"
	"unsafe"
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
