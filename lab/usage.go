package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Usage is what processes use of the machine.
type Usage struct {
	Processes int
	CPU       time.Duration // since they began
	Memory    uint64        // octets: their own, and their shares of what they have with others
}

func (u *Usage) add(v Usage) {
	u.Processes += v.Processes
	u.CPU += v.CPU
	u.Memory += v.Memory
}

// Usage returns what the processes in each network namespace of the lab use, by
// its name; those without processes are left out.
func (l *Lab) Usage() (map[string]Usage, error) {
	names := map[inode]string{}
	for _, ns := range labNetns(l.state.Name) {
		if in, ok := inodeOf(netnsPath(ns)); ok {
			names[in] = ns
		}
	}
	pids, err := allProcesses()
	if err != nil {
		return nil, err
	}
	all := map[string]Usage{}
	for _, pid := range pids {
		in, ok := inodeOf(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
		if name := names[in]; ok && name != "" {
			u := all[name]
			u.add(usageOf(pid))
			all[name] = u
		}
	}
	return all, nil
}

// ticks is how many a second of processor time has, for every program (proc(5),
// sysconf(3)).
const ticks = 100

func usageOf(pid int) Usage {
	const user, system, resident = 14, 15, 24
	u := Usage{Processes: 1, CPU: time.Duration(statField(pid, user)+statField(pid, system)) * time.Second / ticks}
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
