package discovery

import (
	"sync/atomic"

	"github.com/weft-sdn/weft/flow"
)

// A view is the stage's state of the ports of one switch, read without a lock.
type view struct{ ports flow.PortMap[portView] }

// lowPorts is how many port numbers are looked up by index.
const lowPorts = 1024

// A portView is the part of a port that the stage shares with the topology.
type portView struct {
	role    atomic.Uint32
	host    atomic.Bool // it sent something other than LLDP while it was an edge port
	refused atomic.Uint64
}

// port returns the view of a port, nil if there is no such port.
func (v *view) port(p flow.Port) *portView { return v.ports.Get(p) }

// set replaces the ports by those of a list.
func (v *view) set(ports []*port) {
	var next flow.PortMap[portView]
	for _, p := range ports {
		next.Put(p.at.Port, p.view)
	}
	v.ports.Become(&next)
}
