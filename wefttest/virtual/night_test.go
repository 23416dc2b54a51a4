//go:build long

package virtual

import (
	"flag"
	"testing"
)

var keep = flag.String("keep", "", "where TestVirtual leaves the program that runs schedules")

// TestVirtual runs schedules, each in a process of its own, built such that the
// seed determines what happens.
func TestVirtual(t *testing.T) {
	runSeeds(t, build(t, *keep, inRuntime(t)), ordinaryGolden, *first, *schedules)
}

// TestManaged is TestVirtual with the services of policies: at most managedSchedules.
func TestManaged(t *testing.T) {
	runSeeds(t, build(t, *keep, inRuntime(t)), managedGolden, *first, min(*schedules, managedSchedules), "-managed")
}

// managedSchedules is how many schedules of the services of policies are recorded.
const managedSchedules = 40
