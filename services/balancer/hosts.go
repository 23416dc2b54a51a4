package balancer

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// place is the address of a host, station is where it is.
type (
	place   = object.Address
	station = object.Station
	hostKey = object.HostKey
)

// find returns the host with an address, false if its place is unknown. It is
// called with mu held.
func (b *balancer) find(p place) (station, bool) {
	s, known := b.hosts.Station(p)
	return s, known && s.At != flow.Location{}
}
