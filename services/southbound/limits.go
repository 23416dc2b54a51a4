package southbound

import (
	"slices"

	"github.com/weft-sdn/weft/api"
)

// shed returns how many packet-ins were not admitted, by reason and class.
func (h *shared) shed() map[string]uint64 {
	all := map[string]uint64{}
	for why := overPort; why < reasonCount; why++ {
		for c := range classCount {
			if n := h.total.notIn[why][c].Load(); n > 0 {
				all[why.String()+" "+c.String()] = n
			}
		}
	}
	return all
}

// limits returns the ports that are limited on a switch, or on all, in order.
func (h *shared) limits(dpid string) (list []*api.PortLimit) {
	for sw, s := range h.up.all() {
		if l := s.limits.Load(); l != nil && (dpid == "" || dpid == sw.String()) {
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

// shedPacketIns adds what a session has shed since the last call.
func (t *totals) shedPacketIns(a *admission) {
	for why := range a.shed {
		for c, n := range a.shed[why] {
			if n > 0 {
				t.notIn[why][c].Add(n)
				a.shed[why][c] = 0
			}
		}
	}
	a.anyShed = false
}
