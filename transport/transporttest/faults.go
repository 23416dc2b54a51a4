package transporttest

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// wantNoLeak checks, when all of a test is closed, that its goroutines end.
func wantNoLeak(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// testRestart checks that a connection does not outlive its listener, and that
// dialling again is all it takes.
func testRestart(t *testing.T, tr transport.Transport, address string) {
	h := func(context.Context, string, []byte) ([]byte, error) { return nil, nil }
	c, l := connect(t, tr, address, h)
	for range 3 {
		if _, err := c.Call(t.Context(), "m", nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		next, again := connect(t, tr, l.Address(), h)
		// A transport may need a moment to see that the peer has gone.
		time.Sleep(20 * time.Millisecond)
		_, err := c.Call(t.Context(), "m", nil)
		wantCode(t, err, transport.Unavailable)
		c, l = next, again
	}
}

// testTwice makes the same call over two connections, as a caller does that
// does not know whether the first has run.
func testTwice(t *testing.T, tr transport.Transport, address string) {
	var runs atomic.Int32
	c, l := connect(t, tr, address, func(_ context.Context, _ string, req []byte) ([]byte, error) {
		runs.Add(1)
		return bytes.ToUpper(req), nil
	})
	for _, c := range []transport.Conn{c, dial(t, tr, l)} {
		if resp, err := c.Call(t.Context(), "m", []byte("same")); err != nil || string(resp) != "SAME" {
			t.Errorf("%q, %v", resp, err)
		}
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("%d runs of two calls", n)
	}
}

// testPanic checks that a handler's panic costs its own call only.
func testPanic(t *testing.T, tr transport.Transport, address string) {
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(log)
	c, _ := connect(t, tr, address, func(_ context.Context, method string, _ []byte) ([]byte, error) {
		if method == "panic" {
			panic("no such switch")
		}
		return nil, nil
	})
	_, err := c.Call(t.Context(), "panic", nil)
	wantCode(t, err, transport.Unknown)
	if err != nil && !strings.Contains(err.Error(), "no such switch") {
		t.Errorf("error %q does not say what the panic said", err)
	}
	if _, err := c.Call(t.Context(), "quiet", nil); err != nil {
		t.Error(err)
	}
}

// testNames checks that names of methods arrive as they are.
func testNames(t *testing.T, tr transport.Transport, address string) {
	c, _ := connect(t, tr, address, func(_ context.Context, method string, _ []byte) ([]byte, error) { return []byte(method), nil })
	for _, name := range []string{"deploy.Events", "a b/c%2F?x=1#y", "..", "größe\n", strings.Repeat("n", transport.MaxName)} {
		if resp, err := c.Call(t.Context(), name, nil); err != nil || string(resp) != name {
			t.Errorf("method %.40q arrives as %.40q, %v", name, resp, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("n", transport.MaxName+1)} {
		_, err := c.Call(t.Context(), name, nil)
		wantCode(t, err, transport.ResourceExhausted)
	}
}

// testMix does everything at once: calls of all sizes, some given up, over
// several connections.
func testMix(t *testing.T, tr transport.Transport, address string) {
	const conns, callers, calls = 3, 4, 60
	_, l := connect(t, tr, address, func(ctx context.Context, method string, req []byte) ([]byte, error) {
		if method == "wait" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return bytes.Clone(req), nil
	})
	sizes := []int{0, 1, 500, 70 << 10, 300 << 10, 3 << 20}
	var wg sync.WaitGroup
	for i := range conns {
		c := dial(t, tr, l)
		for j := range callers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for range calls {
					if r.IntN(6) == 0 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Microsecond)
						_, err := c.Call(ctx, "wait", make([]byte, sizes[r.IntN(5)]))
						wantCode(t, err, transport.DeadlineExceeded)
						cancel()
						continue
					}
					size := sizes[r.IntN(4)]
					if r.IntN(30) == 0 {
						size = sizes[4+r.IntN(2)]
					}
					req := make([]byte, size)
					for k := 0; k < len(req); k += 97 {
						req[k] = byte(k + i + j)
					}
					if resp, err := c.Call(t.Context(), "echo", req); err != nil || !bytes.Equal(resp, req) {
						t.Errorf("call of %d octets: %d back, %v", len(req), len(resp), err)
					}
				}
			})
		}
	}
	wg.Wait()
}

// Beat is the heartbeat that transports over a network have in TestNetwork.
var Beat = transport.Heartbeat{Interval: 40 * time.Millisecond, Dead: 160 * time.Millisecond}

// TestNetwork is the part of the suite for transports over TCP: what the
// network does to them. Their heartbeat must be Beat, their addresses
// host:port.
func TestNetwork(t *testing.T, open func(*testing.T) (transport.Transport, string)) {
	for _, part := range []struct {
		name string
		test func(*testing.T, transport.Transport, string)
	}{
		{"HalfOpen", testHalfOpen},
		{"LostCaller", func(t *testing.T, tr transport.Transport, address string) {
			testCallerGone(t, tr, address, func(p *proxy) { p.breakAll() })
		}},
		{"Stalled", testStalled},
		{"SlowHandler", testSlowHandler},
		{"Broken", testBroken},
	} {
		t.Run(part.name, func(t *testing.T) {
			wantNoLeak(t)
			tr, address := open(t)
			part.test(t, tr, address)
		})
	}
}

