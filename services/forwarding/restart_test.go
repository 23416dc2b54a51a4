package forwarding

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// restart ends the one instance and starts another.
func (c *cluster) restart() *instance {
	c.run = nil
	c.told, c.sent = nil, nil
	return c.start()
}

// Forwarding is started again while everything else goes on: it knows the
// routes at once, those with detours when no more links become known, and
// writes nothing.
func TestRestartAlone(t *testing.T) {
	for _, failover := range []bool{false, true} {
		net, hosts, edges := ring(t, 8)
		c := newCluster(t, net, 1, func(cfg *Config) { cfg.FastFailover = failover }, edges...)
		for i := 0; i < len(hosts); i += 2 {
			c.packet(0, hosts[i], hosts[i+1])
		}
		before := c.run[0].ways()
		written := len(net.log)
		i := c.restart()
		if failover {
			c.clock = c.clock.Add(roundQuiet)
		}
		i.upkeep()
		if !slices.Equal(i.ways(), before) || len(net.log) != written {
			t.Errorf("failover %v: %d of %d routes known, %d writes, want all and none", failover, i.routes.size(), len(before), len(net.log)-written)
		}
		c.clock = c.clock.Add(time.Minute)
		i.askAgain()
		i.upkeep()
		i.upkeep()
		if len(net.log) != written || len(c.told) != 0 {
			t.Errorf("failover %v: %d writes when switches tell again that all is right", failover, len(net.log)-written)
		}
		c.cut(flow.Location{Switch: 2, Port: 2})
		c.check()
		for i := 0; i < len(hosts); i += 2 {
			c.arrives(hosts[i], hosts[i+1])
		}
	}
}

// A packet of a pair that comes before its entries are told, or while they are
// put together, is carried at once; it gets the entries that are there.
func TestPacketWhileAdopting(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 1, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	first := slices.Clone(net.mods)
	e := c.restart()
	e.routes = newRouteTable()
	e.handleRouteReport(c.entries(1))
	e.handleRouteReport(c.entries(2))
	if e.adoption.pending.Load() == 0 {
		t.Fatal("nothing is being adopted")
	}
	net.out = nil
	c.packet(0, hosts[0], hosts[1])
	if len(net.out) != 1 || net.out[0].at != hosts[1].at {
		t.Errorf("the packet came out at %v", net.out)
	}
	for i, m := range net.mods[len(first):] {
		if i >= len(first) || m.Command != first[i].Command || m.Entry.Key() != first[i].Entry.Key() || !m.Entry.Same(&first[i].Entry) {
			t.Errorf("entry %d is not the one that is there: %+v", i, m.Entry)
		}
	}
	e.handleRouteReport(c.entries(3))
	e.handleRouteReport(c.entries(4))
	c.clock = c.clock.Add(adoptWithin)
	e.upkeep()
	if e.adoption.pending.Load() != 0 || len(net.mods) != 2*len(first) {
		t.Errorf("%d pools left, %d writes, want none beside the packet's", e.adoption.pending.Load(), len(net.mods)-2*len(first))
	}
	c.check()
}

// The link of a route fails while forwarding is away: the route is mended at
// the start, not given up. What leads nowhere is removed.
func TestLinkLostWhileAway(t *testing.T) {
	net, hosts, edges := ring(t, 4)
	c := newCluster(t, net, 1, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(0, hosts[i], hosts[i+1])
	}
	c.run = nil
	c.net.cut(flow.Location{Switch: 2, Port: 2})
	i := c.restart()
	c.clock = c.clock.Add(roundQuiet)
	i.upkeep()
	for n := 0; n < len(hosts); n += 2 {
		c.arrives(hosts[n], hosts[n+1])
	}
	c.check()
	if len(c.told) == 0 || c.told[0].Change != "rerouted" {
		t.Errorf("told %v", c.told)
	}

	c.net.cut(flow.Location{Switch: 5, Port: 2})
	i = c.restart()
	c.clock = c.clock.Add(roundQuiet)
	i.upkeep()
	c.check()
	if n := i.routes.size(); n != 0 {
		t.Errorf("%d routes to hosts that cannot be reached", n)
	}
}

