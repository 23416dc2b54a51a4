//go:build long

package virtual

import (
	"flag"
	"os"
	"testing"
)

var (
	first     = flag.Uint64("first", 1, "the first seed of TestVirtual")
	schedules = flag.Int("schedules", 20, "how many schedules TestVirtual runs")
	keep      = flag.String("keep", "", "where TestVirtual leaves the program that runs schedules")
)

// TestVirtual runs schedules, each in a process of its own, built such that the
// seed determines what happens.
func TestVirtual(t *testing.T) {
	runSeeds(t, build(t, *keep, inRuntime(t)), *first, *schedules)
}

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
