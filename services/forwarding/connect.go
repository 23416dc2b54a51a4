package forwarding

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A packetPath decides about the packets that come to the controller.
type packetPath struct {
	*platform
	*portTable
	*routing
	deferral deferral
	held     *holding
}

// destinationKnown reports whether the host that a packet is addressed to is known. To
// know only the host of its IP address is not enough: only a router's packets
// may go there.
func destinationKnown(in *flow.PacketIn) bool {
	return in.Dst != flow.Location{} && in.DstMAC == in.Key.EthDst
}

// deliver appends the packet-out that sends a frame to the host at a port.
func deliver(d *flow.Decision, frame []byte, at flow.Location, rewrite []flow.Action) {
	o := flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: frame}
	if len(rewrite) == 0 {
		o.Actions = d.Output(at.Port)
	} else {
		o.Actions = d.Actions(append(append(make([]flow.Action, 0, 8), rewrite...), flow.Output(at.Port))...)
	}
	d.PacketOut(at.Switch, o)
}

// handTo appends the packet-out that sends a packet to its destination.
func (pp *packetPath) handTo(d *flow.Decision, in *flow.PacketIn) {
	tag, ok := pp.tagging.Egress(in.Dst, in.Key.VLAN)
	if !ok {
		pp.count.unreachable.Add(1)
		return
	}
	deliver(d, in.Data, in.Dst, tag)
}

// recently is how long after a route was programmed its packets are assumed to
// have been on the way before.
const recently = int64(time.Second)

// connect programs the route of a pair, and the way back, unless this was just
// done, and releases the packet behind the last switch. If it would have to
// wait for the path, or packets of the pair are already waiting, it postpones
// this. What was just done it notes in just, unless that is nil.
func (pp *packetPath) connect(in *flow.PacketIn, d *flow.Decision, p pair, rewrite []flow.Action, just *recentCache) {
	if pp.deferral.hasWaiting(p) || pp.connectBy(pp.findNow, in, d, p, rewrite, just) != nil {
		d.Kept = pp.postpone(in, p, rewrite)
	}
}

// connectBy is connect with paths from the given finder. If the finder does not
// know the path, connectBy does nothing.
func (pp *packetPath) connectBy(find finder, in *flow.PacketIn, d *flow.Decision, p pair, rewrite []flow.Action, just *recentCache) error {
	from, to := flow.Location{Switch: in.Switch, Port: in.Key.InPort}, in.Dst
	if from == to {
		pp.count.hairpin.Add(1)
		return nil
	}
	rewrite, ok := pp.leave(p, to, rewrite)
	if !ok {
		pp.count.unreachable.Add(1)
		return nil
	}
	if in.Unapproved {
		deliver(d, in.Data, to, rewrite) // the stages that held it have let it pass
		return nil
	}
	if pp.hosts.holds(p, rewrite) {
		pp.count.unapproved.Add(1) // held meanwhile; or chosen by a later stage
		return nil
	}
	var fresh, full bool
	pp.routes.with(p, func(s *routeShard) {
		r := s.m[p]
		fresh = r != nil && in.Time-r.sent < recently && r.last() == hop{to.Switch, r.last().in, to.Port} && r.first().sw == from.Switch && r.first().in == from.Port
		full = r == nil && len(s.m) >= pp.perShard()
		if fresh && just != nil {
			just.note(pp, in, r.sent, s)
		}
	})
	if fresh || full {
		if full {
			pp.count.full.Add(1)
			pp.reached.Reach(in.Time, "forwarding.max_routes", pp.cfg.MaxRoutes, "")
		}
		deliver(d, in.Data, to, rewrite)
		return nil
	}
	r, err := pp.compute(find, p, from, to, rewrite)
	if err != nil {
		return err
	}
	if r == nil {
		pp.count.unreachable.Add(1)
		return nil
	}
	r.since, r.sent = in.Time, in.Time
	if !p.ip.IsValid() {
		back := pair{src: p.dst, dst: p.src, vlan: p.vlan}
		br, err := pp.compute(find, back, to, from, nil)
		if err != nil {
			return err
		}
		if br != nil {
			br.since, br.sent = in.Time, in.Time
			pp.install(d, br, nil)
		}
	}
	pp.install(d, r, func() { deliver(d, in.Data, to, rewrite) })
	return nil
}

