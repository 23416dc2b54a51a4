package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft/api"
)

const (
	// scarceAfter is how long a new bucket waits for a missing server before it
	// gets one copy less.
	scarceAfter = 3 * time.Second
	// replicateEvery is how often the store looks for buckets with too few
	// copies.
	replicateEvery = 10 * time.Second
	// listWait bounds the list of all buckets: NATS waits 4 s for servers that do
	// not answer.
	listWait = 6 * time.Second
	// silentAfter is how long a cluster may not hear from a server that it
	// still counts; servers talk every second.
	silentAfter = 4 * time.Second
)

// Replicate sets on how many servers of an external cluster every bucket is
// kept: buckets opened from now on, and existing ones, which get their missing
// copies in the background. Copies beyond n stay. While too few servers are up,
// the store logs a warning, and adds the copies later. A server that is not
// part of a cluster refuses to open buckets with n above 1.
func (s *Store) Replicate(n int) {
	s.replicas.wanted.Store(int64(n))
	if n > 1 {
		s.replicas.begun.Do(func() { s.tended.Go(s.replicas.run) })
	}
}

// run adds missing copies to buckets until the store is closed.
func (r *replication) run() {
	tick := time.NewTicker(replicateEvery)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), listWait)
		if err := r.once(ctx); err != nil && !passing(err) {
			r.store.config.Log.Warn("buckets cannot be replicated", "replicas", r.wanted.Load(), "error", err)
		}
		cancel()
		select {
		case <-r.store.link.closed:
			return
		case <-tick.C:
		}
	}
}

// once adds the missing copies of all buckets.
func (r *replication) once(ctx context.Context) error {
	list, _, err := r.store.streams(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, info := range list {
		if _, err := r.raise(ctx, info); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// raise adds the missing copies of a stream and returns its state. With too few
// servers it returns an error that noPeers recognizes, and leaves the stream as
// it is.
func (r *replication) raise(ctx context.Context, info *jetstream.StreamInfo) (jetstream.Stream, error) {
	n := int(r.wanted.Load())
	if info.Config.Replicas >= n {
		return nil, nil
	}
	c := info.Config
	c.Replicas, c.AllowDirect = n, false
	stream, err := r.store.js.UpdateStream(ctx, c)
	switch {
	case noPeers(err):
		if !r.short.Swap(true) {
			r.store.config.Log.Warn("too few servers of the store are up: state is kept on fewer than the plan wants, until they are", "bucket", info.Config.Description, "copies", info.Config.Replicas, "replicas", n)
		}
	case err == nil:
		r.short.Store(false)
		r.store.config.Log.Info("a bucket is kept on more servers", "bucket", info.Config.Description, "copies", n, "before", info.Config.Replicas)
	}
	return stream, err
}

// copies decides how many copies a new bucket gets: fewer if servers stay down.
type copies struct {
	fewer int
	since time.Time // when servers were found missing; zero: none was
}

func (c *copies) of(n int) int { return max(1, n-c.fewer) }

// note records the result of an attempt.
func (c *copies) note(err error) {
	switch {
	case !noPeers(err):
	case c.since.IsZero():
		c.since = time.Now()
	case time.Since(c.since) > scarceAfter:
		c.fewer++
		c.since = time.Now()
	}
}

// streams returns the streams of all buckets, and how many did not answer.
func (s *Store) streams(ctx context.Context) (list []*jetstream.StreamInfo, missing int, err error) {
	for {
		m, err := s.conn.RequestWithContext(ctx, "$JS.API.STREAM.LIST", fmt.Appendf(nil, `{"offset": %d}`, len(list)))
		if err != nil {
			return nil, 0, err
		}
		var page struct {
			Error   *jetstream.APIError     `json:"error"`
			Total   int                     `json:"total"`
			Streams []*jetstream.StreamInfo `json:"streams"`
			Missing []string                `json:"missing"`
		}
		if err := json.Unmarshal(m.Data, &page); err != nil {
			return nil, 0, fmt.Errorf("list of streams: %w", err)
		}
		if page.Error != nil {
			return nil, 0, page.Error
		}
		list, missing = append(list, page.Streams...), missing+len(page.Missing)
		if len(page.Streams) == 0 || len(list) >= page.Total {
			return ours(list), missing, nil
		}
	}
}

// ours returns the streams that are buckets.
func ours(list []*jetstream.StreamInfo) (buckets []*jetstream.StreamInfo) {
	for _, info := range list {
		if strings.HasPrefix(info.Config.Name, "KV_"+legal("")) {
			buckets = append(buckets, info)
		}
	}
	return buckets
}

// State asks the servers for the state of the buckets. If they do not answer,
// it returns why, and a state without quorum.
func (s *Store) State(ctx context.Context) (*api.StoreState, error) {
	st := &api.StoreState{Replicas: uint32(max(s.replicas.wanted.Load(), 1)), Wanted: uint32(max(s.replicas.wanted.Load(), 1))}
	if lazy := s.syncing.lazy.Load(); lazy != nil {
		st.Unsynced = *lazy
	}
	list, missing, err := s.streams(ctx)
	if err != nil {
		return st, s.fail(ctx, "ask for the state of the store", err)
	}
	summarize(st, list, missing)
	return st, nil
}

// summarize completes the state of a store that has answered, by its streams and the number
// of streams whose state no server has told.
func summarize(st *api.StoreState, list []*jetstream.StreamInfo, missing int) {
	up, behind := map[string]bool{}, map[string]bool{}
	st.Quorum = missing == 0
	for i, info := range list {
		if n := uint32(info.Config.Replicas); i == 0 || n < st.Replicas {
			st.Replicas = n
		}
		if info.Cluster == nil { // a single server, and it answers
			up[""] = true
			continue
		}
		alive := 0
		if info.Cluster.Leader != "" {
			up[info.Cluster.Leader] = true
			alive++
		}
		for _, r := range info.Cluster.Replicas {
			if r.Current && !r.Offline && r.Active < silentAfter {
				up[r.Name] = true
				alive++
			} else {
				behind[r.Name] = true
			}
		}
		if info.Cluster.Leader == "" || 2*alive <= info.Config.Replicas {
			st.Quorum = false
		}
	}
	maps.DeleteFunc(up, func(server string, _ bool) bool { return behind[server] })
	st.Servers = uint32(max(len(up), 1))
}
