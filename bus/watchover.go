package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// checkEvery is how often the recorder compares an open store with its
// manifests, unless the Config sets it.
const checkEvery = 10 * time.Minute

// watchOver compares all buckets with their manifests periodically until ctx
// ends, because a disk may damage old data.
func (r *recorder) watchOver(ctx context.Context, state *bucket) {
	every := r.store.config.CheckEvery
	if every == 0 {
		every = checkEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	elected := make(chan string, 256)
	if r.store.server == nil {
		sub, err := r.store.conn.Subscribe("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.>", func(m *nats.Msg) { r.elect(m.Data, elected) })
		if err != nil {
			r.store.config.Log.Warn("the store is not compared when another server leads", "error", err)
		} else {
			defer func() { _ = sub.Unsubscribe() }() // fails only without a connection
		}
	}
	for {
		var names []string
		var err error
		select {
		case <-ctx.Done():
			return
		case name := <-elected:
			names = []string{name}
		case <-tick.C:
			names, err = r.store.Buckets(ctx)
		case <-r.store.reread:
			names, err = r.store.Buckets(ctx)
		}
		for _, name := range names {
			if err = r.compare(ctx, state, name); err != nil {
				break
			}
		}
		if err != nil && ctx.Err() == nil && !passing(err) && !r.store.disk.troubled() {
			r.store.config.Log.Warn("the store could not be compared with its manifests", "error", err)
		}
	}
}

// elect requests the comparison of a bucket that another server of a cluster
// leads now: the copy there may have lost something.
func (r *recorder) elect(advisory []byte, elected chan<- string) {
	var news struct {
		Stream string `json:"stream"`
	}
	if json.Unmarshal(advisory, &news) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.manifests {
		if news.Stream != "KV_"+legal(name) {
			continue
		}
		select {
		case elected <- name:
		default: // the next comparison of all has it
		}
	}
}

// compare compares a bucket that seems whole with its manifest. It reads the
// manifest first, so later writes only add to the bucket. It rewrites a bucket
// whose files have become unreadable.
func (r *recorder) compare(ctx context.Context, state *bucket, name string) error {
	r.checking.Lock()
	defer r.checking.Unlock()
	if r.current(name) == nil {
		return nil // known to be damaged, or new
	}
	rec, err := readManifest(r.path(name), name)
	if err != nil {
		return fmt.Errorf("manifest of bucket %s: %w", name, err)
	}
	opened, err := r.store.Bucket(ctx, name)
	if err != nil {
		return err
	}
	b := opened.(*bucket)
	f, h, err := b.hold(ctx)
	if err != nil {
		return err
	}
	f.close()
	d := r.damage(name)
	if d.Reason, d.Lost = compare(rec, h, time.Now()); rec.fault != "" {
		d.Reason = rec.fault
	} else if rec.missing {
		d.Reason = fmt.Sprintf("its manifest %s is missing, so nobody can tell whether it is whole", r.path(name))
	} else if d.Reason == "" && h.lost {
		d.Reason = "something in it cannot be read"
	}
	if d.Reason == "" {
		return nil
	}
	err = r.spoil(ctx, state, d)
	if err == nil && (d.Lost > 0 || h.lost) && r.store.server != nil {
		err = r.mender.mend(ctx, b, max(rec.last, h.reached))
	}
	return err
}

// spoil abandons the manifest of a damaged bucket, leaves it as it is, and
// notifies all processes.
func (r *recorder) spoil(ctx context.Context, state *bucket, d Damage) error {
	r.mu.Lock()
	m := r.manifests[d.Bucket]
	delete(r.manifests, d.Bucket)
	r.mu.Unlock()
	if m != nil {
		if err := m.close(); err != nil {
			return err
		}
	}
	return r.declare(ctx, state, d)
}

// keys returns the keys that the server knows and that match a filter,
// including those whose values it cannot read.
func (b *bucket) keys(ctx context.Context, filter string) (keys []string, err error) {
	for {
		req := fmt.Appendf(nil, `{"subjects_filter": %q, "offset": %d}`, b.prefix+filter, len(keys))
		m, err := b.store.conn.RequestWithContext(ctx, "$JS.API.STREAM.INFO.KV_"+legal(b.name), req)
		if err != nil {
			return nil, err
		}
		var page struct {
			Error *jetstream.APIError `json:"error"`
			Total int                 `json:"total"`
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		if err := json.Unmarshal(m.Data, &page); err != nil {
			return nil, fmt.Errorf("keys of bucket %s: %w", b.name, err)
		}
		if page.Error != nil {
			return nil, page.Error
		}
		for subject := range page.State.Subjects {
			keys = append(keys, strings.TrimPrefix(subject, b.prefix))
		}
		if len(page.State.Subjects) == 0 || len(keys) >= page.Total {
			return keys, nil
		}
	}
}
