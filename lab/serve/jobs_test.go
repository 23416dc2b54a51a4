package serve

import (
	"context"
	"testing"

	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/internal/testwait"
)

// TestDoneIsFree: the place of a job is free before anybody sees that it is done.
func TestDoneIsFree(t *testing.T) {
	j := jobs{places: shares.New(shares.Limits{What: "jobs", Places: 1})}
	done := make(chan struct{})
	do := func(context.Context, *job) error { <-done; return nil }
	if _, err := j.start(t.Context(), machineservice.Caller{Name: "one"}, "up", "lab", nil, do); err != nil {
		t.Fatal(err)
	}
	n := j.all[0]
	n.mu.Lock() // so that it cannot be said to be done
	close(done)
	testwait.Until(t, "the place is free", func() bool { return j.places.Len() == 0 })
	n.mu.Unlock()
	j.wg.Wait()
	if !n.snapshot(false).GetDone() {
		t.Error("the job is not done")
	}
}
