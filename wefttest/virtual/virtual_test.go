package virtual

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seed    = flag.Uint64("seed", 0, "the seed of the schedule that TestSchedule runs")
	only    = flag.String("only", "", "the only faults that TestSchedule has, as it names them: STORM.NUMBER,...; none for none")
	logs    = flag.String("logs", "", "file for the log of the controller of TestSchedule")
	events  = flag.String("events", "", "file for all events of TestSchedule")
	manages = flag.Bool("managed", false, "TestSchedule runs the services of policies, too")
	state   = flag.String("state", "", "file for the final state of TestSchedule")
	storms  = flag.Int("storms", 0, "how many storms TestSchedule has; 0: as many as come within its time")
	against = flag.String("against", "", "file of all events of a run of the seed: TestSchedule ends at the first that is another")
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

// TestSchedule runs the schedule of the flag seed, in a program that TestVirtual
// has built.
func TestSchedule(t *testing.T) {
	if *seed == 0 {
		return // it is TestVirtual that runs schedules
	}
	lines := bufio.NewWriterSize(io.Discard, 1<<20)
	if *events != "" {
		file, err := os.Create(*events)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines.Reset(file)
	}
	var others *bufio.Scanner
	if *against != "" {
		file, err := os.Open(*against)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		others = bufio.NewScanner(file)
		others.Buffer(make([]byte, 1<<20), 1<<26)
	}
	w, err := schedule(t, *seed, func(w *world) {
		w.storms = *storms
		if *manages {
			w.manage()
		}
		w.trace.against = others
		if *only != "" {
			w.only = map[string]bool{}
			for id := range strings.SplitSeq(*only, ",") {
				w.only[id] = true
			}
		}
		if *events != "" {
			w.trace.lines = lines
		}
	})
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	if *logs != "" {
		if err := os.WriteFile(*logs, w.logs.b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, strings.TrimSpace(w.story.String()))
	} else if *state != "" {
		if err := os.WriteFile(*state, []byte(w.final.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("final %d\t%s\n", w.blown, strings.Join(w.final.digests(), "\t"))
	fmt.Printf("faults %s\n", strings.Join(w.befell, " "))
	fmt.Printf("trace %016x of %d events\n", w.trace.sum(), w.trace.count)
}
