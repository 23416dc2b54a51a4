//go:build long

package virtual

import (
	"flag"
	"runtime"
	"sync"
	"testing"
)

var (
	first     = flag.Uint64("first", 1, "the first seed of TestVirtual")
	schedules = flag.Int("schedules", 20, "how many schedules TestVirtual runs")
	keep      = flag.String("keep", "", "where TestVirtual leaves the program that runs schedules")
)

// TestVirtual runs schedules, each in a process of its own, built such that the
// seed determines what happens. To run one that has failed again:
//
//	make virtual FIRST=SEED SCHEDULES=1
func TestVirtual(t *testing.T) {
	program := build(t, *keep, inRuntime(t))
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for s := range seeds {
				if out, err := runSeed(t.Context(), program, s); err != nil {
					t.Errorf("seed %d: %v\n%s", s, err, out)
				}
			}
		})
	}
	for n := range *schedules {
		seeds <- *first + uint64(n)
	}
	close(seeds)
	all.Wait()
}
