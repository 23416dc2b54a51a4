package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/transporttest"
)

// apart is a transport whose listeners use one store and whose connections
// another.
type apart struct{ listen, dial transport.Transport }

func (a apart) Listen(address string, h transport.Handler) (transport.Listener, error) {
	return a.listen.Listen(address, h)
}

func (a apart) Dial(ctx context.Context, address string) (transport.Conn, error) {
	return a.dial.Dial(ctx, address)
}

// conform runs the suite of transports.
func conform(t *testing.T, name string, tr transport.Transport) {
	t.Run(name, func(t *testing.T) {
		n := 0
		transporttest.Test(t, func(*testing.T) (transport.Transport, string) {
			n++
			return tr, fmt.Sprintf("%s %d.x", name, n)
		})
	})
}

func TestTransport(t *testing.T) {
	s := listening(t)
	one, two := follow(t, s), follow(t, s)
	conform(t, "OneStore", s.Transport())
	conform(t, "Embedded", apart{s.Transport(), one.Transport()})
	conform(t, "URL", apart{one.Transport(), two.Transport()})
}

// TestTransportExternal has a server that takes messages of only 64 KiB.
func TestTransportExternal(t *testing.T) {
	m := &member{Name: "small", Dir: t.TempDir(), Port: ports(t, 1)[0], Payload: 64 << 10}
	m.start(t)
	t.Cleanup(m.kill)
	one, two := opened(t, bus.Config{URL: m.url()}), opened(t, bus.Config{URL: m.url()})
	conform(t, "Small", apart{one.Transport(), two.Transport()})
}

// TestTransportCluster has the two sides at different servers of a cluster.
func TestTransportCluster(t *testing.T) {
	members, urls := cluster(t, 3)
	opened(t, bus.Config{URL: urls}) // which waits until the cluster is one
	one, two := opened(t, bus.Config{URL: members[0].url()}), opened(t, bus.Config{URL: members[1].url()})
	conform(t, "Cluster", apart{one.Transport(), two.Transport()})
}

// service is a transport.Handler of a function.
type service func(ctx context.Context, method string, req []byte) ([]byte, error)

func (s service) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	return s(ctx, method, req)
}

func wantUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	var e *transport.Error
	if !errors.As(err, &e) || e.Code != transport.Unavailable {
		t.Errorf("%s: %v, want Unavailable", what, err)
	}
}

// victim is the variable by which a copy of the test binary knows that it is
// to listen at the bus that it names, until it is killed.
const victim = "WEFT_BUS_TEST_VICTIM"

func listenUntilKilled(url string) error {
	s, err := bus.Open(context.Background(), bus.Config{URL: url, Token: os.Getenv(victim + "_TOKEN")})
	if err != nil {
		return err
	}
	_, err = s.Transport().Listen("victim", service(func(ctx context.Context, _ string, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }))
	if err != nil {
		return err
	}
	fmt.Println("listening")
	select {}
}

// TestPeerKilled kills the process of a listener: calls fail because nobody listens
// there any more, and do not wait until the peer has been silent for a while.
func TestPeerKilled(t *testing.T) {
	s := listening(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+s.Access().URL, victim+"_TOKEN="+s.Access().Token)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child says %q, %v", line, err)
	}
	c, err := s.Transport().Dial(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	failed := make(chan error)
	go func() {
		_, err := c.Call(context.Background(), "wait", nil)
		failed <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err = <-failed
	wantUnavailable(t, "the call under way", err)
	if !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("the call under way fails with %q, want the message for a peer that is not there, not for one that is silent", err)
	}
	_, err = c.Call(context.Background(), "wait", nil)
	wantUnavailable(t, "the next call", err)
	_, err = s.Transport().Dial(context.Background(), "victim")
	wantUnavailable(t, "dial", err)
	if !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("dial fails with %q, want that nobody listens, not that the peer does not answer", err)
	}
}

