package bus_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
)

// stream returns the JetStream of an external server.
func streams(t *testing.T, urls string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn, err := nats.Connect(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

const damagedStream = "KV_weft-flowrules-flows"

// keptExternally returns a store at external servers whose manifests this
// process keeps, with a full bucket.
func keptExternally(t *testing.T, urls string, replicas int) (*bus.Store, weft.Bucket, map[string]string) {
	t.Helper()
	s := opened(t, bus.Config{URL: urls, Replicas: replicas, Manifests: t.TempDir(), CheckEvery: time.Hour})
	b, err := s.Bucket(t.Context(), damagedBucket)
	if err != nil {
		t.Fatal(err)
	}
	fillBucket(t, b)
	return s, b, keysOf(t, b)
}

// TestStreamRemoved removes a bucket from an external server while the
// controller runs. A watcher learns of no deletion, and a process that opens
// the bucket finds it damaged, not new.
func TestStreamRemoved(t *testing.T) {
	t.Parallel()
	_, urls := cluster(t, 1)
	keeper, b, keys := keptExternally(t, urls, 1)
	w := watching(t, b)
	w.matches(t, b, keys)
	late := opened(t, bus.Config{URL: urls})
	testwait.Until(t, "the store lists the bucket as one that has held something", func() bool {
		state, err := late.Bucket(t.Context(), "bus.state")
		if err != nil {
			return false
		}
		text, _, err := state.Get(t.Context(), "recorded")
		return err == nil && string(text) == `["flowrules.flows"]`
	})
	_, js := streams(t, urls)
	if err := js.DeleteStream(t.Context(), damagedStream); err != nil {
		t.Fatal(err)
	}
	other, err := late.Bucket(t.Context(), damagedBucket)
	if err != nil {
		t.Fatal(err)
	}
	if damage := other.(weft.Damageable).Damage(); damage == "" {
		t.Error("a bucket that is gone is taken for a new one")
	}
	testwait.Until(t, "all processes know of the damage", func() bool { return len(keeper.Damages()) == 1 })
	w.mu.Lock()
	if len(w.state) != len(keys) {
		t.Errorf("the watcher was told that %d of %d keys are deleted", len(keys)-len(w.state), len(keys))
	}
	w.mu.Unlock()
	// Accepted as it is, the empty bucket is a new one.
	if err := late.Accept(t.Context(), damagedBucket); err != nil {
		t.Fatal(err)
	}
	again, err := opened(t, bus.Config{URL: urls}).Bucket(t.Context(), damagedBucket)
	if err != nil {
		t.Fatal(err)
	}
	if damage := again.(weft.Damageable).Damage(); damage != "" {
		t.Errorf("after it was accepted: %s", damage)
	}
	put(t, again, "new", "1")
}

// TestLesserLeader makes a replica the leader that has lost half of a bucket.
// Either the servers have repaired it, or the bucket is damaged; no watcher
// sees deletions.
func TestLesserLeader(t *testing.T) {
	t.Parallel()
	members, urls := cluster(t, 3)
	keeper, b, keys := keptExternally(t, urls, 3)
	w := watching(t, b)
	w.matches(t, b, keys)
	conn, js := streams(t, urls)
	leader := func() string {
		stream, err := js.Stream(t.Context(), damagedStream)
		if err != nil || stream.CachedInfo().Cluster == nil {
			return ""
		}
		return stream.CachedInfo().Cluster.Leader
	}
	testwait.Until(t, "the bucket has a leader", func() bool { return leader() != "" })
	var lesser *member
	for _, m := range members {
		if m.Name != leader() {
			lesser = m
		}
	}
	lesser.kill()
	blocks, err := filepath.Glob(filepath.Join(lesser.Dir, "jetstream", "$G", "streams", damagedStream, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("the replica has no files: %v", err)
	}
	for _, file := range blocks {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(data) / 4; i < len(data)*3/4; i += 100 {
			data[i] ^= 0x55
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(filepath.Dir(file), "index.db"))
	}
	lesser.start(t)
	testwait.Until(t, "the replica leads", func() bool {
		_, _ = conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+damagedStream, []byte(`{"placement": {"preferred": "`+lesser.Name+`"}}`), 2*time.Second)
		return leader() == lesser.Name
	})
	testwait.Until(t, "the bucket is whole, or known to be damaged", func() bool {
		return len(keeper.Damages()) > 0 || len(keysOf(t, b)) == len(keys)
	})
	t.Logf("damage: %+v", keeper.Damages())
	testwait.Until(t, "the watcher knows of no key too many, as of one whose deletion the replica had lost, or the bucket is known to be damaged", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for key := range w.state {
			if _, there := keys[key]; !there {
				return len(keeper.Damages()) > 0
			}
		}
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range keys {
		if _, heard := w.state[key]; !heard {
			t.Errorf("the watcher was told that %q is deleted", key)
		}
	}
}
