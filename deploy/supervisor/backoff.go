package supervisor

import (
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// restarts computes the delays of restarts: none for the first, then pauses. It
// starts over after a stable run.
type restarts struct {
	pauses   backoff.Exponential
	stable   time.Duration
	failures int // since the last stable run
}

// after returns the delay after a run of some length.
func (r *restarts) after(ran time.Duration) time.Duration {
	if ran >= r.stable {
		r.failures = 0
	}
	r.failures++
	if r.failures == 1 {
		return 0
	}
	return r.pauses.After(r.failures - 1)
}
