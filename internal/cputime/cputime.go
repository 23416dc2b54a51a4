// Package cputime reads how much time of processors threads and processes have had:
// other than the time that passes, it does not depend on what else the machine does.
package cputime

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Used returns the time of processors that this process has used, for itself and
// in the system on its behalf; 0 if the system does not tell.
func Used() time.Duration { return orZero(read(unix.CLOCK_PROCESS_CPUTIME_ID)) }

// Thread is Used for the thread that the caller runs on, to which it should be locked.
func Thread() time.Duration { return orZero(read(unix.CLOCK_THREAD_CPUTIME_ID)) }

// Of is Used for another process. It fails if that has ended.
func Of(pid int) (time.Duration, error) {
	used, err := read(int32(^pid<<3 | 2)) // clock_getcpuclockid(3)
	if err != nil {
		return 0, fmt.Errorf("time of processors of process %d: %w", pid, err)
	}
	return used, nil
}

// Sum returns what processes have used; those that have ended are left out.
func Sum(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		sum += orZero(Of(pid))
	}
	return sum
}

// Descendants returns processes and all that descend from them.
func Descendants(pids ...int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		b, err := os.ReadFile(file)
		// The name, in parentheses, may hold spaces: count from its end (proc_pid_stat(5)).
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if err != nil || len(f) < 2 {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], pid)
	}
	all := append([]int(nil), pids...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

func read(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}

func orZero(d time.Duration, err error) time.Duration {
	if err != nil {
		return 0
	}
	return d
}
