//go:build long

package virtual

import (
	"cmp"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var befellIn = regexp.MustCompile("(?m)^faults (.*)$")

// TestFewest prints the shortest list of faults with which the schedule of the flag seed
// still fails, and how it does.
func TestFewest(t *testing.T) {
	program := build(t, *keep, inRuntime(t))
	run := func(list []string) (string, bool) {
		out, err := runSeed(t.Context(), program, *seed, "-only", cmp.Or(strings.Join(list, ","), "none"))
		return out, err != nil
	}
	all, err := runSeed(t.Context(), program, *seed)
	befell := befellIn.FindStringSubmatch(all)
	if err == nil || befell == nil {
		t.Fatalf("seed %d does not fail:\n%s", *seed, all)
	}
	var runs int
	list := shrink(strings.Fields(befell[1]), func(tries [][]string) int {
		fails := make([]bool, len(tries))
		slots := make(chan struct{}, runtime.NumCPU())
		var wg sync.WaitGroup
		for i, try := range tries {
			slots <- struct{}{}
			wg.Go(func() {
				_, fails[i] = run(try)
				<-slots
			})
		}
		wg.Wait()
		runs += len(tries)
		for i, f := range fails {
			if f {
				t.Logf("%d runs: fails with %s", runs, strings.Join(tries[i], ","))
				return i
			}
		}
		return -1
	})
	out, _ := run(list)
	t.Logf("after %d runs, seed %d fails with %d of %d faults, %s:\n%s", runs, *seed, len(list), len(strings.Fields(befell[1])), strings.Join(list, ","), out)
}
