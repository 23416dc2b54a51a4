package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft/bus"
)

// ending is a context that ends when it has been looked at so many times.
type ending struct {
	context.Context
	left *atomic.Int64
}

func (e ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return e.Context.Err()
}

// TestRestoreCutShort ends a restore after each of its steps: until one is
// finished, the store counts as damaged, also after a start, and whoever runs the
// restore again has what the backup holds.
func TestRestoreCutShort(t *testing.T) {
	want := map[string]string{}
	contents := map[string]map[string][]byte{damagedBucket: {}, "firewall.rules": {"r": []byte("1")}}
	for i := range 20 {
		key := fmt.Sprint("new", i)
		want[key] = "1"
		contents[damagedBucket][key] = []byte("1")
	}
	for _, steps := range []int64{0, 5, 25, 30, 60} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			open := func() (*bus.Store, map[string]string) {
				t.Helper()
				s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
				if err != nil {
					t.Fatal(err)
				}
				b, err := s.Bucket(t.Context(), damagedBucket)
				if err != nil {
					t.Fatal(err)
				}
				return s, keysOf(t, b)
			}
			s, _ := open()
			b, err := s.Bucket(t.Context(), damagedBucket)
			if err != nil {
				t.Fatal(err)
			}
			put(t, b, "old", "1")
			var left atomic.Int64
			left.Store(steps)
			err = s.Restore(ending{t.Context(), &left}, contents)
			if closed := s.Close(); closed != nil {
				t.Fatal(closed)
			}
			s, keys := open()
			untouched, done := len(keys) == 1 && keys["old"] == "1", fmt.Sprint(keys) == fmt.Sprint(want)
			told := fmt.Sprint(s.Damages())
			if err != nil && !untouched && !strings.Contains(told, "restore") {
				t.Errorf("cut short (%v), with %d keys: damages %s", err, len(keys), told)
			}
			if err == nil && (!done || len(s.Damages()) > 0) {
				t.Errorf("finished with %d keys: damages %s", len(keys), told)
			}
			t.Logf("%v; %d keys, %s", err, len(keys), told)
			if err := s.Restore(t.Context(), contents); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, keys = open()
			if fmt.Sprint(keys) != fmt.Sprint(want) || len(s.Damages()) > 0 {
				t.Errorf("restored again: %d keys, %v", len(keys), s.Damages())
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
