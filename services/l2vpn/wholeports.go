package l2vpn

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// wholePorts are the ports that are whole ends of circuits, as they are published. The store's
// mu guards it.
type wholePorts struct {
	said     map[flow.Location]bool // those that are published
	doubtful map[flow.Location]bool // those that may be whole ends now, or no more
}

func newWholePorts() *wholePorts {
	return &wholePorts{said: map[flow.Location]bool{}, doubtful: map[flow.Location]bool{}}
}

// doubt notes that the ports of a circuit's ends may be whole ends now, or no more.
func (w *wholePorts) doubt(c *circuit) {
	for _, e := range c.ends {
		w.doubtful[e.at] = true
	}
}

// changes returns, in order, the ports that have become whole ends of circuits, or are no
// more, since its last call; taken says of an end whether circuits have it.
func (w *wholePorts) changes(taken func(end) bool) (list []*api.CircuitPortChanged) {
	for at := range w.doubtful {
		switch whole := taken(end{at: at}); {
		case whole == w.said[at]:
			continue
		case whole:
			w.said[at] = true
		default:
			delete(w.said, at)
		}
		list = append(list, &api.CircuitPortChanged{At: api.NewLocation(at), Gone: !w.said[at]})
	}
	clear(w.doubtful)
	slices.SortFunc(list, func(x, y *api.CircuitPortChanged) int {
		return cmp.Or(cmp.Compare(x.At.Dpid, y.At.Dpid), cmp.Compare(x.At.Port, y.At.Port))
	})
	return list
}
