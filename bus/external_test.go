package bus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weft/bus"
	"weft/bus/bustest"
)

// cluster starts a NATS server as somebody else would run it, on loopback; -1
// is any port.
func cluster(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}

func TestExternal(t *testing.T) {
	dir := t.TempDir()
	srv := cluster(t, dir, -1)
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	s, err := bus.Open(t.Context(), bus.Config{URL: srv.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	bustest.Test(t, func(*testing.T) bustest.Store { n++; return part{s, fmt.Sprintf("part%d.", n)} })

	// A watcher outlives the restart of the server.
	b, err := s.Bucket(t.Context(), "flowrules.flows")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() {
		watched <- b.Watch(ctx, func(key string, value []byte, _ uint64) { told <- key + "=" + string(value) })
	}()
	hear := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Fatalf("the watcher is told %s, want %s", got, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("the watcher does not hear of %s", want)
		}
	}
	hear("=")
	if _, err := b.Put(t.Context(), "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	hear("a=1")
	port := srv.Addr().String()
	srv.Shutdown()
	srv.WaitForShutdown()
	var number int
	if _, err := fmt.Sscanf(port, "127.0.0.1:%d", &number); err != nil {
		t.Fatal(err)
	}
	srv = cluster(t, dir, number)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err = b.Put(t.Context(), "a", []byte("2")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("put after the restart: %v", err)
		}
	}
	hear("a=2")
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}
