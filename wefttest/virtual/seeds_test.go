//go:build long

package virtual

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"testing"
)

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
