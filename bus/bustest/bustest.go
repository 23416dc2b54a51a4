// Package bustest is the suite that every store of durable state passes.
//
// Tests import it, nothing else does. It imports weft and api.
package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Store is the store under test.
type Store interface {
	Bucket(ctx context.Context, name string) (weft.Bucket, error)
}

// Test runs the suite; open returns an empty store for each part of it.
func Test(t *testing.T, open func(*testing.T) Store) {
	bucket := func(t *testing.T) weft.Bucket {
		t.Helper()
		return mustOpen(t, open(t), "flowrules.flows")
	}
	t.Run("PutAndGet", func(t *testing.T) { testPutAndGet(t, bucket(t)) })
	t.Run("Update", func(t *testing.T) { testUpdate(t, bucket(t)) })
	t.Run("UpdateRace", func(t *testing.T) { testUpdateRace(t, bucket(t)) })
	t.Run("Delete", func(t *testing.T) { testDelete(t, bucket(t)) })
	t.Run("Keys", func(t *testing.T) { testKeys(t, bucket(t)) })
	t.Run("All", func(t *testing.T) { testAll(t, bucket(t)) })
	t.Run("Watch", func(t *testing.T) { testWatch(t, bucket(t)) })
	t.Run("WatchMany", func(t *testing.T) { testWatchMany(t, bucket(t)) })
	t.Run("Buckets", func(t *testing.T) { testBuckets(t, open(t)) })
	t.Run("Context", func(t *testing.T) { testContext(t, bucket(t)) })
	t.Run("Ownership", func(t *testing.T) { testOwnership(t, bucket(t)) })
}