// Whoever computes paths may not have heard of a loss yet: what leads over the
// lost link is not programmed, and asked for again when he has.
func TestPathsLagBehind(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 1, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	e := c.run[0]
	var at flow.Location
	e.routes.each(func(r *route) { at = flow.Location{Switch: r.hops[1].sw, Port: r.hops[1].out} })
	event := lostLink(at, net.links[at])
	e.converged(event) // from another instance of paths than that which is asked
	if len(c.sent) != 0 {
		t.Errorf("programmed over the lost link: %+v", c.sent)
	}
	net.cut(at)
	e.converged(event)
	if len(c.sent) != 1 {
		t.Errorf("%d decisions, want one", len(c.sent))
	}
	c.arrives(hosts[0], hosts[1])
	c.check()

	// One that has just been started has found no path yet.
	net.cut(net.links[flow.Location{Switch: 1, Port: 1}])
	find := e.findPath
	e.findPath = func(*api.FindPathRequest) (*api.FindPathResponse, error) { return &api.FindPathResponse{}, nil }
	before := e.routes.size()
	for at := range net.down {
		delete(net.down, at)
	}
	other := flow.Location{Switch: 6, Port: 2}
	net.cut(other)
	c.linksChanged(other)
	e.converged(&api.PathsConverged{Version: 1})
	if e.routes.size() != before {
		t.Error("a route was removed because somebody has no path yet")
	}
	e.findPath = find
	e.converged(&api.PathsConverged{Version: 2})
	c.arrives(hosts[0], hosts[1])
	c.check()
}

// Paths is started again and has never known the link that was lost: the loss
// that discovery has told is acted upon all the same.
func TestLossThatPathsNeverKnew(t *testing.T) {
	net, hosts, edges := ring(t, 4)
	c := newCluster(t, net, 1, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(0, hosts[i], hosts[i+1])
	}
	at := flow.Location{Switch: 2, Port: 2}
	net.cut(at)
	c.linksChanged(at)
	c.run[0].converged(&api.PathsConverged{Version: 1, Gained: []*api.Link{c.link(flow.Location{Switch: 1, Port: 2}).Link}})
	for i := 0; i < len(hosts); i += 2 {
		c.arrives(hosts[i], hosts[i+1])
	}
	c.check()
}

// A switch starts again and has no entries: what led through it is programmed
// again, what began at it is forgotten.
func TestSwitchLostItsEntries(t *testing.T) {
	for _, n := range []int{1, 3} {
		net, hosts, edges := ring(t, 4)
		c := newCluster(t, net, n, nil, edges...)
		for i := 0; i < len(hosts); i += 2 {
			c.packet(0, hosts[i], hosts[i+1])
		}
		c.carry()
		clear(net.table[6])
		clear(net.table[2])
		for _, i := range c.run {
			i.handleRouteReport(c.entries(6))
			i.upkeep()
		}
		if len(c.sent) != 0 {
			t.Error("a report that may be from before was acted upon")
		}
		c.clock = c.clock.Add(time.Minute)
		for _, i := range c.run {
			i.handleRouteReport(c.entries(6))
			i.handleRouteReport(c.entries(2))
		}
		for range 3 {
			for _, i := range c.run {
				i.upkeep()
			}
			c.carry()
			c.clock = c.clock.Add(2 * time.Second)
		}
		c.check()
		for i := 0; i < len(hosts); i += 2 {
			c.arrives(hosts[i], hosts[i+1])
		}
		clear(net.table[1])
		c.clock = c.clock.Add(time.Minute)
		for _, i := range c.run {
			i.handleRouteReport(c.entries(1))
		}
		for range 3 {
			for _, i := range c.run {
				i.upkeep()
			}
			c.carry()
			c.clock = c.clock.Add(2 * time.Second)
		}
		for i := 0; i < len(hosts); i += 2 {
			c.packet(i/2%n, hosts[i], hosts[i+1])
			c.arrives(hosts[i], hosts[i+1])
		}
		c.carry()
		c.check()
	}
}