// TestDialerGone ends the store of a dialer: the handler of its call is told.
func TestDialerGone(t *testing.T) {
	s := listening(t)
	other, err := bus.Open(t.Context(), bus.Config{URL: s.Access().URL, Token: s.Access().Token})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	started, told := make(chan struct{}), make(chan struct{})
	l, err := s.Transport().Listen("a", service(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(started)
		<-ctx.Done()
		close(told)
		return nil, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := other.Transport().Dial(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	go c.Call(context.Background(), "m", nil)
	<-started
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-told:
	case <-time.After(testwait.Limit):
		t.Error("the handler is not told that the caller has gone")
	}
	_, err = c.Call(t.Context(), "m", nil)
	wantUnavailable(t, "call after Close of the store", err)
	_, err = other.Transport().Dial(t.Context(), "a")
	wantUnavailable(t, "dial after Close of the store", err)
}

// TestTwoClaimAnAddress lets several listen at an address at once: one does.
func TestTwoClaimAnAddress(t *testing.T) {
	s := listening(t)
	stores := []*bus.Store{s, follow(t, s), follow(t, s)}
	var wg sync.WaitGroup
	var got atomic.Int32
	for i := range 6 {
		wg.Go(func() {
			l, err := stores[i%3].Transport().Listen("contested", service(echo))
			if err != nil {
				wantUnavailable(t, "listen", err)
				return
			}
			got.Add(1)
			t.Cleanup(func() { l.Close() })
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d listen at one address", got.Load())
	}
}

// TestTransportThroughRestart closes the embedded server and opens it again
// while others make calls through it: the call under way fails, calls meanwhile
// fail or are answered.
func TestTransportThroughRestart(t *testing.T) {
	const total = 6000
	config := bus.Config{Directory: t.TempDir(), Listen: fmt.Sprint("127.0.0.1:", ports(t, 1)[0])}
	first, err := bus.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	one, two := follow(t, first), follow(t, first)
	hung := make(chan struct{}, 10)
	l, err := one.Transport().Listen("a", service(func(ctx context.Context, method string, req []byte) ([]byte, error) {
		if method == "hang" {
			hung <- struct{}{}
			<-ctx.Done()
		}
		return req, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := two.Transport().Dial(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	failed := make(chan error)
	go func() {
		_, err := c.Call(context.Background(), "hang", nil)
		failed <- err
	}()
	<-hung
	end := time.Now().Add(testwait.Limit)
	for i := 0; i < total; {
		if i == total/2 && first != nil {
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			wantUnavailable(t, "the call under way", <-failed)
			first = nil
			time.AfterFunc(200*time.Millisecond, func() { opened(t, config) })
		}
		switch resp, err := c.Call(t.Context(), "m", make([]byte, 1000)); {
		case err == nil && len(resp) == 1000:
			i++
		default:
			wantUnavailable(t, "a call meanwhile", err)
			if time.Now().After(end) {
				t.Fatalf("call %d is not answered after the restart: %v", i, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	if resp, err := c.Call(t.Context(), "echo", []byte("x")); err != nil || string(resp) != "x" {
		t.Errorf("call after the restart: %q, %v", resp, err)
	}
}

// listening opens an embedded store that others can reach.
func listening(t testing.TB) *bus.Store {
	t.Helper()
	return opened(t, bus.Config{Directory: t.TempDir(), Listen: "127.0.0.1:0"})
}

// follow opens a store at another one's server.
func follow(t testing.TB, s *bus.Store) *bus.Store {
	t.Helper()
	a := s.Access()
	return opened(t, bus.Config{URL: a.URL, Token: a.Token})
}

func opened(t testing.TB, c bus.Config) *bus.Store {
	t.Helper()
	s, err := bus.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// benchPeers calls f with a connection for every way to the embedded server.
func benchPeers(b *testing.B, h transport.Handler, f func(*testing.B, transport.Conn)) {
	s := listening(b)
	one, two := follow(b, s), follow(b, s)
	for _, way := range []struct {
		name         string
		listen, dial transport.Transport
	}{
		{"InProcess", s.Transport(), s.Transport()}, {"EmbeddedToTCP", one.Transport(), s.Transport()}, {"TCPToTCP", one.Transport(), two.Transport()},
	} {
		b.Run(way.name, func(b *testing.B) {
			l, err := way.listen.Listen("bench", h)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			c, err := way.dial.Dial(b.Context(), "bench")
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			f(b, c)
		})
	}
}

func echo(_ context.Context, _ string, req []byte) ([]byte, error) { return req, nil }

// BenchmarkCall measures round trips of 64 octets, one after the other.
func BenchmarkCall(b *testing.B) {
	benchPeers(b, service(echo), func(b *testing.B, c transport.Conn) {
		req := make([]byte, 64)
		for b.Loop() {
			if _, err := c.Call(b.Context(), "m", req); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCallsAtOnce measures calls of 64 octets, 32 at once.
func BenchmarkCallsAtOnce(b *testing.B) {
	benchPeers(b, service(echo), func(b *testing.B, c transport.Conn) {
		req := make([]byte, 64)
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.Call(b.Context(), "m", req); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
