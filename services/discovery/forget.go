package discovery

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// forgetSwitch drops the state of a switch, and that other ports were linked to
// it. A connected switch is learnt anew; others no longer wait for one that is
// gone.
func (t *topology) forgetSwitch(now int64, id flow.DPID) {
	t.forgetLinks(id)
	dp := t.switches[id]
	if dp != nil {
		for _, p := range dp.ports {
			up := p.up
			t.replace(now, p)
			if up && dp.connected {
				t.raisePort(now, dp, p)
			}
		}
	}
	for _, other := range t.order {
		for _, p := range other.ports {
			if p.was.Switch == id && p.neighbour() == nil {
				t.forgetNeighbour(p)
				t.settleRole(now, p)
			}
		}
	}
	for key, f := range t.pairs {
		if (key.a.Switch == id || key.b.Switch == id) && f.links[0] == nil && f.links[1] == nil {
			delete(t.pairs, key)
			delete(t.held, f)
		}
	}
	t.dirty[id] = struct{}{}
	if dp != nil && !dp.connected {
		delete(t.switches, id)
		t.order = slices.DeleteFunc(t.order, func(other *datapath) bool { return other == dp })
		t.moved = true
	}
}
