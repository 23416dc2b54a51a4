package southbound

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls return at once. They do not tell Go's scheduler that the thread is
// in the kernel: it would take the processor's share away if that lasted for
// long, and get in line for it behind all goroutines that are ready.

// readNow is read(2) of a socket that does not block.
func readNow(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// writeNow is write(2) to a socket that does not block.
func writeNow(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// epollNow is epoll_wait(2) that does not wait.
func epollNow(epoll int, events []unix.EpollEvent) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
