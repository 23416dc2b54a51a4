package southbound

import (
	"context"
	"slices"

	"github.com/weft-sdn/weft/api"
)

// listLimits answers api.ListLimits.
func (h *hub) listLimits(_ context.Context, req *api.ListLimitsRequest) (*api.ListLimitsResponse, error) {
	if req.GetDpid() != "" {
		s, err := h.connected(req.Dpid)
		if err != nil {
			return nil, err
		}
		req = &api.ListLimitsRequest{Dpid: s.dpid.String()}
	}
	resp := &api.ListLimitsResponse{Limits: h.limits(req.GetDpid()), Shed: map[string]uint64{}}
	for why := overPort; why < reasonCount; why++ {
		for c := range classCount {
			if n := h.total.notIn[why][c].Load(); n > 0 {
				resp.Shed[why.String()+" "+c.String()] = n
			}
		}
	}
	return resp, nil
}

// limits returns the ports that are limited on a switch, or on all, in order.
func (h *hub) limits(dpid string) (list []*api.PortLimit) {
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
