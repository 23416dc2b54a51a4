package virtual

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	runSeeds(t, program, ordinaryGolden, *first, *schedules)
}

// TestManagedSchedules is TestSchedules with the services of policies, and half as many.
func TestManagedSchedules(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runSeeds(t, program, managedGolden, *first, (*schedules+1)/2, "-managed")
}

// runSeeds runs n schedules, of the seeds from first on, one for each processor at once, with
// the flags of their kind. It compares their final states with those recorded, or, with -update, records them.
func runSeeds(t *testing.T, program string, golden goldenFile, first uint64, n int, kind ...string) {
	known := golden.read(t)
	seeds := make(chan uint64)
	var mu sync.Mutex      // guards known and unsettled
	var unsettled []uint64 // seeds without a final state (errUnsettled)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for s := range seeds {
				mu.Lock()
				before, recorded := known[s]
				mu.Unlock()
				state := filepath.Join(t.TempDir(), "state")
				flags := append([]string{"-state", state}, kind...)
				if recorded = recorded && !*update; recorded { // as many storms, however long the calm after each takes now
					flags = append(flags, "-storms", fmt.Sprint(before.storms))
				}
				out, err := runSeed(t.Context(), program, s, flags...)
				if err != nil {
					t.Errorf("seed %d: %v; again: make virtual FIRST=%d SCHEDULES=1\n%s", s, err, s, out)
					continue
				}
				now, ok := goldenOf(out)
				switch {
				case !ok:
					t.Errorf("seed %d: no final state:\n%s", s, out)
				case len(now.digests) == 0:
					mu.Lock()
					unsettled = append(unsettled, s)
					mu.Unlock()
				case *update:
					mu.Lock()
					known[s] = now
					mu.Unlock()
				case recorded:
					text, _ := os.ReadFile(state)
					for _, name := range before.differences(now) {
						t.Errorf("seed %d: the final state is not the one recorded: %s is now\n%s\nThe whole: go test ./wefttest/virtual -run TestSchedule$ -seed %d -storms %d -state FILE, here and at the commit that recorded it; if it may differ, make virtual UPDATE=1.",
							s, name, sectionOf(string(text), name), s, before.storms)
					}
				}
			}
		})
	}
	for i := range n {
		seeds <- first + uint64(i)
	}
	close(seeds)
	all.Wait()
	if t.Logf("without a final state, since %v: seeds %v", errUnsettled, unsettled); len(unsettled) > 1+n/10 {
		t.Errorf("%d of %d schedules have no final state to compare", len(unsettled), n)
	}
	if *update {
		golden.write(t, known)
	}
}

// runSeed runs one schedule in a process of its own, with further flags, and returns what
// it prints.
func runSeed(ctx context.Context, program string, seed uint64, flags ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.run", "^TestSchedule$", "-test.timeout", "30m", "-seed", fmt.Sprint(seed)}, flags...)...)
	cmd.Env = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,memprofilerate=0", "GOGC=off"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
