package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited says what this process was given that makes it, and what it starts, slower or
// faster than the machine's processors are: a nice value, a quota of processor time of its
// control group, fewer processors than there are.
func inherited() (list []string) {
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && raw != 20 {
		list = append(list, fmt.Sprintf("started at nice %d", 20-raw)) // the system call returns 20 less it
	}
	if quota := quotaOf("/sys/fs/cgroup", "/proc/self/cgroup"); quota != "" {
		list = append(list, "its control group has a quota: cpu.max "+quota)
	}
	var set unix.CPUSet
	if online := onlineProcessors(); unix.SchedGetaffinity(0, &set) == nil && set.Count() < online {
		list = append(list, fmt.Sprintf("it has %d of the %d processors", set.Count(), online))
	}
	return list
}

// quotaOf returns the tightest cpu.max of a control group and those above it, "quota
// period" in µs (cgroup-v2, cpu.max); empty if none has one.
func quotaOf(root, own string) string {
	text, err := os.ReadFile(own)
	if err != nil {
		return ""
	}
	_, path, ok := strings.Cut(strings.TrimSpace(string(text)), "::") // version 2: 0::/path
	if !ok {
		return ""
	}
	tightest, least := "", 0.0
	for dir := filepath.Join(root, path); strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		limit, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
		var quota, period float64
		if err != nil {
			continue
		}
		if n, _ := fmt.Sscan(string(limit), &quota, &period); n != 2 || period == 0 { // "max 100000" is none
			continue
		}
		if share := quota / period; tightest == "" || share < least {
			tightest, least = strings.TrimSpace(string(limit)), share
		}
	}
	return tightest
}

// onlineProcessors is how many processors the machine has; those that this process may
// use if the system does not tell.
func onlineProcessors() int {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return runtime.NumCPU()
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "cpu") && !strings.HasPrefix(line, "cpu ") {
			n++
		}
	}
	return n
}