// The message that an entry was idle may be late: it does not take away the
// route that a packet has programmed since.
func TestLateFlowRemoved(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 3, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	c.carry()
	var idle *api.FlowRemoved
	for k, entry := range net.table[1] {
		if k.Match.Key.EthSrc == hosts[0].mac {
			idle = &api.FlowRemoved{Flow: api.NewFlowEntry(1, &entry), Reason: "idle_timeout"}
		}
	}
	c.clock = c.clock.Add(time.Hour)
	idle.Flow.Duration = time.Hour.Seconds()
	c.packet(1, hosts[0], hosts[1])
	c.carry()
	for _, i := range c.run {
		i.flowRemoved(idle)
		if i.routes.size() != 2 {
			t.Fatal("the route that was programmed since was forgotten")
		}
	}
	c.clock = c.clock.Add(time.Hour)
	c.told = nil
	for _, i := range c.run {
		i.flowRemoved(idle)
		if i.routes.size() != 1 {
			t.Error("the idle route was not forgotten")
		}
	}
	if len(c.told) != 1 {
		t.Errorf("told %d times, want once", len(c.told))
	}
}

// A host's answer to the question that one instance has asked comes to another:
// what is held is released when the host is told of.
func TestHeldPacketIsReleasedByAnother(t *testing.T) {
	net, a, b := line(t, 3)
	c := newCluster(t, net, 2, func(cfg *Config) {
		cfg.Subnets = []Subnet{{Gateway: "10.0.0.254/24"}, {Gateway: "10.0.1.254/24"}}
	}, a.at, b.at)
	b.ip = ip("10.0.1.2")
	router := host{mac: c.run[0].cfg.RouterMAC, ip: b.ip}
	frame := packet.AppendTCP(nil, packet.Ether{Src: a.mac, Dst: router.mac}, packet.IP{Src: a.ip, Dst: b.ip, TTL: 64}, packet.TCPFields{SrcPort: 1, DstPort: 2}, nil)
	d := &flow.Decision{}
	c.run[0].open(a.at.Switch)(packetIn(a, nil, frame, c.clock.UnixNano()), d)
	c.net.out = nil
	for _, i := range c.run {
		i.hostChanged(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: b.mac.String(), At: api.NewLocation(b.at), Ipv4: []string{b.ip.String()}}})
	}
	if len(net.out) != 1 || net.out[0].at != b.at {
		t.Errorf("the held packet came out at %v, want %v", net.out, b.at)
	}
	c.carry()
	c.check()
}

// In proactive mode every pair is programmed by one instance, and those of one
// that fails by the others; a restart writes nothing.
func TestProactive(t *testing.T) {
	net, hosts, edges := ring(t, 5)
	c := newCluster(t, net, 3, func(cfg *Config) { cfg.Mode = modeProactive }, edges...)
	learn := func(list ...host) {
		for _, h := range list {
			for _, i := range c.run {
				i.hostChanged(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: h.mac.String(), At: api.NewLocation(h.at)}})
			}
		}
		c.carry()
	}
	learn(hosts[:8]...)
	times := map[flow.EntryKey]int{}
	for _, op := range net.log {
		if op.Kind != flow.OpFlow {
			t.Errorf("unexpected %v", op.Kind)
		}
	}
	for _, list := range c.sent {
		for _, m := range list {
			if len(m.Entry.Apply) > 0 && m.Entry.Match.Key.InPort >= 30 { // the first of a route
				if times[m.Entry.Key()]++; times[m.Entry.Key()] > 1 {
					t.Errorf("programmed twice: %v", &m.Entry.Match)
				}
			}
		}
	}
	if n := c.run[0].routes.size(); n != 8*7 {
		t.Errorf("%d routes, want %d", n, 8*7)
	}
	c.check()
	learn(hosts[:8]...)
	written := len(net.mods)
	late := c.run[2]
	late.send = func(*flow.Decision) (*api.ApplyResult, error) { return &api.ApplyResult{}, nil }
	for _, h := range hosts[8:] { // told to all, and one fails over it
		for _, i := range c.run {
			i.hostChanged(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: h.mac.String(), At: api.NewLocation(h.at)}})
		}
	}
	if len(net.mods) == written {
		t.Error("the others have programmed nothing")
	}
	c.kill(2)
	for range 2 {
		for _, i := range c.run {
			i.upkeep()
		}
		c.carry()
	}
	for i, a := range hosts {
		for _, b := range hosts[:i] {
			c.arrives(a, b)
		}
	}
	c.check()

	written = len(net.mods)
	c.restart()
	learn(hosts...)
	c.run[0].upkeep()
	if n := c.run[0].routes.size(); n != 10*9 || len(net.mods) != written {
		t.Errorf("%d routes, want %d; %d writes, want none", n, 10*9, len(net.mods)-written)
	}
}

