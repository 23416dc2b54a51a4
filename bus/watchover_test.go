package bus_test

import (
	"context"
	"fmt"
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
			for key, value := range before {
				if _, err := s.Fill(ctx, damagedBucket, key, []byte(value)); err != nil {
					t.Fatal(err)
				}
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
