package northbound

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// site is a server whose clients say by X-Rank who they are.
type site struct {
	*Listener
	at              string
	refused, closed atomic.Int32
}

func newSite(t *testing.T, limits Limits) *site {
	t.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{at: raw.Addr().String()}
	limits.Newcomer = func(int) Rank { return Stranger }
	limits.Refused, limits.Closed = func() { s.refused.Add(1) }, func() { s.closed.Add(1) }
	if limits.Octets == 0 {
		limits.Octets, limits.OctetsPerClient = 1<<30, 1<<30
	}
	s.Listener = Listen(raw, limits)
	s.patience = 0
	server := &http.Server{ConnContext: s.ConnContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rank, _ := strconv.Atoi(r.Header.Get("X-Rank"))
		visit, err := Enter(r.Context(), Rank(rank))
		if err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer visit.End()
		w, r = visit.Writer(w), visit.Request(r)
		switch r.URL.Path {
		case "/follow":
			defer Follow(r.Context())()
			fallthrough
		case "/work":
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/large":
			if err := Hold(r.Context(), 1<<20); err != nil {
				http.Error(w, err.Error(), http.StatusTooManyRequests)
				return
			}
			b := make([]byte, 32<<20)
			w.Write(b)
		}
		if _, err := io.Copy(io.Discard, r.Body); errors.As(err, new(*Full)) {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		}
	})}
	go server.Serve(s)
	t.Cleanup(func() { server.Close() })
	return s
}

// open makes a connection and sends a text.
func (s *site) open(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// answered makes a connection, sends a whole request, and takes its answer: what is idle
// then has been so since, and is not about to be served.
func (s *site) answered(t *testing.T, text string) net.Conn {
	t.Helper()
	c := s.open(t, text)
	c.SetReadDeadline(time.Now().Add(testwait.Limit))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	return c
}

// is waits until the connections are in these states, those of all classes together.
func (s *site) is(t *testing.T, want [states]int) {
	t.Helper()
	got := [states]int{}
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		got = [states]int{}
		for i := range got {
			for class := range s.all {
				got[i] += s.all[class][i].Len()
			}
		}
		s.mu.Unlock()
		if got == want {
			return
		}
	}
	t.Fatalf("states %v; want %v", got, want)
}

// ended waits until the server has closed a connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(testwait.Limit))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is still open")
	}
}

func ask(path string, rank Rank, more string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nX-Rank: %d\r\n%s\r\n", path, rank, more)
}

// Of connections that are full, those that are idle or stall go first, then who
// follows events, then who is served, then operators', and administrators' last; each is
// the oldest.
func TestWhoGoes(t *testing.T) {
	s := newSite(t, Limits{Connections: 8, PerClient: 100})
	administrator := s.answered(t, ask("/", Administrator, ""))
	s.is(t, [states]int{1, 0, 0, 0})
	operator := s.answered(t, ask("/", Operator, ""))
	s.is(t, [states]int{2, 0, 0, 0})
	serves := s.open(t, ask("/work", Reader, ""))
	s.is(t, [states]int{2, 0, 0, 1})
	follows := s.open(t, ask("/follow", Reader, ""))
	s.is(t, [states]int{2, 0, 1, 1})
	stalls := s.open(t, ask("/", Reader, "Content-Length: 5\r\n"))
	s.is(t, [states]int{2, 1, 1, 1})
	idle := s.answered(t, ask("/", Reader, ""))
	s.is(t, [states]int{3, 1, 1, 1})
	silent := s.open(t, "")
	s.is(t, [states]int{4, 1, 1, 1})
	begins := s.open(t, "GET / HTTP/1.1\r\nX: ")
	s.is(t, [states]int{5, 1, 1, 1})

	// Each newcomer is an operator that is served.
	for i, c := range []net.Conn{idle, silent, begins, stalls, follows, serves, operator, administrator} {
		s.open(t, ask("/work", Operator, ""))
		ended(t, c)
		if n := s.closed.Load(); n != int32(i+1) {
			t.Errorf("%d are closed; want %d", n, i+1)
		}
		s.wait(t, i+1)
	}
	// Nobody is left who could go.
	ended(t, s.open(t, ""))
	if s.refused.Load() != 1 {
		t.Errorf("%d are refused; want 1", s.refused.Load())
	}
}

// wait waits until so many operators are served.
func (s *site) wait(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		got := s.all[operators][busy].Len()
		s.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d operators are served; want %d", got, n)
		}
	}
}

