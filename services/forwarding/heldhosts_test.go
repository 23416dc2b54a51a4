package forwarding

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// tell has hosts say of a host to all instances who holds it.
func (c *cluster) tell(h host, change string, heldBy ...string) {
	for _, i := range c.run {
		i.hostChanged(&api.HostChanged{Change: change, Host: &api.Host{Mac: h.mac.String(), At: api.NewLocation(h.at), HeldBy: heldBy}})
	}
}

// stopped fails if the switches still carry packets between two hosts.
func (c *cluster) stopped(a, b host) {
	c.t.Helper()
	c.net.out = nil
	c.net.forward(a.at, string(tcp(a, b)), 0)
	c.net.forward(b.at, string(tcp(b, a)), 0)
	if len(c.net.out) != 0 {
		c.t.Fatalf("packets between %v and %v came out at %v", a.at, b.at, c.net.out)
	}
	for sw, table := range c.net.table {
		for key := range table {
			if key.Match.Key.EthSrc == a.mac || key.Match.Key.EthDst == a.mac {
				c.t.Fatalf("switch %v has an entry of a held host: %v", sw, &key.Match)
			}
		}
	}
}

// held is a packet as the hosts stage leaves it that is about a held host.
func held(from, to host, at time.Time, by ...string) *flow.PacketIn {
	in := packetIn(from, &to, tcp(from, to), at.UnixNano())
	in.Unapproved, in.HeldBy = true, by
	return in
}

// A packet of a held host is dropped until all who hold it have let it pass, and
// then delivered, in either direction, without an entry.
func TestHeldHostsHaveNoEntries(t *testing.T) {
	for _, mode := range []string{modeReactive, modeProactive} {
		net, hosts, edges := ring(t, 1)
		a, b := hosts[0], hosts[1]
		c := newCluster(t, net, 1, func(cfg *Config) { cfg.Mode = mode }, edges...)
		c.tell(a, "learnt", "portal")
		c.tell(b, "learnt")
		for _, way := range [][2]host{{a, b}, {b, a}} {
			d := &flow.Decision{}
			if v := c.run[0].open(way[0].at.Switch)(held(way[0], way[1], c.clock, "portal"), d); v != flow.Drop || !d.Empty() {
				t.Errorf("%s: verdict %v and %d operations on what nobody has let pass", mode, v, len(d.Ops))
			}
			if v := c.run[0].open(way[0].at.Switch)(held(way[0], way[1], c.clock), d); v != flow.Done || len(d.Outs) != 1 || len(d.Ops) != 1 {
				t.Errorf("%s: verdict %v and operations %v on what was let pass; want it delivered only", mode, v, d.Ops)
			}
			d.Reset() // as of a host that was approved, and is no more
			if c.run[0].open(way[0].at.Switch)(packetIn(way[0], &way[1], tcp(way[0], way[1]), c.clock.UnixNano()), d); !d.Empty() {
				t.Errorf("%s: %v for a host that is held since", mode, d.Ops)
			}
		}
		c.stopped(a, b)
		c.tell(a, "held")
		c.packet(0, b, a)
		c.arrives(a, b)
	}
}

// When an approval is taken back, the routes go, wherever they were programmed,
// also those of packets that were decided on before and come back later.
func TestRevokedHostsLoseTheirRoutes(t *testing.T) {
	net, hosts, edges := ring(t, 4)
	c := newCluster(t, net, 3, nil, edges...)
	for _, h := range hosts {
		c.tell(h, "learnt")
	}
	a := hosts[0]
	var late []*flow.Decision
	for i, b := range hosts[1:] {
		in := packetIn(a, &b, tcp(a, b), c.clock.UnixNano())
		d := &flow.Decision{}
		if b.at.Switch != a.at.Switch {
			c.run[i%3].open(a.at.Switch)(in, d)
			late = append(late, d)
		}
	}
	c.packet(0, hosts[2], hosts[3])
	c.tell(a, "held", "portal")
	c.carry()
	for _, d := range late {
		net.apply(d) // now only
	}
	c.clock = c.clock.Add(againSoon)
	for _, i := range c.run {
		i.upkeep()
	}
	c.stopped(a, hosts[1])
	c.check()
	c.arrives(hosts[2], hosts[3])

	c.tell(a, "held")
	c.packet(1, a, hosts[1])
	c.carry()
	c.clock = c.clock.Add(againLater)
	for _, i := range c.run {
		i.upkeep()
	}
	c.arrives(a, hosts[1]) // what was approved meanwhile stays
	c.check()
	for _, i := range c.run {
		if n := len(i.outdated.list); n != 0 {
			t.Errorf("%d routes are still to be removed", n)
		}
	}
}

// An instance that starts removes what the switches have of hosts that were
// held while none was there.
func TestHeldWhileAway(t *testing.T) {
	net, hosts, edges := ring(t, 2)
	c := newCluster(t, net, 1, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	c.packet(0, hosts[2], hosts[3])
	c.kill(0)
	i := c.start()
	i.upkeep()
	c.tell(hosts[0], "learnt", "portal")
	c.tell(hosts[1], "learnt")
	c.clock = c.clock.Add(adoptWithin)
	i.upkeep()
	c.stopped(hosts[0], hosts[1])
	c.arrives(hosts[2], hosts[3])

	// What another has left on the switches, seen after it is known who is held.
	stray := newCluster(t, net, 1, nil, edges...)
	stray.packet(0, hosts[0], hosts[1])
	i.askAgain()
	for range 3 {
		c.clock = c.clock.Add(adoptWithin)
		i.upkeep()
	}
	c.stopped(hosts[0], hosts[1])
	c.arrives(hosts[2], hosts[3])
}
