package oftest

import (
	"hash/fnv"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// toGroup sends a packet through a group (§5.6.1).
func (pl *pipeline) toGroup(t *transit, id uint32) {
	g := pl.groups[id]
	if g == nil {
		return
	}
	if t.trip.depth >= depthMax { // by way of a resubmit, groups may lead to themselves
		t.trip.void = tooFar
		return
	}
	g.packets.Packets++
	g.packets.Bytes += uint64(len(t.frame))
	through := func(i int) {
		g.buckets[i].Packets++
		g.buckets[i].Bytes += uint64(len(t.frame))
		b := t.branch()
		b.reason = flow.ReasonAction // even of a table-miss entry
		t.trip.depth++
		pl.finishBucket(b, g.Buckets[i].Actions)
		t.trip.depth--
		if t.trip.void == unfit {
			t.trip.void = inOrder
		}
	}
	switch g.Kind {
	case flow.GroupKindAll:
		for i := range g.Buckets {
			through(i)
		}
	case flow.GroupKindIndirect:
		through(0)
	case flow.GroupKindSelect:
		if i := pl.choose(g, t); i >= 0 {
			through(i)
		}
	case flow.GroupKindFastFailover:
		if i := slices.IndexFunc(g.Buckets, func(b flow.Bucket) bool { return pl.bucketLive(&b, 0) }); i >= 0 {
			through(i)
		}
	}
}

// finishBucket carries out a bucket's actions, which are an action set.
func (pl *pipeline) finishBucket(t *transit, actions []flow.Action) {
	for i := range actions {
		t.set.write(&actions[i])
	}
	pl.finish(t)
}

// choose returns the bucket of a select group for a packet: always the same
// one for packets of one flow while the same buckets live, and as often as its
// weight says over many flows; -1 if none lives.
func (pl *pipeline) choose(g *group, t *transit) int {
	total := uint64(0)
	weight := func(b *flow.Bucket) uint64 {
		if watches(b) && !pl.bucketLive(b, 0) {
			return 0
		}
		return uint64(b.Weight)
	}
	for i := range g.Buckets {
		total += weight(&g.Buckets[i])
	}
	if total == 0 {
		return -1
	}
	at := flowHash(&t.key) % total
	for i := range g.Buckets {
		w := weight(&g.Buckets[i])
		if at < w {
			return i
		}
		at -= w
	}
	return -1
}

// flowHash is a hash of what tells flows apart.
func flowHash(k *flow.Key) uint64 {
	h := fnv.New64a()
	h.Write(k.EthSrc[:])
	h.Write(k.EthDst[:])
	h.Write(k.IPv4Src[:])
	h.Write(k.IPv4Dst[:])
	h.Write(k.IPv6Src[:])
	h.Write(k.IPv6Dst[:])
	h.Write([]byte{byte(k.EthType >> 8), byte(k.EthType), k.IPProto, byte(k.VLAN >> 8), byte(k.VLAN),
		byte(k.TPSrc >> 8), byte(k.TPSrc), byte(k.TPDst >> 8), byte(k.TPDst)})
	v := h.Sum64()
	return v ^ v>>32
}

// bucketLive reports whether a bucket that watches a port or group is live:
// one of them is (§5.6.1).
func (pl *pipeline) bucketLive(b *flow.Bucket, depth int) bool {
	if p := pl.ports[b.WatchPort]; p != nil && p.State&openflow.PortStateLive != 0 {
		return true
	}
	return b.WatchGroup != flow.GroupAny && pl.groupLive(b.WatchGroup, depth+1)
}

// groupLive reports whether a group has a bucket that is live, as one is that watches
// nothing.
func (pl *pipeline) groupLive(id uint32, depth int) bool {
	g := pl.groups[id]
	if g == nil || depth > len(pl.groups) {
		return false
	}
	for i := range g.Buckets {
		if b := &g.Buckets[i]; !watches(b) || pl.bucketLive(b, depth) {
			return true
		}
	}
	return false
}
