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
// never is too long: the supervisor itself may have been held up. Nor is a
// process given up that has no time to answer: as long as it is busy, that
// counts as a sign of life, up to BusyTimeout.
func (s *Supervisor) probe(ctx context.Context, name string, id identity, verdicts chan<- verdict) {
	report := func(v verdict) {
		select {
		case verdicts <- v:
		case <-ctx.Done():
		}
	}
	patience := s.config.StartTimeout
	var since, worked time.Time // of the first failure in a row, and when it was last seen to be busy
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
