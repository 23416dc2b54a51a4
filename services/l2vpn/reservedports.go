package l2vpn

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// reservedPorts are the ports, or VLANs of ports, whose frames are circuits', and which of
// them are published. The store's mu guards it.
type reservedPorts struct {
	ends      map[portVLAN]int  // how many ends of circuits are there
	oam       map[portVLAN]int  // and how many may send frames of the controller's own
	published map[portVLAN]bool // whether such frames may be sent, of those that are published
	changed   map[portVLAN]bool // those that may have to be published
}

// portVLAN is a VLAN of a port; 0: all of the port.
type portVLAN struct {
	at   flow.Location
	vlan uint16
}

func newReservedPorts() *reservedPorts {
	return &reservedPorts{ends: map[portVLAN]int{}, oam: map[portVLAN]int{}, published: map[portVLAN]bool{}, changed: map[portVLAN]bool{}}
}

// add counts the ends of a circuit, or with -1 uncounts them.
func (r *reservedPorts) add(c *circuit, n int) {
	ends := slices.Clone(c.ends)
	for _, at := range c.sinks() {
		ends = append(ends, end{at: at})
	}
	for _, e := range ends {
		count := func(vlan uint16) {
			k := portVLAN{e.at, vlan}
			if r.ends[k] += n; r.ends[k] == 0 {
				delete(r.ends, k)
			}
			if c.Oam {
				if r.oam[k] += n; r.oam[k] == 0 {
					delete(r.oam, k)
				}
			}
			r.changed[k] = true
		}
		if e.list != "" {
			e.list.each(count)
		} else {
			count(e.vlan)
		}
	}
}

// changes returns, in order, what has become circuits', or is no more, since its last call.
func (r *reservedPorts) changes() (list []*api.CircuitPortChanged) {
	for k := range r.changed {
		is, oam := r.ends[k] > 0, r.oam[k] > 0
		said, was := r.published[k]
		if is == was && oam == said {
			continue
		}
		if delete(r.published, k); is {
			r.published[k] = oam
		}
		list = append(list, &api.CircuitPortChanged{At: api.NewLocation(k.at), Vlan: uint32(k.vlan), Gone: !is, Oam: oam})
	}
	clear(r.changed)
	slices.SortFunc(list, func(x, y *api.CircuitPortChanged) int {
		return cmp.Or(cmp.Compare(x.At.Dpid, y.At.Dpid), cmp.Compare(x.At.Port, y.At.Port), cmp.Compare(x.Vlan, y.Vlan))
	})
	return list
}
