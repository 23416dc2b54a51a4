package bus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/bus/bustest"
	"github.com/weft-sdn/weft/internal/testwait"
)

// suite runs the suite of buckets within one store.
func suite(t *testing.T, s *bus.Store) {
	n := 0
	bustest.Test(t, func(*testing.T) bustest.Store { n++; return part{s, fmt.Sprintf("part%d.", n)} })
}

func TestBucketsByURL(t *testing.T) {
	t.Parallel()
	suite(t, follow(t, listening(t)))
}

func TestBucketsExternal(t *testing.T) {
	t.Parallel()
	_, urls := cluster(t, 1)
	suite(t, opened(t, bus.Config{URL: urls}))
}

// watcher is what Watch has told.
type watcher struct {
	mu    sync.Mutex
	state map[string]string
	last  map[string]uint64 // revision of each key
}

func watching(t *testing.T, b weft.Bucket) *watcher {
	w := &watcher{state: map[string]string{}, last: map[string]uint64{}}
	ctx, cancel := context.WithCancel(context.Background())
	done, begun := make(chan error, 1), make(chan struct{})
	go func() {
		done <- b.Watch(ctx, func(key string, value []byte, revision uint64) {
			if key == "" {
				close(begun)
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if revision <= w.last[key] {
				t.Errorf("watch: %s of revision %d after %d", key, revision, w.last[key])
			}
			w.last[key] = revision
			if w.state[key] = string(value); value == nil {
				delete(w.state, key)
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-begun:
	case <-time.After(testwait.Limit):
		t.Fatal("the watch does not begin")
	}
	return w
}

// matches waits until the watcher knows what is in the bucket.
func (w *watcher) matches(t *testing.T, b weft.Bucket, want map[string]string) {
	t.Helper()
	have := map[string]string{}
	err := b.All(t.Context(), func(key string, value []byte, _ uint64) error { have[key] = string(value); return nil })
	if err != nil || fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("the bucket holds %v, %v\nwant %v", have, err, want)
	}
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		got := fmt.Sprint(w.state)
		w.mu.Unlock()
		if got == fmt.Sprint(want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the watcher knows %s\nwant %v", got, want)
		}
	}
}

// through does operations of all kinds while something happens to the store,
// at least until it is over, and checks that each is done once and that a
// watcher learns of all. It returns the longest time that one has taken.
func through(t *testing.T, s *bus.Store, watchers []*bus.Store, happen func()) (longest time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	b, err := s.Bucket(ctx, "test.through")
	if err != nil {
		t.Fatal(err)
	}
	var ws []*watcher
	for _, other := range watchers {
		bucket, err := other.Bucket(ctx, "test.through")
		if err != nil {
			t.Fatal(err)
		}
		ws = append(ws, watching(t, bucket))
	}
	want := map[string]string{}
	counter := uint64(0)
	over, after := make(chan struct{}), 0 // operations after it
	for i := 0; after < 20; i++ {
		select {
		case <-over:
			after++
		default:
		}
		if i == 30 {
			go func() {
				defer close(over)
				happen()
			}()
		}
		begin := time.Now()
		key, value := fmt.Sprint("k", i%20), fmt.Sprint(i)
		if i%7 == 3 {
			err = b.Delete(ctx, key)
			delete(want, key)
		} else {
			_, err = b.Put(ctx, key, []byte(value))
			want[key] = value
		}
		if err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
		if counter, err = b.Update(ctx, "counter", []byte(value), counter); err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
		want["counter"] = value
		if got, revision, err := b.Get(ctx, "counter"); err != nil || string(got) != value || revision != counter {
			t.Fatalf("get %d: %s of revision %d, %v; want %s of %d", i, got, revision, err, value, counter)
		}
		longest = max(longest, time.Since(begin))
	}
	for _, w := range ws {
		w.matches(t, b, want)
	}
	return longest
}

func TestEmbeddedRestart(t *testing.T) {
	t.Parallel()
	c := bus.Config{Directory: t.TempDir(), Listen: fmt.Sprint("127.0.0.1:", ports(t, 1)[0])}
	first, err := bus.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	access := first.Access()
	s, other := follow(t, first), follow(t, first)
	longest := through(t, s, []*bus.Store{s, other}, func() {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(700 * time.Millisecond)
		if again := opened(t, c); again.Access() != access {
			t.Error("another URL or token after a restart")
		}
	})
	t.Logf("longest operation: %v", longest)
}

func TestExternalKilled(t *testing.T) {
	t.Parallel()
	members, urls := cluster(t, 1)
	s, other := opened(t, bus.Config{URL: urls}), opened(t, bus.Config{URL: urls})
	longest := through(t, s, []*bus.Store{s, other}, func() {
		members[0].kill()
		time.Sleep(300 * time.Millisecond)
		members[0].start(t)
	})
	t.Logf("longest operation: %v", longest)
}

// TestCluster runs the suite on three servers, then kills the leader of a
// bucket during writes.
func TestCluster(t *testing.T) {
	t.Parallel()
	members, urls := cluster(t, 3)
	s, other := opened(t, bus.Config{URL: urls, Replicas: 3}), opened(t, bus.Config{URL: urls, Replicas: 3})
	t.Run("Buckets", func(t *testing.T) { suite(t, s) })
	if _, err := s.Bucket(t.Context(), "test.through"); err != nil {
		t.Fatal(err)
	}
	leader := leaderOf(t, urls, "KV_weft-test-through")
	longest := through(t, s, []*bus.Store{s, other}, func() {
		for _, m := range members {
			if m.Name == leader {
				m.kill()
			}
		}
		time.Sleep(500 * time.Millisecond)
	})
	t.Logf("longest operation: %v", longest)
}

// leaderOf returns the name of the server that leads a stream.
func leaderOf(t *testing.T, urls, stream string) string {
	t.Helper()
	nc, err := nats.Connect(urls)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info := st.CachedInfo()
	if info.Config.Replicas != 3 || info.Cluster == nil || info.Cluster.Leader == "" {
		t.Fatalf("stream %s is not replicated: %+v", stream, info)
	}
	return info.Cluster.Leader
}

// TestWatcherAway cuts a watcher off while others write and delete.
func TestWatcherAway(t *testing.T) {
	t.Parallel()
	s := listening(t)
	cable := newCable(t, strings.TrimPrefix(s.URL(), "nats://"))
	cut := opened(t, bus.Config{URL: "nats://" + cable.Addr().String(), Token: s.Access().Token})
	ours, err := s.Bucket(t.Context(), "test.cut")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := cut.Bucket(t.Context(), "test.cut")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	set := func(key, value string) {
		t.Helper()
		if _, err := ours.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
		want[key] = value
	}
	remove := func(key string) {
		t.Helper()
		if err := ours.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		delete(want, key)
	}
	set("stays", "1")
	set("changes", "1")
	set("goes", "1")
	set("returns", "1")
	w := watching(t, theirs)
	w.matches(t, ours, want)
	cable.unplug()
	set("changes", "2")
	remove("goes")
	remove("returns")
	set("returns", "2")
	set("comes", "1")
	set("passes", "1")
	remove("passes")
	time.Sleep(200 * time.Millisecond)
	cable.plug()
	w.matches(t, theirs, want)
	remove("comes")
	w.matches(t, theirs, want)
}

// cable forwards TCP connections, except while it is unplugged.
type cable struct {
	net.Listener
	mu    sync.Mutex // guards those below
	out   bool
	conns []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l}
	t.Cleanup(func() {
		l.Close()
		c.unplug()
	})
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			if c.out {
				near.Close()
				far.Close()
			}
			c.mu.Unlock()
			go func() { io.Copy(near, far); near.Close() }()
			go func() { io.Copy(far, near); far.Close() }()
		}
	}()
	return c
}

func (c *cable) unplug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

func (c *cable) plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = false
}

// TestServerAway checks that an operation waits as long as its context lasts,
// and says why it failed.
func TestServerAway(t *testing.T) {
	t.Parallel()
	members, urls := cluster(t, 1)
	s := opened(t, bus.Config{URL: urls})
	b, err := s.Bucket(t.Context(), "test.away")
	if err != nil {
		t.Fatal(err)
	}
	members[0].kill()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err = b.Put(ctx, "k", nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), urls) {
		t.Errorf("put: %v; want DeadlineExceeded naming the URL", err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := b.Put(context.Background(), "k", nil)
		failed <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-failed:
		if api.KindOf(err) != codes.Unavailable || !strings.Contains(err.Error(), "closed") {
			t.Errorf("put in a store that is closed: %v", err)
		}
	case <-time.After(testwait.Limit):
		t.Error("an operation goes on after Close")
	}
}
