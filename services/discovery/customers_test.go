package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// TestCustomers: a port that is all a circuit's is an edge port without any probe, and makes no link; with
// VLANs of circuits it is as any other; a link that is there stays. When the circuit goes, links are found.
func TestCustomers(t *testing.T) {
	w := newWorld(t, nil)
	w.topo.setCustomer(w.now, at(1, 3), 0, false, false)
	w.topo.setCustomer(w.now, at(2, 3), 0, false, true) // which wants probes
	w.topo.setCustomer(w.now, at(1, 4), 100, false, false)
	w.switches(5, 1, 2)
	w.cable(at(1, 1), at(2, 1))
	w.cable(at(1, 3), at(2, 3)) // a customer is plugged in twice
	w.cable(at(1, 4), at(2, 4))
	w.run(5 * time.Second)
	want := map[flow.Port]flow.PortRole{1: flow.RoleLink, 2: flow.RoleEdge, 3: flow.RoleEdge, 4: flow.RoleLink, 5: flow.RoleEdge}
	for _, id := range []flow.DPID{1, 2} {
		for p, is := range w.roles(id) {
			if is != want[p] {
				t.Errorf("port %d of switch %v is %v, want %v", p, id, is, want[p])
			}
		}
	}
	p, far := w.topo.at(at(1, 3)), w.topo.at(at(2, 3))
	if p.isProbed() || !far.isProbed() {
		t.Error("the port whose circuit wants no probes is probed, or the other is not")
	}
	if m := w.topo.explain(w.now, p); m.Cause != causeJoined {
		t.Errorf("%q: %s", m.Cause, m.Reason)
	}
	w.topo.setCustomer(w.now, at(1, 1), 0, false, false) // it came while the switch was away
	w.run(5 * time.Second)
	if r := w.roles(1)[1]; r != flow.RoleLink {
		t.Errorf("a link that a circuit was put on is %v", r)
	}
	w.topo.setCustomer(w.now, at(1, 3), 0, true, false)
	w.topo.setCustomer(w.now, at(2, 3), 0, true, false)
	for _, at := range []flow.Location{at(1, 3), at(2, 3)} {
		if p := w.topo.at(at); !p.isProbed() || p.isCustomers() {
			t.Errorf("port %v is still a customer's", at)
		}
	}
}

// TestCustomersRestart: a new run sends no probes to a customer who did not want them before l2vpn had time to
// say so again; to others, and once the circuit is gone or wants them, it does.
func TestCustomersRestart(t *testing.T) {
	w := newWorld(t, nil)
	w.topo.setCustomer(w.now, at(1, 3), 0, false, false)
	w.switches(4, 1)
	w.run(5 * time.Second)
	for range 2 { // the second one starts before l2vpn has spoken to the first
		w = w.restart(time.Second)
		w.probed = map[flow.Location]int{}
		w.switches(4, 1)
		w.run(2 * time.Second)
		if w.probed[at(1, 3)] > 0 || w.probed[at(1, 2)] == 0 {
			t.Fatalf("probes by port after a restart: %v", w.probed)
		}
	}
	w.topo.setCustomer(w.now, at(1, 3), 0, false, true)
	w.run(5 * time.Second)
	if w.probed[at(1, 3)] == 0 {
		t.Error("the customer wants probes, and gets none")
	}
	w = w.restart(time.Second)
	w.probed = map[flow.Location]int{}
	w.switches(4, 1)
	w.run(time.Minute)
	if w.probed[at(1, 3)] == 0 {
		t.Error("the circuit is gone, and the port is not probed")
	}
}

// TestCustomersTrap: a customer's LLDP is its circuit's before the controller gets it, and our own never is.
func TestCustomersTrap(t *testing.T) {
	req := baselineFlows(1, false)
	if len(req.Flows) != 3 {
		t.Fatal(req.Flows)
	}
	ours, foreign := req.Flows[0], req.Flows[2]
	if ours.Priority != flow.PriorityProbe || ours.Match["eth_src"] != "02:57:46:00:00:00/ff:ff:ff:00:00:00" {
		t.Errorf("our own LLDP: %v", ours)
	}
	if p := foreign.Priority; p >= flow.PriorityCircuitRest || p <= flow.PriorityChainBack || len(foreign.Match) != 1 || len(foreign.Actions) != 1 {
		t.Errorf("other LLDP: %v", foreign)
	}
}
