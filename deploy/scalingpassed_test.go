package deploy

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestPassages: what packets took counts once for each look at a process, and from 0 in one
// that was not there before.
func TestPassages(t *testing.T) {
	look := func(short, long uint64) *api.ProcessWork {
		return &api.ProcessWork{Work: []*api.Work{{Service: "hosts", Work: "stage", Passages: []*api.WorkTimes{{From: 0.001, To: 0.001, Count: short}, {From: 0.009, To: 0.009, Count: long}}}}}
	}
	w, now := &scaled{}, time.Unix(1000, 0)
	w.errors.Decided(90, 0.001, now)
	w.passed(&api.ProcessWork{}, look(40, 0))
	w.passed(look(40, 0), look(100, 5))
	w.passed(look(100, 5), look(100, 20))
	w.errors.Decided(90, 0.001, now.Add(time.Minute))
	if off, n := w.errors.Median(); n != 1 || w.errors.Count != 120 || w.errors.Measured != 0.009 || off < 0.8 {
		t.Errorf("off by %v in %d minutes, measured %v of %d", off, n, w.errors.Measured, w.errors.Count)
	}
}
