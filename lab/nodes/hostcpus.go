package nodes

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// CheckCPUs reports the CPUs of hosts that this machine does not have, or that
// this process may not use.
func (s Hosts) CheckCPUs() error {
	if !slices.ContainsFunc(s.Topology.Hosts, func(h topology.Host) bool { return len(h.CPUs) > 0 }) {
		return nil
	}
	has := map[int]bool{}
	var all []int
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: this thread ends with the goroutine
		for n := range min(topology.MostCPU+1, runtime.NumCPU()+64) {
			if has[n] = machine.Confine([]int{n}) == nil; has[n] {
				all = append(all, n)
			}
		}
	}()
	<-done
	var problems topology.Problems
	for i := range s.Topology.Hosts {
		h := &s.Topology.Hosts[i]
		for _, n := range h.CPUs {
			if !has[n] {
				problems = append(problems, s.Topology.ProblemOf(h, fmt.Sprint(all), "this machine has no CPU %d", n))
			}
		}
	}
	return problems.Short()
}
