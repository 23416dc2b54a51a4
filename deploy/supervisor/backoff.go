package supervisor

import "time"

// backOff computes the delay of a restart: none for the first, then min,
// doubled each time up to max. It starts over after a stable run.
type backOff struct {
	min, max, stable time.Duration
	failures         int // since the last stable run
}

// after returns the delay after a run of some length.
func (b *backOff) after(ran time.Duration) time.Duration {
	if ran >= b.stable {
		b.failures = 0
	}
	b.failures++
	if b.failures == 1 {
		return 0
	}
	delay := b.min
	for i := 2; i < b.failures && delay < b.max; i++ {
		delay *= 2
	}
	return min(delay, b.max)
}
