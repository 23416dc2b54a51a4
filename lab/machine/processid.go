package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ProcessID names a process for good: its pid may be given again, its pid and
// start time not.
type ProcessID struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks since the machine started
}

func Self() ProcessID { return ProcessID{os.Getpid(), startOf(os.Getpid())} }

// Runs reports whether the process has not ended.
func (p ProcessID) Runs() bool { return p.PID != 0 && startOf(p.PID) == p.Started }

// parentOf returns the parent of a process, 0 if there is none to be seen.
func parentOf(pid int) int { return int(statField(pid, 4)) }

// startOf returns when a process started, 0 if it has ended.
func startOf(pid int) uint64 { return statField(pid, 22) }

// statField returns a number of /proc/PID/stat, from the fourth on as proc(5)
// counts them; 0 if there is no such process, or if it is a zombie.
func statField(pid, n int) uint64 {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	if len(fields) < n-2 || fields[0] == "Z" {
		return 0
	}
	v, err := strconv.ParseUint(fields[n-3], 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// ticks is how many a second of processor time has, for every program (proc(5),
// sysconf(3)).
const ticks = 100
