package forwarding

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func TestEveryPairHasOneOwner(t *testing.T) {
	const pairs = 20_000
	owner := func(p pair, count int) (owner int) {
		owner = -1
		for i := range count {
			var s replicas
			s.set(i, count)
			if !s.owns(p) {
				continue
			}
			if owner >= 0 {
				t.Fatalf("%v has the owners %d and %d of %d", p, owner, i, count)
			}
			owner = i
		}
		if owner < 0 {
			t.Fatalf("%v has no owner of %d", p, count)
		}
		return owner
	}
	var moved [7]int
	var share [7][7]int
	for i := range pairs {
		p := pair{src: flow.MACFrom(uint64(0x020000000000 + i)), dst: flow.MACFrom(uint64(0x020000000000 + i*7%1000)), vlan: uint16(i % 3)}
		before := 0
		for count := 1; count < 7; count++ {
			at := owner(p, count)
			if at != owner(pair{src: p.dst, dst: p.src, vlan: p.vlan}, count) {
				t.Fatalf("%v and its way back have different owners", p)
			}
			share[count][at]++
			if at != before {
				moved[count]++
			}
			before = at
		}
	}
	for count := 2; count < 7; count++ {
		for i := range count {
			if n := share[count][i]; n < pairs/count*9/10 || n > pairs/count*11/10 {
				t.Errorf("instance %d of %d owns %d of %d pairs", i, count, n, pairs)
			}
		}
		if moved[count] > pairs/count*11/10 {
			t.Errorf("with instance %d, %d of %d pairs changed hands; want about those that it owns", count, moved[count], pairs)
		}
	}
}

// Whichever instance a packet comes to connects the pair; all know of it, and
// any of them answers for all routes.
func TestAnyInstanceConnects(t *testing.T) {
	net, hosts, edges := ring(t, 12)
	c := newCluster(t, net, 3, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(i/2%3, hosts[i], hosts[i+1])
	}
	c.carry()
	c.check()
	for i, one := range c.run {
		if resp, _ := one.listRoutes(t.Context(), nil); len(resp.Routes) != len(hosts) {
			t.Errorf("instance %d lists %d routes, want %d", i, len(resp.Routes), len(hosts))
		}
	}
	if len(c.sent) != 0 {
		t.Errorf("%d decisions beside those for the packets", len(c.sent))
	}
}

// A packet that comes to two instances, at once or after the other has told, is
// programmed alike by both, and nothing is left over.
func TestSamePacketTwice(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 3, func(cfg *Config) { cfg.FastFailover = true }, edges...)
	c.clock = c.clock.Add(time.Minute)
	c.packetAt(0, hosts[0], hosts[1], c.clock)
	before := len(net.mods)
	c.packetAt(1, hosts[0], hosts[1], c.clock)
	if before == 0 || len(net.mods) != 2*before {
		t.Errorf("%d entries programmed by the first, %d by the second", before, len(net.mods)-before)
	}
	for i, m := range net.mods[before:] {
		if was := net.mods[i].Entry; m.Command != flow.Add || m.Entry.Key() != was.Key() || !m.Entry.Same(&was) || m.Entry.Cookie != was.Cookie {
			t.Errorf("entry %d: %+v, by the first %+v", i, m.Entry, was)
		}
	}
	c.carry()
	c.check()
	c.packetAt(2, hosts[0], hosts[1], c.clock)
	if len(net.mods) != 2*before {
		t.Error("programmed again although the others have told of it")
	}
	c.arrives(hosts[0], hosts[1])
	if len(c.sent) != 0 {
		t.Errorf("%d decisions beside those for the packets", len(c.sent))
	}
}

// A link that is lost is told by every instance of paths to every instance of
// forwarding; each route is moved once.
func TestRerouteIsDoneOnce(t *testing.T) {
	net, hosts, edges := ring(t, 16)
	c := newCluster(t, net, 3, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(i/2%3, hosts[i], hosts[i+1])
	}
	c.carry()
	c.told = nil
	c.cut(flow.Location{Switch: 2, Port: 2})
	c.carry()
	moved := map[string]int{}
	for _, ev := range c.told {
		moved[ev.Route.Src+ev.Route.Dst+ev.Change]++
	}
	if len(moved) == 0 || len(moved) != len(c.told) {
		t.Errorf("%d changes of %d routes, want one of each", len(c.told), len(moved))
	}
	c.check()
	for i := 0; i < len(hosts); i += 2 {
		c.arrives(hosts[i], hosts[i+1])
	}
	if len(c.sent) != 3 {
		t.Errorf("%d decisions, want one of each instance", len(c.sent))
	}
}

// A route that moved shortly after it was programmed is programmed twice more,
// where it is: the link that it left has come back, but a route that returned
// would have to be programmed again itself.
func TestProgrammedAgainUnmoved(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 1, nil, edges...)
	c.packet(0, hosts[0], hosts[1])
	left := flow.Location{Switch: 1, Port: 1}
	c.cut(left)
	c.mend(left)
	moved := c.run[0].ways()
	c.sent = nil
	for range 20 {
		c.clock = c.clock.Add(time.Second)
		c.run[0].upkeep()
		if now := c.run[0].ways(); fmt.Sprint(now) != fmt.Sprint(moved) {
			t.Fatalf("routes moved again, from %v to %v", moved, now)
		}
	}
	if n := len(c.run[0].outdated.list); len(c.sent) != 2 || n != 0 {
		t.Errorf("%d decisions and %d routes in doubt, want 2 and none", len(c.sent), n)
	}
	c.arrives(hosts[0], hosts[1])
	c.check()
}

