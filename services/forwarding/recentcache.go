package forwarding

import "github.com/weft-sdn/weft/flow"

// recentCache caches the recently programmed pairs of one switch. Until its
// entries are in force, every packet of a pair comes to the controller; those of
// a load generator, which ignores entries, always do. The cache saves them the
// lookup in the route table. Only the goroutine of the switch uses it.
type recentCache struct {
	recent flow.Recent[recentKey, programmed]
}

// recentKey is a pair without a router between: source and VLAN, destination.
type recentKey struct{ src, dst uint64 }

// programmed records when and between which ports a pair was programmed. It is
// valid until a route of its shard changes, except by being programmed again.
type programmed struct {
	sw      flow.DPID // where packets leave, as out
	sent    int64     // ns
	in, out flow.Port
	shard   uint32
	changes uint32 // of shard
}

// fetch prefetches the cached pairs of frames into the processor's caches.
func (l *recentCache) fetch(frames [][]byte) {
	for _, f := range frames {
		if len(f) >= 12 {
			_, hash := recentKeyOf(flow.MAC(f[6:12]), flow.MAC(f[0:6]), 0)
			l.recent.Fetch(hash)
		}
	}
}

func recentKeyOf(src, dst flow.MAC, vlan uint16) (key recentKey, hash uint64) {
	key = recentKey{src.Uint64()<<16 | uint64(vlan), dst.Uint64()}
	return key, flow.Spread(key.src ^ flow.Spread(key.dst)>>16)
}
