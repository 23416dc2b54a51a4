// Package cputime tells how much time of processors this process has had: other
// than the time that passes, it does not depend on what else the machine does.
//
// It imports the standard library only.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the time of processors that this process has used, for itself and
// in the system on its behalf (getrusage(2)); 0 if the system does not tell.
func Used() time.Duration { return used(syscall.RUSAGE_SELF) }

// Thread is Used for the thread that the caller runs on, to which it should be locked.
func Thread() time.Duration { return used(rusageThread) }

// rusageThread is RUSAGE_THREAD of Linux.
const rusageThread = 1

func used(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