// gateway returns the subnet whose router address is a.
func (pp *packetPath) gateway(a netip.Addr) *subnet {
	for i := range pp.subnets {
		if pp.subnets[i].gateway == a {
			return &pp.subnets[i]
		}
	}
	return nil
}

// subnetOf returns the subnet that an address is in.
func (pp *packetPath) subnetOf(a netip.Addr) *subnet {
	for i := range pp.subnets {
		if pp.subnets[i].prefix.Contains(a) {
			return &pp.subnets[i]
		}
	}
	return nil
}

// reply sends a frame out of the port that the packet came from.
func (pp *packetPath) reply(d *flow.Decision, in *flow.PacketIn, frame []byte) {
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	if tag, ok := pp.tagging.Egress(at, in.Key.VLAN); ok {
		deliver(d, frame, at, tag)
	}
}

// toAll appends packet-outs of a frame in a VLAN to all edge ports except one.
func (pp *packetPath) toAll(d *flow.Decision, frame []byte, vlan uint16, but flow.Location) {
	var actions []flow.Action
	var ports []flow.Port
	pp.eachEdge(func(sw flow.DPID, list *edgeList) {
		for part := range slices.Chunk(list.without(list.ports, vlan), outputsMost) {
			ports = ports[:0]
			for _, p := range part {
				if (but != flow.Location{Switch: sw, Port: p}) {
					ports = append(ports, p)
				}
			}
			actions = pp.tagging.Outputs(actions[:0], sw, vlan, ports)
			if len(actions) > 0 {
				d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
			}
		}
	})
}

// postpone keeps a packet of a pair until its path is known; false if there is no
// room.
func (pp *packetPath) postpone(in *flow.PacketIn, p pair, rewrite []flow.Action) bool {
	q := &pp.deferral
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.packets.Load() >= deferredMost || q.octets+len(in.Data) > deferredOctets {
		pp.count.pathFull.Add(1)
		pp.reached.ReachAt(in.Time, "the room for packets that wait for their paths", deferredMost, flow.Location{Switch: in.Switch, Port: in.Key.InPort})
		return false
	}
	pp.count.deferred.Add(1)
	kept := deferred{*in, rewrite}
	kept.in.Following = nil
	kept.in.Data = append([]byte(nil), in.Data...)
	list, waits := q.pairs[p]
	if q.pairs == nil {
		q.pairs = map[pair][]deferred{}
	}
	q.pairs[p] = append(list, kept)
	q.packets.Add(1)
	q.octets += len(in.Data)
	if waits {
		return true
	}
	q.queue = append(q.queue, p)
	if q.running < deferredWorkers {
		q.running++
		q.working.Go(pp.connectDeferred)
	}
	return true
}

// connectDeferred connects pairs until none is waiting.
func (pp *packetPath) connectDeferred() {
	q := &pp.deferral
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 {
		p := q.queue[0]
		q.queue = q.queue[1:]
		for list := q.pairs[p]; len(list) > 0; list = q.pairs[p] {
			q.pairs[p] = nil
			q.mu.Unlock()
			pp.connectAll(p, list)
			q.mu.Lock()
			q.packets.Add(int64(-len(list)))
			for i := range list {
				q.octets -= len(list[i].in.Data)
			}
		}
		delete(q.pairs, p)
	}
	q.running--
}

// connectAll connects a pair, and releases its packets.
func (pp *packetPath) connectAll(p pair, list []deferred) {
	d := &flow.Decision{}
	send := func() {
		if d.Empty() && d.Trace == 0 {
			return
		}
		if err := pp.execute(pp.deferral.send, d); err != nil {
			pp.log.Error("routes not programmed", "packets", len(list), "error", err)
		}
	}
	for i := range list {
		x := &list[i]
		if x.in.Trace != 0 || d.Trace != 0 { // by itself, so that those who watch see what becomes of it
			send()
			d = &flow.Decision{Trace: x.in.Trace}
		}
		now := pp.now().UnixNano()
		if now-x.in.Time > int64(deferredFor) {
			pp.count.pathLate.Add(1)
			continue
		}
		x.in.Time = now
		if pp.connectBy(pp.deferral.find, &x.in, d, p, x.rewrite, nil) != nil { // find has waited for it
			pp.count.unreachable.Add(1)
		}
	}
	send()
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