// proxy forwards connections to an address until it is told not to.
type proxy struct {
	net.Listener
	mu     sync.RWMutex // locked while forwarding stands still
	conns  chan net.Conn
	closed sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, conns: make(chan net.Conn, 1000)}
	p.closed.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close() // as if it had not been there
				continue
			}
			p.conns <- in
			p.conns <- out
			p.closed.Go(func() { p.forward(in, out) })
			p.closed.Go(func() { p.forward(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // nothing to be done about it
		p.breakAll()
		p.closed.Wait()
	})
	return p
}

func (p *proxy) forward(to, from net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if _, e := p.write(to, b[:n]); err != nil || e != nil {
			_ = to.Close() // both ends see it
			_ = from.Close()
			return
		}
	}
}

// write waits while forwarding stands still.
func (p *proxy) write(to net.Conn, b []byte) (int, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return to.Write(b)
}

// breakAll ends all connections that there are.
func (p *proxy) breakAll() {
	for {
		select {
		case c := <-p.conns:
			_ = c.Close() // may have ended already
		default:
			return
		}
	}
}

// through returns a connection through a proxy.
func through(t *testing.T, tr transport.Transport, address string, h handler) (transport.Conn, *proxy) {
	l, err := tr.Listen(address, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := newProxy(t, l.Address())
	c, err := tr.Dial(t.Context(), p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, p
}

// testHalfOpen checks that calls fail when nothing comes through any more, though no connection ends.
func testHalfOpen(t *testing.T, tr transport.Transport, address string) {
	started := make(chan struct{})
	c, p := through(t, tr, address, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(started)
		<-ctx.Done()
		return nil, nil
	})
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		_, err := c.Call(context.Background(), "m", nil)
		wantCode(t, err, transport.Unavailable)
	}()
	within(t, started, "the handler starts")
	p.mu.Lock()
	defer p.mu.Unlock()
	since := time.Now()
	within(t, failed, "the call fails")
	if d := time.Since(since); d < Beat.Dead/2 { // on a busy machine it takes longer
		t.Errorf("the silent peer was given up after %v, want %v", d, Beat.Dead)
	}
	_, err := c.Call(t.Context(), "m", nil)
	wantCode(t, err, transport.Unavailable)
}

// TestSilentCaller checks that a handler is told when its caller has fallen
// silent. It is not for HTTP/1.1, which has no means to ask a caller.
func TestSilentCaller(t *testing.T, tr transport.Transport, address string) {
	testCallerGone(t, tr, address, func(p *proxy) {
		p.mu.Lock()
		t.Cleanup(p.mu.Unlock)
	})
}

// testCallerGone checks that a handler is told when its caller has gone.
func testCallerGone(t *testing.T, tr transport.Transport, address string, leave func(*proxy)) {
	started, told := make(chan struct{}), make(chan struct{})
	c, p := through(t, tr, address, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(started)
		<-ctx.Done()
		close(told)
		return nil, nil
	})
	go func() { _, _ = c.Call(context.Background(), "m", nil) }() // fails when the test ends
	within(t, started, "the handler starts")
	leave(p)
	within(t, told, "the handler is told")
}

// testStalled checks that deadlines hold though nothing can be written.
func testStalled(t *testing.T, tr transport.Transport, address string) {
	c, p := through(t, tr, address, func(context.Context, string, []byte) ([]byte, error) { return nil, nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), Beat.Dead/2)
			defer cancel()
			_, err := c.Call(ctx, "m", make([]byte, 4<<20))
			wantCode(t, err, transport.DeadlineExceeded)
		})
	}
	wg.Wait()
}

// testSlowHandler checks that a peer that works for long is not taken for one
// that is silent.
func testSlowHandler(t *testing.T, tr transport.Transport, address string) {
	c, _ := through(t, tr, address, func(context.Context, string, []byte) ([]byte, error) {
		time.Sleep(3 * Beat.Dead)
		return nil, nil
	})
	if _, err := c.Call(t.Context(), "m", nil); err != nil {
		t.Error(err)
	}
}

// testBroken breaks connections in the middle of messages, again and again.
func testBroken(t *testing.T, tr transport.Transport, address string) {
	c, p := through(t, tr, address, func(_ context.Context, _ string, req []byte) ([]byte, error) { return bytes.Clone(req), nil })
	for i := range 10 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					resp, err := c.Call(t.Context(), "m", make([]byte, 200<<10))
					if err == nil && len(resp) == 200<<10 {
						continue
					}
					wantCode(t, err, transport.Unavailable)
					return
				}
			})
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		p.breakAll()
		failed := make(chan struct{})
		go func() { wg.Wait(); close(failed) }()
		within(t, failed, "calls fail")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		var err error
		if c, err = tr.Dial(t.Context(), p.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close() // the last
}
