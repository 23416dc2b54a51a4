package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// The keys of stateBucket: prefixes before the name of a bucket, and complete
// keys.
const (
	damagePrefix = "damage/"
	acceptPrefix = "accept/"
	reportPrefix = "report/"
	doubtPrefix  = "doubt/"
	spanKey      = "span"
)

// Damage says what is wrong with a bucket: it has lost data, or that is
// unknown.
type Damage struct {
	Bucket string    `json:"bucket"`
	Reason string    `json:"reason"`
	Lost   int       `json:"lost"` // keys
	Found  time.Time `json:"found"`
	// Writable says that the bucket accepts writes although it is damaged,
	// because its content is learnt again.
	Writable bool `json:"writable,omitempty"`

	// Doubted says that the bucket holds all that it ever did as far as the store knows, but
	// that switches have what it never held: a store that is new, or an older copy.
	Doubted bool `json:"doubted,omitempty"`
}

// Span is the time that a store's records cover: from its first start to its
// last sign of life before it was opened, and since the opening. Times are zero
// if unknown.
type Span struct {
	Born   time.Time `json:"born"`
	Alive  time.Time `json:"alive"`
	Opened time.Time `json:"opened"`
}

// health is what a process knows of the damage to its store.
type health struct {
	mu      sync.Mutex // guards what follows
	damages map[string]Damage
	filled  []string // buckets that have held something, sorted
	span    Span
	changed chan struct{} // closed and replaced when damages change
}

func newHealth() *health { return &health{damages: map[string]Damage{}, changed: make(chan struct{})} }

// set records the damage of a bucket; nil if it is whole.
func (h *health) set(bucket string, d *Damage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == nil {
		delete(h.damages, bucket)
	} else {
		h.damages[bucket] = *d
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *health) of(bucket string) (Damage, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, damaged := h.damages[bucket]
	return d, damaged
}

// told handles a change of a key of stateBucket.
func (h *health) told(key string, value []byte) {
	bucket, damage := strings.CutPrefix(key, damagePrefix)
	switch {
	case damage && value == nil:
		h.set(bucket, nil)
	case damage:
		var d Damage
		if json.Unmarshal(value, &d) == nil {
			h.set(bucket, &d)
		}
	case key == spanKey:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.span = Span{}
		_ = json.Unmarshal(value, &h.span) // unknown if unreadable
	case key == recordedKey:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.filled = nil
		_ = json.Unmarshal(value, &h.filled) // no list in an earlier version
	}
}

// held reports whether a bucket is known to have held something.
func (h *health) held(bucket string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.filled, bucket)
}

// Damages returns the damage of all damaged buckets, by name.
func (s *Store) Damages() []Damage {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	var list []Damage
	for _, d := range s.health.damages {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Damage) int { return strings.Compare(a.Bucket, b.Bucket) })
	return list
}

// Trouble says why the store accepts no writes now; "" if this process knows of
// no reason.
func (s *Store) Trouble() string { return s.disk.failure() }

// Span returns the time that the store's records cover.
func (s *Store) Span() Span {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.span
}

// DamageChanged returns a channel that is closed when Damages next changes.
func (s *Store) DamageChanged() <-chan struct{} {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.changed
}

// Damage says what is wrong with the bucket; "" if it is whole.
func (b *bucket) Damage() string {
	d, _ := b.store.health.of(b.name)
	return d.Reason
}

// Recorded returns the Span of the store.
func (b *bucket) Recorded() (born, alive, opened time.Time) {
	s := b.store.Span()
	return s.Born, s.Alive, s.Opened
}

// Report marks the bucket as damaged, until it is repaired.
func (b *bucket) Report(ctx context.Context, reason string) error {
	if b.Damage() != "" {
		return nil
	}
	return b.store.report(ctx, b.name, reason)
}

// report requests that a bucket be marked as damaged.
func (s *Store) report(ctx context.Context, bucket, reason string) error {
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	_, err = state.Put(ctx, reportPrefix+bucket, []byte(reason))
	return err
}

// doubtWait bounds the request for a check of a bucket.
const doubtWait = 10 * time.Second

// suspect requests a check of a bucket against its manifest, because part of it
// is unreadable.
func (s *Store) suspect(name string) {
	if _, damaged := s.health.of(name); damaged || strings.HasPrefix(name, "bus.") || !s.following.Load() {
		return
	}
	if _, under := s.doubts.LoadOrStore(name, true); under {
		return
	}
	go func() { // ends with the store
		defer s.doubts.Delete(name)
		ctx, cancel := context.WithTimeout(context.Background(), doubtWait)
		defer cancel()
		state, err := s.state(ctx)
		if err == nil {
			_, err = state.Put(ctx, doubtPrefix+name, []byte("now"))
		}
		if err != nil {
			s.config.Log.Warn("a bucket could not be read, and the process that keeps its manifest could not be notified", "bucket", name, "error", err)
		}
	}()
}

