package bus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is how often an idle server sends a heartbeat.
	heartbeat = 2 * time.Second
	// silence is how long the server may send nothing.
	silence = 5 * time.Second
)

var (
	errSilent = errors.New("the server has stopped to tell of changes")
	errGap    = errors.New("changes are missing from what the server tells")
	// errSkipped ends first, because the rest is unreadable.
	errSkipped = errors.New("the server has passed over entries that it cannot read")
	// errIdle ends next while initial entries are awaited and the server has none to send.
	errIdle = errors.New("the server has nothing to send")
)

// feed is a stream of the entries of a bucket: first the last entry of each
// key, then all new ones. After an error, open another one.
type feed struct {
	bucket   *bucket
	sub      *nats.Subscription
	consumer string
	replayed uint64              // number of the last message
	pending  uint64              // existing entries that are not read yet
	lost     bool                // some of them are unreadable
	read     bool                // all initial entries are read or lost
	keys     map[string]struct{} // those read so far, until read
	idle     bool                // the server had nothing to send since
	behind   uint64              // revision to wait for before all is read; 0: none
	listed   uint64              // entries that the leader of a cluster has at least
	short    bool                // this copy of the bucket has fewer
}

// open starts a feed.
func (b *bucket) open(ctx context.Context) (*feed, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	f := &feed{bucket: b, keys: map[string]struct{}{}}
	stream := *b.stream.Load()
	if stream.CachedInfo().Cluster != nil {
		// The feed may come from a server that lags behind the leader.
		info, err := stream.Info(ctx)
		if err != nil {
			return nil, err
		}
		f.behind, f.listed = info.State.LastSeq, info.State.Msgs
	}
	inbox := b.store.conn.NewInbox()
	sub, err := b.store.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	f.sub = sub
	if err := sub.SetPendingLimits(-1, -1); err != nil { // flow control bounds the queue
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	consumer, err := b.store.js.CreatePushConsumer(ctx, "KV_"+legal(b.name), jetstream.ConsumerConfig{
		DeliverSubject: inbox, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: b.prefix + ">",
		AckPolicy: jetstream.AckNonePolicy, MaxDeliver: 1, MemoryStorage: true, Replicas: 1,
		FlowControl: true, IdleHeartbeat: heartbeat,
	})
	if err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	info := consumer.CachedInfo()
	f.consumer, f.pending = info.Name, info.NumPending+info.Delivered.Consumer
	return f, nil
}

// close ends the feed, also at the server.
func (f *feed) close() {
	// Both fail only without a connection; the server then ends the feed
	// itself.
	_ = f.sub.Unsubscribe()
	_ = f.bucket.store.conn.Publish("$JS.API.CONSUMER.DELETE.KV_"+legal(f.bucket.name)+"."+f.consumer, nil)
}

// next returns the next entry.
func (f *feed) next(ctx context.Context) (entry, error) {
	for {
		m, err := f.message(ctx)
		if err != nil {
			return entry{}, err
		}
		if m.Header.Get("Status") == "100" { // heartbeat, or flow control, which needs an answer
			reply := m.Reply
			if reply == "" {
				reply = m.Header.Get("Nats-Consumer-Stalled")
			}
			if reply != "" {
				if err := f.bucket.store.conn.Publish(reply, nil); err != nil {
					return entry{}, err
				}
			}
			if last := m.Header.Get("Nats-Last-Consumer"); last != "" && last != strconv.FormatUint(f.replayed, 10) {
				return entry{}, errGap
			}
			if f.read || reply != "" {
				continue
			}
			if f.pending == 0 {
				return entry{}, errIdle
			}
			if err := f.count(ctx); err != nil {
				return entry{}, err
			}
			if f.lost {
				return entry{}, errSkipped
			}
			continue
		}
		if m.Header.Get("Status") != "" { // the server ended the feed, as it does before it stops
			return entry{}, errGap
		}
		meta, err := m.Metadata()
		if err != nil {
			return entry{}, err
		}
		if meta.Sequence.Consumer != f.replayed+1 {
			return entry{}, errGap
		}
		f.replayed++
		f.pending = meta.NumPending
		if meta.Sequence.Stream >= f.behind {
			f.behind = 0
		}
		e := f.bucket.newEntry(m.Subject, m.Header, m.Data, meta.Sequence.Stream)
		if !f.read {
			f.keys[e.key], f.idle = struct{}{}, false
		}
		return e, nil
	}
}

// count asks an idle server how many entries are left: the server skips entries
// that it cannot read.
func (f *feed) count(ctx context.Context) error {
	consumer, err := f.bucket.store.js.PushConsumer(ctx, "KV_"+legal(f.bucket.name), f.consumer)
	if err != nil {
		return err
	}
	if info := consumer.CachedInfo(); info.NumPending == 0 && info.Delivered.Consumer == f.replayed {
		f.pending, f.behind, f.lost = 0, 0, true
		f.bucket.store.suspect(f.bucket.name)
	}
	return nil
}

// message waits for a message, for a limited time, while the connection lasts.
func (f *feed) message(ctx context.Context) (*nats.Msg, error) {
	alive, _ := f.bucket.store.link.state()
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	m, err := f.sub.NextMsgWithContext(waiting)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return nil, errSilent
	}
	return m, err
}

// first returns the next initial entry; more is false once all are read. The
// feed's lost says whether some were lost.
func (f *feed) first(ctx context.Context) (e entry, more bool, err error) {
	for {
		if f.read, err = f.all(ctx); f.read || err != nil {
			if f.read && f.replayed < f.listed { // read at a copy that lacks some
				f.short = true
			}
			if f.read {
				f.keys = nil
			}
			return e, false, err
		}
		switch e, err = f.next(ctx); err {
		case errIdle:
			f.idle = true
		case errSkipped:
			f.read, f.keys = true, nil
			return e, false, nil
		default:
			return e, err == nil, err
		}
	}
}

// all reports whether all initial entries are read. A key that is written meanwhile is not
// among them if its earlier entry was not read yet: it comes later, as a new one. So what
// is read counts as all once there are as many keys as the bucket has.
func (f *feed) all(ctx context.Context) (bool, error) {
	if f.pending > 0 {
		return false, nil
	}
	stream := *f.bucket.stream.Load()
	if f.behind > 0 {
		// The leader's last entry has not arrived: it is in flight, or has expired.
		_, err := stream.GetMsg(ctx, f.behind)
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, err
		}
		f.behind = 0
	}
	info, err := stream.Info(ctx)
	switch {
	case err != nil:
		return false, err
	case uint64(len(f.keys)) >= info.State.NumSubjects:
		return true, nil
	case !f.idle:
		return false, nil
	case info.Cluster != nil: // this copy lacks some
		f.short = true
	default: // the server cannot read some
		f.lost = true
		f.bucket.store.suspect(f.bucket.name)
	}
	return true, nil
}

// snapshot returns all values, oldest first, and whether some may be missing.
func (b *bucket) snapshot(ctx context.Context) (entries []entry, lost bool, err error) {
	f, err := b.open(ctx)
	if err != nil {
		return nil, false, err
	}
	defer f.close()
	last := map[string]entry{}
	for {
		e, more, err := f.first(ctx)
		if err != nil {
			return nil, false, err
		}
		if !more {
			break
		}
		last[e.key] = e
	}
	entries = make([]entry, 0, len(last))
	for _, e := range last {
		if e.value != nil {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(x, y entry) int { return cmp.Compare(x.revision, y.revision) })
	return entries, f.lost || f.short, nil
}
