// Package transporttest is the suite that every transport passes.
//
// Tests import it, nothing else does. It imports only transport.
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// patience bounds every wait of the suite.
const patience = 5 * time.Second

// Test runs the suite. open returns a transport and an address at which it can
// listen; each part of the suite calls it once.
func Test(t *testing.T, open func(*testing.T) (transport.Transport, string)) {
	for _, part := range []struct {
		name string
		test func(*testing.T, transport.Transport, string)
	}{
		{"Call", testCall},
		{"CallsAtOnce", testCallsAtOnce},
		{"CallErrors", testCallErrors},
		{"Deadline", testDeadline},
		{"Cancellation", testCancellation},
		{"ContextValues", testContextValues},
		{"Ownership", testOwnership},
		{"Sizes", testSizes},
		{"CloseConnection", testCloseConnection},
		{"CloseListener", testCloseListener},
		{"Addresses", testAddresses},
		{"Restart", testRestart},
		{"Twice", testTwice},
		{"Panic", testPanic},
		{"Names", testNames},
		{"Mix", testMix},
	} {
		t.Run(part.name, func(t *testing.T) {
			wantNoLeak(t)
			tr, address := open(t)
			part.test(t, tr, address)
		})
	}
}

// handler is a transport.Handler of a function.
type handler func(ctx context.Context, method string, req []byte) ([]byte, error)

func (h handler) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	return h(ctx, method, req)
}

// connect offers a handler and returns a connection to it.
func connect(t *testing.T, tr transport.Transport, address string, h handler) (transport.Conn, transport.Listener) {
	t.Helper()
	l, err := tr.Listen(address, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // may be closed already
	return dial(t, tr, l), l
}

func dial(t *testing.T, tr transport.Transport, l transport.Listener) transport.Conn {
	t.Helper()
	c, err := tr.Dial(t.Context(), l.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // may be closed already
	return c
}

func wantCode(t *testing.T, err error, code transport.Code) {
	t.Helper()
	var e *transport.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v (%T), want a *transport.Error of code %d", err, err, code)
	}
}

// within fails the test if a channel is not closed soon.
func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

func testCall(t *testing.T, tr transport.Transport, address string) {
	c, _ := connect(t, tr, address, func(_ context.Context, method string, req []byte) ([]byte, error) {
		return fmt.Appendf(nil, "%s(%s)", method, req), nil
	})
	for _, req := range []string{"", "a", "\x00\xff"} {
		resp, err := c.Call(t.Context(), "hosts.FindHost", []byte(req))
		if want := "hosts.FindHost(" + req + ")"; err != nil || string(resp) != want {
			t.Errorf("got %q, %v; want %q", resp, err, want)
		}
	}
}

// testCallsAtOnce makes calls that wait for each other.
func testCallsAtOnce(t *testing.T, tr transport.Transport, address string) {
	const n = 20
	var arrived atomic.Int32
	all := make(chan struct{})
	c, _ := connect(t, tr, address, func(ctx context.Context, _ string, req []byte) ([]byte, error) {
		if arrived.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
			return bytes.Clone(req), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if resp, err := c.Call(ctx, "m", strconv.AppendInt(nil, int64(i), 10)); err != nil || string(resp) != strconv.Itoa(i) {
				t.Errorf("call %d: %q, %v", i, resp, err)
			}
		})
	}
	wg.Wait()
}

func testCallErrors(t *testing.T, tr transport.Transport, address string) {
	c, _ := connect(t, tr, address, func(_ context.Context, method string, _ []byte) ([]byte, error) {
		switch method {
		case "kind":
			return nil, &transport.Error{Code: 5, Text: "no host"}
		case "wrapped":
			return nil, fmt.Errorf("look up: %w", context.DeadlineExceeded)
		}
		return nil, errors.New("broken")
	})
	for _, w := range []struct {
		method string
		code   transport.Code
		text   string
	}{
		{"kind", 5, "no host"},
		{"wrapped", transport.DeadlineExceeded, "look up: context deadline exceeded"},
		{"plain", transport.Unknown, "broken"},
	} {
		resp, err := c.Call(t.Context(), w.method, nil)
		wantCode(t, err, w.code)
		if resp != nil || err != nil && err.Error() != w.text {
			t.Errorf("%s: %q, %v; want the text %q", w.method, resp, err, w.text)
		}
	}
}

