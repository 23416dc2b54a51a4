package bus_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/bus"
)

// What others write and delete while a bucket is mended is neither lost nor taken back.
func TestMendBesideWrites(t *testing.T) {
	t.Parallel()
	s := opened(t, bus.Config{Directory: t.TempDir(), Listen: "127.0.0.1:0"})
	b, err := s.Bucket(t.Context(), damagedBucket)
	if err != nil {
		t.Fatal(err)
	}
	fillBucket(t, b)
	want := keysOf(t, b)
	var writers sync.WaitGroup
	var mu sync.Mutex // guards want
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				key, value := fmt.Sprintf("k%d", 60+w*10+i%10), fmt.Sprint(w, i)
				var err error
				if i%3 == 2 {
					value, err = "", b.Delete(t.Context(), key)
				} else {
					_, err = b.Put(t.Context(), key, []byte(value))
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if want[key] = value; value == "" {
					delete(want, key)
				}
				mu.Unlock()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	other := opened(t, bus.Config{URL: s.URL(), Token: s.Access().Token})
	go func() { // opens it again and again, as processes do that start
		for {
			select {
			case <-done:
				return
			default:
				other.Reopen(t.Context(), damagedBucket)
			}
		}
	}()
	for range 5 {
		if err := s.Mend(t.Context(), damagedBucket); err != nil {
			t.Error(err)
		}
	}
	close(done)
	writers.Wait()
	if got := keysOf(t, b); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A process that is killed while it mends a bucket loses nothing of it, and its next start
// takes back nothing that was written since.
func TestMendKilled(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"save", "delete", "make", "fill", "found", "remove"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			d := damaged{t, t.TempDir()}
			s := opened(t, bus.Config{Directory: d.dir})
			b, err := s.Bucket(t.Context(), damagedBucket)
			if err != nil {
				t.Fatal(err)
			}
			fillBucket(t, b)
			want := keysOf(t, b)
			if err := s.MendUntil(t.Context(), damagedBucket, stage); err != nil {
				t.Fatal(err)
			}
			if stage == "remove" {
				put(t, b, "k60", "later")
				want["k60"] = "later"
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s = opened(t, bus.Config{Directory: d.dir})
				if b, err = s.Bucket(t.Context(), damagedBucket); err != nil {
					t.Fatal(err)
				}
				if got := keysOf(t, b); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%d keys after a start, want %d", len(got), len(want))
				}
				if list := s.Damages(); len(list) > 0 {
					t.Errorf("damage after a start: %v", list)
				}
				if _, err := b.Put(t.Context(), "k61", []byte("again")); err != nil {
					t.Error(err)
				}
				want["k61"] = "again"
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A store starts although what was saved of a bucket cannot be read: the bucket is damaged
// if it lacks something, and whole if it does not.
func TestMendFileUnreadable(t *testing.T) {
	t.Parallel()
	for stage, lost := range map[string]bool{"delete": false, "make": true} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			d := damaged{t, t.TempDir()}
			s := opened(t, bus.Config{Directory: d.dir})
			b, err := s.Bucket(t.Context(), damagedBucket)
			if err != nil {
				t.Fatal(err)
			}
			fillBucket(t, b)
			want := keysOf(t, b)
			if err := s.MendUntil(t.Context(), damagedBucket, stage); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			d.write(filepath.Join(d.dir, "manifests", damagedBucket+".saved"), []byte("{"))
			s = opened(t, bus.Config{Directory: d.dir})
			if list := s.Damages(); len(list) > 0 != lost {
				t.Errorf("damage after a start: %v", list)
			}
			if b, err = s.Bucket(t.Context(), damagedBucket); err != nil {
				t.Fatal(err)
			}
			if got := keysOf(t, b); len(got) == len(want) == lost {
				t.Errorf("%d keys after a start", len(got))
			}
		})
	}
}
