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

// deliver delivers a packet of a cached pair, as connectBy does. If the pair is
// not cached, it does nothing and returns false.
func (l *recentCache) deliver(pp *packetPath, in *flow.PacketIn, d *flow.Decision) bool {
	r := l.recent.Get(recentKeyOf(in.Key.EthSrc, in.Key.EthDst, in.Key.VLAN))
	if r == nil || in.Time-r.sent >= recently || r.in != in.Key.InPort || in.Dst != (flow.Location{Switch: r.sw, Port: r.out}) ||
		pp.routes.shards[r.shard].changes.Load() != r.changes {
		return false
	}
	if in.Unapproved || pp.deferral.packets.Load() != 0 || pp.hosts.anyHeld.Load() {
		return false
	}
	if rewrite, ok := pp.tagging.Egress(in.Dst, in.Key.VLAN); !ok || len(rewrite) > 0 {
		return false
	}
	deliver(d, in.Data, in.Dst, nil)
	return true
}

// note caches the pair of a packet as programmed at the time sent. The
// caller holds the shard.
func (l *recentCache) note(pp *packetPath, in *flow.PacketIn, sent int64, s *routeShard) {
	now := programmed{sw: in.Dst.Switch, sent: sent, in: in.Key.InPort, out: in.Dst.Port, shard: s.number, changes: s.changes.Load()}
	key, hash := recentKeyOf(in.Key.EthSrc, in.Key.EthDst, in.Key.VLAN)
	if r := l.recent.Get(key, hash); r != nil {
		*r = now
	} else {
		l.recent.Put(key, hash, now, int(pp.recentRoom.Load()))
	}
}
