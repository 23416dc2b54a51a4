//go:build long

package virtual

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

var times = flag.Int("times", 5, "how often TestSame runs each seed")

// TestSame: a seed is the same run to the event, however often and beside whatever.
func TestSame(t *testing.T) {
	program := build(t, *keep, inRuntime(t))
	slots := make(chan struct{}, runtime.NumCPU())
	for i := range *schedules {
		seed := *first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			events := filepath.Join(t.TempDir(), "events")
			_, _ = runSeed(t.Context(), program, seed, "-events", events) // whether it passes is TestVirtual's
			var one string
			for n := range *times - 1 {
				out, _ := runSeed(t.Context(), program, seed, "-against", events)
				sum := sumIn.FindString(out)
				if one == "" {
					one = sum
				}
				if sum == "" || sum != one {
					t.Fatalf("run %d is another:\n%s", n+2, out)
				}
			}
		})
	}
}

var sumIn = regexp.MustCompile("trace [0-9a-f]{16} .*")
