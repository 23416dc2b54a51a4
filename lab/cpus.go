package lab

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// mostCPU is the highest number of a CPU that can be named.
const mostCPU = 1023

func (c *checker) cpus(h *Host) {
	for i, n := range h.CPUs {
		switch {
		case n < 0 || n > mostCPU:
			c.add(h.line, fmt.Sprintf("0 to %d", mostCPU), "host %s: CPU %d", h.Name, n)
		case slices.Contains(h.CPUs[:i], n):
			c.add(h.line, "", "host %s: CPU %d is named twice", h.Name, n)
		}
	}
}

// checkCPUs reports the CPUs of hosts that this machine does not have, or that
// this process may not use.
func (s *state) checkCPUs() error {
	if !slices.ContainsFunc(s.Topology.Hosts, func(h Host) bool { return len(h.CPUs) > 0 }) {
		return nil
	}
	has := map[int]bool{}
	var all []int
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: this thread ends with the goroutine
		for n := range min(mostCPU+1, runtime.NumCPU()+64) {
			if has[n] = confine([]int{n}) == nil; has[n] {
				all = append(all, n)
			}
		}
	}()
	<-done
	var problems Problems
	for i := range s.Topology.Hosts {
		h := &s.Topology.Hosts[i]
		for _, n := range h.CPUs {
			if !has[n] {
				problems = append(problems, Problem{File: s.Topology.file, Line: h.line,
					What: fmt.Sprintf("host %s: this machine has no CPU %d", h.Name, n), Allowed: fmt.Sprint(all)})
			}
		}
	}
	if len(problems) > 0 {
		return problems.first()
	}
	return nil
}

// confine has this thread, and what it starts, use these CPUs alone.
func confine(cpus []int) error {
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("use CPUs %v: %w", cpus, err)
	}
	return nil
}
