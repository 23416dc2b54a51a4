package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// TestHydraShare: a partition has its part of the paper's network, and links
// fail by kind.
func TestHydraShare(t *testing.T) {
	for _, n := range []int{1, 8, 16} {
		topo, err := HydraShare(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(topo.Switches) != 2560/n || topo.Check() != nil {
			t.Errorf("one of %d: %d switches, %v", n, len(topo.Switches), topo.Check())
		}
		core, err := topo.LinksOf(FailCore)
		pod, err2 := topo.LinksOf(FailPod)
		all, err3 := topo.LinksOf(FailRandom)
		// Every core switch has a link to each pod, every aggregation switch one to
		// each edge switch of its pod.
		if err != nil || err2 != nil || err3 != nil || len(core) != 512/n*32/n || len(pod) != 32/n*32*32 || len(all) != len(topo.Links) || len(core)+len(pod) != len(all) {
			t.Errorf("one of %d: %d core and %d pod links of %d", n, len(core), len(pod), len(all))
		}
		a, _ := topo.PickLinks(FailPod, 20, 1)
		b, _ := topo.PickLinks(FailPod, 20, 1)
		c, _ := topo.PickLinks(FailPod, 20, 2)
		if !slices.Equal(a, b) || slices.Equal(a, c) || slices.ContainsFunc(a, func(i int) bool { return !slices.Contains(pod, i) }) {
			t.Errorf("one of %d: links %v, %v, %v", n, a, b, c)
		}
	}
	for _, n := range []int{0, 3, 32} {
		if _, err := HydraShare(n); err == nil {
			t.Errorf("one of %d partitions is made", n)
		}
	}
	ring, _ := Ring(3)
	if _, err := ring.PickLinks(FailCore, 1, 1); err == nil {
		t.Error("a ring has core links")
	}
	if _, err := ring.LinksOf("sideways"); err == nil {
		t.Error("there are links of an unknown kind")
	}
}

// TestFlows: packets of flows come from the switch of their sender, go to hosts of
// others, and count as answered wherever the controller hands them out.
func TestFlows(t *testing.T) {
	topo, err := FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	if err := topo.AttachHostsToEdge(2, 2); err != nil {
		t.Fatal(err)
	}
	at := map[flow.MAC]End{}
	for _, h := range topo.Hosts {
		if topo.Switches[h.At.Switch].Layer != Edge {
			t.Fatalf("a host at switch %d, which is no edge switch", h.At.Switch)
		}
		at[h.MAC] = h.At
	}
	address, _ := respond(t, openflow.V13, func(v openflow.Version, _ int, in *flow.PacketIn) []byte {
		src, dst := at[in.Key.EthSrc], at[in.Key.EthDst]
		if src.Switch == dst.Switch || dst.Port == 0 || src.Port != in.Key.InPort {
			t.Errorf("a packet from %+v at port %v to %+v", src, in.Key.InPort, dst)
		}
		return packetOutOf(v, flow.BufferNone, dst.Port, in.Data)
	})
	n := start(t, Config{Topology: topo, Version: openflow.V13, Address: address})
	ctx := within(t, testwait.Limit)
	if err := n.WaitUp(ctx, 0); err != nil {
		t.Fatal(err)
	}
	r, err := n.Measure(ctx, Load{Flows: 10, Seed: 3, Window: 64, Rate: 2000, Duration: 100 * time.Millisecond, Patience: testwait.Limit})
	if err != nil {
		t.Fatal(err)
	}
	// This controller hands each packet back to the switch that it came from, whose
	// ports have the same numbers, but are not where the destination is.
	if r.Answered < 190 || r.Answered > 210 || r.Elsewhere != r.Answered || r.Wrong+r.Lost+r.Duplicates != 0 {
		t.Errorf("%+v; want about 200 answers, none of which reaches its host", r.Counts)
	}
	if _, err := n.Measure(ctx, Load{Flows: -1, Window: 1, Duration: time.Millisecond}); err == nil {
		t.Error("a negative number of flows is measured")
	}
}
