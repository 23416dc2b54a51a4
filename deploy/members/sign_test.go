package members

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// slow is a process that answers at a time, or is not there.
type slow struct {
	transport.Transport
	at   time.Time
	gone bool
}

func (s *slow) Dial(context.Context, string) (transport.Conn, error) {
	if s.gone {
		return nil, transport.Errorf(transport.Unavailable, "nobody listens")
	}
	c := &slowConn{at: s.at, closed: make(chan struct{})}
	c.Close = sync.OnceFunc(func() { close(c.closed) })
	return slowest{c}, nil
}

type slowConn struct {
	at     time.Time
	closed chan struct{}
	Close  func()
}

type slowest struct{ c *slowConn }

func (s slowest) Close() error { s.c.Close(); return nil }

func (s slowest) Call(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	select {
	case <-time.After(time.Until(s.c.at)):
		return []byte("here"), nil
	case <-s.c.closed:
		return nil, transport.Errorf(transport.Unavailable, "the connection has ended")
	case <-ctx.Done():
		return nil, transport.ErrorOf(ctx.Err())
	}
}

// TestSign: the answer of a slow process arrives although its connections are closed
// meanwhile. A process that does not answer and one that is not there give different errors.
func TestSign(t *testing.T) {
	for _, c := range []struct {
		what  string
		after time.Duration
		gone  bool
		sign  string
		err   error // nil with no sign: any
		took  time.Duration
	}{
		{"answers at once", 0, false, "here", nil, 0},
		{"is slow", 1500 * time.Millisecond, false, "here", nil, 1500 * time.Millisecond},
		{"does not answer", time.Hour, false, "", context.DeadlineExceeded, StatePing},
		{"is not there", 0, true, "", nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			links := &Links{Transports: map[string]transport.Transport{"grpc": &slow{at: time.Now().Add(c.after), gone: c.gone}}, Log: slog.New(slog.DiscardHandler)}
			links.View.Store(&View{})
			p := NewPeer(links, &Entry{Process: "slow", Addresses: map[string]string{"grpc": "x"}})
			ctx, cancel := context.WithTimeout(t.Context(), StatePing)
			defer cancel()
			began := time.Now()
			done := make(chan struct{})
			go func() { // as watchPeers does
				defer close(done)
				for ctx.Err() == nil {
					time.Sleep(100 * time.Millisecond)
					if p.Slow() {
						p.Check(ctx)
					}
				}
			}()
			sign, err := p.Sign(ctx)
			if took := time.Since(began).Round(50 * time.Millisecond); string(sign) != c.sign || (err == nil) != (c.sign != "") || c.err != nil && !errors.Is(err, c.err) || took != c.took {
				t.Errorf("who %s: %q, %v after %v; want %q, %v after %v", c.what, sign, err, took, c.sign, c.err, c.took)
			}
			if c.gone && errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who %s: %v", c.what, err)
			}
			cancel()
			<-done
			p.Close()
		})
	}
}
