package supervisor

import (
	"context"
	"fmt"
	"time"
)

// verdict is a result of the probes of a run.
type verdict struct {
	alive bool
	why   string // it is not
}

// probe probes a run until ctx ends or the run is given up. It reports the
// first answer, and a silence that lasts too long. A single failure never
// suffices, because the supervisor itself may have been delayed. A process that
// has no time to answer is not given up either: while it is busy, that counts
// as an answer, up to BusyTimeout.
func (s *Supervisor) probe(ctx context.Context, name string, id identity, verdicts chan<- verdict) {
	report := func(v verdict) {
		select {
		case verdicts <- v:
		case <-ctx.Done():
		}
	}
	patience := s.config.StartTimeout
	var since, worked time.Time // first failure in a row, and when the process was last busy
	var last effort
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
			failures, patience, last = 0, s.config.UnresponsiveAfter, effort{}
			if !alive {
				alive = true
				report(verdict{alive: true})
			}
		default:
			if failures++; failures == 1 {
				since, worked = begun, begun
			}
			now := time.Now()
			if e, failed := id.look(now); failed == nil {
				if failures > 1 && e.busy(last) {
					worked = now
				}
				last = e
			}
			silent := now.Sub(since)
			if failures > 1 && (now.Sub(worked) >= patience || silent >= max(patience, s.config.BusyTimeout)) {
				how := ""
				if worked.After(since) {
					how = fmt.Sprintf(", busy until %v ago", now.Sub(worked).Round(time.Millisecond))
				}
				report(verdict{why: fmt.Sprintf("no sign of life for %v%s: %v", silent.Round(time.Millisecond), how, err)})
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
