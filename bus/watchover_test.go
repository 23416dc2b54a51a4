package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
)

// TestDamageWhileRunning damages the files of a store that is open: what cannot
// be read does not count as deleted, the bucket becomes read-only without another
// start, and it is whole again after it has been repaired.
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(damaged)
		every  time.Duration // 0: only reads find it
	}{
		{"value, found by reading", func(d damaged) { d.flip(d.block(), 0.27) }, time.Hour},
		{"value", func(d damaged) { d.flip(d.block(), 0.27) }, 13 * time.Second},
		{"several", func(d damaged) {
			for i := range 8 {
				d.flip(d.block(), 0.1*float64(i)+0.03)
			}
		}, 13 * time.Second},
		{"zeros", func(d damaged) { d.write(d.block(), make([]byte, 20000)) }, 13 * time.Second},
		{"manifest flipped", func(d damaged) { d.flip(d.manifest(), 0.5) }, 13 * time.Second},
		{"manifest removed", func(d damaged) { d.remove(d.manifest()) }, 13 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := damaged{t, t.TempDir()}
			s, err := bus.Open(t.Context(), bus.Config{Directory: d.dir, CheckEvery: c.every})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			b, err := s.Bucket(t.Context(), damagedBucket)
			if err != nil {
				t.Fatal(err)
			}
			fillBucket(t, b)
			before := keysOf(t, b)
			time.Sleep(100 * time.Millisecond) // the manifest is written behind
			c.damage(d)
			damage := func() string { return b.(weft.Damageable).Damage() }
			// The server forgets what it has read after ten seconds.
			for end := time.Now().Add(testwait.Limit); damage() == ""; time.Sleep(15 * time.Second) {
				if time.Now().After(end) {
					t.Fatal("the damage is not noticed")
				}
				for key, value := range before {
					v, _, err := b.Get(t.Context(), key)
					if err == nil && string(v) != value && damage() == "" {
						soonDamaged(t, damage, fmt.Sprintf("%s is %.20q, nothing said", key, v))
					}
					if err != nil && api.KindOf(err) != codes.DataLoss {
						t.Errorf("get: %v", err)
					}
				}
			}
			t.Log(damage())
			if _, err := b.Put(t.Context(), "k", nil); api.KindOf(err) != codes.FailedPrecondition {
				t.Errorf("a change of a damaged bucket: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
			defer cancel()
			if err := b.All(ctx, func(string, []byte, uint64) error { return nil }); err != nil {
				t.Errorf("what is left cannot be read: %v", err)
			}
			if _, err := s.Fill(ctx, damagedBucket, octets(before)); err != nil {
				t.Fatal(err)
			}
			if err := s.Accept(ctx, damagedBucket); err != nil {
				t.Fatal(err)
			}
			if after := keysOf(t, b); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%d keys after the repair, want %d", len(after), len(before))
			}
			put(t, b, "k", "after the repair")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := bus.Open(t.Context(), bus.Config{Directory: d.dir})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if list := again.Damages(); len(list) > 0 {
				t.Errorf("at the next start: %v", list)
			}
		})
	}
}

// soonDamaged checks that damage that a read has met is known a moment later.
func soonDamaged(t *testing.T, damage func() string, what string) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); damage() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestOpenedBesideTheFirstWrite: a bucket that another process fills while it is being
// opened has lost nothing. The opener hears together that it is empty and that it has held
// something.
func TestOpenedBesideTheFirstWrite(t *testing.T) {
	t.Parallel()
	first := opened(t, bus.Config{Directory: t.TempDir(), Listen: "127.0.0.1:0"})
	late := newLateServer(t, strings.TrimPrefix(first.URL(), "nats://"))
	second := opened(t, bus.Config{URL: "nats://" + late.address, Token: first.Access().Token})
	for i := range 20 {
		name := fmt.Sprintf("b%d", i)
		b, err := first.Bucket(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		late.hold()
		done := make(chan error)
		go func() {
			_, err := second.Bucket(t.Context(), name)
			done <- err
		}()
		testwait.Until(t, "the server's answer that it is empty", func() bool { return late.holds("KV_weft-" + name + `"`) })
		put(t, b, "k", "v")
		others := 0
		testwait.Until(t, "the news that it has held something", func() bool {
			if _, err := first.Bucket(t.Context(), fmt.Sprintf("other%d_%d", i, others)); err != nil { // the buckets are looked at then
				t.Fatal(err)
			}
			others++
			return late.holds(`"` + name + `"`)
		})
		late.release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*bus.Store{first, second} {
		if list := s.Damages(); len(list) > 0 {
			t.Errorf("%d buckets are said to be damaged: %s: %s", len(list), list[0].Bucket, list[0].Reason)
		}
	}
}

// lateServer stands before a server, and can hold what that says.
type lateServer struct {
	address string
	mu      sync.Mutex // guards the following
	holding bool
	held    []byte
	to      net.Conn
}

func newLateServer(t *testing.T, server string) *lateServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &lateServer{address: l.Addr().String()}
	go func() {
		defer l.Close()
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		from, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		s.mu.Lock()
		s.to = client
		s.mu.Unlock()
		go func() {
			_, _ = io.Copy(from, client) // until either ends
			from.Close()
		}()
		for b := make([]byte, 64<<10); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			s.mu.Lock()
			if s.held = append(s.held, b[:n]...); !s.holding {
				s.send()
			}
			s.mu.Unlock()
		}
	}()
	return s
}

// send says what is held. It is called with mu held.
func (s *lateServer) send() {
	_, _ = s.to.Write(s.held) // who has gone needs nothing
	s.held = nil
}

func (s *lateServer) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
}

func (s *lateServer) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = false
	s.send()
}

// holds reports whether a text is among what is held.
func (s *lateServer) holds(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.held, []byte(text))
}
