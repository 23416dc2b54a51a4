package lab

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// Usage is what processes use of the machine.
type Usage struct {
	Processes int           `json:"processes"`
	CPU       time.Duration `json:"cpu_ns"` // since they began
	Memory    uint64        `json:"memory"` // octets: their own, and their shares of what they have with others
}

// Sample is what the nodes of a lab use of a machine, at a time by its clock.
type Sample struct {
	Taken      time.Time        `json:"taken"`
	Processors int              `json:"processors"`
	Memory     uint64           `json:"memory"` // of the machine, octets; 0 if it is not known
	Nodes      map[string]Usage `json:"nodes"`  // those with a namespace of their own
	Shared     Usage            `json:"shared"` // of what the other switches share
}

// Sample returns what the lab's nodes use now.
func (l *Lab) Sample() (Sample, error) {
	use, err := l.Usage()
	s := Sample{Taken: time.Now(), Processors: runtime.NumCPU(), Memory: memory(), Nodes: map[string]Usage{}, Shared: use[l.SwitchNetns()]}
	for _, node := range l.NodeNames() {
		if place, err := l.PlaceOf(node); err == nil && place.Own {
			s.Nodes[node] = use[place.Namespace]
		}
	}
	return s, err
}

// SumSamples is what the nodes of a lab use of all of its machines.
func SumSamples(samples []Sample) Sample {
	all := Sample{Nodes: map[string]Usage{}}
	for _, s := range samples {
		all.Taken, all.Processors, all.Memory = s.Taken, all.Processors+s.Processors, all.Memory+s.Memory
		maps.Copy(all.Nodes, s.Nodes)
		all.Shared.Add(s.Shared)
	}
	return all
}

// Samples returns what the lab's nodes use now of each of its machines: of this one.
func (l *Lab) Samples(context.Context) ([]Sample, error) {
	s, err := l.Sample()
	return []Sample{s}, err
}

// memory returns the machine's memory in octets, 0 if it is not known.
func memory() uint64 {
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
			u.Add(usageOf(pid))
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
