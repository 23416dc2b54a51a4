package scp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// The times of a front that ends.
const (
	drainTime = 3 * time.Second        // for requests that are under way,
	leaveTime = time.Second            // of it, for new connections to pass the front by,
	drainRest = 200 * time.Millisecond // without a request, after which it may end,
	leftTime  = time.Second            // and then for all packets to pass by
)

// exit is how what is for the NRF gets past a front that ends.
type exit interface {
	// leave has new connections go on to the NRF, and waits for that until ctx ends.
	leave(ctx context.Context)
	// left is leave of all packets: the front has ended.
	left(ctx context.Context)
}

// leave ends the front: it has new connections pass by, asks the clients of those that there
// are to make no more requests, and lets the requests that are under way end. The server of
// later connections takes those that come all the same.
func (f *front) leave(ctx context.Context, web, later *http.Server) {
	stop, cancel := context.WithTimeout(ctx, f.drain)
	defer cancel()
	past, reached := context.WithTimeout(stop, leaveTime)
	f.exit.leave(past)
	reached()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if web.Shutdown(stop) != nil {
			web.Close()
		}
	}()
	for begun := int64(-1); begun != f.begun.Load() || f.busy.Load() > 0; { // connections that have sent no request yet are not waited for
		begun = f.begun.Load()
		if backoff.Sleep(stop, drainRest) != nil { // requests, and the last answer, are on their way
			break
		}
	}
	cancel()
	<-asked
	later.Close()
}

// shifts is the connections of a listener, for two servers after each other: the second
// gets those that come when the first has closed its own listener. So the port is open as long
// as the front serves: the balancer cuts the connections of a member whose port refuses.
type shifts struct {
	below net.Listener
	conns [2]chan accepted
	ended [2]chan struct{}
	end   [2]func() // closes them
}

type accepted struct {
	conn net.Conn
	err  error
}

func newShifts(below net.Listener) *shifts {
	s := &shifts{below: below}
	for i := range s.conns {
		ended := make(chan struct{})
		s.conns[i], s.ended[i], s.end[i] = make(chan accepted), ended, sync.OnceFunc(func() { close(ended) })
	}
	go s.run()
	return s
}

// run accepts connections until the listener below is closed.
func (s *shifts) run() {
	for {
		var a accepted
		a.conn, a.err = s.below.Accept()
		select {
		case <-s.ended[0]:
		case s.conns[0] <- a:
			if errors.Is(a.err, net.ErrClosed) {
				return
			}
			continue
		}
		select {
		case <-s.ended[1]:
			if a.err != nil {
				return
			}
			a.conn.Close()
		case s.conns[1] <- a:
		}
	}
}

// close ends all listeners.
func (s *shifts) close() {
	for _, end := range s.end {
		end()
	}
	s.below.Close()
}

// listener returns the listener of the first server, 0, or of the second, 1.
func (s *shifts) listener(n int) net.Listener { return &shift{s, n} }

type shift struct {
	of *shifts
	n  int
}

// Accept returns the next connection (net.Listener).
func (s *shift) Accept() (net.Conn, error) {
	select {
	case a := <-s.of.conns[s.n]:
		return a.conn, a.err
	case <-s.of.ended[s.n]:
		return nil, net.ErrClosed
	}
}

// Close has no more connections accepted here (net.Listener).
func (s *shift) Close() error {
	s.of.end[s.n]()
	return nil
}

// Addr returns the address of the listener below (net.Listener).
func (s *shift) Addr() net.Addr { return s.of.below.Addr() }
