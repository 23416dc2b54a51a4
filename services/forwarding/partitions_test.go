package forwarding

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The instances of partitions of one network are a cluster in which each gets the
// packets of its own switches: here the first those of 1 to 3, the second those
// of 4 to 6.
func partitionOf(sw flow.DPID) int { return int(sw-1) / 3 }

// decide has the instance of the sender's partition decide about a packet, and
// leaves it to the caller to carry that out.
func (c *cluster) decide(from, to host) *flow.Decision {
	c.t.Helper()
	d := &flow.Decision{}
	if v := c.run[partitionOf(from.at.Switch)].open(from.at.Switch)(packetIn(from, &to, tcp(from, to), c.clock.UnixNano()), d); v != flow.Done {
		c.t.Fatalf("verdict %v", v)
	}
	return d
}

// carryOut carries out what of a decision is for the switches of a partition.
func (c *cluster) carryOut(d *flow.Decision, partition int) {
	own := *d
	own.Ops = slices.DeleteFunc(slices.Clone(d.Ops), func(op flow.Op) bool { return op.Kind != flow.OpFence && partitionOf(op.Switch) != partition })
	c.net.apply(&own)
}

// TestBothEndsAtOnce has the hosts of a pair, in two partitions, speak at the
// same moment: both instances program both directions, each partition's switches
// have its own program first, and perhaps one instance does not know of a failure
// yet. In the end the switches have one way, and all know it.
func TestBothEndsAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		net, hosts, edges := ring(t, 3)
		c := newCluster(t, net, 2, func(cfg *Config) { cfg.FastFailover = seed%4 == 3 }, edges...)
		c.clock = c.clock.Add(time.Minute)
		at := flow.Location{Switch: flow.DPID(1 + r.IntN(6)), Port: 2}
		var there, back []*flow.Decision
		for i := 0; i < len(hosts); i += 2 {
			there = append(there, c.decide(hosts[i], hosts[i+1]))
		}
		if seed%2 == 1 {
			net.cut(at)
		}
		c.clock = c.clock.Add(time.Duration(r.IntN(2) * 1000))
		for i := 0; i < len(hosts); i += 2 {
			back = append(back, c.decide(hosts[i+1], hosts[i]))
		}
		delete(net.down, at)
		delete(net.down, net.links[at])
		for i := range there {
			c.carryOut(there[i], 0)
			c.carryOut(back[i], 1)
			c.carryOut(there[i], 1)
			c.carryOut(back[i], 0)
		}
		c.carry()
		if seed%4 != 3 { // detours are those of the moment
			c.check()
		}
		for i := 0; i < len(hosts); i += 2 {
			c.arrives(hosts[i], hosts[i+1])
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestPacketOfTransit: a packet that a switch of another partition than the
// sender's does not know, as it was faster than its entry, is delivered by the
// instance there, which programs nothing.
func TestPacketOfTransit(t *testing.T) {
	net, hosts, edges := ring(t, 1)
	c := newCluster(t, net, 2, nil, edges...)
	a, b := hosts[0], hosts[1]
	in := packetIn(a, &b, tcp(a, b), c.clock.UnixNano())
	in.Switch, in.Key.InPort, in.Role = 5, 2, flow.RoleLink
	d := &flow.Decision{}
	v := c.run[1].open(5)(in, d)
	if v != flow.Done || len(d.Flows) != 0 || len(d.Outs) != 1 || d.Ops[0].Switch != b.at.Switch {
		t.Errorf("verdict %v, decision %+v; want the packet at %v", v, d, b.at)
	}
	in.Dst = flow.Location{} // it has gone round if it is flooded
	d.Reset()
	if v := c.run[1].open(5)(in, d); v != flow.Drop || !d.Empty() {
		t.Errorf("nobody has it: verdict %v, decision %+v", v, d)
	}
}

// TestFloodsOfAllPartitions: what one instance floods comes out at the edge ports
// of all partitions.
func TestFloodsOfAllPartitions(t *testing.T) {
	net, hosts, edges := ring(t, 2)
	c := newCluster(t, net, 2, nil, edges...)
	for n, from := range []host{hosts[0], hosts[1]} {
		in := packetIn(from, nil, tcp(from, newHost(99, 1, 1)), c.clock.UnixNano())
		d := &flow.Decision{}
		c.run[n].open(from.at.Switch)(in, d)
		ports := 0
		for _, o := range d.Outs {
			ports += len(o.Actions)
		}
		if len(d.Outs) != 2 || ports != len(edges)-1 {
			t.Errorf("flooded at %d ports of %d switches, want %d of 2", ports, len(d.Outs), len(edges)-1)
		}
	}
}

// TestHostMovesAcross: hosts move to the other partition; each pair's routes are
// moved by its owner, once.
func TestHostMovesAcross(t *testing.T) {
	net, hosts, edges := ring(t, 6)
	moved := slices.Clone(hosts)
	for i := 1; i < len(hosts); i += 2 {
		moved[i].at = flow.Location{Switch: 2, Port: hosts[i].at.Port}
		edges = append(edges, moved[i].at)
	}
	c := newCluster(t, net, 2, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.net.apply(c.decide(hosts[i], hosts[i+1]))
	}
	c.carry()
	for i := 1; i < len(hosts); i += 2 {
		for _, one := range c.run {
			one.hostChanged(&api.HostChanged{Host: &api.Host{Mac: hosts[i].mac.String(), At: api.NewLocation(moved[i].at)}, Change: "moved"})
		}
	}
	c.carry()
	c.check()
	for i := 0; i < len(hosts); i += 2 {
		c.arrives(moved[i], moved[i+1])
	}
	if len(c.told) != len(hosts) {
		t.Errorf("%d changes told, want one of each of %d routes", len(c.told), len(hosts))
	}
	for n, one := range c.run {
		if one.count.rerouted.Load() == 0 {
			t.Errorf("instance %d has moved no route", n)
		}
	}
}
