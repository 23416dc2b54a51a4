package session

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// Shed returns how many packet-ins were not admitted, by reason and class.
func (h *Shared) Shed() map[string]uint64 {
	all := map[string]uint64{}
	for why := admission.OverPort; why < admission.ReasonCount; why++ {
		for c := range admission.ClassCount {
			if n := h.total.notIn[why][c].Load(); n > 0 {
				all[why.String()+" "+c.String()] = n
			}
		}
	}
	return all
}

// Limits returns the ports that are limited on a switch, or on all, in order.
func (h *Shared) Limits(dpid string) (list []*api.PortLimit) {
	for sw, s := range h.Up.All() {
		if l := s.floods.limits.Load(); l != nil && (dpid == "" || dpid == sw.String()) {
			list = append(list, *l...)
		}
	}
	slices.SortFunc(list, func(a, b *api.PortLimit) int {
		if a.Dpid != b.Dpid {
			if a.Dpid < b.Dpid {
				return -1
			}
			return 1
		}
		return int(int64(a.Port) - int64(b.Port))
	})
	return list
}
