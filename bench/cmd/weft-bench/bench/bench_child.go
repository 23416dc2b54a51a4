package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/test/testbed"
)

// benchServices is which services of Weft's a bench starts.
type benchServices string

const (
	benchAll      benchServices = "all"
	benchLearning benchServices = "learning" // those of a learning switch
	benchFirewall benchServices = "firewall" // the same behind a firewall
)

// benchWeftArgs is how bench starts Weft's own controller.
func benchWeftArgs(openflow, http, dir string, services benchServices) []string {
	args := []string{"up", "--listen", openflow, "--http", http, "--data-dir", dir, "--quiet"}
	switch services {
	case benchLearning:
		args = append(args, "--services", "southbound,forwarding", "--set", "forwarding.mode=learning")
	case benchFirewall:
		args = append(args, "--services", "southbound,firewall,forwarding,flowrules,gateway", "--set", "forwarding.mode=learning")
	}
	return args
}

// benchCPUs is the processors that bench divides: one for what is measured,
// one for the load; -1 where there are not two.
type benchCPUs struct{ subject, load int }

// benchPin divides the processors and moves this process to its own; undo
// brings it back. If they are to be shared, it divides nothing: what runs in
// several processes is there to use several processors.
func benchPin(shared bool) (cpus benchCPUs, undo func(), err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); shared || err != nil || set.Count() < 2 {
		return benchCPUs{-1, -1}, func() {}, nil
	}
	var two []int
	for i := 0; len(two) < 2; i++ {
		if set.IsSet(i) {
			two = append(two, i)
		}
	}
	// One for each simulated network and one for the rest: with fewer, a network
	// that waits for its switches holds up the one that is being measured.
	was := runtime.GOMAXPROCS(3)
	undo = func() {
		runtime.GOMAXPROCS(was)
		_ = benchMove(set)
	}
	var own unix.CPUSet
	own.Set(two[1])
	if err := benchMove(own); err != nil {
		undo()
		return benchCPUs{}, nil, fmt.Errorf("pin the load to processor %d: %w", two[1], err)
	}
	return benchCPUs{two[0], two[1]}, undo, nil
}

// benchMove moves all threads of this process, and those to come, which
// inherit it, to a set of processors.
func benchMove(set unix.CPUSet) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// benchCPU returns the processor time that a process has used, without its children;
// zero if unknown.
func benchCPU(p *testbed.Process) time.Duration {
	if p == nil {
		return 0
	}
	return cputime.Sum(p.PID())
}

// benchMemory returns the memory of processes in octets, 0 if unknown: VmRSS is what
// is resident now, VmHWM what was at most.
func benchMemory(which string, pids ...int) (sum int64) {
	for _, pid := range pids {
		sum += benchMemoryOf(pid, which)
	}
	return sum
}

// benchMemoryOf returns the memory of a process.
func benchMemoryOf(pid int, which string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, which+":"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
