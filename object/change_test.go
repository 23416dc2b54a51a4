package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// stopping is a Bucket whose process ends at a write, before it is made or after.
type stopping struct {
	Bucket
	left  *int // writes until then; all that follows fails
	after bool
}

var errEnded = errors.New("the process has ended")

func (s stopping) write(w func() error) error {
	switch *s.left--; {
	case *s.left > 0:
		return w()
	case *s.left == 0 && s.after:
		_ = w()
	}
	return errEnded
}

func (s stopping) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if *s.left <= 0 {
		return nil, 0, errEnded
	}
	return s.Bucket.Get(ctx, key)
}

func (s stopping) All(ctx context.Context, f func(string, []byte, uint64) error) error {
	if *s.left <= 0 {
		return errEnded
	}
	return s.Bucket.All(ctx, f)
}

func (s stopping) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	err = s.write(func() error { revision, err = s.Bucket.Put(ctx, key, value); return err })
	return revision, err
}

func (s stopping) Update(ctx context.Context, key string, value []byte, over uint64) (revision uint64, err error) {
	err = s.write(func() error { revision, err = s.Bucket.Update(ctx, key, value, over); return err })
	return revision, err
}

func (s stopping) Delete(ctx context.Context, key string) error {
	return s.write(func() error { return s.Bucket.Delete(ctx, key) })
}

// text is an object.
type text struct{ name, text string }

func newTexts(g *Guard, bucket Bucket, what string) *Store[*text] {
	return New(g, bucket, Kind[*text]{What: what, Many: what + "s", Name: func(o *text) string { return o.name },
		Format: Format[*text]{
			Format: func(o *text) ([]byte, error) { return []byte(o.text), nil },
			Parse:  func(name string, value []byte) (*text, error) { return &text{name, string(value)}, nil },
			Equal:  func(a, b *text) bool { return *a == *b },
		},
		Bad: func(name string, err error) {
			if name != "" || !errors.Is(err, errEnded) {
				panic(fmt.Sprint(name, ": ", err))
			}
		},
	})
}

// editTo returns an edit that sets a text; "" deletes it.
func editTo(b *Store[*text], name, to string) Edit {
	return b.Edit(name, func(*text) (*text, error) {
		if to == "" {
			return nil, nil
		}
		return &text{name, to}, nil
	})
}

// texts returns the objects of stores.
func texts(g *Guard, stores ...*Store[*text]) string {
	g.Lock()
	defer g.Unlock()
	var b strings.Builder
	for _, s := range stores {
		for _, o := range s.List() {
			fmt.Fprintf(&b, "%s=%.10s ", o.name, o.text)
		}
	}
	return b.String()
}

// TestChangeStopsAnywhere: whichever write of a change a process ends at, and whichever
// write of those by which the next one settles it, the objects of both stores are all as
// before or all as after, once they are loaded; and nothing else is left in the buckets.
func TestChangeStopsAnywhere(t *testing.T) {
	for _, size := range []int{1, 2 * JournalPart} { // the record has parts, or has none
		for _, after := range []bool{false, true} {
			for k := 1; ; k++ {
				kept := wefttest.NewStore()
				bucket := func(name string) Bucket { b, _ := kept.Bucket(t.Context(), name); return b }
				open := func(left *int) (*Guard, *Store[*text], *Store[*text]) {
					g := &Guard{}
					return g, newTexts(g, stopping{bucket("a"), left, after}, "apple"), newTexts(g, stopping{bucket("b"), left, after}, "bean")
				}
				edits := func(a, b *Store[*text]) []Edit {
					return []Edit{editTo(a, "a1", strings.Repeat("n", size)), editTo(b, "b1", ""), editTo(a, "a2", "new"), editTo(b, "b2", "new")}
				}
				forever := 1 << 30
				g, a, b := open(&forever)
				if err := Change(t.Context(), editTo(a, "a1", "old"), editTo(b, "b1", "old"), editTo(a, "a0", "kept")); err != nil {
					t.Fatal(err)
				}
				before := texts(g, a, b)
				left := k
				_, a, b = open(&left)
				if err := errors.Join(a.Load(t.Context()), b.Load(t.Context())); err != nil {
					t.Fatal(err)
				}
				err := Change(t.Context(), edits(a, b)...)
				if left > 0 {
					if err != nil || k < 7 {
						t.Fatalf("no stop at write %d: %v", k, err)
					}
					break
				}
				for again := 1; ; again++ { // the next process ends, too
					left := again
					_, a, b = open(&left)
					if errors.Join(a.Load(t.Context()), b.Load(t.Context())) == nil {
						break
					}
				}
				g, a, b = open(&forever)
				if err := errors.Join(a.Load(t.Context()), b.Load(t.Context())); err != nil {
					t.Fatal(err)
				}
				got := texts(g, a, b)
				all := "a0=kept a1=nnnnnnnnnn a2=new b2=new "
				if size == 1 {
					all = "a0=kept a1=n a2=new b2=new "
				}
				if got != all && (got != before || err == nil) {
					t.Errorf("size %d, after %v, stop at write %d (%v): got %s", size, after, k, err, got)
				}
				for _, name := range []string{"a", "b"} {
					_ = bucket(name).All(t.Context(), func(key string, _ []byte, _ uint64) error {
						if Journaled(key) {
							t.Errorf("stop at write %d: %s is left", k, key)
						}
						return nil
					})
				}
				if err := Change(t.Context(), edits(a, b)...); err != nil || texts(g, a, b) != all { // as who asks again
					t.Errorf("again: %v, %s", err, texts(g, a, b))
				}
			}
		}
	}
}

