package discovery

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// settleSwitches reports the connected switches whose ports have settled.
func (r *roles) settleSwitches(now int64) {
	for id, dp := range r.unsettled {
		if dp.hasSettled(now) {
			delete(r.unsettled, id)
			r.events = append(r.events, event{settled: &api.RolesSettled{Dpid: id.String()}})
		}
	}
}

// hasSettled reports whether every port of a switch that is up has its role, or waits for
// what may never come: the end of a trial or, for longer than a switch takes to return, a
// silent neighbour.
func (dp *datapath) hasSettled(now int64) bool {
	for _, p := range dp.ports {
		if !p.up || p.role != flow.RoleUnsettled {
			continue
		}
		if waits, _ := p.onTrial(); waits || p.was != (flow.Location{}) && now > dp.since+doubtFor {
			continue
		}
		return false
	}
	return true
}
