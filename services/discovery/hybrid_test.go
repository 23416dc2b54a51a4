package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// node connects a hybrid node with links at 1 and 2, customers at 3 and 4, an
// internal port 101 and a tunnel 201.
func (w *world) node(ids ...flow.DPID) {
	for _, id := range ids {
		h, err := w.topo.cfg.hybrid(id, &api.Switch{Description: "hybrid access=3,4 internal=101-199 tunnel=201"})
		if err != nil {
			w.t.Fatal(err)
		}
		var ports []*api.Port
		for _, p := range []flow.Port{1, 2, 3, 4, 101, 201} {
			ports = append(ports, portMsg(id, p, true))
		}
		w.topo.connect(w.now, id, h, ports)
		w.topo.confirmTrap(w.now, id)
	}
}

func (w *world) roles(id flow.DPID) map[flow.Port]flow.PortRole {
	roles := map[flow.Port]flow.PortRole{}
	for _, p := range w.topo.switches[id].ports {
		roles[p.at.Port] = p.role
	}
	return roles
}

func TestHybridRoles(t *testing.T) {
	w := newWorld(t, nil)
	w.node(1, 2)
	w.cable(at(1, 1), at(2, 1))
	w.cable(at(1, 4), at(2, 3))     // a customer is plugged in twice
	w.cable(at(1, 101), at(2, 101)) // the nodes' routing passes LLDP
	w.cable(at(1, 201), at(2, 201))
	w.run(5 * time.Second)
	want := map[flow.Port]flow.PortRole{1: flow.RoleLink, 2: flow.RoleAccess, 3: flow.RoleAccess, 4: flow.RoleAccess, 101: flow.RoleInternal, 201: flow.RoleTunnel}
	for _, id := range []flow.DPID{1, 2} {
		for p, is := range w.roles(id) {
			if is != want[p] {
				t.Errorf("port %d of switch %v is %v, want %v", p, id, is, want[p])
			}
		}
	}
	for _, p := range w.topo.listPorts(w.now) {
		joined := p.At.Flow() == at(1, 4) || p.At.Flow() == at(2, 3)
		if joined != (p.Cause == causeJoined) {
			t.Errorf("port %v: %q, %q, %q", p.At.Flow(), p.Role, p.Cause, p.Reason)
		}
	}
	if n := w.refuse[listed]; n == 0 {
		t.Errorf("refused: %v", w.refuse)
	}
	w.cable(at(1, 2), at(2, 2)) // an unlisted port hears Weft's own after all
	w.run(5 * time.Second)
	if r := w.roles(1)[2]; r != flow.RoleLink {
		t.Errorf("port 2 is %v, want link", r)
	}
}

// A node that has restarted with another list: what was a link is none.
func TestHybridListChanges(t *testing.T) {
	w := newWorld(t, nil)
	w.switches(4, 1, 2)
	w.cable(at(1, 3), at(2, 3))
	w.run(5 * time.Second)
	if r := w.roles(1)[3]; r != flow.RoleLink {
		t.Fatalf("port 3 is %v, want link", r)
	}
	w.node(1)
	w.run(5 * time.Second)
	if r, far := w.roles(1)[3], w.roles(2)[3]; r != flow.RoleAccess || far == flow.RoleLink {
		t.Errorf("port 3 is %v, its far end %v; want access, and no link", r, far)
	}
}

func TestHybridByConfiguration(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Hybrid = []string{"00000000000000a? access=7", "* tunnel=8"}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	for id, port := range map[flow.DPID]flow.Port{0xa1: 7, 0xb1: 8} {
		h, err := cfg.hybrid(id, &api.Switch{Description: "hybrid access=1"})
		if err != nil || h == nil || h.Role(port) == flow.RoleUnsettled || h.Role(1) != flow.RoleUnsettled {
			t.Errorf("switch %v: %v, %v", id, h, err)
		}
	}
	for _, text := range []string{"", "access=3", "[ access=3", "* core=3", "* access=0"} {
		cfg.Hybrid = []string{text}
		if err := cfg.Validate(); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// A customer's LLDP is not taken from a circuit; ours is.
func TestHybridTrap(t *testing.T) {
	req := baselineFlows(1, true)
	if len(req.Flows) != 1 || req.Flows[0].Priority != flow.PriorityProbe || req.Flows[0].Match["eth_src"] != "02:57:46:00:00:00/ff:ff:ff:00:00:00" {
		t.Errorf("entries %v", req.Flows)
	}
	a, b := newProbe(at(1, 2), 4), newProbe(at(2, 1), 4)
	if string(a[6:9]) != string(probeSource[:3]) || string(a[6:12]) == string(b[6:12]) {
		t.Errorf("probes from %x and %x", a[6:12], b[6:12])
	}
}