// TestChangeFails: if one edit of a change is refused, or another instance has changed its
// object, nothing changes, and the next change succeeds.
func TestChangeFails(t *testing.T) {
	kept, _ := wefttest.NewStore().Bucket(t.Context(), "a")
	g, g2 := &Guard{}, &Guard{}
	a, other := newTexts(g, kept, "apple"), newTexts(g2, kept, "apple")
	if err := Change(t.Context(), editTo(a, "1", "old"), editTo(a, "2", "old"), editTo(a, "3", "old")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Load(t.Context()), other.Load(t.Context())); err != nil {
		t.Fatal(err)
	}
	was := texts(g, a)
	refused := errors.New("no")
	err := Change(t.Context(), editTo(a, "1", "new"), a.Edit("2", func(*text) (*text, error) { return nil, refused }))
	if !errors.Is(err, refused) || texts(g, a) != was {
		t.Errorf("refused: %v, %s", err, texts(g, a))
	}
	if err := Change(t.Context(), editTo(a, "1", "new"), editTo(a, "1", "")); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("named twice: %v", err)
	}
	if err := Change(t.Context(), editTo(other, "3", "other")); err != nil {
		t.Fatal(err)
	}
	err = Change(t.Context(), editTo(a, "1", "new"), editTo(a, "2", ""), editTo(a, "3", "new"))
	if api.KindOf(err) != codes.Aborted || !strings.Contains(err.Error(), "apple 3 ") {
		t.Errorf("overtaken: %v", err)
	}
	if got := texts(g, a); got != "1=old 2=old 3=other " {
		t.Errorf("overtaken: got %s", got)
	}
	then := false
	if err := Change(t.Context(), editTo(a, "1", "new"), editTo(a, "3", "new"), Then(func() { then = a.Get("3").text == "new" })); err != nil || !then {
		t.Errorf("again: %v, then %v", err, then)
	}
	if err := other.Load(t.Context()); err != nil || texts(g2, other) != "1=new 2=old 3=new " {
		t.Errorf("%v; the other has %s", err, texts(g2, other))
	}
}

// TestChangeIsBounded: a change may not bring more objects than there may be.
func TestChangeIsBounded(t *testing.T) {
	kept, _ := wefttest.NewStore().Bucket(t.Context(), "a")
	g := &Guard{}
	a := newTexts(g, kept, "apple")
	a.kind.Most = func() int { return 2 }
	if err := Change(t.Context(), editTo(a, "1", "x"), editTo(a, "2", "x"), editTo(a, "3", "x")); api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("three: %v", err)
	}
	if err := Change(t.Context(), editTo(a, "1", "x"), editTo(a, "2", "x")); err != nil {
		t.Error(err)
	}
	if err := Change(t.Context(), editTo(a, "1", ""), editTo(a, "3", "x")); err != nil {
		t.Error(err)
	}
}

// slow is a Bucket whose writes take time.
type slow struct{ Bucket }

func (s slow) Update(ctx context.Context, key string, value []byte, over uint64) (uint64, error) {
	time.Sleep(time.Second)
	return s.Bucket.Update(ctx, key, value, over)
}