func testDeadline(t *testing.T, tr transport.Transport, address string) {
	deadlines := make(chan time.Time, 2)
	c, _ := connect(t, tr, address, func(ctx context.Context, method string, _ []byte) ([]byte, error) {
		deadline, _ := ctx.Deadline()
		deadlines <- deadline
		if method == "wait" {
			<-ctx.Done()
		}
		return nil, ctx.Err()
	})
	if _, err := c.Call(context.Background(), "return", nil); err != nil {
		t.Error(err)
	}
	if d := <-deadlines; !d.IsZero() {
		t.Errorf("a call without a deadline has one: %v", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Call(ctx, "wait", nil)
	wantCode(t, err, transport.DeadlineExceeded)
	mine, _ := ctx.Deadline()
	if d := (<-deadlines).Sub(mine).Abs(); d > 50*time.Millisecond {
		t.Errorf("the handler's deadline is %v off", d)
	}
	<-ctx.Done() // the handler's clock may have been first
	_, err = c.Call(ctx, "return", nil)
	wantCode(t, err, transport.DeadlineExceeded)
}

// testCancellation checks that a caller that gives up returns at once, though
// the handler goes on, and that the handler learns of it.
func testCancellation(t *testing.T, tr transport.Transport, address string) {
	started, told, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	defer close(release)
	c, _ := connect(t, tr, address, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(started)
		<-ctx.Done()
		close(told)
		<-release
		return nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, err := c.Call(ctx, "m", nil)
		wantCode(t, err, transport.Canceled)
	}()
	within(t, started, "the handler starts")
	cancel()
	within(t, returned, "the caller returns")
	within(t, told, "the handler is told")
}

func testContextValues(t *testing.T, tr transport.Transport, address string) {
	type key struct{}
	c, _ := connect(t, tr, address, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		if ctx.Value(key{}) != nil {
			return nil, errors.New("a value of the caller's context has come along")
		}
		return nil, nil
	})
	if _, err := c.Call(context.WithValue(t.Context(), key{}, 1), "m", nil); err != nil {
		t.Error(err)
	}
}

// testOwnership checks that neither side sees what the other does with its
// memory: the handler with its response, or the caller with its request once it
// has given up a call that the handler still works on.
func testOwnership(t *testing.T, tr transport.Transport, address string) {
	started, changed, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	kept := make(chan string, 1)
	resp := []byte("answer")
	c, _ := connect(t, tr, address, func(_ context.Context, method string, req []byte) ([]byte, error) {
		if method == "slow" {
			close(started)
			<-changed
			kept <- string(req)
		}
		return resp, nil
	})
	buf := []byte("first")
	for range 2 {
		got, err := c.Call(t.Context(), "m", buf)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != "answer" {
			t.Errorf("the response shares memory with the handler: %q", got)
		}
		copy(got, "xxxxxx")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(returned)
		_, err := c.Call(ctx, "slow", buf)
		wantCode(t, err, transport.Canceled)
	}()
	within(t, started, "the handler starts")
	cancel()
	within(t, returned, "the caller returns")
	buf[0] = 'x'
	close(changed)
	if req := <-kept; req != "first" {
		t.Errorf("the request shares memory with the handler: %q", req)
	}
}

func testSizes(t *testing.T, tr transport.Transport, address string) {
	c, _ := connect(t, tr, address, func(_ context.Context, method string, req []byte) ([]byte, error) {
		if method == "grow" {
			return make([]byte, transport.MaxMessage+1), nil
		}
		return req, nil
	})
	largest := make([]byte, transport.MaxMessage)
	if resp, err := c.Call(t.Context(), "echo", largest); err != nil || len(resp) != len(largest) {
		t.Errorf("largest message: %d octets back, %v", len(resp), err)
	}
	_, err := c.Call(t.Context(), "echo", make([]byte, transport.MaxMessage+1))
	wantCode(t, err, transport.ResourceExhausted)
	_, err = c.Call(t.Context(), "grow", nil)
	wantCode(t, err, transport.ResourceExhausted)
	if _, err := c.Call(t.Context(), "echo", nil); err != nil {
		t.Errorf("the connection does not survive a message that is too large: %v", err)
	}
}

func testCloseConnection(t *testing.T, tr transport.Transport, address string) {
	started, ended := make(chan struct{}), make(chan struct{})
	c, l := connect(t, tr, address, func(ctx context.Context, method string, _ []byte) ([]byte, error) {
		if method == "wait" {
			close(started)
			<-ctx.Done()
			close(ended)
		}
		return nil, nil
	})
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		_, err := c.Call(context.Background(), "wait", nil)
		wantCode(t, err, transport.Unavailable)
	}()
	within(t, started, "the handler starts")
	for range 2 { // the second does nothing
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	within(t, failed, "the call under way fails")
	within(t, ended, "its handler is told")
	_, err := c.Call(t.Context(), "m", nil)
	wantCode(t, err, transport.Unavailable)
	if _, err := dial(t, tr, l).Call(t.Context(), "m", nil); err != nil {
		t.Errorf("another connection: %v", err)
	}
}

func testCloseListener(t *testing.T, tr transport.Transport, address string) {
	started, told := make(chan struct{}), make(chan struct{})
	c, l := connect(t, tr, address, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(started)
		<-ctx.Done()
		close(told)
		return nil, nil
	})
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		_, err := c.Call(context.Background(), "m", nil)
		wantCode(t, err, transport.Unavailable)
	}()
	within(t, started, "the handler starts")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, failed, "the call under way fails")
	within(t, told, "its handler is told")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.Call(ctx, "m", nil)
	wantCode(t, err, transport.Unavailable)
	_, err = tr.Dial(ctx, l.Address())
	wantCode(t, err, transport.Unavailable)
}

func testAddresses(t *testing.T, tr transport.Transport, address string) {
	h := func(context.Context, string, []byte) ([]byte, error) { return nil, nil }
	_, l := connect(t, tr, address, h)
	if _, err := tr.Listen(l.Address(), handler(h)); err == nil {
		t.Error("an address in use is given again")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	again, _ := connect(t, tr, l.Address(), h)
	if _, err := again.Call(t.Context(), "m", nil); err != nil {
		t.Errorf("the same address again: %v", err)
	}
}
