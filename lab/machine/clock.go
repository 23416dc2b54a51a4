package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic reads the clock that timers of this machine run on.
func Monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}
