package deploy_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/transport"
)

// gate is what all that a process hears and says goes through.
type gate struct {
	listener io.Closer
	dead     atomic.Bool
	cut      atomic.Pointer[func() bool]   // reports whether an answer gets lost
	lag      atomic.Int64                  // bound of the delay, in ns, with which it learns of changes
	deaf     atomic.Bool                   // nothing that others send arrives
	plans    atomic.Pointer[chan struct{}] // it learns of no plan before this is closed

	mu   sync.Mutex
	open chan struct{} // closed if open
}

// both are two listeners of a process.
type both [2]io.Closer

func (b both) Close() error { return errors.Join(b[0].Close(), b[1].Close()) }

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) kill() {
	g.dead.Store(true)
	g.thaw()
	_ = g.listener.Close()
}

func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.dead.Load() {
		return transport.Errorf(transport.Canceled, "killed")
	}
	return nil
}

type gatedHandler struct {
	transport.Handler
	gate *gate
}

func (h gatedHandler) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := h.gate.pass(ctx); err != nil {
		return nil, err
	}
	if h.gate.deaf.Load() {
		return nil, transport.Errorf(transport.Unavailable, "deaf")
	}
	resp, err := h.Handler.Call(ctx, method, req)
	if gone := h.gate.pass(ctx); gone != nil {
		return nil, gone
	}
	return resp, err
}

type gatedTransport struct {
	transport.Transport
	gate *gate
}

func (t gatedTransport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := t.gate.pass(ctx); err != nil {
		return nil, err
	}
	conn, err := t.Transport.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return gatedConn{conn, t.gate}, nil
}

type gatedConn struct {
	transport.Conn
	gate *gate
}

func (c gatedConn) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := c.gate.pass(ctx); err != nil {
		return nil, err
	}
	resp, err := c.Conn.Call(ctx, method, req)
	if gone := c.gate.pass(ctx); gone != nil {
		return nil, gone
	}
	if cut := c.gate.cut.Load(); cut != nil && err == nil && (*cut)() {
		return nil, transport.Errorf(transport.Unavailable, "the answer is lost")
	}
	return resp, err
}

type gatedStore struct {
	local.Store
	gate *gate
}

func (s gatedStore) Bucket(ctx context.Context, name string) (weft.Bucket, error) {
	b, err := s.Store.Bucket(ctx, name)
	return gatedBucket{b, s.gate, name}, err
}

type gatedBucket struct {
	weft.Bucket
	gate *gate
	name string
}

func (b gatedBucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := b.gate.pass(ctx); err != nil {
		return 0, err
	}
	return b.Bucket.Put(ctx, key, value)
}

func (b gatedBucket) Delete(ctx context.Context, key string) error {
	if err := b.gate.pass(ctx); err != nil {
		return err
	}
	return b.Bucket.Delete(ctx, key)
}

func (b gatedBucket) Watch(ctx context.Context, f func(string, []byte, uint64)) error {
	return b.Bucket.Watch(ctx, func(key string, value []byte, revision uint64) {
		if lag := b.gate.lag.Load(); lag > 0 {
			time.Sleep(time.Duration(rand.Int64N(lag)))
		}
		if plans := b.gate.plans.Load(); plans != nil && b.name == "deploy.plan" {
			select {
			case <-*plans:
			case <-ctx.Done():
			}
		}
		if b.gate.pass(ctx) == nil {
			f(key, value, revision)
		}
	})
}
