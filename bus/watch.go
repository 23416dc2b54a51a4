package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// goneAfter is how long a stream must be missing before it counts as gone: a
// new leader may not know it yet.
const goneAfter = 10 * time.Second

// Watch survives the loss of the connection and of the server: it then resumes
// and reports what has changed meanwhile, deletions too.
func (b *bucket) Watch(ctx context.Context, f func(string, []byte, uint64)) error {
	w := &watch{bucket: b, f: f, told: map[string]uint64{}}
	var missed time.Time // since when the stream is missing; zero: it is not
	for pauses := newPauses(); ; {
		fed, err := w.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		b.store.seeker.tried(err)
		switch {
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			missed = time.Time{}
		case missed.IsZero():
			missed = time.Now()
		}
		gone := !missed.IsZero() && time.Since(missed) > goneAfter
		if (gone || !passing(err)) && !b.store.disk.troubled() {
			return b.store.fail(ctx, "watch bucket "+b.name, err)
		}
		if fed {
			pauses.Reset()
		}
		if err := b.store.pause(ctx, pauses.Next()); err == errClosed {
			return b.store.fail(ctx, "watch bucket "+b.name, err)
		}
	}
}

// watch is one call of Watch.
type watch struct {
	bucket   *bucket
	f        func(string, []byte, uint64)
	told     map[string]uint64 // keys that f knows to be present, by revision
	complete bool              // all initial values are reported
	tries    int               // with too few initial values
	fed      time.Time         // when the server last stopped to feed it
}

// follow reports all values not reported yet, and then changes, until it fails.
// fed says whether it completed the initial values.
func (w *watch) follow(ctx context.Context) (fed bool, err error) {
	feed, err := w.bucket.open(ctx)
	if err != nil {
		return false, err
	}
	defer feed.close()
	seen := map[string]bool{} // keys of the initial values
	for {
		if !fed {
			e, more, err := feed.first(ctx)
			if err != nil {
				return false, err
			}
			if more {
				seen[e.key] = true
				w.tell(e)
				continue
			}
			lost := feed.lost || feed.short
			if lost {
				// What is deleted may depend on what is missing here.
				if err := w.bucket.verdict(ctx); err != nil {
					if w.tries++; w.tries < 2 {
						return false, errGap // read it again, perhaps from another copy
					}
					return false, err
				}
			}
			fed, w.tries = true, 0
			defer func() { w.fed = time.Now() }()
			w.settle(seen, lost || w.bucket.Damage() != "")
			seen = nil
		}
		e, err := feed.next(ctx)
		if err != nil {
			return fed, err
		}
		w.tell(e)
	}
}

// tell reports an entry if it is new.
func (w *watch) tell(e entry) {
	last, there := w.told[e.key]
	switch {
	case e.revision <= last:
	case e.value != nil:
		w.told[e.key] = e.revision
		w.f(e.key, e.value, e.revision)
	case there:
		delete(w.told, e.key)
		w.f(e.key, nil, e.revision)
	}
}

// settle completes the initial values: reported keys that are not among them
// are gone, without a known revision. If some values were lost, it is unknown
// which keys are gone. That is so, too, if a key is gone without a marker while
// markers of its deletion would still be there.
func (w *watch) settle(seen map[string]bool, lost bool) {
	if recent := time.Since(w.fed) < markerLife; recent && !lost {
		for key := range w.told {
			if !seen[key] {
				w.bucket.store.suspect(w.bucket.name)
				lost = true
				break
			}
		}
	}
	for key, revision := range w.told {
		if !seen[key] && !lost {
			delete(w.told, key)
			w.f(key, nil, revision+1)
		}
	}
	if !w.complete {
		w.complete = true
		w.f("", nil, 0)
	}
}
