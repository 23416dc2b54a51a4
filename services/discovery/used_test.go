package discovery

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestUsedPortsAreHosts: packets that an intake takes make a port one of hosts,
// as those that the stage sees: a probe that hosts relay is refused.
func TestUsedPortsAreHosts(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	r.recordUse(at(1, 1))
	r.recordUse(at(2, 1))
	r.recordUse(at(9, 1)) // a switch that is not there
	r.recordUse(at(2, 99))
	r.clock += int64(r.config.LockAfter)
	p := r.probe(at(1, 1))
	r.clock += ms / 10
	r.refusedAs(hostPort, at(2, 1), p)
	if _, role := r.packet(at(2, 1), data); role != flow.RoleEdge {
		t.Errorf("port is %v after a relayed probe", role)
	}
	if r.topo.at(at(1, 2)).view.host.Load() {
		t.Error("a port that nobody uses is taken for one of hosts")
	}
}
