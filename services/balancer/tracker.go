package balancer

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// tracker gives packets their connections: it holds those that there are, and what is
// remembered of those that were. The balancer's mu guards it, but for reached.
type tracker struct {
	cfg     *atomic.Pointer[Config]
	net     *network
	index   *atomic.Pointer[index]
	out     *outbox
	count   *counts
	after   func(time.Duration, func()) // calls a function later, with mu held
	reached object.Limits               // of the configuration

	connections
	bindings bindings
	seals    seals
}

// hasRoom reports whether a VIP may have another connection, and counts if not.
func (t *tracker) hasRoom(v *vip, now int64) bool {
	most := t.cfg.Load().Connections
	if len(t.by) < most {
		return true
	}
	t.count.full.Add(1)
	t.reached.Reach(now, "balancer.connections", most, "VIP "+v.name)
	return false
}

// retire ends a connection and remembers its member.
func (t *tracker) retire(d *flow.Decision, c *conn, now int64) {
	t.bindings.remember(c, t.cfg.Load().Connections, now)
	t.cut(d, c)
}

// lose cuts the connections of a member that has gone down, so that their clients need
// not wait. Those to its own address go on: they are for no other member, and it would not know
// them by the port that their clients have without their entries.
func (t *tracker) lose(m *member, now int64) {
	d := &flow.Decision{}
	for c := range m.conns {
		if c.kind != direct && c.kind != aliased {
			t.count.cut.Add(1)
			t.abandon(d, c, now)
		}
	}
	t.out.post(d)
}

// relocate moves a member's connections with it to another switch or another
// Ethernet address.
func (t *tracker) relocate(m *member, s station, now int64) {
	d := &flow.Decision{}
	for c := range m.conns {
		if c.mac != s.MAC && c.there && c.kind != direct && c.kind != through {
			c.mac = s.MAC
			c.addThere(d)
		}
		if c.kind == through || c.egress == s.At.Switch || !c.there && !c.back {
			continue
		}
		if c.back {
			c.removeBack(d)
		}
		t.place(c, c.ingress, s.At.Switch)
		c.addBack(d)
		c.sent = now
		c.mark(c.there, true)
	}
	t.out.post(d)
}

// recently is how long after a connection's entries were sent its packets count
// as already on the way, in nanoseconds.
const recently = int64(time.Second)

// stick keeps a client at a member for as long as its VIP says.
func (t *tracker) stick(v *vip, client netip.Addr, m *member, now int64) {
	if v.sticky == 0 {
		return
	}
	if _, known := v.stuck[client]; known || len(v.stuck) < t.cfg.Load().Connections {
		v.stuck[client] = stay{m, now + int64(v.sticky)}
	}
}

// install appends the entries of a connection unless that has just been done:
// first the way back, so that it is there before the first answer. A switch that
// cannot rewrite sends every packet to the controller instead.
func (t *tracker) install(c *conn, s station, in *flow.PacketIn, d *flow.Decision) {
	from := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	rewrites := t.net.rewrites(in.Switch)
	if !rewrites {
		t.count.carried.Add(1)
	}
	moved := c.ingress.Switch != from.Switch
	if in.Time-c.sent < recently && !moved && c.egress == s.At.Switch && c.mac == s.MAC && c.back && (c.there || !rewrites) {
		return
	}
	if !rewrites && c.back && c.egress == s.At.Switch && in.Time-c.sent < int64(c.idle)*int64(time.Second) {
		return
	}
	if moved && c.ingress.Switch != 0 && (c.there || c.kind == paired) {
		c.removeThere(d)
	}
	if c.back && c.egress != s.At.Switch {
		c.removeBack(d)
	}
	t.place(c, from, s.At.Switch)
	c.mac, c.sent, c.until, c.idled = s.MAC, in.Time, 0, false
	if c.rearm(in.Time); rewrites && c.sampled == nil {
		t.sample(c, in.Time)
	}
	c.addBack(d)
	if delete(t.seals, c.backKey()); c.kind != tracked && c.egress != c.ingress.Switch {
		d.Fence() // before the switch of the client lets others of the pair follow
	}
	if rewrites {
		c.addThere(d)
	}
	c.mark(rewrites, true)
	t.stick(c.m.vip, c.key.client.Addr(), c.m, in.Time)
}

// pass lets a packet go on to the host that a VIP shadows, with an entry that has
// those that follow do so.
func (t *tracker) pass(c *conn, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	from := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	if !t.net.rewrites(in.Switch) || c.there && c.ingress.Switch == from.Switch && in.Time-c.sent < recently {
		return flow.Next
	}
	if c.there && c.ingress.Switch != from.Switch {
		c.removeThere(d)
	}
	t.place(c, from, 0)
	c.sent, c.until = in.Time, 0
	c.addThere(d)
	c.mark(true, false)
	return flow.Next
}
