package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
)

// Usage is what processes use of the machine.
type Usage struct {
	Processes int           `json:"processes"`
	CPU       time.Duration `json:"cpu_ns"` // since they began
	Memory    uint64        `json:"memory"` // octets: their own, and their shares of what they have with others
}

// Memory returns the machine's memory in octets, 0 if it is not known.
func Memory() uint64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == "MemTotal:" {
			kB, _ := strconv.ParseUint(string(f[1]), 10, 54)
			return kB << 10
		}
	}
	return 0
}

// Add adds what other processes use.
func (u *Usage) Add(v Usage) {
	u.Processes += v.Processes
	u.CPU += v.CPU
	u.Memory += v.Memory
}

// UsageIn returns what the processes in each of some network namespaces use, by its name;
// those without processes are left out.
func UsageIn(spaces []string) (map[string]Usage, error) {
	names := map[Inode]string{}
	for _, ns := range spaces {
		if in, ok := InodeOf(NetnsPath(ns)); ok {
			names[in] = ns
		}
	}
	pids, err := AllProcesses()
	if err != nil {
		return nil, err
	}
	all := map[string]Usage{}
	for _, pid := range pids {
		in, ok := InodeOf(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
		if name := names[in]; ok && name != "" {
			u := all[name]
			u.Add(usageOf(pid))
			all[name] = u
		}
	}
	return all, nil
}

func usageOf(pid int) Usage {
	const resident = 24
	u := Usage{Processes: 1, CPU: cputime.Sum(pid)}
	if u.Memory = share(pid); u.Memory == 0 {
		u.Memory = statField(pid, resident) * uint64(os.Getpagesize())
	}
	return u
}

// share returns the proportional set size of a process in octets, 0 if it is not told.
func share(pid int) uint64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
			kB, _ := strconv.ParseUint(string(f[1]), 10, 54)
			return kB << 10
		}
	}
	return 0
}
