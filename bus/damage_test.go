package bus_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
)

// damaged is a directory with a store whose bucket has 100 keys, of which 10
// have been deleted and 10 replaced.
type damaged struct {
	*testing.T
	dir string
}

const damagedBucket = "flowrules.flows"

func (d damaged) stream() string {
	return filepath.Join(d.dir, "jetstream", "$G", "streams", "KV_weft-flowrules-flows")
}

func (d damaged) block() string { return filepath.Join(d.stream(), "msgs", "1.blk") }
func (d damaged) manifest() string {
	return filepath.Join(d.dir, "manifests", damagedBucket+".manifest")
}

// flip changes three octets of a file.
func (d damaged) flip(file string, at float64) {
	d.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		d.Fatal(err)
	}
	n := int(float64(len(data)) * at)
	for i := range 3 {
		data[n+i] ^= 0x55
	}
	d.write(file, data)
}

func (d damaged) write(file string, data []byte) {
	d.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		d.Fatal(err)
	}
}

func (d damaged) truncate(file string, part float64) {
	d.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, int64(float64(info.Size())*part))
	}
	if err != nil {
		d.Fatal(err)
	}
}

func (d damaged) remove(path string) {
	d.Helper()
	if err := os.RemoveAll(path); err != nil {
		d.Fatal(err)
	}
}

