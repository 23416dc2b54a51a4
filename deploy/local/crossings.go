package local

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
)

// CrossingOf identifies the messages of one kind from one service to another.
type CrossingOf struct {
	From, To               string // the services
	FromProcess, ToProcess string // empty for this process
	Kind                   string // "call", "event" or "packet"
	Name                   string // the method or the subject; empty for packets
	Transport              string // empty within this process, or if only the other side knows it
}

// Tally counts the messages of a crossing and measures how long they take. All
// its memory is allocated with it.
type Tally struct {
	total  atomic.Uint64
	sparse atomic.Bool // one message in 64 is measured instead of all
	bank   atomic.Uint32
	banks  [2][latencies]atomic.Uint32 // measured since the last change of bank, and before

	// What follows is guarded by Crossings.mu.
	born time.Time
	tick uint64 // after which it was made
	seen [rateTicks]uint64
	used uint64 // tick after which total last changed
	keep bool   // a service of this process holds it
}

const (
	rateTicks  = 10               // rates are over this many seconds
	denseRate  = 1000             // messages per second above which one in 64 is measured
	tallyMost  = 4096             // crossings of a process
	latencies  = 4 * (36 - 6 + 1) // buckets: four for each doubling, from 64 ns to 137 s
	leastShift = 6                // of those
)

// count counts a message and reports whether it is to be measured.
func (t *Tally) count() bool {
	n := t.total.Add(1)
	return !t.sparse.Load() || chosen(n)
}

// Add counts messages.
func (t *Tally) Add(n uint64) { t.total.Add(n) }

// Took records that n messages took a time.
func (t *Tally) Took(d time.Duration, n uint32) {
	t.banks[t.bank.Load()&1][latencyBucket(d)].Add(n)
}

// latencyBucket returns the bucket of a time.
func latencyBucket(d time.Duration) int {
	if d < 1<<leastShift {
		return 0
	}
	octave := bits.Len64(uint64(d)) - 1
	return min(4*(octave-leastShift)+int(uint64(d)>>(octave-2)&3), latencies-1)
}

// latencyBound returns the end of a bucket.
func latencyBound(bucket int) time.Duration {
	return time.Duration(4+bucket%4+1) << (bucket/4 + leastShift - 2)
}

// Crossings are the messages between the services of this process and others,
// since the process started.
type Crossings struct {
	mu    sync.RWMutex // guards what follows
	all   map[CrossingOf]*Tally
	ticks uint64
	times [rateTicks]time.Time // of ticks
}

func newCrossings() *Crossings { return &Crossings{all: map[CrossingOf]*Tally{}} }

// Of returns the tally of a crossing, made if it is new.
func (c *Crossings) Of(of CrossingOf) *Tally {
	c.mu.RLock()
	t := c.all[of]
	c.mu.RUnlock()
	if t == nil {
		t = c.add(of, false)
	}
	return t
}

// held is Of for one that a service of this process holds.
func (c *Crossings) held(of CrossingOf) *Tally { return c.add(of, true) }

func (c *Crossings) add(of CrossingOf, keep bool) *Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.all[of]
	if t == nil {
		if len(c.all) >= tallyMost {
			c.evict()
		}
		t = &Tally{born: time.Now(), tick: c.ticks, used: c.ticks}
		c.all[of] = t
	}
	t.keep = t.keep || keep
	return t
}

// evict removes the crossing with another process that has been idle longest.
// Those within this process are as many as its services declare.
func (c *Crossings) evict() {
	var worst CrossingOf
	var oldest *Tally
	for of, t := range c.all {
		if !t.keep && (oldest == nil || t.used < oldest.used) {
			worst, oldest = of, t
		}
	}
	if oldest != nil {
		delete(c.all, worst)
	}
}

// Run takes the rates until ctx ends.
func (c *Crossings) Run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			c.beat(now)
		}
	}
}

// beat ends a second.
func (c *Crossings) beat(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.ticks % rateTicks
	last := (c.ticks + rateTicks - 1) % rateTicks
	for _, t := range c.all {
		n := t.total.Load()
		before := uint64(0)
		if c.ticks > t.tick {
			before = t.seen[last]
		}
		if n != before {
			t.used = c.ticks
		}
		t.sparse.Store(n-before > denseRate)
		t.seen[at] = n
		if c.ticks%rateTicks == rateTicks-1 {
			next := t.bank.Load() ^ 1
			for i := range t.banks[next] {
				t.banks[next][i].Store(0)
			}
			t.bank.Store(next)
		}
	}
	c.times[at] = now
	c.ticks++
}

