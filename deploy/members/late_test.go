package members

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// busy is a process that takes a time for each answer, and each connection.
type busy struct {
	transport.Transport
	answer, dial time.Duration
	dials        atomic.Int64
}

func (b *busy) Dial(ctx context.Context, _ string) (transport.Conn, error) {
	b.dials.Add(1)
	select {
	case <-time.After(b.dial):
	case <-ctx.Done():
		return nil, transport.ErrorOf(ctx.Err())
	}
	return busyConn{b, make(chan struct{})}, nil
}

type busyConn struct {
	b      *busy
	closed chan struct{}
}

func (c busyConn) Close() error { close(c.closed); return nil }

func (c busyConn) Call(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	select {
	case <-time.After(c.b.answer):
		return []byte("here"), nil
	case <-c.closed:
		return nil, transport.Errorf(transport.Unavailable, "the connection has ended")
	case <-ctx.Done():
		return nil, transport.ErrorOf(ctx.Err())
	}
}

// TestLate: who waits for a process on a busy machine does not give its connections up again
// and again, and gets its answer.
func TestLate(t *testing.T) {
	for _, c := range []struct {
		answer, dial time.Duration
		dials        int64
	}{
		{300 * time.Millisecond, 0, 1},
		{700 * time.Millisecond, 0, 2},
		{1500 * time.Millisecond, 0, 3},
		{3 * time.Second, 0, 4},
		{300 * time.Millisecond, 1900 * time.Millisecond, 1},
		{700 * time.Millisecond, 3500 * time.Millisecond, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &busy{answer: c.answer, dial: c.dial}
			links := &Links{Transports: map[string]transport.Transport{"grpc": b}, Log: slog.New(slog.DiscardHandler)}
			links.View.Store(&View{})
			p := NewPeer(links, &Entry{Process: "busy", Addresses: map[string]string{"grpc": "x"}})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // as watchPeers does
				for ctx.Err() == nil {
					time.Sleep(100 * time.Millisecond)
					if p.Slow() {
						go p.Check(ctx)
					}
				}
			}()
			for range 5 {
				for end := time.Now().Add(20 * time.Second); ; time.Sleep(RedialAfter) {
					if _, err := p.Request(ctx, PingMethod, nil); err == nil {
						break
					} else if time.Now().After(end) {
						t.Fatalf("answers in %v, connections in %v: %v", c.answer, c.dial, err)
					}
				}
			}
			if n := b.dials.Load(); n > c.dials {
				t.Errorf("answers in %v, connections in %v: %d connections, want %d", c.answer, c.dial, n, c.dials)
			}
			cancel()
			synctest.Wait()
			time.Sleep(mostDoublings * undoneAfter)
			if l := p.Patience(); l != StallPing {
				t.Errorf("answers in %v: patience %v in the end, want %v", c.answer, l, StallPing)
			}
			p.Close()
		})
	}
}
