package shm

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// window is how long a reader waits for what is due before it sleeps. The kernel
// may make more of it, as it does of all timers of a worker.
const window = 50 * time.Microsecond

// maxSkip bounds how many times a reader sleeps at once after it has waited in
// vain.
const maxSkip = 15

// maxWaits bounds how many times in a row a reader waits with success. Then it
// sleeps once, so that Go's runtime comes to look after other sockets though
// this process has a single processor.
const maxWaits = 16

// brief is a reader's wait for octets in a ring, in a futex: it and being woken
// from it take less than Go's poller does, but Go's runtime does not know that
// the goroutine waits. So it is short, and there is none while it has been in
// vain lately.
type brief struct {
	skip   int // times to go without
	failed int // how many of these the last failure has brought
	waits  int // successes since the reader last slept
}

// wait waits briefly and reports whether there is something to read. Other
// goroutines run before.
func (w *brief) wait(r *ring) bool {
	if w.waits == maxWaits {
		w.waits = 0
		return false
	}
	if w.skip > 0 {
		w.skip--
		return false
	}
	runtime.Gosched()
	n, err := r.filled()
	if n == 0 && err == nil {
		r.waiting.Store(inFutex)
		if n, err = r.filled(); n == 0 && err == nil {
			futexWait(&r.waiting, inFutex, window)
			n, err = r.filled()
		}
		r.waiting.Store(0)
	}
	if n == 0 && err == nil {
		w.failed = min(2*w.failed+1, maxSkip)
		w.skip = w.failed
		return false
	}
	w.failed = 0
	w.waits++
	return true
}

// Operations of futex(2).
const (
	futexOpWait = 0
	futexOpWake = 1
)

// futexWait waits until it is woken, if word has the value, or for a time.
func futexWait(word *atomic.Uint32, value uint32, d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(value), uintptr(unsafe.Pointer(&t)), 0, 0) // whatever ends it
}

// futexWake wakes those who wait at word.
func futexWake(word *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, 1, 0, 0, 0) // nobody may wait
}
