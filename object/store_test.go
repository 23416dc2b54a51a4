package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// faults is a Bucket that fails and waits as told. One store has several, one for
// each instance.
type faults struct {
	Bucket
	before, after atomic.Int32 // one of so many writes fails before or after it was made; 0: none
	hold          chan struct{}
	rng           func(n int) int
	wrote         func(name, value string)
}

var errFault = errors.New("no answer")

func (f *faults) fault(n *atomic.Int32) bool { m := int(n.Load()); return m > 0 && f.rng(m) == 0 }

func (f *faults) write(w func() error) error {
	if f.hold != nil {
		<-f.hold
	}
	if f.fault(&f.before) {
		return errFault
	}
	if err := w(); err != nil {
		return err
	}
	if f.fault(&f.after) {
		return errFault
	}
	return nil
}

func (f *faults) Update(ctx context.Context, name string, value []byte, revision uint64) (next uint64, err error) {
	return next, f.write(func() error {
		if next, err = f.Bucket.Update(ctx, name, value, revision); err == nil {
			f.wrote(name, string(value))
		}
		return err
	})
}

func (f *faults) Delete(ctx context.Context, name string) error {
	return f.write(func() error { f.wrote(name, ""); return f.Bucket.Delete(ctx, name) })
}

// thing is an object: NAME=TEXT#NUMBER, whose number no other has.
type thing struct {
	name, text string
	number     int
}

func newThings(t *testing.T, store Bucket, most func() int) (*Guard, *Store[*thing]) {
	g := &Guard{}
	return g, New(g, store, Kind[*thing]{What: "thing", Many: "things", Most: most, Raise: "things.most",
		Name: func(o *thing) string { return o.name },
		Format: Format[*thing]{
			Format: func(o *thing) ([]byte, error) { return fmt.Appendf(nil, "%s %s %d", o.name, o.text, o.number), nil },
			Parse: func(_ string, value []byte) (*thing, error) {
				o := &thing{}
				_, err := fmt.Sscanf(string(value), "%s %s %d", &o.name, &o.text, &o.number)
				return o, err
			},
			Equal: func(a, b *thing) bool { return a.text == b.text },
		},
		Bad: func(name string, err error) { t.Errorf("%s: %v", name, err) },
	})
}

func set(b *Store[*thing], name, text string) error {
	_, _, err := b.Change(context.Background(), name, func(old *thing) (*thing, error) {
		o := &thing{name: name, text: text}
		if old != nil {
			o.number = old.number
			return o, nil
		}
		used := map[int]bool{}
		for _, other := range b.List() {
			used[other.number] = true
		}
		for used[o.number] {
			o.number++
		}
		return o, nil
	})
	return err
}

func inForce(g *Guard, b *Store[*thing]) map[string]string {
	g.Lock()
	defer g.Unlock()
	all := map[string]string{}
	for _, o := range b.List() {
		all[o.name] = o.text
	}
	return all
}