// The owner of a pair fails, and the link of its route with it, before it has
// done anything: who owns the pair then moves it.
func TestOwnerKilled(t *testing.T) {
	net, hosts, edges := ring(t, 12)
	c := newCluster(t, net, 3, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(1, hosts[i], hosts[i+1])
	}
	c.carry()
	dead := c.run[2]
	dead.send = func(*flow.Decision) (*api.ApplyResult, error) { return &api.ApplyResult{}, nil }
	at := flow.Location{Switch: 2, Port: 2}
	c.cut(at)
	for _, i := range c.run { // it takes longer to find out than a loss is remembered
		clear(i.links.lost)
	}
	c.kill(2)
	c.carry()
	c.check()
	for i := 0; i < len(hosts); i += 2 {
		c.arrives(hosts[i], hosts[i+1])
	}
}

// An instance fails before it has told what it has programmed: the others find
// it on the switches.
func TestKilledBeforeItTold(t *testing.T) {
	net, hosts, edges := ring(t, 4)
	c := newCluster(t, net, 3, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(2, hosts[i], hosts[i+1])
	}
	written := len(net.mods)
	c.kill(2)
	for _, i := range c.run {
		i.upkeep()
	}
	c.run[1].upkeep()
	c.check()
	if n := c.run[0].routes.size(); n != len(hosts) || len(net.mods) != written {
		t.Errorf("%d routes known, want %d; %d writes, want none", n, len(hosts), len(net.mods)-written)
	}
	c.cut(flow.Location{Switch: 2, Port: 2})
	c.carry()
	c.check()
	for i := 0; i < len(hosts); i += 2 {
		c.arrives(hosts[i], hosts[i+1])
	}
}

// An instance that is added knows all routes at once, without a write, and does
// its share.
func TestInstanceAdded(t *testing.T) {
	net, hosts, edges := ring(t, 16)
	c := newCluster(t, net, 1, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(0, hosts[i], hosts[i+1])
	}
	written := len(net.mods)
	c.start()
	c.start()
	c.carry()
	c.check()
	if n := c.run[2].routes.size(); n != len(hosts) || len(net.mods) != written {
		t.Fatalf("%d routes known, want %d; %d writes, want none", n, len(hosts), len(net.mods)-written)
	}
	c.cut(flow.Location{Switch: 2, Port: 2})
	c.carry()
	c.check()
	for _, i := range c.run {
		if i.count.rerouted.Load() == 0 {
			t.Error("an instance had no share in the reroute")
		}
	}
}

// Two instances program a pair differently without knowing of each other: its
// owner sees to it that one way is left.
func TestProgrammedAcross(t *testing.T) {
	for seed := range uint64(20) {
		net, hosts, edges := ring(t, 1)
		c := newCluster(t, net, 3, nil, edges...)
		r := rand.New(rand.NewPCG(seed, 11))
		order := r.Perm(3)
		at := flow.Location{Switch: 2, Port: 2}
		c.clock = c.clock.Add(time.Minute)
		c.packetAt(order[0], hosts[0], hosts[1], c.clock)
		net.cut(at) // the second knows another topology
		c.packetAt(order[1], hosts[0], hosts[1], c.clock.Add(time.Duration(r.IntN(1000))))
		delete(net.down, at)
		delete(net.down, net.links[at])
		c.carry()
		c.check()
		c.arrives(hosts[0], hosts[1])
	}
}

// Instances come and go, links too, packets come to whichever instance, and
// what an instance had to tell is lost with it. When all is quiet again every
// pair that has spoken is connected, and the switches have what is needed and
// nothing else.
func TestInstancesComeAndGo(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		net, hosts, edges := ring(t, 4)
		net.link(2, 7, 5, 7)
		net.link(3, 8, 6, 8)
		var links []flow.Location
		for i := range 6 {
			links = append(links, flow.Location{Switch: flow.DPID(i + 1), Port: 2})
		}
		c := newCluster(t, net, 2, func(cfg *Config) { cfg.FastFailover = seed%3 == 0 }, edges...)
		for range 40 {
			switch r.IntN(8) {
			case 0:
				if len(c.run) < 4 {
					c.start()
				}
			case 1:
				if len(c.run) > 1 {
					c.kill(r.IntN(len(c.run)))
				}
			case 2:
				if at := links[r.IntN(len(links))]; net.down[at] {
					c.mend(at)
				} else if len(net.down) == 0 {
					c.cut(at)
				}
			case 3, 4:
				c.carry()
			default:
				i := 2 * r.IntN(len(hosts)/2)
				c.packet(r.IntN(len(c.run)), hosts[i], hosts[i+1])
			}
			for _, i := range c.run {
				if r.IntN(3) == 0 {
					i.upkeep()
				}
			}
		}
		c.carry()
		for range 3 {
			c.clock = c.clock.Add(time.Minute)
			c.run[0].askAgain()
			for range 2 {
				for _, i := range c.run {
					i.upkeep()
				}
				c.clock = c.clock.Add(time.Second)
			}
			c.carry()
		}
		if !c.run[0].cfg.FastFailover { // who adopts a route takes its detours to be what they would be now
			c.check()
		}
		for i := 0; i < len(hosts); i += 2 {
			c.packet(r.IntN(len(c.run)), hosts[i], hosts[i+1])
			c.arrives(hosts[i], hosts[i+1])
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
