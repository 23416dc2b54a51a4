package hydra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
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

func (r rehearsal) beats(_ context.Context, b beatCase, _ uint64) (list []beatSample, err error) {
	*r.taken = append(*r.taken, b.String())
	if r.unsteady(b) {
		return nil, fmt.Errorf("partition: %w: of 1, 2 and 3 (it runs); it said:\nnothing", errUnsteady)
	}
	for _, of := range b.samples() {
		list = append(list, beatSample{of, rehearsedBeats(of)})
	}
	return list, nil
}

// rehearsedBeats is a sample: at 70 % of saturation 0.2 % are late.
func rehearsedBeats(of beatCase) []string {
	late := "0"
	if of.load == 70 {
		late = "2"
	}
	return []string{"1000", "900", "900", "1", "2", "1000", "0", late, "0", "0.5", "1", "2", "9", "11", "0.1", "0.5:900 2:90 11:8 +Inf:2"}
}

func (rehearsal) Close() error { return nil }

// TestNotMeasured: what cannot be measured is told and costs the rest nothing.
func TestNotMeasured(t *testing.T) {
	taken := []string{}
	run := func(unsettled string, unsteady func(beatCase) bool) (experiments.Summary, error) {
		taken = nil
		e := heartbeats()
		e.Cases = func(experiments.Parameters) []experiments.Case {
			return beatControllers(false, func(_ context.Context, of sliceConfig) (beatController, error) {
				if of.String() == unsettled {
					return nil, errors.Join(fmt.Errorf("%w: 3 of 4 links", errUnsettled), errors.New("and more"))
				}
				return rehearsal{&taken, unsteady}, nil
			})
		}
		return experiments.Run(t.Context(), e, experiments.Parameters{Runs: 1, Seed: 1}, t.TempDir(), 0, &experiments.Progress{})
	}
	topological, shipped, hybrid, functional := beatSlices(false)[0].String(), beatSlices(false)[1].String(), beatSlices(false)[2].String(), beatSlices(false)[3].String()
	if _, err := run(functional, func(beatCase) bool { return true }); err == nil || !strings.Contains(err.Error(), errUnsteady.Error()) || !strings.Contains(err.Error(), errUnsettled.Error()) {
		t.Errorf("nothing was measured, and the error is: %v", err)
	}
	s, err := run(hybrid, func(b beatCase) bool { return b.of == functional && b.asked == bySwitch })
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, f := range s.Failed {
		failed[f.Case] = f.Error
	}
	if len(failed) != 3 || failed[hybrid] != errUnsettled.Error()+": 3 of 4 links" || failed[functional+", 100/s, asked by the switch"] != "partition: "+errUnsteady.Error()+": of 1, 2 and 3 (it runs)" {
		t.Errorf("failed: %q", failed)
	}
	marks := map[string]float64{}
	for _, c := range s.Claims {
		if strings.HasPrefix(c.What, "load up to which 99.9 %") && !math.IsNaN(c.Ours) {
			marks[c.What[strings.Index(c.What, "10 ms, ")+7:]] = c.Ours
		}
	}
	want := map[string]float64{}
	for _, of := range []string{topological + ", 100/s, asked by the switch", topological + ", 100/s, asked by the controller",
		shipped + ", 100/s, asked by the switch", shipped + ", 100/s, asked by the controller", functional + ", 100/s, asked by the controller"} {
		want[of+", priority"] = 60
	}
	if !maps.Equal(marks, want) {
		t.Errorf("the mark is kept up to %v, want %v", marks, want)
	}
}