// One client's connections are no more than its share, and the oldest of its own
// goes.
func TestClientsShare(t *testing.T) {
	s := newSite(t, Limits{Connections: 100, PerClient: 3})
	var open []net.Conn
	for range 5 {
		open = append(open, s.open(t, ""))
	}
	ended(t, open[0])
	ended(t, open[1])
	s.is(t, [states]int{3, 0, 0, 0})
	for _, c := range open {
		c.Close()
	}
	s.is(t, [states]int{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) != 0 || s.octets != 0 || s.low != 0 {
		t.Errorf("left: %d clients, %d octets, %d", len(s.clients), s.octets, s.low)
	}
}

// A newcomer has its time to say who it is, however many come behind it.
func TestNewcomersHaveTime(t *testing.T) {
	s := newSite(t, Limits{Connections: 32, PerClient: 1000})
	s.mu.Lock()
	s.patience = time.Hour
	s.mu.Unlock()
	for range 31 {
		s.open(t, "")
	}
	first := s.open(t, "")
	s.is(t, [states]int{32, 0, 0, 0})
	for range 50 { // which wait in the kernel's queue
		s.open(t, "")
	}
	io.WriteString(first, ask("/work", Operator, ""))
	s.is(t, [states]int{31, 0, 0, 1})
	if n := s.closed.Load(); n != 0 {
		t.Errorf("%d were closed before their time", n)
	}
}

// What requests and answers hold is bounded, for a client, for those who may
// only read, and in all; who waits for its client goes first, and what is below
// the bounds is let in.
func TestOctets(t *testing.T) {
	s := newSite(t, Limits{Connections: 100, PerClient: 100, Octets: 16 << 20, OctetsPerClient: 8 << 20})
	body := fmt.Sprintf("Content-Length: %d\r\n", 4<<20)
	var stalled []net.Conn
	for i := range 3 {
		c := s.open(t, ask("/", Reader, body))
		c.Write(make([]byte, 3<<20))
		stalled = append(stalled, c)
		for end := time.Now().Add(testwait.Limit); s.held() != min(i+1, 2)*(3<<20+RequestOctets); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d octets are held", s.held())
			}
		}
	}
	ended(t, stalled[0]) // the third had no room beside it
	if held := s.held(); held > 8<<20 {
		t.Errorf("%d octets are held", held)
	}
	// Who works is not cut off, but told.
	for range 7 {
		s.open(t, ask("/large", Operator, ""))
	}
	c := s.open(t, ask("/", Operator, "Content-Length: 10\r\n")+"0123456789")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a small request: %v %v", resp, err)
	}
	if held := s.held(); held > 8<<20 {
		t.Errorf("%d octets are held", held)
	}
}

func (s *site) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.octets
}

// Where nothing can go, requests are refused with what the limit is; a single
// one may exceed it.
func TestFull(t *testing.T) {
	l := &Listener{limits: Limits{Octets: 1000, OctetsPerClient: 600, Closed: func() {}}, clients: map[Client]*share{}, freed: make(chan struct{}, 1)}
	visit := func(s *share, rank Rank) *Visit {
		c := &conn{listener: l, share: s, rank: rank, requests: 1}
		c.state = busy
		l.insert(c)
		return &Visit{conn: c}
	}
	one, two := &share{}, &share{}
	large := visit(one, Operator)
	if err := large.hold(5000); err != nil {
		t.Errorf("alone: %v", err)
	}
	if err := visit(one, Operator).hold(1); err == nil || err.Error() == "" {
		t.Error("beside one that exceeds the limit there is room")
	}
	if err := visit(two, Operator).hold(1); err == nil {
		t.Error("another client has room where there is none")
	}
	large.conn.requests++ // End takes it away
	large.End()
	if l.octets != 0 || one.octets != 0 {
		t.Errorf("%d and %d octets are left", l.octets, one.octets)
	}
	if err := visit(one, Reader).hold(400); err != nil {
		t.Error(err)
	}
	if err := visit(two, Reader).hold(200); err == nil {
		t.Error("those who only read have more than half")
	}
	if err := visit(two, Operator).hold(500); err != nil {
		t.Errorf("an operator has no room beside them: %v", err)
	}
}

// What nobody acknowledges ends a connection, although nothing is written to it.
func TestVanishedClientsEnd(t *testing.T) {
	s := newSite(t, Limits{Connections: 10, PerClient: 10})
	s.open(t, ask("/follow", Reader, ""))
	s.is(t, [states]int{0, 0, 1, 0})
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := s.all[below][following].Front().Value.(*conn).Conn.(interface{ NetConn() net.Conn }).NetConn().(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ms := 0
	if e := raw.Control(func(fd uintptr) { ms, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if ms != int(vanished.Milliseconds()) {
		t.Errorf("after %d ms", ms)
	}
}

// Requests that stall end for those of clients of their own rank and of higher ones, the
// lowest first: an operator's never ends an administrator's.
func TestWhoseRequestEnds(t *testing.T) {
	var q queues
	of := map[Rank]*conn{}
	for rank := Stranger; rank <= Administrator; rank++ {
		of[rank] = &conn{rank: rank, state: stalled}
		q.insert(of[rank])
	}
	now := time.Now()
	for _, c := range []struct {
		but  Rank
		rank Rank
		want *conn
	}{
		{Stranger, Stranger, of[Reader]}, // strangers and readers in the order in which they began
		{Reader, Administrator, of[Stranger]},
	} {
		if got := q.waits(c.rank, of[c.but], now); got != c.want {
			t.Errorf("for one of rank %d: rank %d goes", c.rank, got.rank)
		}
	}
	q[below][stalled].Init()
	for rank, want := range map[Rank]*conn{Reader: nil, Operator: of[Operator], Administrator: of[Operator]} {
		if got := q.waits(rank, nil, now); got != want {
			t.Errorf("without readers, for one of rank %d: %+v", rank, got)
		}
	}
	if got := q.waits(Operator, of[Operator], now); got != nil {
		t.Errorf("for an operator's, one of rank %d goes", got.rank)
	}
	if got := q.waits(Administrator, of[Operator], now); got != of[Administrator] {
		t.Errorf("for an administrator's: %+v", got)
	}
}
