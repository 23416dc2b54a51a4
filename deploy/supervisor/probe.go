package supervisor

import (
	"context"
	"fmt"
	"time"
)

// verdict is what the probes of a run say.
type verdict struct {
	alive bool
	why   string // it is not
}

// probe probes a run until ctx ends or it is given up. It reports the first
// sign of life, and when there has been none for too long. One failure alone
// never is too long: the supervisor itself may have been held up.
func (s *Supervisor) probe(ctx context.Context, name string, verdicts chan<- verdict) {
	report := func(v verdict) {
		select {
		case verdicts <- v:
		case <-ctx.Done():
		}
	}
	patience := s.config.StartTimeout
	var since time.Time // of the first failure in a row
	failures, alive := 0, false
	ticker := time.NewTicker(s.config.ProbeEvery)
	defer ticker.Stop()
	for {
		begun := time.Now()
		limit, cancel := context.WithTimeout(ctx, min(max(s.config.ProbeEvery, time.Second), s.config.UnresponsiveAfter))
		err := s.config.Probe(limit, name)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures, patience = 0, s.config.UnresponsiveAfter
			if !alive {
				alive = true
				report(verdict{alive: true})
			}
		default:
			if failures++; failures == 1 {
				since = begun
			}
			if d := time.Since(since); failures > 1 && d >= patience {
				report(verdict{why: fmt.Sprintf("no sign of life for %v: %v", d.Round(time.Millisecond), err)})
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
