package virtual

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seed      = flag.Uint64("seed", 0, "the seed of the schedule that TestSchedule runs")
	first     = flag.Uint64("first", 1, "the first seed of TestVirtual")
	schedules = flag.Int("schedules", 20, "how many schedules TestVirtual runs")
	keep      = flag.String("keep", "", "where TestVirtual leaves the program that runs schedules")
	logs      = flag.String("logs", "", "file for the log of the controller of TestSchedule")
)

// TestPing: two hosts at two switches reach each other through a controller of
// one process.
func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a, b := w.addSwitch(), w.addSwitch()
		w.addLink(a, b)
		h1, h2 := w.addStation(a), w.addStation(b)
		if err := w.cluster.apply(ctx, layouts[0].with(w.chance)); err != nil {
			t.Fatal(err)
		}
		w.work.Go(func() { w.cluster.supervise(ctx) })
		w.powerOn(ctx, a)
		w.powerOn(ctx, b)
		if !h1.ping(ctx, h2, w.number(), 20*time.Second) {
			t.Errorf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
		}
		cancel()
		w.cluster.stop()
		w.work.Wait()
	})
}

// TestVirtual runs schedules, each in a process of its own, built such that the
// seed determines what happens. To run one that has failed again:
//
//	go test ./wefttest/virtual -run TestVirtual -first SEED -schedules 1
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

// TestSchedule runs the schedule of the flag seed, in a program that TestVirtual
// has built.
func TestSchedule(t *testing.T) {
	if *seed == 0 {
		return // it is TestVirtual that runs schedules
	}
	err, w := schedule(t, *seed)
	if *logs != "" {
		if err := os.WriteFile(*logs, w.logs.b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, strings.TrimSpace(w.story.String()))
	}
	fmt.Printf("trace %016x\n", w.trace.sum())
}
