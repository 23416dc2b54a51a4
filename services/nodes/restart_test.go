package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// learn returns a function that has a registry learn of the network: of switches that are
// hybrid nodes, of others, and of links in both directions.
func learn(b *registry) (hybrid, other func(...flow.DPID), join func(x, y flow.Location)) {
	feed := wefttest.Network(reads, b.networkChanged)
	connect := func(description string) func(...flow.DPID) {
		return func(list ...flow.DPID) {
			for _, sw := range list {
				feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Description: description}})
			}
		}
	}
	return connect("hybrid name=x"), connect(""), func(x, y flow.Location) {
		for _, l := range [][2]flow.Location{{x, y}, {y, x}} {
			feed(&api.LinkChanged{Link: &api.Link{Src: api.NewLocation(l[0]), Dst: api.NewLocation(l[1]), State: "up"}})
		}
	}
}

// ring is nodes in a ring, each with a session of 200 ms at both of its ports.
func ring(n int) (list []*api.NodeReport) {
	for i := range n {
		r := whole(fmt.Sprintf("%016x", i+1), fmt.Sprintf("10.255.0.%d", i+1), link(1), link(2))
		for _, p := range r.Ports {
			p.Bfd, p.BfdIntervalMs = "up", 200
		}
		list = append(list, r)
	}
	return list
}

// TestStartChangesNothing: after a start, what nodes have stays as it is while anything
// that it depends on is not known yet, whatever becomes known first.
func TestStartChangesNothing(t *testing.T) {
	const nodes = 4
	now := time.Now()
	var b *registry
	report := func(agent string, list ...*api.NodeReport) {
		t.Helper()
		now = now.Add(time.Second)
		a, _, err := b.report(&api.ReportNodesRequest{Agent: agent, Nodes: list})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range a.Nodes {
			if w.Version == 0 {
				continue
			}
			for _, s := range w.Bfd {
				if s.IntervalMs != 200 {
					t.Errorf("node %s: port %d: every %d ms, had 200", w.Dpid, s.Port, s.IntervalMs)
				}
			}
			for _, p := range w.Tunnels {
				if p.Remote != "" && p.BfdIntervalMs != 200 {
					t.Errorf("node %s: %v, had 200 ms", w.Dpid, p)
				}
			}
			if len(w.Bfd) != 2 || len(w.Tunnels) != 1 {
				t.Errorf("node %s has 2 sessions and a tunnel port; wanted are %v and %v", w.Dpid, w.Bfd, w.Tunnels)
			}
		}
	}
	for _, order := range []string{"all", "links last", "switches last", "one agent each"} {
		t.Run(order, func(t *testing.T) {
			b = newRegistry(defaults(), bucket(t), func() time.Time { return now }, nil)
			hybrid, _, join := learn(b)
			list := ring(nodes)
			q := &api.SetTunnelPortsRequest{User: "tunnels"}
			for i := 0; i < nodes; i += 2 {
				q.Ports = append(q.Ports, &api.TunnelPort{Kind: "gre", A: &api.Location{Dpid: list[i].Dpid}, B: &api.Location{Dpid: list[i+1].Dpid}})
			}
			made, err := b.setPorts(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range list {
				port := made.Ports[i/2].A.Port
				if i%2 == 1 {
					port = made.Ports[i/2].B.Port
				}
				r.Ports = append(r.Ports, &api.NodePort{Port: port, Name: "t", Role: "tunnel", Carrier: true, Bfd: "up", BfdIntervalMs: 200})
			}
			all := func() {
				if order != "one agent each" {
					report("a", list...)
					return
				}
				for _, r := range list {
					report("of "+r.Name, r)
				}
			}
			if order == "switches last" {
				for range 3 {
					all()
				}
			}
			for i := 1; i <= nodes; i++ {
				hybrid(flow.DPID(i))
			}
			if order == "links last" {
				all()
			}
			for i := 1; i <= nodes; i++ {
				join(flow.Location{Switch: flow.DPID(i), Port: 2}, flow.Location{Switch: flow.DPID(i%nodes + 1), Port: 1})
				all()
			}
			all()
		})
	}
}

// TestSessionEnds: a session ends where its other end is known to have none: the switch
// there is not a hybrid node, or its node has no such port.
func TestSessionEnds(t *testing.T) {
	b := newRegistry(defaults(), bucket(t), time.Now, nil)
	hybrid, other, join := learn(b)
	list := ring(2)
	for i := 1; i <= 2; i++ {
		hybrid(flow.DPID(i))
		join(flow.Location{Switch: flow.DPID(i), Port: 1}, flow.Location{Switch: flow.DPID(i + 8), Port: 1})
	}
	other(9)
	b.nodes[10] = &node{dpid: 10, report: whole("000000000000000a", "")}
	a, _, err := b.report(&api.ReportNodesRequest{Agent: "a", Nodes: list})
	if err != nil || len(a.Nodes) != 2 {
		t.Fatal(a, err)
	}
	for _, w := range a.Nodes {
		if len(w.Bfd) != 1 || w.Bfd[0].Port != 2 {
			t.Errorf("node %s: %v", w.Dpid, w.Bfd)
		}
	}
}

// TestPauseOfMachine: where several links of a machine have a false alarm at once, all
// of its sessions get more time, once for a pause; those of the other ends, too.
func TestPauseOfMachine(t *testing.T) {
	now := time.Now()
	b := newRegistry(defaults(), bucket(t), func() time.Time { return now }, nil)
	hybrid, _, join := learn(b)
	list := ring(3)
	for i := range 3 {
		x, y := flow.Location{Switch: flow.DPID(i + 1), Port: 2}, flow.Location{Switch: flow.DPID((i+1)%3 + 1), Port: 1}
		hybrid(x.Switch)
		join(x, y)
		for _, p := range list[i].Ports {
			p.BfdIntervalMs = 50
		}
	}
	every := func(n *api.NodeReport) (ms []uint32) {
		for _, s := range b.want(b.nodes[switchOf(n)], 50*time.Millisecond).Bfd {
			ms = append(ms, s.IntervalMs)
		}
		return ms
	}
	report := func() {
		for _, q := range []*api.ReportNodesRequest{{Agent: "a", Nodes: list[:2]}, {Agent: "b", Nodes: list[2:]}} {
			if _, _, err := b.report(q); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Second)
	}
	check := func(when string, want ...string) {
		t.Helper()
		for i, n := range list {
			if got := fmt.Sprint(every(n)); got != want[i] {
				t.Errorf("%s: node %d every %s ms, want %s", when, i+1, got, want[i])
			}
		}
	}
	report()
	list[0].Ports[1].BfdFlaps++
	list[1].Ports[0].BfdFlaps++
	report()
	check("after an alarm at both ends of a link", "[50 50]", "[50 50]", "[50 50]")
	for range 2 { // what one pause does is told in two reports
		list[0].Ports[0].BfdFlaps++
		list[1].Ports[0].BfdFlaps++
		report()
	}
	check("after a pause", "[100 100]", "[100 100]", "[100 100]")
	now = now.Add(calm)
	check("after a while", "[50 50]", "[50 50]", "[50 50]")
}

func switchOf(r *api.NodeReport) flow.DPID {
	sw, _ := flow.ParseDPID(r.Dpid)
	return sw
}
