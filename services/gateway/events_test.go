package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/api"
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, text, err := conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *testServer) publish(n int) time.Duration {
	start := time.Now()
	for i := range n {
		s.stream.publish("hosts.HostChanged", &api.HostChanged{Change: fmt.Sprint(i), Host: &api.Host{Ipv4: []string{strings.Repeat("x", 4096)}}})
	}
	return time.Since(start)
}

// A client that does not read is told how much it missed, once it reads, and counted;
// publishing does not wait for it, and others get everything in order.
func TestSlowClientReadsAnew(t *testing.T) {
	s := serve(t, func(c *Config) { c.EventQueue = 100 })
	slow := subscribe(t, s.address, "")
	good := subscribe(t, s.address, "hosts")
	good.SetReadLimit(1 << 20)
	wait(t, func() bool { return s.stream.any.Load() == 2 })
	const n = 3000 // of 4 KB: more than the kernel holds for one connection
	done := make(chan error, 1)
	go func() {
		for i := range n {
			_, text, err := good.Read(context.Background())
			if err == nil && !strings.Contains(string(text), fmt.Sprintf(`"change":"%d"`, i)) {
				err = fmt.Errorf("event %d is %.80s", i, text)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for i := range n { // as fast as the good client reads
		for len(s.queueOf("hosts.HostChanged")) > 50 {
			time.Sleep(10 * time.Microsecond)
		}
		start := time.Now()
		s.stream.publish("hosts.HostChanged", &api.HostChanged{Change: fmt.Sprint(i), Host: &api.Host{Ipv4: []string{strings.Repeat("x", 4096)}}})
		if took := time.Since(start); took > 4*time.Second {
			t.Fatalf("publishing waited %v for a slow client", took)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.slow.Load() == 0 {
		t.Error("nobody counts the slow client")
	}
	slow.SetReadLimit(1 << 20)
	s.publish(1)
	events, missed := 0, 0
	for events+missed <= n {
		events, missed = next(t, slow, events, missed)
	}
	if events+missed != n+1 || missed == 0 || events < 100 {
		t.Errorf("the slow client got %d events and was told of %d more, of %d", events, missed, n+1)
	}
	s.publish(1)
	if text := read(t, slow); !strings.Contains(text, `"change":"0"`) {
		t.Errorf("after that comes %.80s", text)
	}
}

// next counts what a client is sent next.
func next(t *testing.T, conn *websocket.Conn, events, missed int) (int, int) {
	t.Helper()
	var e struct {
		Subject   string
		Restarted bool
		Missed    int
	}
	text := read(t, conn)
	if err := json.Unmarshal([]byte(text), &e); err != nil || (e.Subject == "") != (e.Missed > 0) || e.Restarted != (e.Missed > 0) {
		t.Fatalf("%.80s: %v", text, err)
	}
	if e.Missed > 0 {
		return events, missed + e.Missed
	}
	return events + 1, missed
}

// queueOf returns the queue of the client that asks for one subject only.
func (s *testServer) queueOf(subject string) chan waiting {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	for c := range s.stream.clients {
		if len(c.wants) == 1 && c.wants[subject] {
			return c.events
		}
	}
	return nil
}

// TestEventQueueOfOne: a queue that has room for the note alone.
func TestEventQueueOfOne(t *testing.T) {
	s := serve(t, func(c *Config) { c.EventQueue = 1 })
	conn := subscribe(t, s.address, "")
	conn.SetReadLimit(1 << 20)
	wait(t, func() bool { return s.stream.any.Load() == 1 })
	s.publish(2000)
	events, missed := 0, 0
	for events+missed < 2000 {
		events, missed = next(t, conn, events, missed)
	}
	if events+missed != 2000 || missed == 0 {
		t.Errorf("%d events, %d missed", events, missed)
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
	wait(t, func() bool { return s.stream.any.Load() == 0 })
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
	wait(t, func() bool { return s.stream.any.Load() == 1 })
	conn.Close()
	wait(t, func() bool { return s.stream.any.Load() == 0 })
}

// Without clients an event costs next to nothing.
func BenchmarkPublishToNobody(b *testing.B) {
	s := &stream{clients: map[*client]bool{}}
	e := &api.HostChanged{}
	for b.Loop() {
		s.publish("hosts.HostChanged", e)
	}
}
