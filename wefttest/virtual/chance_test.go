package virtual

import (
	"math/rand/v2"
	"sync"
	"time"
)

// chance is random numbers of a seed, for any goroutine.
type chance struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newChance(seed, stream uint64) *chance {
	return &chance{rnd: rand.New(rand.NewPCG(seed, stream))}
}

func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(n)
}

// within returns a duration below d.
func (c *chance) within(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rnd.Int64N(int64(d)))
}

// between returns a duration from a up to b.
func (c *chance) between(a, b time.Duration) time.Duration { return a + c.within(b-a) }

// pick returns one of a list.
func pick[E any](c *chance, list []E) E { return list[c.n(len(list))] }

// spread returns a duration below 100 ms that the numbers determine.
func spread(numbers ...uint64) time.Duration {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h = (h ^ n) * 0xbf58476d1ce4e5b9
		h ^= h >> 31
	}
	return time.Duration(h % uint64(100*time.Millisecond))
}
