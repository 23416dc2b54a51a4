package hydra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/experiments"
)

// TestKeeps: a mark is kept up to a load if it is kept at all loads below, too.
func TestKeeps(t *testing.T) {
	for _, c := range []struct {
		late []float64
		want float64
	}{
		{[]float64{0, 0.1, 0.11}, 50}, {[]float64{0, 0, 0}, 70}, {[]float64{1, 0, 0}, 0}, {[]float64{0, 5, 0}, 30},
		{[]float64{0, math.NaN(), 0}, math.NaN()},
	} {
		got := keeps([]int{30, 50, 70}, func(load int) float64 { return c.late[(load-30)/20] })
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("late %v: kept up to %v, want %v", c.late, got, c.want)
		}
	}
}

// rehearsal is a controller that is none: what was taken on it, and of what the
// saturation is not steady.
type rehearsal struct {
	taken    *[]string
	unsteady func(beatCase) bool
}

func (r rehearsal) beats(_ context.Context, b beatCase, quick bool, _ uint64) (list []beatSample, err error) {
	*r.taken = append(*r.taken, b.String())
	if r.unsteady(b) {
		return nil, fmt.Errorf("partition: %w: of 1, 2 and 3 (it runs); it said:\nnothing", errUnsteady)
	}
	for _, of := range b.samples(quick) {
		due, late := "1000", "0"
		if of.load == 70 {
			late = "2"
		}
		list = append(list, beatSample{of, []string{"1000", "900", "900", "1", "2", due, "0", late, "0", "0.5", "1", "2", "9", "11", "0.1"}})
	}
	return list, nil
}

func (rehearsal) close() error { return nil }

// TestNotMeasured: what cannot be measured is told and costs the rest nothing; what
// was measured is not measured again.
func TestNotMeasured(t *testing.T) {
	dir, taken := t.TempDir(), []string{}
	run := func(unsettled slicing, unsteady func(beatCase) bool) (experiments.Summary, error) {
		taken = nil
		e := heartbeats()
		e.Run = func(ctx context.Context, c *experiments.Context) error {
			return heartbeatsOf(ctx, c, []slicing{topologicalSlicing, hybridSlicing, functionalSlicing}, func(_ context.Context, which slicing) (beatController, error) {
				if which == unsettled {
					return nil, errors.Join(fmt.Errorf("%w: 3 of 4 links", errUnsettled), errors.New("and more"))
				}
				return rehearsal{&taken, unsteady}, nil
			})
		}
		return experiments.Run(t.Context(), e, experiments.Parameters{Runs: 2, Seed: 1}, dir, 0, &experiments.Progress{})
	}
	if _, err := run(functionalSlicing, func(beatCase) bool { return true }); !errors.Is(err, errUnsteady) || !errors.Is(err, errUnsettled) {
		t.Errorf("nothing was measured, and the error is: %v", err)
	}
	if len(taken) != 8 {
		t.Errorf("%d cases are tried, want four each of two controllers, once: %q", len(taken), taken)
	}
	s, err := run(hybridSlicing, func(b beatCase) bool { return b.slicing == functionalSlicing && b.asked == bySwitch })
	if err != nil {
		t.Fatal(err)
	}
	if s.Figures["not_measured_hybrid"] != errUnsettled.Error()+": 3 of 4 links" || s.Figures["not_measured_functional_100_switch_from_run_1"] != "partition: "+errUnsteady.Error()+": of 1, 2 and 3 (it runs)" {
		t.Errorf("%v", s.Figures)
	}
	if _, err := json.Marshal(s); err != nil || !slices.Contains(s.Files, "plot.svg") || !slices.Contains(s.Files, "table.csv") {
		t.Errorf("%v, %v", s.Files, err)
	}
	var marks []float64
	for _, c := range s.Claims {
		if strings.Contains(c.What, "hybrid") || strings.Contains(c.What, "functional") && strings.Contains(c.What, bySwitch) {
			t.Errorf("%q is compared and was not measured", c.What)
		}
		if strings.HasPrefix(c.What, "load up to which 99.9 %") {
			marks = append(marks, c.Ours)
		}
	}
	if !slices.Equal(marks, []float64{60, 60, 60}) {
		t.Errorf("the mark is kept up to %v, want 60 of three", marks)
	}
	if s, err = run("", func(beatCase) bool { return false }); err != nil || len(taken) != 2*(4+2) {
		t.Errorf("%q are taken again, %v", taken, err)
	}
	for name := range s.Figures {
		if strings.HasPrefix(name, "not_measured") {
			t.Errorf("%s", name)
		}
	}
}