// fillBucket writes what a damaged directory holds before it is damaged.
func fillBucket(t *testing.T, b weft.Bucket) {
	t.Helper()
	for i := range 100 {
		put(t, b, fmt.Sprintf("k%d", i), strings.Repeat(fmt.Sprint(i), 100))
	}
	for i := range 10 {
		put(t, b, fmt.Sprintf("k%d", 50+i), "other")
		if err := b.Delete(t.Context(), fmt.Sprintf("k%d", 5+i)); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, b weft.Bucket, key, value string) {
	t.Helper()
	if _, err := b.Put(t.Context(), key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func keysOf(t *testing.T, b weft.Bucket) map[string]string {
	t.Helper()
	keys := map[string]string{}
	if err := b.All(t.Context(), func(key string, value []byte, _ uint64) error { keys[key] = string(value); return nil }); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestDamage checks that a store that has lost something says so, refuses to
// write until it is repaired, and is whole afterwards; and that one that has
// lost nothing does none of this.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(damaged)
		want   string // in the reason; empty: nothing is lost
	}{
		{"none", func(damaged) {}, ""},
		{"flip early", func(d damaged) { d.flip(d.block(), 0.01) }, "missing"},
		{"flip", func(d damaged) { d.flip(d.block(), 0.5) }, "keys"},
		{"flip late", func(d damaged) { d.flip(d.block(), 0.8) }, "keys"},
		{"truncated", func(d damaged) { d.truncate(d.block(), 0.5) }, "keys"},
		{"emptied block", func(d damaged) { d.truncate(d.block(), 0) }, "90 of 90 keys are missing"},
		{"zeros", func(d damaged) { d.write(d.block(), make([]byte, 20000)) }, "90 of 90 keys are missing"},
		{"block removed", func(d damaged) { d.remove(d.block()) }, "90 of 90 keys are missing"},
		{"messages removed", func(d damaged) { d.remove(filepath.Dir(d.block())) }, "90 of 90 keys are missing"},
		{"stream removed", func(d damaged) { d.remove(d.stream()) }, "90 of 90 keys are missing"},
		{"all streams removed", func(d damaged) { d.remove(filepath.Join(d.dir, "jetstream")) }, "90 of 90 keys are missing"},
		{"index flipped", func(d damaged) { d.flip(filepath.Join(d.stream(), "msgs", "index.db"), 0.5) }, ""},
		{"index removed", func(d damaged) { d.remove(filepath.Join(d.stream(), "msgs", "index.db")) }, ""},
		{"meta flipped", func(d damaged) { d.flip(filepath.Join(d.stream(), "meta.inf"), 0.5) }, ""},
		{"meta removed", func(d damaged) { d.remove(filepath.Join(d.stream(), "meta.inf")) }, ""},
		{"meta emptied", func(d damaged) { d.truncate(filepath.Join(d.stream(), "meta.inf"), 0) }, ""},
		{"sum removed", func(d damaged) { d.remove(filepath.Join(d.stream(), "meta.sum")) }, ""},
		{"manifest flipped", func(d damaged) { d.flip(d.manifest(), 0.5) }, "manifest"},
		{"manifest emptied", func(d damaged) { d.truncate(d.manifest(), 0) }, "empty"},
		{"manifest removed", func(d damaged) { d.remove(d.manifest()) }, "missing"},
		{"manifests removed", func(d damaged) { d.remove(filepath.Dir(d.manifest())) }, "missing"},
		{"stream and manifest removed", func(d damaged) { d.remove(d.stream()); d.remove(d.manifest()) }, "it is empty, and its manifest"},
		{"stream, manifest and diary removed", func(d damaged) {
			d.remove(d.stream())
			d.remove(filepath.Dir(d.manifest()))
		}, "it is empty, and its manifest"},
		{"manifest removed, diary flipped", func(d damaged) {
			d.remove(d.manifest())
			d.flip(filepath.Join(d.dir, "manifests", "store.json"), 0)
		}, "missing"},
		{"messages and manifest removed", func(d damaged) { d.remove(filepath.Dir(d.block())); d.remove(d.manifest()) }, "it is empty, and its manifest"},
		{"manifest of a crash", func(d damaged) { d.truncate(d.manifest(), 0.95) }, ""},
		{"diary flipped", func(d damaged) { d.flip(filepath.Join(d.dir, "manifests", "store.json"), 0) }, ""},
		{"former version", func(d damaged) {
			d.remove(filepath.Dir(d.manifest()))
			d.remove(filepath.Join(filepath.Dir(d.stream()), "KV_weft-bus-state"))
		}, ""},
	} {
		t.Run(strings.ReplaceAll(strings.ReplaceAll(c.name, ",", ""), " ", "-"), func(t *testing.T) {
			t.Parallel()
			d := damaged{t, t.TempDir()}
			before := d.prepare()
			c.damage(d)
			d.check(before, c.want)
		})
	}
	t.Run("older-copy", func(t *testing.T) {
		t.Parallel()
		d := damaged{t, t.TempDir()}
		s, err := bus.Open(t.Context(), bus.Config{Directory: d.dir})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bucket(t.Context(), damagedBucket)
		if err != nil {
			t.Fatal(err)
		}
		put(t, b, "first", "1")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(d.block())
		if err != nil {
			t.Fatal(err)
		}
		before := d.prepare()
		d.write(d.block(), old)
		d.check(before, "90 of 91 keys are missing")
	})
}

// prepare fills the store and returns what it holds.
func (d damaged) prepare() map[string]string {
	d.Helper()
	s, err := bus.Open(d.Context(), bus.Config{Directory: d.dir})
	if err != nil {
		d.Fatal(err)
	}
	b, err := s.Bucket(d.Context(), damagedBucket)
	if err != nil {
		d.Fatal(err)
	}
	fillBucket(d.T, b)
	keys := keysOf(d.T, b)
	if err := s.Close(); err != nil {
		d.Fatal(err)
	}
	return keys
}

// check opens the store after it has been damaged.
func (d damaged) check(before map[string]string, want string) {
	d.Helper()
	for round := range 2 { // damage does not go away by itself
		s, err := bus.Open(d.Context(), bus.Config{Directory: d.dir})
		if err != nil {
			d.Fatal(err)
		}
		b, err := s.Bucket(d.Context(), damagedBucket)
		if err != nil {
			d.Fatal(err)
		}
		damages := s.Damages()
		_, putErr := b.Put(d.Context(), fmt.Sprint("new", round), nil)
		if want == "" {
			if len(damages) > 0 || putErr != nil {
				d.Errorf("nothing is lost, but: %v, put: %v", damages, putErr)
			}
			after := keysOf(d.T, b)
			for key, value := range before {
				if after[key] != value {
					d.Errorf("%s is %q, was %q", key, after[key], value)
				}
			}
		} else if len(damages) != 1 || damages[0].Bucket != damagedBucket || !strings.Contains(damages[0].Reason, want) {
			d.Fatalf("damage: %+v, want %q", damages, want)
		} else if api.KindOf(putErr) != codes.FailedPrecondition || !strings.Contains(putErr.Error(), "weft store repair") {
			d.Errorf("put to a damaged bucket: %v", putErr)
		}
		if round == 1 && want != "" {
			d.repair(s, b, before)
		}
		if err := s.Close(); err != nil {
			d.Fatal(err)
		}
	}
	if want == "" {
		return
	}
	s := open(d.T, d.dir)
	if damages := s.Damages(); len(damages) > 0 {
		d.Errorf("after the repair: %+v", damages)
	}
}

// repair fills in what there was, and takes the bucket for whole.
func (d damaged) repair(s *bus.Store, b weft.Bucket, before map[string]string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), testwait.Limit)
	defer cancel()
	if _, err := s.Fill(ctx, damagedBucket, octets(before)); err != nil {
		d.Fatal(err)
	}
	if err := s.Accept(ctx, damagedBucket); err != nil {
		d.Fatal(err)
	}
	put(d.T, b, "repaired", "1")
	after := keysOf(d.T, b)
	for key := range before {
		if _, there := after[key]; !there {
			d.Errorf("%s is not there after the repair", key)
		}
	}
}

