package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// cause returns why a port takes no traffic, as ListPortRoles says.
func (w *world) cause(l flow.Location) (cause, remedy string) {
	m := w.topo.explain(w.now, w.topo.at(l))
	if (m.Cause == "") != (m.Reason == "") || (m.Cause == "") != (m.Remedy == "") {
		w.t.Errorf("port %v: cause %q, reason %q and remedy %q", l, m.Cause, m.Reason, m.Remedy)
	}
	return m.Cause, m.Remedy
}

func (w *world) wantCause(l flow.Location, want, remedy string) {
	w.t.Helper()
	if got, mend := w.cause(l); got != want || !strings.Contains(mend, remedy) {
		w.t.Fatalf("port %v: cause %q, remedy %q; want %q and %q", l, got, mend, want, remedy)
	}
}

// TestForgetSwitchThatIsGone shows that nobody waits for a forgotten switch, in
// this run and the next.
func TestForgetSwitchThatIsGone(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(2, 1, 2)
	w.run(5 * time.Second)
	w.wantCause(at(1, 1), "", "")
	w.leave(2)
	w.run(time.Minute)
	w.wantCause(at(1, 1), "neighbour", "weft switch forget 0000000000000002")
	w.topo.forgetSwitch(w.now, 2)
	w.take()
	w.run(time.Second)
	w.wantRole(at(1, 1), flow.RoleEdge)
	w.wantCause(at(1, 1), "", "")
	if w.topo.switches[2] != nil {
		t.Error("the switch is known")
	}
	for _, id := range []flow.DPID{1, 2} {
		ports, ok := w.topo.memories(w.now, id)
		for n, m := range ports {
			if m.far.Switch == 2 {
				t.Errorf("port %d of switch %v is saved as a link to the switch", n, id)
			}
		}
		if !ok || id == 2 && len(ports) > 0 {
			t.Errorf("ports %v of switch %v are saved", ports, id)
		}
	}
	w.switches(2, 2)
	w.run(time.Second)
	w.want(at(1, 1), at(2, 1), "up")
}

// TestForgetSwitchThatIsConnected shows that a switch is learnt anew, its locked
// ports included, and links come back.
func TestForgetSwitchThatIsConnected(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(3, 1, 2)
	w.run(2 * time.Second)
	w.inhabit(at(1, 2), at(2, 2))
	w.cable(at(1, 2), at(2, 2))
	w.cut(at(1, 1), at(2, 1))
	w.run(10 * time.Second)
	w.wantCause(at(1, 2), "relay", "weft link allow 0000000000000001:2 0000000000000002:2")
	w.wantCause(at(1, 1), "neighbour", "weft switch forget")
	w.topo.forgetSwitch(w.now, 1)
	w.run(time.Second)
	w.want(at(1, 2), at(2, 2), "up")
	w.wantCause(at(1, 2), "", "")
	w.wantRole(at(1, 1), flow.RoleEdge)
	w.wantRole(at(2, 1), flow.RoleEdge)
	w.wantRole(at(1, 3), flow.RoleEdge)
}

// TestCauses checks what is said of ports that take no traffic.
func TestCauses(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.NewLinks = "hold" })
	w.cable(at(1, 1), at(2, 1))
	w.cable(at(1, 2), at(1, 3))
	w.switches(4, 1, 2)
	w.run(100 * time.Millisecond)
	w.wantCause(at(1, 1), "held", "weft link allow 0000000000000001:1 0000000000000002:1")
	w.wantCause(at(1, 2), "blocked", "loop")
	w.wantCause(at(1, 4), "settling", "wait")
	w.port(at(1, 4), false)
	w.wantCause(at(1, 4), "down", "cable")
}
