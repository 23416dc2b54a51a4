package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// subscribe opens the event stream.
func subscribe(t *testing.T, address, subjects string) *websocket.Conn {
	t.Helper()
	conn, resp, err := websocket.Dial(t.Context(), "ws://"+address+eventsPath+"?subjects="+subjects, nil)
	if err != nil {
		t.Fatalf("%v %v", resp, err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return conn
}

func read(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	_, text, err := conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// publish adds events of a host, numbered from 0.
func (s *testServer) publish(n int) {
	for i := range n {
		s.stream.log.add("hosts.HostChanged", &api.HostChanged{Change: fmt.Sprint(i), Host: &api.Host{Ipv4: []string{strings.Repeat("x", 4096)}}}, "", false, false, "")
	}
}

// told is what a client is sent.
type told struct {
	Epoch, Number string
	Subject       string
	Event         struct{ Change string }
	Restarted     bool
	Missed        int
}

// next reads what a client is sent next.
func next(t *testing.T, conn *websocket.Conn) (e told) {
	t.Helper()
	text := read(t, conn)
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Epoch == "" || e.Number == "" || (e.Subject == "") != e.Restarted {
		t.Fatalf("%.80s: %v", text, err)
	}
	return e
}

// A client that does not read is told how much it missed, once it reads, and counted;
// publishing does not wait for it, and others get everything in order.
func TestSlowClientReadsAnew(t *testing.T) {
	s := serve(t, func(c *Config) { c.EventQueue = 100 })
	slow := subscribe(t, s.address, "")
	good := subscribe(t, s.address, "hosts")
	good.SetReadLimit(1 << 20)
	wait(t, func() bool { return s.stream.places.Len() == 2 })
	const n = 3000 // of 4 KB: more than the kernel holds for one connection
	done := make(chan error, 1)
	var got atomic.Int32
	go func() {
		for i := range n {
			_, text, err := good.Read(context.Background())
			if err == nil && !strings.Contains(string(text), fmt.Sprintf(`"change":"%d"`, i)) {
				err = fmt.Errorf("event %d is %.200s", i, text)
			}
			if err != nil {
				got.Store(n)
				done <- err
				return
			}
			got.Add(1)
		}
		done <- nil
	}()
	for i := range n { // as fast as the good client reads, and for ever if it waited for the slow one
		for i-int(got.Load()) > 50 {
			time.Sleep(10 * time.Microsecond)
		}
		s.stream.log.add("hosts.HostChanged", &api.HostChanged{Change: fmt.Sprint(i), Host: &api.Host{Ipv4: []string{strings.Repeat("x", 4096)}}}, "", false, false, "")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	slow.SetReadLimit(1 << 20)
	s.publish(1)
	events, missed := 0, 0
	for events+missed <= n {
		e := next(t, slow)
		if missed += e.Missed; e.Missed == 0 {
			events++
		}
		if (e.Missed > 0) != e.Restarted || e.Number != fmt.Sprint(events+missed) {
			t.Fatalf("after %d events and %d missed comes %v", events, missed, e)
		}
	}
	if events+missed != n+1 || missed == 0 || s.slow.Load() == 0 {
		t.Errorf("the slow client got %d events and was told of %d more, of %d; it is counted %d times", events, missed, n+1, s.slow.Load())
	}
	s.publish(1)
	if e := next(t, slow); e.Event.Change != "0" {
		t.Errorf("after that comes %v", e)
	}
}

// TestEventQueueOfOne: a client that may be behind by one event is told of all that it
// misses.
func TestEventQueueOfOne(t *testing.T) {
	s := serve(t, func(c *Config) { c.EventQueue = 1 })
	conn := subscribe(t, s.address, "")
	conn.SetReadLimit(1 << 20)
	wait(t, func() bool { return s.stream.places.Len() == 1 })
	s.publish(2000)
	events, missed := 0, 0
	for events+missed < 2000 {
		e := next(t, conn)
		if missed += e.Missed; e.Missed == 0 {
			events++
		}
	}
	if events+missed != 2000 || missed == 0 {
		t.Errorf("%d events, %d missed", events, missed)
	}
}

// A client goes on behind the event that it has read last; one that comes too late,
// from another run of the gateway, or from the future, reads the state anew.
func TestResume(t *testing.T) {
	s := serve(t, func(c *Config) { c.EventQueue = 100 })
	s.publish(10)
	first := subscribe(t, s.address, "")
	wait(t, func() bool { return s.stream.places.Len() == 1 })
	s.publish(1)
	at := next(t, first)
	if at.Number != "11" {
		t.Fatalf("the first event after the client came: %v", at)
	}
	first.CloseNow()
	s.publish(5)
	resume := func(epoch, number string) *websocket.Conn {
		t.Helper()
		return subscribe(t, s.address, "hosts&epoch="+epoch+"&number="+number)
	}
	again := resume(at.Epoch, at.Number)
	for i := range 5 {
		if e := next(t, again); e.Event.Change != fmt.Sprint(i) || e.Number != fmt.Sprint(12+i) {
			t.Errorf("event %d after the gap: %v", i, e)
		}
	}
	last := "16"
	for _, c := range []struct{ epoch, number string }{{"1", at.Number}, {at.Epoch, "17"}, {at.Epoch, "18446744073709551615"}, {"0", "0"}} {
		conn := resume(c.epoch, c.number)
		if e := next(t, conn); !e.Restarted || e.Epoch != at.Epoch || e.Number != last {
			t.Errorf("from %v: %v", c, e)
		}
		conn.CloseNow()
	}
	s.publish(200)
	late := resume(at.Epoch, at.Number)
	if e := next(t, late); !e.Restarted || e.Missed != 205 || e.Number != "216" {
		t.Errorf("too late: %v", e)
	}
	// What it reads then is where it goes on.
	m, err := s.stream.log.read(t.Context(), &api.ReadEventsRequest{})
	if err != nil || fmt.Sprint(m.Position.Epoch) != at.Epoch || m.Position.Number != 216 {
		t.Errorf("the state: %v, %v", m.GetPosition(), err)
	}
}

func TestNumberOfClientsIsBounded(t *testing.T) {
	s := serve(t, func(c *Config) { c.MaxEventClients = 1 })
	first := subscribe(t, s.address, "")
	_, resp, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, nil)
	if err == nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("second client: %v %v", resp, err)
	}
	first.CloseNow()
	wait(t, func() bool { return s.stream.places.Len() == 0 })
	subscribe(t, s.address, "")
}

// A client that goes without a word is forgotten.
func TestClientGoes(t *testing.T) {
	s := serve(t, nil)
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", eventsPath, s.address)
	wait(t, func() bool { return s.stream.places.Len() == 1 })
	conn.Close()
	wait(t, func() bool { return s.stream.places.Len() == 0 })
}

// Without clients an event costs next to nothing.
func BenchmarkPublishToNobody(b *testing.B) {
	l := newEventLog(time.Now, nil)
	e := &api.HostChanged{}
	for b.Loop() {
		l.add("hosts.HostChanged", e, "", false, false, "")
	}
}
