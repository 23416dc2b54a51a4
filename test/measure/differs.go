package measure

import (
	"context"
	"sync"
)

// collector is where Differs notes.
type collector struct {
	mu sync.Mutex // guards to
	to *Conditions
}

type collectorKey struct{}

// Collect returns a context that has Differs note into c.
func Collect(ctx context.Context, c *Conditions) context.Context {
	return context.WithValue(ctx, collectorKey{}, &collector{to: c})
}

// Differs notes, in the conditions that ctx collects, what is set otherwise than
// a user gets it. Whoever sets something so calls it where it is set. It does
// nothing if ctx collects none.
func Differs(ctx context.Context, list ...string) {
	if c, ok := ctx.Value(collectorKey{}).(*collector); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.to.Also(list...)
	}
}
