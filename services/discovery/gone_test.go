package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestGoneSwitchIsShed: when a switch goes, every port of which a role was told of
// is told to be no more, once, and ports without a past are forgotten.
func TestGoneSwitchIsShed(t *testing.T) {
	const n = 3000
	topo := newTopology(DefaultConfig(), 1)
	now := int64(time.Hour)
	var ports []*api.Port
	for i := range n {
		ports = append(ports, &api.Port{Dpid: flow.DPID(9).String(), Port: uint32(i+1) * 7, Up: true})
	}
	topo.connect(now, 9, nil, ports[:1])
	for _, p := range ports[1:] {
		topo.changePort(now, 9, p, false)
	}
	topo.confirmTrap(now, 9)
	dp := topo.switches[9]
	if dp.view.ports.Len() != n || len(dp.ports) != n {
		t.Fatalf("%d ports in view of %d, want %d", dp.view.ports.Len(), len(dp.ports), n)
	}
	for _, p := range dp.ports {
		p.told = len(burstGaps) // as if the southbound had sent its probes
	}
	dp.port(7).view.host.Store(true)
	now += int64(time.Minute)
	for _, p := range dp.ports {
		topo.settleRole(now, p)
	}
	topo.events = nil
	topo.disconnect(now, 9)
	gone := map[uint32]int{}
	for _, e := range topo.events {
		if e.role != nil && e.role.Gone && e.role.Port.Role == flow.RoleUnsettled.String() {
			gone[e.role.Port.At.Port]++
		}
	}
	if len(gone) != n || len(topo.events) != n+1 || !topo.events[n].settled.GetGone() {
		t.Errorf("%d of %d ports told to be no more, in %d events", len(gone), n, len(topo.events))
	}
	if len(dp.ports) != 1 || dp.view.ports.Len() != 1 || dp.port(7) == nil {
		t.Errorf("%d ports kept, want that where a host was seen", len(dp.ports))
	}
}
