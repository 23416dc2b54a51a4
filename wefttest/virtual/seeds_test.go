package virtual

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
)

var (
	first     = flag.Uint64("first", 1, "the first seed of TestSchedules and TestVirtual")
	schedules = flag.Int("schedules", 6, "how many schedules they run")
)

// TestSchedules runs schedules with Go's runtime as it is: nothing is built anew, and
// what happens at one instant may come in another order each time. The time stands
// still while a goroutine waits for a mutex whose holder waits for the store, a switch
// or another process: such a schedule does not end, for no service may do that.
func TestSchedules(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runSeeds(t, program, *first, *schedules)
}

// runSeeds runs n schedules, of the seeds from first on, one for each processor at once.
func runSeeds(t *testing.T, program string, first uint64, n int) {
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for s := range seeds {
				if out, err := runSeed(t.Context(), program, s); err != nil {
					t.Errorf("seed %d: %v; again: make virtual FIRST=%d SCHEDULES=1\n%s", s, err, s, out)
				}
			}
		})
	}
	for i := range n {
		seeds <- first + uint64(i)
	}
	close(seeds)
	all.Wait()
}

// runSeed runs one schedule in a process of its own, with further flags, and returns what
// it prints.
func runSeed(ctx context.Context, program string, seed uint64, flags ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.run", "^TestSchedule$", "-test.timeout", "30m", "-seed", fmt.Sprint(seed)}, flags...)...)
	cmd.Env = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,memprofilerate=0", "GOGC=off"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
