package topology

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// OSHI is a provider's network like those of the OSHI paper: four core routers
// cr1 to cr4 in a ring with a chord, and three edges pe1 to pe3, each linked to two
// of them, all of them hybrid nodes that are controlled in band at cr1. Each edge
// has a customer with a gateway, ce1 to ce3, and two customers of services, red1 to
// red3 and blue1 to blue3.
func OSHI() *Topology {
	b := newBuilder("oshi")
	for i := range 4 {
		b.hybrid("cr", i+1)
	}
	for _, l := range [][2]string{{"cr1", "cr2"}, {"cr2", "cr3"}, {"cr3", "cr4"}, {"cr4", "cr1"}, {"cr2", "cr4"}} {
		b.link(l[0], l[1])
	}
	for i, cores := range [][2]string{{"cr1", "cr2"}, {"cr2", "cr3"}, {"cr3", "cr4"}} {
		pe := b.hybrid("pe", i+1)
		b.link(pe, cores[0])
		b.link(pe, cores[1])
		b.customer("ce", i+1, pe, true)
	}
	for _, name := range []string{"red", "blue"} {
		for i := range 3 {
			b.customer(name, i+1, fmt.Sprintf("pe%d", i+1), false)
		}
	}
	b.t.Control = Control{Mode: ControlInBand, At: "cr1"}
	return b.done()
}

// largeNetwork is how many nodes have IPv6, for which OSPFv3 takes a process of
// each, and say hello every second, for which one Open vSwitch has to have the time.
const largeNetwork = 100

// largeRouting returns what is not the default for a network of so many nodes.
func largeRouting(nodes int) Routing {
	if nodes <= largeNetwork {
		return Routing{}
	}
	return Routing{Hello: Seconds(5 * time.Second), Dead: Seconds(20 * time.Second), IPv4Only: true}
}

// Carrier is a provider's network of hybrid nodes, the same for the same seed:
// cores cr1, cr2, … in a ring with a chord for every four of them, edges pe1, pe2, …
// each linked to two cores, and on each edge a customer with a gateway, ceN, and
// one of services, cuN. It is controlled in band at cr1. Above 100 nodes there is
// no IPv6, and OSPF says hello every five seconds.
func Carrier(cores, edges int, seed uint64) (*Topology, error) {
	err := cmp.Or(atLeast("the number of cores", cores, 1), atLeast("the number of edges", edges, 0))
	if err != nil {
		return nil, err
	}
	if cores+edges > mostCarrier {
		return nil, fmt.Errorf("it would have %d nodes; allowed: at most %d", cores+edges, mostCarrier)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	b := newBuilder(fmt.Sprintf("carrier-%d-%d-%d", cores, edges, seed))
	core := make([]string, cores)
	for i := range core {
		core[i] = b.hybrid("cr", i+1)
	}
	linked := map[[2]int]bool{}
	join := func(x, y int) {
		x, y = min(x, y), max(x, y)
		if x == y || linked[[2]int{x, y}] {
			return
		}
		linked[[2]int{x, y}] = true
		b.link(core[x], core[y])
	}
	for i := range core {
		join(i, (i+1)%cores)
	}
	for want := min(len(linked)+cores/4, cores*(cores-1)/2); len(linked) < want; {
		join(rng.IntN(cores), rng.IntN(cores))
	}
	for i := range edges {
		pe := b.hybrid("pe", i+1)
		first := rng.IntN(cores)
		b.link(pe, core[first])
		if cores > 1 {
			b.link(pe, core[(first+1+rng.IntN(cores-1))%cores])
		}
		b.customer("ce", i+1, pe, true)
		b.customer("cu", i+1, pe, false)
	}
	b.t.Control = Control{Mode: ControlInBand, At: "cr1"}
	b.t.Routing = largeRouting(cores + edges)
	return b.done(), nil
}

// mostCarrier is how many nodes Carrier makes at most.
const mostCarrier = 4000

func (b *builder) hybrid(name string, n int) string {
	name = fmt.Sprint(name, n)
	b.t.Switches = append(b.t.Switches, Switch{Name: name, Kind: KindHybrid})
	return name
}

func (b *builder) customer(name string, n int, pe string, gateway bool) {
	b.t.Hosts = append(b.t.Hosts, Host{Name: fmt.Sprint(name, n), Switch: pe, Gateway: gateway})
}

// Hybrid returns a topology that is not a lab file's with a hybrid node for each
// OpenFlow switch: its hosts have gateways, and the first node the controllers' machine.
func Hybrid(t *Topology) (*Topology, error) {
	if t.line > 0 {
		return nil, fmt.Errorf("%s is a lab file, which says itself what its switches are: write kind: hybrid there", t.file)
	}
	c := t.Clone()
	for i := range c.Switches {
		s := &c.Switches[i]
		if s.Kind == KindOpenFlow {
			s.Kind = KindHybrid
		}
		if s.Routes() && c.Control.At == "" {
			c.Control = Control{Mode: ControlInBand, At: s.Name}
		}
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		h.Gateway, h.IPv4, h.IPv6, h.GW4, h.GW6 = true, netip.Prefix{}, netip.Prefix{}, netip.Addr{}, netip.Addr{}
	}
	c.Routing = largeRouting(len(c.Switches))
	c.Complete()
	return c, Check(c)
}
