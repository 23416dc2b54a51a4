package scp

import (
	"context"
	"math"
	"sync"
	"time"
)

// Outcome is what has come of a fault in a plan.
type Outcome struct {
	Fault, Plan  string
	Sent, Failed int           // requests of two consumers to the end point
	Broken       int           // pairs of them that had another producer, or whose kept connection ended
	Answers      time.Duration // after which discovery has answered; 0 if it has not
	Wrong        string        // what is wrong but for the time, empty if nothing is
}

// mark is within what time discovery is to answer.
const mark = time.Second

// row returns the sample of an outcome.
func (o Outcome) row() []string {
	bad, verdict := "0", "held"
	if o.Wrong != "" {
		bad, verdict = "1", o.Wrong
	}
	answers := math.NaN()
	if o.Answers > 0 {
		answers = float64(o.Answers.Microseconds()) / 1e3
	}
	return []string{o.Fault, counted(o.Sent), counted(o.Failed), counted(o.Broken), written(answers), bad, verdict}
}

// firstOf returns after what time something succeeds, tried every 20 ms whether or not
// earlier tries have ended; 0 if it does not.
func firstOf(ctx context.Context, most time.Duration, try func(context.Context) error) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	began := time.Now()
	good := make(chan time.Duration, 1)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel() // before that
	for {
		work.Go(func() {
			if try(ctx) == nil {
				select {
				case good <- time.Since(began):
				default:
				}
			}
		})
		select {
		case <-ctx.Done():
			return 0
		case d := <-good:
			return d
		case <-time.After(20 * time.Millisecond):
		}
	}
}
