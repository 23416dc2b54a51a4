package bus

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// markerLife is how long the store keeps the marker of a deleted key.
const markerLife = time.Hour

// repeatLife is how long the store recognizes a repeated write, whose
// confirmation was lost.
const repeatLife = 2 * Patience

var bucketName = regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)*$`)

// Bucket opens a bucket; it makes a missing one. Names are lower-case letters,
// digits and _, in parts separated by dots.
func (s *Store) Bucket(ctx context.Context, name string) (weft.Bucket, error) {
	if !bucketName.MatchString(name) {
		return nil, api.Errorf(codes.InvalidArgument, "bucket %q: want lower-case letters, digits and _, in parts separated by dots", name)
	}
	held := s.following.Load() && s.health.held(name) // before it is looked at: others may fill a new one meanwhile
	b, empty, err := s.openBucket(ctx, name)
	if err == nil && empty && held {
		d := Damage{Bucket: name, Reason: streamGone, Found: time.Now(), Writable: s.config.rebuilt(name)}
		s.health.set(name, &d)
		err = s.report(ctx, name, d.Reason)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// streamGone is why a bucket is damaged that has held something and has no stream.
const streamGone = "it was gone from the server, and is empty now"

// openBucket returns an open bucket, and whether its stream has never held
// anything.
func (s *Store) openBucket(ctx context.Context, name string) (b *bucket, empty bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[name]; b != nil {
		return b, false, nil
	}
	b = &bucket{store: s, name: name}
	var n copies
	err = s.retry(ctx, "open bucket "+name, func(ctx context.Context) error {
		stream, err := s.stream(ctx, name, n.of(max(int(s.replicas.wanted.Load()), 1)))
		if n.note(err); err == nil {
			b.stream.Store(&stream)
			empty = stream.CachedInfo().State.LastSeq == 0
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	b.prefix = subjects(name)
	s.buckets[name] = b
	if s.recorder != nil {
		s.recorder.notify()
	}
	return b, empty, nil
}

// Buckets returns the names of the buckets of services and processes.
func (s *Store) Buckets(ctx context.Context) (names []string, err error) {
	err = s.retry(ctx, "list the buckets", func(ctx context.Context) error {
		names = nil
		list := s.js.ListStreams(ctx)
		for info := range list.Info() {
			if name := info.Config.Description; info.Config.Name == "KV_"+legal(name) && !strings.HasPrefix(name, "bus.") {
				names = append(names, name)
			}
		}
		if err := list.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
			return err
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// stateBucket holds the state of the buckets for every process: a key for each
// damaged bucket, and the requests to the process that keeps the manifests.
const stateBucket = "bus.state"

// mendPrefix is before the name of a bucket, in stateBucket, whose stream is about to be
// deleted, and made anew.
const mendPrefix = "mend/"

// Now returns the time of the server's clock.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	if _, err := s.Bucket(ctx, clockBucket); err != nil {
		return now, err
	}
	err = s.retry(ctx, "ask for the time", func(ctx context.Context) error {
		stream, err := s.js.Stream(ctx, "KV_"+legal(clockBucket))
		if err == nil {
			now = stream.CachedInfo().TimeStamp
		}
		return err
	})
	return now, err
}

// clockBucket is the bucket whose state Now asks for; the server's answer
// carries the time.
const clockBucket = "bus.clock"

// legal returns a name without dots. Bucket names have no -, so no two of them
// become equal.
func legal(name string) string { return "weft-" + strings.ReplaceAll(name, ".", "-") }

// streamConfig returns how the stream of a bucket is made. Its layout is that of NATS
// key-value buckets, so that NATS tools can read it.
func streamConfig(name string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + legal(name), Description: name, Subjects: []string{subjects(name) + ">"},
		Storage: jetstream.FileStorage, Replicas: replicas, Discard: jetstream.DiscardNew,
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		AllowRollup: true, DenyDelete: true, AllowMsgTTL: true, SubjectDeleteMarkerTTL: markerLife,
		Duplicates: repeatLife, AllowDirect: replicas == 1,
	}
}

// subjects returns what the subjects of a bucket's keys begin with.
func subjects(name string) string { return "$KV." + legal(name) + "." }

// stream opens the stream of a bucket and adds missing copies; it makes a
// missing stream with that many copies.
func (s *Store) stream(ctx context.Context, name string, replicas int) (jetstream.Stream, error) {
	stream, err := s.js.Stream(ctx, "KV_"+legal(name))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err := checkMending(ctx, s.js, name); err != nil {
			return nil, err
		}
		return createStream(ctx, s.js, streamConfig(name, replicas))
	}
	if err != nil {
		return nil, err
	}
	raised, err := s.replicas.raise(ctx, stream.CachedInfo())
	switch {
	case noPeers(err): // replicate adds it later
		return stream, nil
	case err != nil:
		return nil, err
	case raised != nil:
		return raised, nil
	}
	return stream, nil
}

// createStream makes a stream; it leaves another one of that name as it is.
func createStream(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.CreateStream(ctx, c)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil, errTaken
	}
	return stream, err
}

// checkMending returns an error if the stream of a bucket is not there because it is being
// made anew.
func checkMending(ctx context.Context, js jetstream.JetStream, name string) error {
	if strings.HasPrefix(name, "bus.") {
		return nil
	}
	state, err := js.Stream(ctx, "KV_"+legal(stateBucket))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := state.GetLastMsgForSubject(ctx, subjects(stateBucket)+mendPrefix+name)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return err
	case m.Header.Get(operation) == "" && m.Header.Get(jetstream.MarkerReasonHeader) == "":
		return errTaken
	}
	return nil
}

// bucket is a weft.Bucket over a JetStream key-value bucket. Its revisions are
// the sequence numbers of the stream. A replicated bucket is read at its
// leader, so that a read sees all earlier writes.
type bucket struct {
	store  *Store
	name   string
	stream atomic.Pointer[jetstream.Stream] // as of the last lookup
	prefix string                           // of the subjects, one for each key
}

// entry is the value of a key in a bucket, or its deletion.
type entry struct {
	key      string
	value    []byte // nil: deleted
	revision uint64
	id       string // of the write; see message
}

// newEntry reads a message of the stream.
func (b *bucket) newEntry(subject string, header nats.Header, value []byte, revision uint64) entry {
	e := entry{key: strings.TrimPrefix(subject, b.prefix), revision: revision, id: header.Get(nats.MsgIdHdr)}
	if header.Get(operation) == "" && header.Get(jetstream.MarkerReasonHeader) == "" {
		e.value = present(value)
	}
	return e
}

// operation is the header of our markers; NATS's own marker is purge.
const (
	operation = "KV-Operation"
	purge     = "PURGE"
)

// last returns the last entry of a key, even if it is a marker; its revision is
// 0 if there is none.
func (b *bucket) last(ctx context.Context, key string) (entry, error) {
	m, err := (*b.stream.Load()).GetLastMsgForSubject(ctx, b.prefix+key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		// The server answers the same for a message that it has but cannot
		// read.
		there, listErr := b.listed(ctx, key)
		if !there || listErr != nil {
			return entry{key: key}, listErr
		}
		if m, err = (*b.stream.Load()).GetLastMsgForSubject(ctx, b.prefix+key); errors.Is(err, jetstream.ErrMsgNotFound) {
			b.store.suspect(b.name)
			return entry{}, errUnreadable
		}
	}
	switch {
	case err != nil:
		if info := (*b.stream.Load()).CachedInfo(); passing(err) && info.Cluster != nil && info.Config.AllowDirect {
			// Another process may have added copies; such a stream is read
			// differently.
			b.lookUp(ctx)
		}
		return entry{}, err
	}
	return b.newEntry(m.Subject, m.Header, m.Data, m.Sequence), nil
}

// listed reports whether the server has a message of a key.
func (b *bucket) listed(ctx context.Context, key string) (bool, error) {
	keys, err := b.keys(ctx, key)
	return len(keys) > 0, err
}

// lookUp asks for the present configuration of the stream.
func (b *bucket) lookUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpWait)
	defer cancel()
	if stream, err := b.store.js.Stream(ctx, "KV_"+legal(b.name)); err == nil {
		b.stream.Store(&stream)
	}
}

// lookUpWait bounds lookUp, which precedes another attempt.
const lookUpWait = 500 * time.Millisecond

// write publishes an entry and returns its revision.
func (b *bucket) write(ctx context.Context, m *nats.Msg) (uint64, error) {
	ack, err := b.store.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// message returns a message that sets a key. Its id lets the store recognize a
// repetition.
func (b *bucket) message(key string, value []byte) *nats.Msg {
	return &nats.Msg{Subject: b.prefix + key, Data: value, Header: nats.Header{nats.MsgIdHdr: {nuid.Next()}}}
}

func (b *bucket) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	if err := usable(ctx, key); err != nil {
		return nil, 0, err
	}
	var e entry
	err = b.retry(ctx, "get", key, func(ctx context.Context) (err error) {
		e, err = b.last(ctx, key)
		return err
	})
	if err != nil || e.value == nil {
		return nil, 0, err
	}
	return e.value, e.revision, nil
}

func (b *bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	if err := b.writable("put", key); err != nil {
		return 0, err
	}
	return b.put(ctx, key, value)
}

// put is Put, even if the bucket is damaged.
func (b *bucket) put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	m := b.message(key, value)
	err = b.retry(ctx, "put", key, func(ctx context.Context) (err error) {
		revision, err = b.write(ctx, m)
		return err
	})
	return revision, err
}

func (b *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	if err := b.writable("update", key); err != nil {
		return 0, err
	}
	return b.replace(ctx, key, value, revision)
}

// replace is Update, even if the bucket is damaged.
func (b *bucket) replace(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	m := b.message(key, value)
	err = b.retry(ctx, "update", key, func(ctx context.Context) (err error) {
		next, err = b.update(ctx, m, revision)
		return err
	})
	return next, err
}

// update writes if the last revision is the given one; 0 stands for no
// revision, or for that of a marker. It recognizes its own message from an
// earlier attempt.
func (b *bucket) update(ctx context.Context, m *nats.Msg, revision uint64) (uint64, error) {
	expect := func(revision uint64) (uint64, error) {
		m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(revision, 10))
		return b.write(ctx, m)
	}
	next, err := expect(revision)
	if !overtaken(err) {
		return next, err
	}
	last, lastErr := b.last(ctx, strings.TrimPrefix(m.Subject, b.prefix))
	switch {
	case lastErr != nil:
		return 0, lastErr
	case last.id == m.Header.Get(nats.MsgIdHdr):
		return last.revision, nil
	case revision == 0 && last.value == nil:
		return expect(last.revision)
	}
	return 0, weft.ErrRevision
}

// Delete leaves a marker for markerLife, so that watchers learn of the
// deletion.
func (b *bucket) Delete(ctx context.Context, key string) error {
	_, revision, err := b.Get(ctx, key)
	if err != nil || revision == 0 {
		return err
	}
	if err := b.writable("delete", key); err != nil {
		return err
	}
	return b.purge(ctx, key)
}

// purge replaces the value of a key by a marker, even if the bucket is damaged.
func (b *bucket) purge(ctx context.Context, key string) error {
	m := b.message(key, nil)
	m.Header.Set(operation, purge)
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	m.Header.Set(jetstream.MsgTTLHeader, markerLife.String())
	return b.retry(ctx, "delete", key, func(ctx context.Context) error {
		_, err := b.write(ctx, m)
		return err
	})
}

func (b *bucket) All(ctx context.Context, f func(string, []byte, uint64) error) error {
	var entries []entry
	err := b.retry(ctx, "read", "all keys", func(attempt context.Context) (err error) {
		// Reading a large bucket takes longer than one answer; only silence
		// ends it.
		var lost bool
		for range 2 { // a second time from another copy, perhaps
			if entries, lost, err = b.snapshot(ctx); err != nil || !lost {
				return err
			}
			if err = b.verdict(ctx); err == nil {
				return nil // it is known to be damaged
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(e.key, e.value, e.revision); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) retry(ctx context.Context, op, key string, f func(context.Context) error) error {
	return b.store.retry(ctx, op+" "+key+" in bucket "+b.name, f)
}

// present returns a value that is there; empty ones are not nil.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return bytes.Clone(value)
}

// usable checks the preconditions of every operation on a key.
func usable(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-/_=.", r)
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !legal(r) }) ||
		key[0] == '.' || key[len(key)-1] == '.' || strings.Contains(key, "..") {
		return api.Errorf(codes.InvalidArgument, "key %q: want letters, digits and -/_=. with no dot at either end and no two in a row", key)
	}
	return nil
}
