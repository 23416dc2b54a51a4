package virtual

import (
	"context"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/transport"
)

// gate is what all that a process hears and says goes through. While it is
// closed the process is stopped, as by SIGSTOP, as far as others can tell.
type gate struct {
	process string

	mu    sync.Mutex
	open  chan struct{} // closed if open
	gone  chan struct{} // closed when the process is killed
	conns map[*wire]bool
}

func newGate(process string) *gate {
	g := &gate{process: process, open: make(chan struct{}), gone: make(chan struct{}), conns: map[*wire]bool{}}
	close(g.open)
	return g
}

// stop stops the process until resume.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		g.open = make(chan struct{})
	default:
	}
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// kill ends all connections of the process, and lets nothing pass any more.
func (g *gate) kill() {
	g.mu.Lock()
	select {
	case <-g.gone:
	default:
		close(g.gone)
	}
	conns := g.conns
	g.conns = map[*wire]bool{}
	g.mu.Unlock()
	for c := range conns {
		_ = c.hangUp()
	}
	g.resume()
}

// hold notes a connection, which ends with the process.
func (g *gate) hold(c *wire) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[c] = true
}

func (g *gate) drop(c *wire) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

func (g *gate) dead() bool {
	select {
	case <-g.gone:
		return true
	default:
		return false
	}
}

// pass waits while the process is stopped.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.dead() {
		return transport.Errorf(transport.Canceled, "the process is killed")
	}
	return nil
}

// rest sleeps; it reports whether ctx still lasts.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	return backoff.Sleep(ctx, d) == nil
}
