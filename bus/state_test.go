package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft/api"
)

// TestSummary: a server counts if it has all that it keeps, of every bucket, and a bucket
// takes writes if more than half of its copies are at servers that have it.
func TestSummary(t *testing.T) {
	peer := func(name string, current bool) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: name, Current: current, Active: time.Second}
	}
	bucket := func(leader string, others ...*jetstream.PeerInfo) *jetstream.StreamInfo {
		return &jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: 1 + len(others)}, Cluster: &jetstream.ClusterInfo{Leader: leader, Replicas: others}}
	}
	for name, c := range map[string]struct {
		list    []*jetstream.StreamInfo
		missing int
		servers uint32
		quorum  bool
	}{
		"all have all":            {[]*jetstream.StreamInfo{bucket("a", peer("b", true), peer("c", true)), bucket("b", peer("a", true), peer("c", true))}, 0, 3, true},
		"one has yet to catch up": {[]*jetstream.StreamInfo{bucket("a", peer("b", true), peer("c", true)), bucket("b", peer("a", true), peer("c", false))}, 0, 2, true},
		"one is silent":           {[]*jetstream.StreamInfo{bucket("a", peer("b", true), &jetstream.PeerInfo{Name: "c", Current: true, Active: 2 * silentAfter})}, 0, 2, true},
		"two are behind":          {[]*jetstream.StreamInfo{bucket("a", peer("b", false), peer("c", false))}, 0, 1, false},
		"nobody leads":            {[]*jetstream.StreamInfo{bucket("", peer("b", true), peer("c", true))}, 0, 2, false},
		"a bucket does not say":   {[]*jetstream.StreamInfo{bucket("a", peer("b", true), peer("c", true))}, 1, 3, false},
	} {
		st := &api.StoreState{}
		if summarize(st, c.list, c.missing); st.Servers != c.servers || st.Quorum != c.quorum {
			t.Errorf("%s: %d servers, quorum %v", name, st.Servers, st.Quorum)
		}
	}
}