func mustOpen(t *testing.T, s Store, name string) weft.Bucket {
	t.Helper()
	b, err := s.Bucket(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, b weft.Bucket, key, value string) uint64 {
	t.Helper()
	revision, err := b.Put(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return revision
}

func wantValue(t *testing.T, b weft.Bucket, key, value string, revision uint64) {
	t.Helper()
	v, r, err := b.Get(t.Context(), key)
	if err != nil || v == nil || string(v) != value || r != revision {
		t.Errorf("get %s: %q of revision %d, %v; want %q of %d", key, v, r, err, value, revision)
	}
}

func wantNone(t *testing.T, b weft.Bucket, key string) {
	t.Helper()
	if v, r, err := b.Get(t.Context(), key); v != nil || r != 0 || err != nil {
		t.Errorf("get %s: %q of revision %d, %v; want nothing", key, v, r, err)
	}
}

func testPutAndGet(t *testing.T, b weft.Bucket) {
	wantNone(t, b, "a")
	first := put(t, b, "a", "1")
	wantValue(t, b, "a", "1", first)
	other := put(t, b, "b", "")
	wantValue(t, b, "b", "", other)
	second := put(t, b, "a", "2")
	wantValue(t, b, "a", "2", second)
	if first == 0 || other <= first || second <= other {
		t.Errorf("revisions %d, %d, %d: want them to grow", first, other, second)
	}
	large := strings.Repeat("x", 512<<10)
	wantValue(t, b, "large", large, put(t, b, "large", large))
}

func testUpdate(t *testing.T, b weft.Bucket) {
	ctx := t.Context()
	first, err := b.Update(ctx, "a", []byte("1"), 0)
	if err != nil || first == 0 {
		t.Fatalf("update of a new key: revision %d, %v", first, err)
	}
	if _, err := b.Update(ctx, "a", []byte("x"), 0); !errors.Is(err, weft.ErrRevision) {
		t.Errorf("update as new of a key that is there: %v, want ErrRevision", err)
	}
	second, err := b.Update(ctx, "a", []byte("2"), first)
	if err != nil || second <= first {
		t.Fatalf("update: revision %d after %d, %v", second, first, err)
	}
	if _, err := b.Update(ctx, "a", []byte("x"), first); !errors.Is(err, weft.ErrRevision) {
		t.Errorf("update of an old revision: %v, want ErrRevision", err)
	}
	if _, err := b.Update(ctx, "none", []byte("x"), second); !errors.Is(err, weft.ErrRevision) {
		t.Errorf("update of a key that was never there: %v, want ErrRevision", err)
	}
	wantValue(t, b, "a", "2", second)
	wantNone(t, b, "none")
	if err := b.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Update(ctx, "a", []byte("x"), second); !errors.Is(err, weft.ErrRevision) {
		t.Errorf("update of a deleted key: %v, want ErrRevision", err)
	}
	third, err := b.Update(ctx, "a", []byte("3"), 0)
	if err != nil || third <= second {
		t.Errorf("update as new of a deleted key: revision %d after %d, %v", third, second, err)
	}
}

// testUpdateRace lets several writers increment a counter by Update alone.
func testUpdateRace(t *testing.T, b weft.Bucket) {
	const writers, each = 4, 10
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				v, r, err := b.Get(t.Context(), "n")
				if err != nil {
					t.Error(err)
					return
				}
				switch _, err := b.Update(t.Context(), "n", append(v, '+'), r); {
				case err == nil:
					done++
				case !errors.Is(err, weft.ErrRevision):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if v, _, err := b.Get(t.Context(), "n"); len(v) != writers*each || err != nil {
		t.Errorf("%d updates counted, %v; want %d", len(v), err, writers*each)
	}
}

func testDelete(t *testing.T, b weft.Bucket) {
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Errorf("delete of a key that is not there: %v", err)
	}
	first := put(t, b, "a", "1")
	for range 2 {
		if err := b.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		wantNone(t, b, "a")
	}
	second := put(t, b, "a", "2")
	if second <= first {
		t.Errorf("revision %d after a delete, was %d: want it to grow", second, first)
	}
	wantValue(t, b, "a", "2", second)
}

func testKeys(t *testing.T, b weft.Bucket) {
	for _, key := range []string{"a", "A-9", "x/y", "x.y", "x_y", "k=v", "0000000000000001/core/12"} {
		wantValue(t, b, key, key, put(t, b, key, key))
	}
	for _, key := range []string{"", ".", ".a", "a.", "a..b", "a b", "a*", "a>", "ä", "a\x00", "a:b"} {
		_, _, getErr := b.Get(t.Context(), key)
		_, putErr := b.Put(t.Context(), key, nil)
		_, updateErr := b.Update(t.Context(), key, nil, 0)
		for _, err := range []error{getErr, putErr, updateErr, b.Delete(t.Context(), key)} {
			if api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("key %q: %v, want InvalidArgument", key, err)
			}
		}
	}
}

func testAll(t *testing.T, b weft.Bucket) {
	collect := func() map[string]string {
		got := map[string]string{}
		err := b.All(t.Context(), func(key string, value []byte, revision uint64) error {
			if _, twice := got[key]; twice || revision == 0 {
				t.Errorf("key %s of revision %d comes again or has none", key, revision)
			}
			got[key] = string(value)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := collect(); len(got) != 0 {
		t.Errorf("empty bucket holds %v", got)
	}
	want := map[string]string{}
	for i := range 100 {
		key := fmt.Sprintf("k/%d", i)
		put(t, b, key, "old")
		put(t, b, key, key)
		want[key] = key
	}
	for i := range 10 {
		key := fmt.Sprintf("k/%d", i)
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		delete(want, key)
	}
	put(t, b, "empty", "")
	want["empty"] = ""
	if got := collect(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	enough := errors.New("enough")
	calls := 0
	if err := b.All(t.Context(), func(string, []byte, uint64) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("All after a failure: %v after %d calls; want that failure after 1", err, calls)
	}
	// f may use the bucket.
	if err := b.All(t.Context(), func(key string, _ []byte, _ uint64) error { return b.Delete(t.Context(), key) }); err != nil {
		t.Fatal(err)
	}
	if got := collect(); len(got) != 0 {
		t.Errorf("after deleting all: %v", got)
	}
}

// view is the state that a watcher has received.
type view struct {
	mu       sync.Mutex
	log      []string
	state    map[string]string
	last     map[string]uint64
	complete atomic.Bool
}

// watch starts a watcher and returns its view, and a function that waits for
// its end.
func watch(ctx context.Context, t *testing.T, b weft.Bucket) (*view, func()) {
	v := &view{state: map[string]string{}, last: map[string]uint64{}}
	done := make(chan error, 1)
	go func() {
		done <- b.Watch(ctx, func(key string, value []byte, revision uint64) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if key == "" {
				if v.complete.Swap(true) {
					t.Error("the first values are reported complete twice")
				}
				v.log = append(v.log, "complete")
				return
			}
			if revision <= v.last[key] {
				t.Errorf("%s: revision %d after %d", key, revision, v.last[key])
			}
			v.last[key] = revision
			if value == nil {
				delete(v.state, key)
				v.log = append(v.log, "-"+key)
				return
			}
			v.state[key] = string(value)
			v.log = append(v.log, key+"="+string(value))
		})
	}()
	return v, func() {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Watch: %v, want nil at the end of its context", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("Watch does not end with its context")
		}
	}
}

// eventually waits until the view satisfies a condition.
func (v *view) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		v.mu.Lock()
		good := ok()
		v.mu.Unlock()
		if good {
			return
		}
		if time.Now().After(end) {
			v.mu.Lock()
			defer v.mu.Unlock()
			t.Fatalf("the watcher does not learn of %s; it was told %v", what, v.log)
		}
	}
}

func testWatch(t *testing.T, b weft.Bucket) {
	put(t, b, "a", "1")
	put(t, b, "gone", "1")
	put(t, b, "b", "")
	if err := b.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v, wait := watch(ctx, t, b)
	v.eventually(t, "what there was", func() bool { return v.complete.Load() })
	v.mu.Lock()
	// A server of several may be behind, and tell of gone and then of its end.
	if v.log[len(v.log)-1] != "complete" || !maps.Equal(v.state, map[string]string{"a": "1", "b": ""}) {
		t.Errorf("first told %v; want a=1 and b=, then complete", v.log)
	}
	v.mu.Unlock()
	put(t, b, "c", "3")
	v.eventually(t, "a new key", func() bool { return v.state["c"] == "3" })
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	v.eventually(t, "a key that is gone", func() bool { _, there := v.state["a"]; return !there })
	put(t, b, "a", "4")
	v.eventually(t, "a key that is back", func() bool { return v.state["a"] == "4" })
	cancel()
	wait()
}

// testWatchMany checks that two watchers reach the state of the bucket,
// whenever they began.
func testWatchMany(t *testing.T, b weft.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	early, waitEarly := watch(ctx, t, b)
	early.eventually(t, "an empty bucket", func() bool { return early.complete.Load() })
	var late *view
	var waitLate func()
	for i := range 200 {
		key := fmt.Sprint("k", i%20)
		if i%7 == 0 {
			if err := b.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, b, key, fmt.Sprint(i))
		}
		if i == 100 {
			late, waitLate = watch(ctx, t, b)
		}
	}
	want := map[string]string{}
	if err := b.All(t.Context(), func(key string, value []byte, _ uint64) error { want[key] = string(value); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, v := range []*view{early, late} {
		v.eventually(t, "the last state", func() bool { return v.complete.Load() && fmt.Sprint(v.state) == fmt.Sprint(want) })
	}
	cancel()
	waitEarly()
	waitLate()
}

func testBuckets(t *testing.T, s Store) {
	a, b := mustOpen(t, s, "flowrules.flows"), mustOpen(t, s, "flowrules_x.flows")
	revision := put(t, a, "k", "1")
	wantNone(t, b, "k")
	wantValue(t, mustOpen(t, s, "flowrules.flows"), "k", "1", revision)
}

func testContext(t *testing.T, b weft.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := b.Get(ctx, "a")
	_, putErr := b.Put(ctx, "a", nil)
	_, updateErr := b.Update(ctx, "a", nil, 0)
	for _, err := range []error{getErr, putErr, updateErr, b.Delete(ctx, "a")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v, want Canceled", err)
		}
	}
	wantNone(t, b, "a")
}

// testOwnership checks that neither side sees what the other later writes into
// its own byte slices.
func testOwnership(t *testing.T, b weft.Bucket) {
	mine := []byte("1")
	revision, err := b.Put(t.Context(), "a", mine)
	if err != nil {
		t.Fatal(err)
	}
	mine[0] = 'x'
	got, _, err := b.Get(t.Context(), "a")
	if err != nil || !bytes.Equal(got, []byte("1")) {
		t.Fatalf("got %q, %v", got, err)
	}
	got[0] = 'y'
	wantValue(t, b, "a", "1", revision)
}