func stored(t *testing.T, store Bucket) map[string]string {
	all := map[string]string{}
	if err := store.All(t.Context(), func(name string, value []byte, _ uint64) error {
		var n, text string
		_, err := fmt.Sscan(string(value), &n, &text)
		all[name] = text
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func memory(t *testing.T) Bucket {
	store, err := wefttest.NewStore().Bucket(t.Context(), "things")
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Two instances change the same objects at once, over a store that fails before
// and after it has written: what is confirmed was written, and in the end both
// have what the store has.
func TestStoreConverges(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex // guards rng and wrote
			rng := rand.New(rand.NewPCG(seed, 1))
			pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
			wrote := map[string]bool{}
			store := memory(t)
			var work, following sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			var guards []*Guard
			var stores []*Store[*thing]
			var buckets []*faults
			for i := range 2 {
				f := &faults{Bucket: store, rng: pick, wrote: func(name, value string) { mu.Lock(); defer mu.Unlock(); wrote[value] = true }}
				f.before.Store(9)
				f.after.Store(7)
				g, b := newThings(t, f, func() int { return 6 })
				if err := b.Load(ctx); err != nil {
					t.Fatal(err)
				}
				guards, stores, buckets = append(guards, g), append(stores, b), append(buckets, f)
				following.Go(func() { b.Follow(ctx) })
				for w := range 3 {
					work.Go(func() {
						for k := range 60 {
							name := fmt.Sprint("n", pick(8))
							if pick(3) == 0 {
								_, _ = b.Remove(ctx, name)
								continue
							}
							text := fmt.Sprintf("%d.%d.%d", i, w, k)
							if set(b, name, text) != nil {
								continue
							}
							mu.Lock()
							found := false
							for value := range wrote {
								found = found || len(value) > len(name)+len(text) && value[:len(name)+len(text)+2] == name+" "+text+" "
							}
							mu.Unlock()
							if !found {
								t.Errorf("%s is confirmed, and was not written", text)
							}
						}
					})
				}
			}
			work.Wait()
			for _, f := range buckets {
				f.before.Store(0)
				f.after.Store(0)
			}
			for i, b := range stores {
				testwait.Until(t, "both have what the store has", func() bool { return maps.Equal(inForce(guards[i], b), stored(t, store)) })
				// And both can still change everything: at most once somebody else was first.
				for k := range 8 {
					if set(b, fmt.Sprint("n", k), "last") != nil && api.KindOf(set(b, fmt.Sprint("n", k), "last")) == codes.Aborted {
						t.Errorf("n%d cannot be changed", k)
					}
				}
			}
			for i, b := range stores {
				testwait.Until(t, "both have what the store has", func() bool { return maps.Equal(inForce(guards[i], b), stored(t, store)) })
			}
			stop()
			following.Wait()
		})
	}
}

// Writers at once never get the same number, and never are more than allowed,
// which may change meanwhile.
func TestStoreAdmits(t *testing.T) {
	var most atomic.Int32
	most.Store(5)
	store := memory(t)
	g, b := newThings(t, store, func() int { return int(most.Load()) })
	fill := func() (refused int) {
		var n atomic.Int32
		var work sync.WaitGroup
		for i := range 20 {
			work.Go(func() {
				if err := set(b, fmt.Sprint("n", i), "x"); api.KindOf(err) == codes.ResourceExhausted {
					n.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		return int(n.Load())
	}
	for _, m := range []int32{5, 8, 3} {
		before := len(inForce(g, b))
		most.Store(m)
		refused := fill()
		if n := len(inForce(g, b)); n != max(int(m), before) || refused != 20-n {
			t.Errorf("%d things, %d refused, of at most %d", n, refused, m)
		}
	}
	numbers := map[int]bool{}
	for _, o := range b.List() {
		if numbers[o.number] {
			t.Errorf("number %d is given twice", o.number)
		}
		numbers[o.number] = true
	}
	_, again := newThings(t, store, func() int { return 1 })
	if err := again.Load(t.Context()); err != nil || again.Len() != b.Len() {
		t.Errorf("%d things after a restart, error %v; want %d", again.Len(), err, b.Len())
	}
}

// While the store does not answer, whoever reads does not wait, and a writer no
// longer than it wants to.
func TestStoreDoesNotHoldReaders(t *testing.T) {
	f := &faults{Bucket: memory(t), hold: make(chan struct{}), wrote: func(string, string) {}}
	g, b := newThings(t, f, nil)
	slow := make(chan error)
	go func() { slow <- set(b, "slow", "x") }()
	time.Sleep(10 * time.Millisecond)
	if n := len(inForce(g, b)); n != 0 {
		t.Errorf("%d things are in force before they are stored", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.Remove(ctx, "other"); api.KindOf(err) != codes.Unavailable {
		t.Errorf("removed while another is written: %v", err)
	}
	close(f.hold)
	if err := <-slow; err != nil || len(inForce(g, b)) != 1 {
		t.Errorf("%v, want one thing in force", err)
	}
}

// What another instance has changed or deleted is not written over; its word
// counts, and the next try goes through.
func TestStoreConflicts(t *testing.T) {
	store := memory(t)
	g, one := newThings(t, store, nil)
	_, other := newThings(t, store, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(set(one, "a", "1"))
	must(other.Load(t.Context()))
	must(set(other, "a", "2"))
	if err := set(one, "a", "3"); api.KindOf(err) != codes.Aborted || inForce(g, one)["a"] != "2" {
		t.Errorf("%v, %v; want a conflict, and the other's word", err, inForce(g, one))
	}
	must(set(one, "a", "3"))
	if _, err := other.Remove(t.Context(), "a"); api.KindOf(err) != codes.Aborted {
		t.Errorf("removed what another has changed: %v", err)
	}
	_, err := other.Remove(t.Context(), "a")
	must(err)
	if err := set(one, "a", "4"); api.KindOf(err) != codes.Aborted || len(inForce(g, one)) != 0 {
		t.Errorf("%v, %v; want a conflict, and nothing", err, inForce(g, one))
	}
	must(set(one, "a", "4"))
}

// A damaged value is reported and left out, and can be replaced.
func TestStoreReportsWhatItCannotRead(t *testing.T) {
	store := memory(t)
	for name, value := range map[string]string{"a": "garbage", "b": "c x 1"} {
		if _, err := store.Put(t.Context(), name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	bad := map[string]bool{}
	g, b := newThings(t, store, nil)
	b.kind.Bad = func(name string, _ error) { bad[name] = true }
	if err := b.Load(t.Context()); err != nil || !bad["a"] || !bad["b"] || len(inForce(g, b)) != 0 {
		t.Errorf("%v, reported %v, in force %v", err, bad, inForce(g, b))
	}
	if err := set(b, "a", "x"); err != nil {
		t.Error(err)
	}
}

// What does not go with the rest comes into force when it does.
func TestStoreTriesAgain(t *testing.T) {
	store := memory(t)
	for _, name := range []string{"a", "b"} {
		if _, err := store.Put(t.Context(), name, []byte(name+" x 1")); err != nil {
			t.Fatal(err)
		}
	}
	g, b := newThings(t, store, nil)
	parse, bad := b.kind.Parse, 0
	b.kind.Parse = func(name string, value []byte) (*thing, error) {
		if name == "a" && b.Get("b") == nil {
			return nil, errors.New("there is no b")
		}
		return parse(name, value)
	}
	b.kind.Bad = func(string, error) { bad++ }
	if err := b.Load(t.Context()); err != nil || bad != 1 || len(inForce(g, b)) != 2 {
		t.Errorf("%v, %d reported, in force %v", err, bad, inForce(g, b))
	}
}
