package discovery

import (
	"sync/atomic"

	"weft/flow"
)

// A view is what the stage knows of the ports of one switch, read without a
// lock. The table is replaced when ports come and go; roles change in place.
type view struct{ table atomic.Pointer[portTable] }

// A portTable finds ports by number: low numbers by index.
type portTable struct {
	low  []*portView
	high map[flow.Port]*portView
}

// lowPorts is how many port numbers are found by index.
const lowPorts = 1024

// A portView is the part of a port that the stage shares with the topology.
type portView struct {
	role    atomic.Uint32
	host    atomic.Bool // has sent something else than LLDP while it was an edge port
	refused atomic.Uint64
}

// port returns the view of a port, nil if there is no such port.
func (v *view) port(p flow.Port) *portView {
	t := v.table.Load()
	if t == nil {
		return nil
	}
	if uint(p) < uint(len(t.low)) {
		return t.low[p]
	}
	return t.high[p]
}

// set replaces the table.
func (v *view) set(ports []*port) {
	t := &portTable{high: map[flow.Port]*portView{}}
	for _, p := range ports {
		if n := int(p.at.Port); n < lowPorts {
			for len(t.low) <= n {
				t.low = append(t.low, nil)
			}
			t.low[n] = p.view
		} else {
			t.high[p.at.Port] = p.view
		}
	}
	v.table.Store(t)
}
