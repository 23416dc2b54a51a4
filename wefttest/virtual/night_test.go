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
	runSeeds(t, build(t, *keep, inRuntime(t)), *first, *schedules)
}