// octets returns what a bucket holds as Fill wants it.
func octets(entries map[string]string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key, value := range entries {
			if !yield(key, []byte(value)) {
				return
			}
		}
	}
}

// TestReport checks that damage that a service has found stays over a start,
// and that the store is not judged by its age once that has been accepted.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bucket(t.Context(), damagedBucket)
		if err != nil {
			t.Fatal(err)
		}
		if s.Span().Born.IsZero() {
			t.Error("a new store does not know when it was made")
		}
		if round == 0 {
			put(t, b, "k", "1")
			for end := time.Now().Add(testwait.Limit); b.(weft.Damageable).Damage() == "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if err := b.(weft.Damageable).Report(t.Context(), "switch 1 knows more"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if damage := b.(weft.Damageable).Damage(); damage != "switch 1 knows more" {
			t.Errorf("start %d: damage %q", round, damage)
		}
		if round == 1 {
			if err := s.Accept(t.Context(), damagedBucket); err != nil {
				t.Fatal(err)
			}
			if !s.Span().Born.IsZero() {
				t.Error("the store is still judged by its age")
			}
			put(t, b, "k", "2")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRebuiltIsWritten: a bucket whose stream is gone is written to again if what it holds
// is learnt again, and not for what switches have and it lacks.
func TestRebuiltIsWritten(t *testing.T) {
	for reason, want := range map[string]codes.Code{bus.StreamGone: codes.OK, "switch 1 knows more": codes.FailedPrecondition} {
		s := opened(t, bus.Config{Directory: t.TempDir(), Rebuilt: func(string) bool { return true }})
		b, err := s.Bucket(t.Context(), damagedBucket)
		if err != nil {
			t.Fatal(err)
		}
		put(t, b, "k", "1")
		if err := b.(weft.Damageable).Report(t.Context(), reason); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "it is damaged", func() bool { return b.(weft.Damageable).Damage() == reason })
		if _, err := b.Put(t.Context(), "k", []byte("2")); api.KindOf(err) != want {
			t.Errorf("%s: %v, want %v", reason, err, want)
		}
	}
}
