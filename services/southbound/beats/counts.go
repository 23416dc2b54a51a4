package beats

import (
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
)

// counts are the beats of all switches since the process has begun.
type counts struct {
	beats, missed atomic.Uint64
	buckets       []bucket // by api.BeatBounds; the last has what is above all
}

// bucket is the answers of a range of latencies.
type bucket struct{ count, sum atomic.Uint64 } // sum in µs

// answered counts an answer.
func (c *counts) answered(took time.Duration) {
	at, s := 0, took.Seconds()
	for at < len(api.BeatBounds) && s > api.BeatBounds[at] {
		at++
	}
	c.buckets[at].count.Add(1)
	c.buckets[at].sum.Add(uint64(took.Microseconds()))
}

// read returns the counts so far.
func (c *counts) read() *api.BeatCounts {
	list := &api.BeatCounts{}
	for i := range c.buckets {
		list.Buckets = append(list.Buckets, &api.BeatBucket{Count: c.buckets[i].count.Load(), SumUs: c.buckets[i].sum.Load()})
	}
	list.Missed, list.Beats = c.missed.Load(), c.beats.Load()
	return list
}
