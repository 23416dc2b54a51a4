package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// recordEvery is how often the recorder syncs manifests and looks for new
	// buckets.
	recordEvery = time.Second
	// aliveEvery is how often the recorder records that it is alive.
	aliveEvery = 3 * time.Second
	// recordedKey lists, in stateBucket, the buckets that have held something and
	// have manifests; an earlier version wrote only that there are some.
	recordedKey = "recorded"
)

// recorder keeps the manifests of all buckets of a store, in the one process
// that holds the store. When the store is opened, it compares each bucket with
// its manifest; after that it records all changes.
type recorder struct {
	store  *Store
	dir    string
	diary  diary
	mender mender
	news   chan struct{} // holds one: there may be another bucket
	stop   context.CancelFunc

	checking sync.Mutex // held during a comparison, or the start of a manifest; taken before mu

	mu        sync.Mutex // guards what follows
	manifests map[string]*manifest
	known     map[string]bool
	recorded  []string // names in recordedKey, sorted
}

func (r *recorder) path(bucket string) string { return filepath.Join(r.dir, bucket+".manifest") }

// record compares all buckets and then begins to keep manifests.
func (s *Store) record(ctx context.Context, dir string) error {
	r := &recorder{store: s, dir: dir, mender: mender{s, dir}, news: make(chan struct{}, 1), manifests: map[string]*manifest{}, known: map[string]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("manifests of the store: %w", unusable(dir, err))
	}
	if err := room(dir); err != nil {
		return fmt.Errorf("manifests of the store: %w", unusable(dir, err))
	}
	now := time.Now()
	names, err := r.store.Buckets(ctx)
	if err != nil {
		return err
	}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(r.diaryFile())
	first := errors.Is(err, os.ErrNotExist)
	if err == nil {
		err = json.Unmarshal(data, &r.diary)
	}
	if err != nil && !first {
		s.config.Log.Warn("what the store was is not known", "file", r.diaryFile(), "error", err)
		r.diary = diary{}
	}
	span := Span{Born: r.diary.Born, Alive: r.diary.Alive, Opened: now}
	files, _ := filepath.Glob(filepath.Join(dir, "*.manifest")) // the pattern is valid
	first = first && len(files) == 0
	if first && len(names) == 0 {
		r.diary.Born, span.Born = now, now
	}
	text, recorded, err := state.Get(ctx, recordedKey)
	if err != nil {
		return err
	}
	_ = json.Unmarshal(text, &r.recorded) // no list in an earlier version
	listed := map[string]bool{}
	for _, name := range r.diary.Buckets {
		listed[name] = true
	}
	for _, file := range files {
		listed[strings.TrimSuffix(filepath.Base(file), ".manifest")] = true
	}
	if first && recorded > 0 && s.server != nil { // the manifests were removed
		for _, name := range names {
			listed[name] = true
		}
	}
	for _, name := range r.recorded {
		// Another machine may have kept the manifest of a bucket of an external
		// server; that the bucket is gone counts nevertheless.
		listed[name] = listed[name] || s.server != nil || !slices.Contains(names, name)
	}
	for name := range listed {
		if !slices.Contains(names, name) && bucketName.MatchString(name) {
			names = append(names, name)
		}
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	for _, name := range names {
		r.checking.Lock()
		err := r.mender.resume(ctx, name)
		if err == nil {
			err = r.check(ctx, life, state, name, listed[name])
		}
		r.checking.Unlock()
		if err != nil {
			stop()
			return err
		}
	}
	text, err = json.Marshal(span)
	if err == nil {
		_, err = state.Put(ctx, spanKey, text)
	}
	if err == nil {
		err = r.sign(now)
	}
	if err == nil {
		err = r.enlist(ctx, state)
	}
	if err != nil {
		stop()
		return err
	}
	s.recorder = r
	ready := make(chan struct{})
	s.tended.Go(func() { r.run(life, state, ready) })
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check compares a bucket with its manifest, and continues the manifest if the
// bucket is whole. expected says that it must have one. checking is held.
func (r *recorder) check(ctx, life context.Context, state *bucket, name string, expected bool) error {
	opened, err := r.store.Bucket(ctx, name)
	if err != nil {
		return err
	}
	b := opened.(*bucket)
	rec, err := readManifest(r.path(name), name)
	if err != nil {
		return fmt.Errorf("manifest of bucket %s: %w", name, err)
	}
	var f *feed
	var h holding
	err = r.store.retry(ctx, "read bucket "+name, func(context.Context) error {
		f, h, err = b.hold(ctx)
		return err
	})
	if err != nil {
		return err
	}
	damage := r.damage(name)
	switch {
	case rec.missing && expected && h.reached == 0:
		damage.Reason = fmt.Sprintf("it is empty, and its manifest %s is missing", r.path(name))
	case rec.missing && expected:
		damage.Reason = fmt.Sprintf("its manifest %s is missing, so nobody can tell whether it is whole", r.path(name))
	case rec.missing:
		// A new bucket, or one from a version without manifests.
	case rec.fault != "":
		damage.Reason = rec.fault
	case len(rec.reports) > 0:
		damage.Reason, damage.Doubted = rec.reports[0], rec.reports[0] != streamGone
	default:
		damage.Reason, damage.Lost = compare(rec, h, time.Now())
	}
	if damage.Reason != "" {
		f.close()
		r.mu.Lock()
		r.known[name] = true
		r.mu.Unlock()
		return r.declare(ctx, state, damage)
	}
	if _, told := r.store.health.of(name); told {
		if err := state.Delete(ctx, damagePrefix+name); err != nil {
			f.close()
			return err
		}
	}
	var m *manifest
	if rec.missing || rec.lines > 2*len(rec.live)+4096 {
		m, err = writeManifest(r.path(name), name, h.live(), h.seen)
	} else if m, err = openManifest(r.path(name), rec); err == nil {
		err = m.catchUp(h)
	}
	if err != nil {
		f.close()
		return fmt.Errorf("manifest of bucket %s: %w", name, err)
	}
	r.mu.Lock()
	r.manifests[name], r.known[name] = m, true
	r.mu.Unlock()
	r.store.tended.Go(func() { r.follow(life, b, f, m) })
	return nil
}

// damage returns newly found damage, without its reason.
func (r *recorder) damage(bucket string) Damage {
	return Damage{Bucket: bucket, Found: time.Now(), Writable: r.store.config.rebuilt(bucket)}
}

// declare notifies all processes of the damage of a bucket.
func (r *recorder) declare(ctx context.Context, state *bucket, d Damage) error {
	if d.Doubted {
		r.store.config.Log.Warn("switches have what a bucket never held; nothing is deleted from them, and the bucket is not written to, until that is decided", "bucket", d.Bucket, "reason", d.Reason, "read_only", !d.Writable, "remedy", "weft store repair")
	} else {
		r.store.config.Log.Error("bucket is damaged; nothing is deleted from switches for what it lacks", "bucket", d.Bucket, "damage", d.Reason, "read_only", !d.Writable, "remedy", "weft store repair")
	}
	r.store.health.set(d.Bucket, &d)
	text, err := json.Marshal(d)
	if err == nil {
		_, err = state.Put(ctx, damagePrefix+d.Bucket, text)
	}
	return err
}

// follow records the changes of a bucket, until it is found damaged.
func (r *recorder) follow(ctx context.Context, b *bucket, f *feed, m *manifest) {
	for pauses := newPauses(); ; {
		err := r.feed(ctx, b, f, m)
		f.close()
		if ctx.Err() != nil || r.current(b.name) != m {
			return
		}
		if !passing(err) && !b.store.disk.troubled() {
			b.store.config.Log.Error("the manifest of a bucket is not kept any more", "bucket", b.name, "error", err)
			return
		}
		for {
			if b.store.pause(ctx, pauses.Next()) != nil {
				return
			}
			if f, err = b.open(ctx); err == nil {
				break
			}
		}
	}
}

// feed records entries until there is an error.
func (r *recorder) feed(ctx context.Context, b *bucket, f *feed, m *manifest) error {
	for {
		e, err := f.next(ctx)
		if err != nil {
			return err
		}
		r.mu.Lock()
		if r.manifests[b.name] != m {
			r.mu.Unlock()
			return context.Canceled
		}
		first := m.last == 0
		err = m.add(e)
		full := m.lines > m.compact
		r.mu.Unlock()
		if first {
			r.notify()
		}
		if err != nil {
			return fmt.Errorf("manifest of bucket %s: %w", b.name, err)
		}
		if full {
			if err := r.shrink(b.name, m); err != nil {
				return err
			}
		}
	}
}

// shrink rewrites a manifest with many outdated lines.
func (r *recorder) shrink(bucket string, m *manifest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := readManifest(m.path, bucket)
	if err != nil {
		return err
	}
	if rec.fault != "" {
		return errors.New(rec.fault)
	}
	next, err := writeManifest(m.path, bucket, rec.live, m.last)
	if err != nil {
		return err
	}
	old := m.file
	*m = *next
	return old.Close()
}

func (r *recorder) current(bucket string) *manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manifests[bucket]
}

// run tends the manifests until ctx ends. It closes ready once it receives
// requests.
func (r *recorder) run(ctx context.Context, state *bucket, ready chan<- struct{}) {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	asked, first := make(chan [2]string, 64), make(chan struct{}, 2) // its goroutine sends at most twice
	r.store.tended.Go(func() {
		defer func() { first <- struct{}{} }() // in case it failed before
		err := state.Watch(ctx, func(key string, value []byte, _ uint64) {
			if key == "" {
				first <- struct{}{}
			}
			if value != nil && slices.ContainsFunc([]string{acceptPrefix, reportPrefix, doubtPrefix}, func(p string) bool { return strings.HasPrefix(key, p) }) {
				select {
				case asked <- [2]string{key, string(value)}:
				case <-ctx.Done():
				}
			}
		})
		if err != nil && ctx.Err() == nil {
			r.store.config.Log.Error("damage can be neither reported nor accepted any more", "error", err)
		}
	})
	r.store.tended.Go(func() { r.watchOver(ctx, state) })
	begun, signed := first, time.Now()
	for {
		var err error
		select {
		case <-ctx.Done():
			r.end()
			return
		case <-begun:
			close(ready)
			begun = nil
		case a := <-asked:
			err = r.answer(ctx, state, a[0], a[1])
		case <-r.news:
			err = r.discover(ctx, state)
		case now := <-tick.C:
			if err = r.sync(); err == nil && now.Sub(signed) >= aliveEvery {
				signed = now
				err = r.discover(ctx, state)
			}
		}
		if err != nil && ctx.Err() == nil && !r.store.disk.troubled() {
			r.store.config.Log.Warn("manifests are not up to date", "error", err)
		}
	}
}

// answer carries out a request of a process.
func (r *recorder) answer(ctx context.Context, state *bucket, key, value string) (err error) {
	if name, report := strings.CutPrefix(key, reportPrefix); report {
		r.mu.Lock()
		if m := r.manifests[name]; m != nil {
			err = m.report(value)
		}
		r.mu.Unlock()
		d := r.damage(name)
		if d.Reason, d.Doubted = value, value != streamGone; d.Doubted {
			d.Writable = false
		}
		err = errors.Join(err, r.spoil(ctx, state, d))
	} else if name, accept := strings.CutPrefix(key, acceptPrefix); accept {
		err = r.accept(ctx, state, name)
	} else if name, doubt := strings.CutPrefix(key, doubtPrefix); doubt {
		err = r.compare(ctx, state, name)
	}
	return errors.Join(err, state.Delete(ctx, key))
}

// accept declares the present content of a bucket complete.
func (r *recorder) accept(ctx context.Context, state *bucket, name string) error {
	r.checking.Lock()
	defer r.checking.Unlock()
	d, damaged := r.store.health.of(name)
	if !damaged {
		return nil
	}
	if rec, err := readManifest(r.path(name), name); err == nil && len(rec.reports) > 0 {
		if err := r.forgive(ctx, state); err != nil {
			return err
		}
	}
	if err := r.delist(ctx, state, name); err != nil { // it may be empty now
		return err
	}
	if err := os.Remove(r.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := r.check(ctx, ctx, state, name, false); err != nil {
		return err
	}
	r.store.health.set(name, nil)
	r.store.config.Log.Warn("bucket is taken for whole as it is", "bucket", name, "damage", d.Reason)
	return nil
}

// notify makes the recorder look for new buckets.
func (r *recorder) notify() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// discover begins manifests of new buckets.
func (r *recorder) discover(ctx context.Context, state *bucket) error {
	names, err := r.store.Buckets(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		r.checking.Lock()
		r.mu.Lock()
		known := r.known[name]
		r.mu.Unlock()
		if !known {
			errs = append(errs, r.check(ctx, ctx, state, name, false))
		}
		r.checking.Unlock()
	}
	return errors.Join(append(errs, r.sign(time.Now()), r.enlist(ctx, state))...)
}

// settlePatience bounds how long a closing store waits for its manifests.
const settlePatience = time.Second

// settle waits until the manifests hold every write to the buckets.
func (r *recorder) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), settlePatience)
	defer cancel()
	// A new bucket has none yet, or one that is being begun.
	if state, err := r.store.state(ctx); err == nil {
		if err := r.discover(ctx, state); err != nil && ctx.Err() == nil {
			r.store.config.Log.Warn("manifests are not up to date", "error", err)
		}
	}
	for list := r.store.js.ListStreams(ctx); ; list = r.store.js.ListStreams(ctx) {
		behind := false
		for info := range list.Info() {
			r.mu.Lock()
			m := r.manifests[info.Config.Description]
			behind = behind || m != nil && m.last < info.State.LastSeq
			r.mu.Unlock()
		}
		if !behind || ctx.Err() != nil {
			if state, err := r.store.state(ctx); err == nil {
				_ = r.enlist(ctx, state) // the diary lists them, too
			}
			return
		}
		time.Sleep(minPause)
	}
}

// sync makes all written lines durable.
func (r *recorder) sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, m := range r.manifests {
		errs = append(errs, m.sync())
	}
	return errors.Join(errs...)
}

// end closes all manifests.
func (r *recorder) end() {
	errs := []error{r.sign(time.Now())}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, m := range r.manifests {
		errs = append(errs, m.close())
		delete(r.manifests, name)
	}
	if err := errors.Join(errs...); err != nil {
		r.store.config.Log.Warn("manifests are not up to date", "error", err)
	}
}