// TestFollowerSeesAllOrNone: another instance that follows the store has all of a change
// or nothing of it at any time, even if the one that makes it ends half-way.
func TestFollowerSeesAllOrNone(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kept, _ := wefttest.NewStore().Bucket(t.Context(), "a")
			g, g2 := &Guard{}, &Guard{}
			var bucket Bucket = slow{kept}
			left := 1 << 30
			if ends {
				left = 6
				bucket = stopping{Bucket: bucket, left: &left}
			}
			a, follower := newTexts(g, bucket, "apple"), newTexts(g2, kept, "apple")
			if err := errors.Join(a.Load(t.Context()), follower.Load(t.Context())); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go follower.Follow(ctx)
			var edits []Edit
			for i := range 10 {
				edits = append(edits, editTo(a, fmt.Sprint(i), "new"))
			}
			go func() { _ = Change(ctx, edits...) }()
			seen := map[int]bool{}
			for range 60 {
				time.Sleep(time.Second)
				g2.Lock()
				seen[follower.Len()] = true
				g2.Unlock()
			}
			if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []int{0, 10}) {
				t.Errorf("ends %v: the follower had %v objects at times; want 0 and 10", ends, got)
			}
			cancel()
			synctest.Wait()
		})
	}
}

// TestPausedWriter: a process that has been stopped in the midst of a change, which
// another has finished meanwhile, does not undo what that has done since.
func TestPausedWriter(t *testing.T) {
	kept, _ := wefttest.NewStore().Bucket(t.Context(), "a")
	pause := func(n int, meanwhile func()) Bucket { return &paused{kept, n, meanwhile} }
	for n := 1; n <= 6; n++ {
		for _, key := range []string{"1", "2"} {
			_ = kept.Delete(t.Context(), key)
		}
		finished := false
		g := &Guard{}
		a := newTexts(g, pause(n, func() {
			g := &Guard{}
			other := newTexts(g, kept, "apple")
			if err := other.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			finished = texts(g, other) == "1=new 2=new "
			if got := texts(g, other); got != "" && !finished {
				t.Errorf("paused at write %d: the other has %s", n, got)
			}
			if err := Change(t.Context(), editTo(other, "1", "other"), editTo(other, "2", "other")); err != nil {
				t.Error(err)
			}
		}), "apple")
		if err := a.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := Change(t.Context(), editTo(a, "1", "new"), editTo(a, "2", "new"))
		g2 := &Guard{}
		last := newTexts(g2, kept, "apple")
		if err := last.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := texts(g2, last); got != "1=other 2=other " && (finished || got != "1=new 2=new ") {
			t.Errorf("paused at write %d, finished by the other %v: %s; %v", n, finished, got, err)
		}
	}
}

// paused is a bucket whose n-th write waits.
type paused struct {
	Bucket
	n         int
	meanwhile func()
}

func (p *paused) pause() {
	if p.n--; p.n == 0 {
		p.meanwhile()
	}
}

func (p *paused) Update(ctx context.Context, key string, value []byte, over uint64) (uint64, error) {
	p.pause()
	return p.Bucket.Update(ctx, key, value, over)
}

func (p *paused) Delete(ctx context.Context, key string) error {
	p.pause()
	return p.Bucket.Delete(ctx, key)
}

var _ weft.Bucket = (*paused)(nil)

// unconfirmed is a Bucket that makes a write and says that it has not, as often as left.
type unconfirmed struct {
	Bucket
	left *int
}

func (u unconfirmed) Update(ctx context.Context, key string, value []byte, over uint64) (uint64, error) {
	revision, err := u.Bucket.Update(ctx, key, value, over)
	if *u.left--; err == nil && *u.left >= 0 {
		return 0, errEnded
	}
	return revision, err
}

// TestPlannedChange: a change is planned by what is stored, even if that was not confirmed;
// all its edits come into force at once; and what its plan refuses changes nothing.
func TestPlannedChange(t *testing.T) {
	kept, _ := wefttest.NewStore().Bucket(t.Context(), "a")
	g, left, applied := &Guard{}, 1, ""
	a := newTexts(g, unconfirmed{kept, &left}, "apple")
	g.Applied = func() {
		for _, o := range a.List() {
			applied += o.name + "=" + o.text + " "
		}
		applied += "; "
	}
	if err := Change(t.Context(), editTo(a, "1", "old")); err == nil || texts(g, a) != "" {
		t.Fatalf("not confirmed: %v, %s", err, texts(g, a))
	}
	refused := errors.New("no")
	if err := g.Change(t.Context(), func() ([]Edit, error) { return []Edit{editTo(a, "1", "")}, refused }); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	if err := g.Change(t.Context(), func() ([]Edit, error) {
		return []Edit{editTo(a, "1", a.Get("1").text+"er"), editTo(a, "2", "new")}, nil
	}); err != nil {
		t.Error(err)
	}
	if want := "1=old ; 1=older 2=new ; "; applied != want {
		t.Errorf("in force were %q, want %q", applied, want)
	}
}
