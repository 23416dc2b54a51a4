package router

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// Bounds of waiting, in packets for one destination; the share of all that one
// port may have; and how often to ask for a destination, in nanoseconds.
const (
	waitingEach  = 8
	waitingShare = 8
	askAgain     = int64(500e6)
)

// waiting is packets to destinations whose Ethernet address is not known yet.
type waiting struct {
	n    int
	from map[flow.Location]int // of n, by ingress port
	on   map[place]*queue
}

// queue is the packets that wait for one destination.
type queue struct {
	since, asked int64
	by           *router // who asks
	packets      []held
}

// held is a waiting packet.
type held struct {
	in  flow.PacketIn
	way way
}

func newWaiting() *waiting { return &waiting{from: map[flow.Location]int{}, on: map[place]*queue{}} }

// hold keeps a packet until the next neighbour on its way is known, and asks for
// that neighbour. It is called with mu held.
func (b *store) hold(in *flow.PacketIn, w way, d *flow.Decision) {
	p, t := object.In(w.to, in.Key.VLAN), b.waiting
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	room := t.n < b.cfg.Load().Waiting && t.from[at] < max(waitingEach, b.cfg.Load().Waiting/waitingShare)
	q := t.on[p]
	if q == nil {
		if !room {
			b.count.shed.Add(1)
			b.reached.ReachAt(in.Time, "router.waiting", b.cfg.Load().Waiting, at)
			return
		}
		q = &queue{since: in.Time, by: w.last()}
		t.on[p] = q
	}
	if len(q.packets) < waitingEach && room {
		kept := *in
		kept.Following = nil
		kept.Data = append([]byte(nil), in.Data...)
		q.packets = append(q.packets, held{kept, w})
		t.n++
		t.from[at]++
	} else {
		b.count.shed.Add(1)
		if !room {
			b.reached.ReachAt(in.Time, "router.waiting", b.cfg.Load().Waiting, at)
		}
	}
	if in.Time-q.asked >= askAgain {
		q.asked = in.Time
		b.ask(q.by, p, d)
	}
}

// end removes the queue of a destination.
func (t *waiting) end(p place, q *queue) {
	delete(t.on, p)
	t.n -= len(q.packets)
	for i := range q.packets {
		at := flow.Location{Switch: q.packets[i].in.Switch, Port: q.packets[i].in.Key.InPort}
		if t.from[at]--; t.from[at] <= 0 {
			delete(t.from, at)
		}
	}
}

// release sends the packets that have waited for a neighbour. It is called with
// mu held.
func (b *store) release(p place, s station, d *flow.Decision) {
	q := b.waiting.on[p]
	if q == nil || s.At == (flow.Location{}) {
		return
	}
	b.waiting.end(p, q)
	for _, h := range q.packets {
		b.count.carried.Add(1)
		b.deliver(d, h.way.rewrite(h.in.Data, s.MAC), p.VLAN, s.At)
	}
}

// attend asks again for the neighbours that packets wait for, gives up those that
// have not answered in time, and asks for unknown gateways.
func (b *store) attend(now int64, d *flow.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p, q := range b.waiting.on {
		if now-q.since >= int64(b.cfg.Load().Resolve) {
			b.waiting.end(p, q)
			for i := range q.packets {
				h := &q.packets[i]
				b.count.unreachable.Add(1)
				h.in.Time = now
				b.refuse(&h.in, h.way.last(), h.way.hops[0], noHost, d)
			}
		} else if now-q.asked >= askAgain {
			q.asked = now
			b.ask(q.by, p, d)
		}
	}
	x := b.index.Load()
	wanted := map[place]bool{}
	for _, r := range b.routers.List() {
		for _, s := range r.routes {
			p := object.In(s.by, r.vlan)
			if _, known := b.neighbours.Station(p); known || x == nil || x.owners[p] != nil {
				continue
			}
			wanted[p] = true
			if now-b.asked[p] >= int64(b.cfg.Load().AskInterval) {
				b.asked[p] = now
				b.ask(r, p, d)
			}
		}
	}
	for p := range b.asked {
		if !wanted[p] {
			delete(b.asked, p)
		}
	}
}

// ask appends a router's question for a neighbour, to all edge ports. It is
// called with mu held.
func (b *store) ask(r *router, p place, d *flow.Decision) {
	from, ok := r.subnet(p.Addr)
	if !ok {
		return
	}
	b.count.asked.Add(1)
	frame := question(r.mac, from.Addr(), p)
	for s := range b.net.Switches() {
		sw := s.Key
		if !s.Is.Switch.Connected {
			continue
		}
		list := b.net.PortsWith(sw, flow.RoleEdge)
		if len(list) == 0 {
			continue
		}
		if actions := b.tagging.Outputs(nil, sw, p.VLAN, list); len(actions) > 0 {
			d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
		}
	}
}

// question returns the frame that asks for an address.
func question(mac flow.MAC, from netip.Addr, p place) []byte {
	if p.Addr.Is4() {
		return packet.AppendARPRequest(nil, p.VLAN, packet.ARPFields{SenderMAC: mac, SenderIP: from, TargetIP: p.Addr})
	}
	return packet.AppendNDSolicit(nil, p.VLAN, packet.NDFields{SrcMAC: mac, SrcIP: from, Target: p.Addr})
}