// rate returns the messages per second over the last 10 s, or since the tally
// was made.
func (c *Crossings) rate(t *Tally, now time.Time) float64 {
	base, since := uint64(0), t.born
	if c.ticks >= rateTicks && c.ticks-rateTicks >= t.tick {
		at := c.ticks % rateTicks // the oldest
		base, since = t.seen[at], c.times[at]
	}
	return float64(t.total.Load()-base) / max(1, now.Sub(since).Seconds())
}

// List returns the crossings with messages, in order. The rates are over the
// last 10 s, and the latencies of the last 10 to 20 s. The process is what this
// one is called.
func (c *Crossings) List(process string, now time.Time) []*api.Crossing {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var list []*api.Crossing
	for of, t := range c.all {
		total := t.total.Load()
		if total == 0 {
			continue
		}
		x := &api.Crossing{
			From: of.From, To: of.To, FromProcess: cmp.Or(of.FromProcess, process), ToProcess: cmp.Or(of.ToProcess, process),
			Kind: of.Kind, Name: of.Name, Transport: of.Transport, PerS: c.rate(t, now), Total: total,
		}
		for i := range latencies {
			if n := uint64(t.banks[0][i].Load()) + uint64(t.banks[1][i].Load()); n > 0 {
				x.Latency = append(x.Latency, &api.LatencyBucket{ToUs: microseconds(latencyBound(i)), Count: n})
			}
		}
		SetQuantiles(x)
		list = append(list, x)
	}
	SortCrossings(list)
	return list
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// SortCrossings sorts crossings by kind, services, name and processes.
func SortCrossings(list []*api.Crossing) {
	slices.SortFunc(list, func(a, b *api.Crossing) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.FromProcess, b.FromProcess), cmp.Compare(a.ToProcess, b.ToProcess), cmp.Compare(a.Transport, b.Transport))
	})
}

// bucketAt returns the bucket that ends at a time.
func bucketAt(us float64) int {
	return latencyBucket(time.Duration(math.Round(us*float64(time.Microsecond))) - 1)
}

// SetQuantiles computes the median and the 99th percentile from the histogram.
func SetQuantiles(x *api.Crossing) { x.P50Us, x.P99Us = quantile(x, 0.5), quantile(x, 0.99) }

// quantile interpolates within the bucket that holds the quantile; 0 if nothing
// was measured.
func quantile(x *api.Crossing, q float64) float64 {
	var all, below float64
	for _, b := range x.Latency {
		all += float64(b.Count)
	}
	for _, b := range x.Latency {
		n := float64(b.Count)
		if below+n >= q*all {
			start := 0.0
			if at := bucketAt(b.ToUs); at > 0 {
				start = microseconds(latencyBound(at - 1))
			}
			return start + (b.ToUs-start)*(q*all-below)/n
		}
		below += n
	}
	return 0
}

// AddLatency adds to a crossing the latency of what follows it, as if both were
// independent: each bucket of one with each of the other.
func AddLatency(x, then *api.Crossing) {
	if len(x.Latency) == 0 || len(then.Latency) == 0 {
		x.Latency = append(x.Latency, then.Latency...)
		SetQuantiles(x)
		return
	}
	var sum [latencies]float64
	var all, share float64
	for _, a := range x.Latency {
		all += float64(a.Count)
	}
	for _, b := range then.Latency {
		share += float64(b.Count)
	}
	for _, a := range x.Latency {
		for _, b := range then.Latency {
			middle := time.Duration((a.ToUs + b.ToUs) * 0.9 * float64(time.Microsecond))
			sum[latencyBucket(middle)] += float64(a.Count) * float64(b.Count) / share
		}
	}
	x.Latency = nil
	for i, n := range sum {
		if n = math.Round(n); n > 0 {
			x.Latency = append(x.Latency, &api.LatencyBucket{ToUs: microseconds(latencyBound(i)), Count: uint64(n)})
		}
	}
	SetQuantiles(x)
}
