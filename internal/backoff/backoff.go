// Package backoff paces attempts: the pauses between those that fail, and
// waiting for one.
//
// There is no jitter: who retries with whom follows from their switches and
// connections, and a seed of wefttest/virtual determines every pause. It imports
// the standard library only.
package backoff

import (
	"context"
	"time"
)

// Exponential is the pauses after failed attempts: First, then Factor times as long
// each time, up to Last.
type Exponential struct {
	First, Last time.Duration
	Factor      int // 0: 2

	pause time.Duration // the last one
}

// Next returns the pause after another failure.
func (b *Exponential) Next() time.Duration {
	factor := max(b.Factor, 2)
	b.pause = min(max(b.pause*time.Duration(factor), b.First), b.Last)
	return b.pause
}

// Reset makes the next pause the first again.
func (b *Exponential) Reset() { b.pause = 0 }

// After returns the pause after the n-th failure in a row, from 1.
func (b Exponential) After(n int) time.Duration {
	b.Reset()
	for b.Next(); n > 1 && b.pause < b.Last; n-- {
		b.Next()
	}
	return b.pause
}

// Wait waits for the next pause. It fails when ctx ends.
func (b *Exponential) Wait(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Sleep waits for d. It fails when ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
