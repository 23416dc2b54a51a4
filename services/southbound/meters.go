package southbound

import (
	"context"
	"sort"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// readMeters answers api.ReadMeters: the meters of a switch with their counters.
func (h *hub) readMeters(ctx context.Context, req *api.ReadMetersRequest) (*api.ReadMetersResponse, error) {
	s, err := h.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadMetersResponse{}
	if s.Version == openflow.V10 {
		return resp, nil // the switch has no meters
	}
	var meters []flow.Meter
	err = s.Multipart(ctx, &openflow.MultipartRequest{Type: openflow.MultipartMeterConfig, Meter: flow.MeterAll}, func(body []byte) (_ int, err error) {
		meters, err = s.Version.DecodeMeterConfig(body, meters)
		return len(meters), err
	})
	if err != nil || len(meters) == 0 {
		return resp, err
	}
	var stats []openflow.MeterStats
	err = s.Multipart(ctx, &openflow.MultipartRequest{Type: openflow.MultipartMeter, Meter: flow.MeterAll}, func(body []byte) (_ int, err error) {
		stats, err = s.Version.DecodeMeterStats(body, stats)
		return len(stats), err
	})
	if err != nil {
		return nil, err
	}
	of := make(map[uint32]*openflow.MeterStats, len(stats))
	for i := range stats {
		of[stats[i].ID] = &stats[i]
	}
	for i := range meters {
		m := api.NewMeter(s.DPID, &meters[i])
		if st := of[m.Id]; st != nil {
			m.Flows, m.Packets, m.Bytes = st.Flows, st.Packets, st.Bytes
			for k, c := range st.Bands {
				if k < len(m.Bands) {
					m.Bands[k].Packets, m.Bands[k].Bytes = c.Packets, c.Bytes
				}
			}
		}
		resp.Meters = append(resp.Meters, m)
	}
	sort.Slice(resp.Meters, func(i, j int) bool { return resp.Meters[i].Id < resp.Meters[j].Id })
	return resp, nil
}
