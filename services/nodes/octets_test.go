package nodes

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// madeUp is a report of a node with all ports that it may have.
func madeUp(dpid int) *api.NodeReport {
	r := &api.NodeReport{Dpid: fmt.Sprintf("%016x", dpid)}
	for n := range mostPorts {
		r.Ports = append(r.Ports, &api.NodePort{Port: uint32(n + 1), Role: "access"})
	}
	return r
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// An agent that makes up nodes takes a bounded memory, in all and of what others may
// have, and for a minute; nodes with switches have room all the same.
func TestMadeUpNodesAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	b := newRegistry(defaults(), bucket(t), func() time.Time { return now }, func(string, error) {})
	report := func(agent string, nodes ...*api.NodeReport) (refused int, why string) {
		t.Helper()
		a, refused, err := b.report(&api.ReportNodesRequest{Agent: agent, Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range a.Nodes {
			if n.Refused != "" {
				why = n.Refused
			}
		}
		return refused, why
	}
	const known = 1 << 20
	wefttest.Network(reads, b.networkChanged)(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(known).String(), Connected: true, Description: "hybrid name=x"}})
	before := heap()
	evil, dpid := 0, 0
	for range 10 {
		for range 8 {
			dpid++
			refused, why := report("evil", madeUp(dpid))
			if evil += refused; refused > 0 && !strings.Contains(why, "the reports of evil take as much memory") {
				t.Fatal(why)
			}
		}
	}
	if took := heap() - before; took > 2*mostOfAgent {
		t.Errorf("the reports of one agent take %d octets, want at most %d", took, mostOfAgent)
	}
	if evil == 0 || b.held.all > mostOfAgent {
		t.Errorf("%d of %d nodes refused; %d octets are held", evil, dpid, b.held.all)
	}
	for i := range 10 {
		for range 40 {
			dpid++
			report(fmt.Sprint("evil", i), madeUp(dpid))
		}
	}
	if b.held.unknown > mostOfUnknown || b.held.unknown < mostOfUnknown/2 {
		t.Errorf("made-up nodes hold %d octets, want at most %d", b.held.unknown, mostOfUnknown)
	}
	if refused, why := report("good", madeUp(known)); refused != 0 {
		t.Errorf("a node with a switch: %s", why)
	}
	if refused, why := report("evil", madeUp(1)); refused != 0 { // the same again takes no more
		t.Error(why)
	}
	sum := 0
	for _, n := range b.nodes {
		sum += octetsOf(n.report)
	}
	if sum != b.held.all {
		t.Errorf("%d octets are counted, and %d held", b.held.all, sum)
	}
	now = now.Add(forgottenUnknown * b.cfg.Stale)
	b.look()
	if n := b.nodes[flow.DPID(known)]; n == nil || len(b.nodes) != 1 || b.held.unknown != 0 || b.held.all != n.octets || len(b.held.agents) != 1 {
		t.Errorf("%d nodes are kept, %+v", len(b.nodes), b.held)
	}
}
