package run

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much, in nanoseconds, the kernel may be late with the
// timers of a worker. With the usual 50 µs the watchman thread of Go's runtime
// wakes up so often that, where two workers share a processor, it adds about a
// third to the time that a packet needs to cross (weft bench crossing: 59 µs,
// 31 µs with this). No timer of Weft's has to be that exact.
const timerSlack = 500_000

// easeTimers gives this process timerSlack. A thread hands it on to those that
// it starts, and through exec: so the program is executed once more, as the
// same process, unless that has been done. Where it is not possible, nothing
// is lost but time.
func easeTimers() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || now >= timerSlack {
		return
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
	// A real-time process has no slack whatever it asks for.
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && now >= timerSlack {
		_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
}
