package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// leave disconnects switches.
func (w *world) leave(ids ...flow.DPID) {
	for _, id := range ids {
		w.topo.disconnect(w.now, id)
	}
	w.take()
}

// replaced connects switches like switches does, with other devices for ports.
func (w *world) replaced(n int, ids ...flow.DPID) {
	for _, id := range ids {
		var ports []*api.Port
		for p := range n {
			msg := portMsg(id, flow.Port(p+1), true)
			msg.Mac = flow.MACFrom(uint64(w.now) | uint64(id)<<8 | uint64(p)).String()
			ports = append(ports, msg)
		}
		w.topo.connect(w.now, id, nil, ports)
		w.topo.confirmTrap(w.now, id)
	}
}

// inhabit has hosts on ports for long.
func (w *world) inhabit(ports ...flow.Location) {
	for _, l := range ports {
		w.topo.at(l).view.host.Store(true)
	}
	w.run(2 * time.Minute)
}

// TestSecondTopology has all switches replaced by others with the same numbers
// and other cables.
func TestSecondTopology(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.cable(at(2, 2), at(3, 1))
	w.switches(4, 1, 2, 3)
	w.run(2 * time.Second)
	w.inhabit(at(1, 3), at(3, 3))
	w.leave(1, 2, 3)
	w.cut(at(1, 1), at(2, 1))
	w.cut(at(2, 2), at(3, 1))
	w.cable(at(1, 3), at(3, 3))
	w.run(500 * time.Millisecond)
	w.replaced(3, 1, 3) // switch 2 does not return
	w.run(time.Second)
	w.want(at(1, 3), at(3, 3), "up") // though hosts were at both ends
	for _, l := range []flow.Location{at(1, 1), at(1, 2), at(3, 1), at(3, 2)} {
		w.wantRole(l, flow.RoleEdge)
	}
}

// TestReturnWithOtherCables has the same switches return with other cables.
func TestReturnWithOtherCables(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.cable(at(2, 2), at(3, 1))
	w.cable(at(3, 2), at(4, 1))
	w.switches(3, 1, 2, 3, 4)
	w.run(2 * time.Second)
	w.leave(2, 4)
	w.cut(at(1, 1), at(2, 1))
	w.cut(at(2, 2), at(3, 1))
	w.cut(at(3, 2), at(4, 1))
	w.cable(at(2, 3), at(3, 1)) // moved
	w.run(30 * time.Second)
	w.wantRole(at(1, 1), flow.RoleUnsettled) // switch 2 may be there, and forward
	w.switches(3, 2)
	w.run(100 * time.Millisecond)
	w.want(at(2, 3), at(3, 1), "up")
	w.wantRole(at(2, 1), flow.RoleUnsettled)
	w.run(time.Second)
	w.wantRole(at(2, 2), flow.RoleEdge) // its old far end has another link
	w.run(5 * time.Second)
	w.wantRole(at(1, 1), flow.RoleEdge)
	w.wantRole(at(2, 1), flow.RoleEdge)
	w.wantRole(at(3, 2), flow.RoleUnsettled) // switch 4 has not returned
	w.leave(3)
	w.run(10 * time.Second)
	w.switches(3, 3)
	w.run(10 * time.Second)
	w.wantRole(at(3, 2), flow.RoleUnsettled)
	w.run(2 * time.Second)
	w.wantRole(at(3, 2), flow.RoleEdge)
}

// TestPortThatIsGone has a switch return without a port.
func TestPortThatIsGone(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 2))
	w.switches(2, 1, 2)
	w.run(2 * time.Second)
	w.leave(2)
	w.cut(at(1, 1), at(2, 2))
	w.run(time.Second)
	w.switches(1, 2)
	w.run(time.Second)
	w.wantRole(at(1, 1), flow.RoleEdge)
}

// TestLocksOutliveAReturn shows that the loss of the control channel frees no
// port of hosts for a relay, for however long it lasts.
func TestLocksOutliveAReturn(t *testing.T) {
	w := newWorld(t, nil)
	w.switches(2, 1, 2)
	w.run(2 * time.Second)
	w.inhabit(at(1, 1), at(2, 1))
	w.leave(1, 2)
	w.run(5 * time.Minute)
	w.cable(at(1, 1), at(2, 1)) // two hosts that relay
	w.switches(2, 1, 2)
	w.run(time.Minute)
	w.want(at(1, 1), at(2, 1), "")
	w.wantRole(at(1, 1), flow.RoleEdge)
	if w.refuse[hostPort] == 0 {
		t.Error("no probe was refused because of the ports")
	}
}

// TestSilenceWithoutAReturn shows that a link which falls silent while its
// switches are connected is waited for as long as ever.
func TestSilenceWithoutAReturn(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(5 * time.Second)
	w.cut(at(1, 1), at(2, 1))
	w.run(9 * time.Minute)
	w.wantRole(at(1, 1), flow.RoleUnsettled)
	w.topo.connect(w.now, 1, nil, []*api.Port{portMsg(1, 1, true)}) // the southbound has started again
	w.topo.confirmTrap(w.now, 1)
	w.run(20 * time.Second)
	w.wantRole(at(1, 1), flow.RoleUnsettled)
}

// TestOtherCablesWhileNobodySaw has switches get other cables while the southbound
// is away, which does not show that they were gone.
func TestOtherCablesWhileNobodySaw(t *testing.T) {
	for _, proved := range []bool{false, true} {
		w := newWorld(t, nil)
		w.cable(at(1, 1), at(2, 1))
		w.switches(2, 1, 2)
		w.run(5 * time.Second)
		if !proved {
			w.cut(at(1, 1), at(2, 1))
		}
		w.switches(2, 1, 2) // they have not left
		if proved {         // the cable is cut later
			w.run(5 * time.Second)
			w.cut(at(1, 1), at(2, 1))
		}
		want := flow.RoleEdge
		if proved {
			want = flow.RoleUnsettled
		}
		w.run(time.Minute)
		w.wantRole(at(1, 1), want)
		w.wantRole(at(2, 1), want)
	}
}

// TestReturnedBesideStalled: a switch returns while the control channel of its neighbour is held up.
// What is not heard of the cable between them is not missing: the neighbour's port becomes none
// for hosts, as frames would go round by what the switches still have. When the neighbour
// answers, it is seen whether the cable is there.
func TestReturnedBesideStalled(t *testing.T) {
	for _, cut := range []bool{false, true} {
		w := newWorld(t, nil)
		w.cable(at(1, 1), at(2, 1))
		w.switches(2, 1, 2)
		w.run(2 * time.Second)
		w.want(at(2, 1), at(1, 1), "up")
		w.stalled = map[flow.DPID]bool{2: true}
		w.leave(1)
		w.run(3 * time.Second)
		w.switches(2, 1)
		if cut {
			w.cut(at(1, 1), at(2, 1))
		}
		timeout := time.Duration(w.topo.cfg.Timeout)
		w.run(3 * bothBack * timeout)
		w.wantRole(at(2, 1), flow.RoleUnsettled)
		w.wantRole(at(1, 1), flow.RoleUnsettled)
		w.stalled = nil
		w.run(bothBack * timeout)
		if cut {
			w.wantRole(at(2, 1), flow.RoleEdge)
			w.wantRole(at(1, 1), flow.RoleEdge)
		} else {
			w.want(at(2, 1), at(1, 1), "up")
			w.want(at(1, 1), at(2, 1), "up")
		}
		if len(w.topo.doubted) > 0 {
			t.Errorf("%d switches are asked for ever", len(w.topo.doubted))
		}
	}
}