// verdict waits until the process that keeps the manifests has compared a bucket
// from which this process read fewer entries than the server lists. It returns an error
// if the bucket was not compared, or is whole there: then another try to read it
// may help.
func (b *bucket) verdict(ctx context.Context) error {
	s, name := b.store, b.name
	if _, damaged := s.health.of(name); damaged || strings.HasPrefix(name, "bus.") || !s.following.Load() {
		return nil
	}
	if err := b.awaitComparison(ctx); err != nil {
		return fmt.Errorf("%w, and it could not be compared with its manifest: %w", errUnreadable, err)
	}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	text, _, err := state.Get(ctx, damagePrefix+name)
	if err == nil && text == nil {
		return errUnreadable
	}
	if err == nil {
		s.health.told(damagePrefix+name, text)
	}
	return err
}

// awaitComparison waits until the process that keeps the manifests has compared a bucket with its
// own, and saved what can be read of it if it is damaged.
func (b *bucket) awaitComparison(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doubtWait)
	defer cancel()
	state, err := b.store.state(ctx)
	if err != nil {
		return err
	}
	asked, err := state.Put(ctx, doubtPrefix+b.name, []byte("now"))
	for pauses := newPauses(); err == nil; {
		var revision uint64
		if _, revision, err = state.Get(ctx, doubtPrefix+b.name); err == nil && revision != asked {
			return nil // answered
		}
		err = errors.Join(err, b.store.pause(ctx, pauses.Next()))
	}
	return err
}

// writable returns an error if the bucket is read-only.
func (b *bucket) writable(op, key string) error {
	if d, damaged := b.store.health.of(b.name); damaged && !d.Writable {
		return api.Errorf(codes.FailedPrecondition, "%s %s in bucket %s: it is read-only: %s; run weft store repair", op, key, b.name, d.Reason)
	}
	return nil
}

// state opens stateBucket.
func (s *Store) state(ctx context.Context) (*bucket, error) {
	b, err := s.Bucket(ctx, stateBucket)
	if err != nil {
		return nil, err
	}
	return b.(*bucket), nil
}

// heed follows the state of the buckets; it returns once it has read the
// present state.
func (s *Store) heed(ctx context.Context) error {
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	known := make(chan error, 1)
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.tended.Go(func() {
		defer cancel()
		err := state.Watch(following, func(key string, value []byte, _ uint64) {
			if key == "" {
				known <- nil
				return
			}
			s.health.told(key, value)
		})
		select {
		case known <- err:
		default: // a notification is pending
		}
	})
	select {
	case err := <-known:
		return err
	case <-ctx.Done():
		cancel()
		return ctx.Err()
	}
}

// Fill writes the entries that a damaged bucket lacks; it leaves present keys alone. It
// returns how many it has written. Before, it waits until the stream of the bucket has been
// made anew.
func (s *Store) Fill(ctx context.Context, bucketName string, entries iter.Seq2[string, []byte]) (filled int, err error) {
	opened, err := s.Bucket(ctx, bucketName)
	if err != nil {
		return 0, err
	}
	b := opened.(*bucket)
	if _, damaged := s.health.of(bucketName); !damaged {
		return 0, api.Errorf(codes.FailedPrecondition, "bucket %s is not damaged", bucketName)
	}
	if err := b.awaitComparison(ctx); err != nil {
		return 0, err
	}
	for key, value := range entries {
		_, revision, err := b.Get(ctx, key)
		switch {
		case errors.Is(err, errUnreadable):
			_, err = b.put(ctx, key, value)
		case err == nil && revision == 0:
			_, err = b.replace(ctx, key, value, 0)
		case err == nil:
			continue
		}
		switch {
		case err == weft.ErrRevision: // others have, meanwhile
		case err != nil:
			return filled, err
		default:
			filled++
		}
	}
	return filled, nil
}

// Accept declares the present content of a damaged bucket complete. It waits
// until the process that keeps the manifests has recorded that.
func (s *Store) Accept(ctx context.Context, bucketName string) error {
	if _, damaged := s.health.of(bucketName); !damaged {
		return nil
	}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	if _, err := state.Put(ctx, acceptPrefix+bucketName, []byte("now")); err != nil {
		return err
	}
	for {
		changed := s.DamageChanged()
		if _, damaged := s.health.of(bucketName); !damaged {
			return nil
		}
		select {
		case <-changed:
		case <-s.link.closed:
			return errClosed
		case <-ctx.Done():
			return fmt.Errorf("bucket %s: %w; does weft up, which keeps its manifest, run?", bucketName, ctx.Err())
		}
	}
}
