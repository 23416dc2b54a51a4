package router

import (
	"net/netip"

	"github.com/weft-sdn/weft/object"
)

// hopsMax is the most routers of ours that a packet passes.
const hopsMax = 16

// end is how a way ends.
type end uint8

const (
	endNeighbour   end = iota // at a neighbour of the last router
	endOwn                    // at the last router itself
	endUnreachable            // the last router has no route
	endLoop                   // nowhere: routers send the packet to each other
)

// way is the path of packets for a destination through our routers.
type way struct {
	hops []*router  // at least one
	to   netip.Addr // the neighbour; not valid if a whole subnet is meant
	end  end
}

// last returns the last router.
func (w *way) last() *router { return w.hops[len(w.hops)-1] }

// walk returns the way of packets sent to r for p: one address, or a network
// whose parts all take the same way.
func (x *index) walk(r *router, p netip.Prefix) way {
	w := way{hops: []*router{r}}
	for len(w.hops) <= hopsMax {
		r = w.last()
		if p.IsSingleIP() && r.has(p.Addr()) {
			w.end = endOwn
			return w
		}
		by, ok := r.lookup(p)
		if !ok {
			w.end = endUnreachable
			return w
		}
		if !by.IsValid() {
			if !p.IsSingleIP() {
				return w
			}
			by = p.Addr()
		}
		next := x.owner(object.In(by, r.vlan), r.sw)
		if next == nil || next == r {
			w.to = by
			return w
		}
		w.hops = append(w.hops, next)
	}
	w.hops, w.end = w.hops[:hopsMax], endLoop
	return w
}
