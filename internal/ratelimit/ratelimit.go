// Package ratelimit limits how often something happens for each of many keys, such
// as the ports of a switch, so that a flood of one takes nothing from others. For one
// limit of a whole process there is golang.org/x/time/rate, which has a lock and
// about a hundred octets for each.
//
// It imports the standard library only.
package ratelimit

import (
	"maps"
	"sync"
)

// Bucket is a token bucket, stored as the time in nanoseconds when it will be full
// again (the generic cell rate algorithm). Its zero value is full.
type Bucket struct{ full int64 }

// Take takes a token; it returns false if there is none. gap is the time per token,
// depth that of a full bucket.
func (b *Bucket) Take(now, gap, depth int64) bool {
	if b.Wait(now, gap, depth) > 0 {
		return false
	}
	b.full = max(b.full, now) + gap
	return true
}

// Wait returns how long it takes until there is a token.
func (b *Bucket) Wait(now, gap, depth int64) int64 { return max(0, max(b.full, now)+gap-depth-now) }

// Full reports whether all tokens are there.
func (b *Bucket) Full(now int64) bool { return b.full <= now }

// Keyed has a bucket for each key. When there are as many as it may have, it forgets
// those that are full, or if most are not, all. It is safe for use by several
// goroutines.
type Keyed[K comparable] struct {
	most    int
	mu      sync.Mutex // guards buckets
	buckets map[K]Bucket
}

// NewKeyed returns a limiter of at most so many keys.
func NewKeyed[K comparable](most int) *Keyed[K] {
	return &Keyed[K]{most: most, buckets: map[K]Bucket{}}
}

// Take takes a token of a key's bucket.
func (l *Keyed[K]) Take(key K, now, gap, depth int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.buckets[key]
	if !known && len(l.buckets) >= l.most {
		maps.DeleteFunc(l.buckets, func(_ K, b Bucket) bool { return b.Full(now) })
		if len(l.buckets) > l.most/2 {
			clear(l.buckets)
		}
	}
	ok := b.Take(now, gap, depth)
	l.buckets[key] = b
	return ok
}

// Forget fills the bucket of a key.
func (l *Keyed[K]) Forget(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.buckets, key)
}

// Clear fills the buckets of all keys.
func (l *Keyed[K]) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.buckets)
}
