package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/beats"
)

// OrderBeats answers api.OrderBeats.
func (h *Shared) OrderBeats(_ context.Context, req *api.OrderBeatsRequest) (*api.OrderBeatsResponse, error) {
	const most = uint64(time.Minute / time.Microsecond)
	err := h.Beats.Give(beats.Order{
		Interval:  time.Duration(min(req.GetIntervalUs(), most)) * time.Microsecond,
		Deadline:  time.Duration(min(req.GetDeadlineUs(), most)) * time.Microsecond,
		LostAfter: int(req.GetLostAfter()),
	})
	return &api.OrderBeatsResponse{Counts: h.Beats.Counts()}, err
}

// ListBeats answers api.ListBeats.
func (h *Shared) ListBeats(_ context.Context, req *api.ListBeatsRequest) (*api.ListBeatsResponse, error) {
	resp := &api.ListBeatsResponse{Counts: h.Beats.Counts()}
	if req.GetDpid() == "" {
		for _, s := range h.Up.All() {
			if m := s.alive.beat.Load(); m != nil {
				resp.Switches = append(resp.Switches, m.Describe())
			}
		}
		slices.SortFunc(resp.Switches, func(a, b *api.SwitchHeartbeat) int { return strings.Compare(a.Dpid, b.Dpid) })
		return resp, nil
	}
	sw, err := flow.ParseDPID(req.Dpid)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if s := h.Session(sw); s != nil {
		if m := s.alive.beat.Load(); m != nil {
			resp.Switches = append(resp.Switches, m.Describe())
			return resp, nil
		}
	}
	return nil, api.Errorf(codes.NotFound, "switch %v is not connected", sw)
}
