package l2vpn

import "github.com/weft-sdn/weft/api"

// circuitChanges are the changes of circuits that are not published yet, by circuit: the last
// of each. The store's mu guards them.
type circuitChanges map[string]*api.CircuitChanged

// set notes a change of a circuit.
func (c circuitChanges) set(m *api.Circuit, deleted bool) {
	c[m.Name] = &api.CircuitChanged{Circuit: m, Deleted: deleted}
}

// take returns the changes since its last call.
func (c circuitChanges) take() (list []*api.CircuitChanged) {
	for _, e := range c {
		list = append(list, e)
	}
	clear(c)
	return list
}
