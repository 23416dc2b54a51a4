package forwarding

import "github.com/weft-sdn/weft/flow"

// lately remembers pairs of one switch that were programmed a moment ago. Until
// its entries are in force, every packet of a pair comes here; from a generator
// of load, which ignores entries, for ever. lately spares them the table of
// routes. It belongs to the goroutine of its switch.
type lately struct {
	recent flow.Recent[latelyKey, programmed]
}

// latelyKey is a pair without a router between: source and VLAN, destination.
type latelyKey struct{ src, dst uint64 }

// programmed is when, and between which ports, a pair was programmed. It holds
// until a route of its shard changes otherwise than by being programmed again.
type programmed struct {
	sw      flow.DPID // where packets leave, as out
	sent    int64     // ns
	in, out flow.Port
	shard   uint32
	changes uint32 // of shard
}

// latelyMost bounds the pairs that are remembered for a switch, and thus their
// memory at 192 KiB, for switches with so many; latelyAll bounds those of all
// switches together.
const (
	latelyMost = 4096
	latelyAll  = 1 << 18
)

// fetch begins to bring what is known of the pairs of frames into the
// processor's caches.
func (l *lately) fetch(frames [][]byte) {
	for _, f := range frames {
		if len(f) >= 12 {
			_, hash := latelyKeyOf(flow.MAC(f[6:12]), flow.MAC(f[0:6]), 0)
			l.recent.Fetch(hash)
		}
	}
}

func latelyKeyOf(src, dst flow.MAC, vlan uint16) (key latelyKey, hash uint64) {
	key = latelyKey{src.Uint64()<<16 | uint64(vlan), dst.Uint64()}
	return key, flow.Spread(key.src ^ flow.Spread(key.dst)>>16)
}

// deliver delivers a packet of a pair that was programmed a moment ago, as
// connectBy does; it returns false, and does nothing, if it does not know that.
func (l *lately) deliver(e *engine, in *flow.PacketIn, d *flow.Decision) bool {
	r := l.recent.Get(latelyKeyOf(in.Key.EthSrc, in.Key.EthDst, in.Key.VLAN))
	if r == nil || in.Time-r.sent >= recently || r.in != in.Key.InPort || in.Dst != (flow.Location{Switch: r.sw, Port: r.out}) ||
		e.routes.shards[r.shard].changes.Load() != r.changes {
		return false
	}
	if in.Unapproved || e.deferral.packets.Load() != 0 || e.hosts.anyHeld.Load() {
		return false
	}
	if rewrite, ok := e.tagging.Egress(in.Dst, in.Key.VLAN); !ok || len(rewrite) > 0 {
		return false
	}
	deliver(d, in.Data, in.Dst, nil)
	return true
}

// note remembers that the pair of a packet was programmed at the time sent. The
// caller holds the shard.
func (l *lately) note(e *engine, in *flow.PacketIn, sent int64, s *routeShard) {
	now := programmed{sw: in.Dst.Switch, sent: sent, in: in.Key.InPort, out: in.Dst.Port, shard: s.number, changes: s.changes.Load()}
	key, hash := latelyKeyOf(in.Key.EthSrc, in.Key.EthDst, in.Key.VLAN)
	if r := l.recent.Get(key, hash); r != nil {
		*r = now
	} else {
		l.recent.Put(key, hash, now, int(e.latelyRoom.Load()))
	}
}
