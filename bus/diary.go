package bus

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// diary is the recorder's record of the store as a whole.
type diary struct {
	Born    time.Time `json:"born"`  // zero: unknown, as in a store of an earlier version
	Alive   time.Time `json:"alive"` // last sign of life
	Buckets []string  `json:"buckets"`
}

func (r *recorder) diaryFile() string { return filepath.Join(r.dir, "store.json") }

// sign writes the diary.
func (r *recorder) sign(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.diary.Alive = now
	r.diary.Buckets = r.diary.Buckets[:0]
	for name := range r.known {
		r.diary.Buckets = append(r.diary.Buckets, name)
	}
	slices.Sort(r.diary.Buckets)
	text, err := json.Marshal(&r.diary)
	if err == nil {
		err = os.WriteFile(r.diaryFile()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(r.diaryFile()+".new", r.diaryFile())
	}
	return err
}

// enlist records in the store which buckets have held something, for the case
// that a bucket is lost together with its manifest and the diary.
func (r *recorder) enlist(ctx context.Context, state *bucket) error {
	r.mu.Lock()
	names := slices.Clone(r.recorded)
	for name, m := range r.manifests {
		if m.last > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = append([]string{}, slices.Compact(names)...)
	same := r.recorded != nil && slices.Equal(names, r.recorded)
	r.mu.Unlock()
	if same {
		return nil
	}
	return r.list(ctx, state, names)
}

// delist removes a bucket from that record, until it holds something again.
func (r *recorder) delist(ctx context.Context, state *bucket, bucket string) error {
	r.mu.Lock()
	names := slices.DeleteFunc(append([]string{}, r.recorded...), func(name string) bool { return name == bucket })
	r.mu.Unlock()
	return r.list(ctx, state, names)
}

// list stores the names of the buckets that have held entries.
func (r *recorder) list(ctx context.Context, state *bucket, names []string) error {
	text, err := json.Marshal(names)
	if err == nil {
		_, err = state.Put(ctx, recordedKey, text)
	}
	if err == nil {
		r.mu.Lock()
		r.recorded = names
		r.mu.Unlock()
	}
	return err
}

// forgive stops judging the store by the age of the switches' entries, because
// the operator has accepted the loss.
func (r *recorder) forgive(ctx context.Context, state *bucket) error {
	r.mu.Lock()
	r.diary.Born = time.Time{}
	r.mu.Unlock()
	text, err := json.Marshal(Span{})
	if err == nil {
		_, err = state.Put(ctx, spanKey, text)
	}
	if err == nil {
		r.store.health.told(spanKey, text)
		err = r.sign(time.Now())
	}
	return err
}