// A switch reports entries of a route that is known, and that is removed before
// the report is judged, or was programmed elsewhere just before: the switch is
// asked once more, and keeps no entry of a route that nobody knows.
func TestUndecidedReport(t *testing.T) {
	for _, moved := range []bool{false, true} {
		net, hosts, edges := ring(t, 1)
		c := newCluster(t, net, 1, nil, edges...)
		c.packet(0, hosts[0], hosts[1])
		i := c.run[0]
		var old *route
		i.routes.each(func(r *route) { old = r })
		sw := old.hops[1].sw
		i.handleRouteReport(c.entries(sw))
		if moved {
			r := *old
			r.hops = slices.DeleteFunc(slices.Clone(r.hops), func(h hop) bool { return h.sw == sw })
			r.sent = c.clock.UnixNano()
			i.replace(old, &r)
		} else {
			i.replace(old, nil)
		}
		for range 60 {
			c.clock = c.clock.Add(time.Second)
			i.upkeep()
		}
		c.check()
	}
}

// A switch that was away comes back with the entries of a route to a host that
// has gone meanwhile: they are removed, though they form a whole route.
func TestEntriesOfHostThatHasGone(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 1, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	i := c.restart()
	i.routes = newRouteTable()
	c.tell(hosts[1], "gone")
	i.askAgain()
	for range 20 {
		c.clock = c.clock.Add(time.Second)
		i.upkeep()
	}
	if n := i.routes.size(); n != 0 {
		t.Errorf("%d routes to a host that has gone", n)
	}
	c.check()
}

// Switches tell of the entries of a route, whole as it is, whose receiver or sender has
// moved unseen: it is not taken over. What leads to the receiver leads to where that is now.
func TestEntriesOfHostThatHasMoved(t *testing.T) {
	net, hosts, edges := ring(t, 2)
	c := newCluster(t, net, 1, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	i := c.restart()
	i.routes = newRouteTable()
	moved := hosts[1]
	moved.at = hosts[3].at
	c.tell(hosts[0], "new")
	c.tell(moved, "new")
	i.askAgain()
	for range 20 {
		c.clock = c.clock.Add(time.Second)
		i.upkeep()
	}
	ways := 0
	i.routes.each(func(r *route) {
		ways++
		if from, to := r.ends(); from != hosts[0].at || to != moved.at {
			t.Errorf("a route leads from %v to %v", from, to)
		}
	})
	if ways != 1 {
		t.Errorf("%d routes, want the one to the host that has moved", ways)
	}
	c.net.out = nil
	c.net.forward(hosts[0].at, string(tcp(hosts[0], moved)), 0)
	if len(c.net.out) != 1 || c.net.out[0].at != moved.at {
		t.Errorf("packets come out at %v", c.net.out)
	}
	c.check()
}

// A packet has its route programmed while its receiver moves, with the former
// place, here or by another instance: the route is moved.
func TestProgrammedWhileMoving(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		net, hosts, edges := ring(t, 2)
		c := newCluster(t, net, 2, nil, edges...)
		c.packet(0, hosts[0], hosts[1])
		c.carry()
		owner := c.run[0]
		var old *route
		owner.routes.each(func(r *route) { old = r })
		if !owner.replicas.owns(old.pair) {
			owner = c.run[1]
		}
		for _, i := range c.run {
			i.routes = newRouteTable()
		}
		moved := hosts[1]
		moved.at = hosts[3].at
		c.tell(moved, "moved")
		c.clock = c.clock.Add(time.Millisecond)
		r := *old
		r.sent = c.clock.UnixNano()
		if elsewhere {
			c.clock = c.clock.Add(2 * time.Second)
			owner.upkeep()
			owner.handleShared(&api.RoutesShared{Routes: []*api.RouteRecord{shared{r: &r}.record()}})
		} else {
			owner.routes.with(r.pair, func(s *routeShard) { s.put(&r) })
		}
		c.clock = c.clock.Add(2 * time.Second)
		owner.upkeep()
		owner.routes.each(func(r *route) {
			if from, to := r.ends(); !owner.hosts.agree(r, from, to) {
				t.Errorf("elsewhere %v: a route leads from %v to %v after its host has moved", elsewhere, from, to)
			}
		})
	}
}
