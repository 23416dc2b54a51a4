package southbound

import (
	"context"
	"sort"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// queries answers what services ask of connected switches.
type queries struct{ *hub }

func (h *hub) listSwitches(context.Context, *api.ListSwitchesRequest) (*api.ListSwitchesResponse, error) {
	resp := &api.ListSwitchesResponse{Failed: h.failures.list(time.Now())}
	h.mu.Lock()
	for sw, r := range h.records {
		d := r.last
		if s := h.Session(sw); s != nil {
			d = s.Describe()
		} else if d == nil {
			continue
		} else {
			d = &api.Switch{
				Dpid: d.Dpid, Address: d.Address, Openflow: d.Openflow, Manufacturer: d.Manufacturer, Hardware: d.Hardware,
				Software: d.Software, Serial: d.Serial, Description: d.Description, Tables: d.Tables, Buffers: d.Buffers,
				Ports: d.Ports, Since: d.Since, Reason: d.Reason,
			}
		}
		d.Duplicates = r.duplicates
		resp.Switches = append(resp.Switches, d)
	}
	h.mu.Unlock()
	sort.Slice(resp.Switches, func(i, j int) bool { return resp.Switches[i].Dpid < resp.Switches[j].Dpid })
	return resp, nil
}

// forget drops the record of a switch. It keeps that of a connected one, but
// drops the counts of others that claimed its identity.
func (h *hub) forget(sw flow.DPID) *api.ForgetSwitchResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	resp := &api.ForgetSwitchResponse{Known: h.records[sw] != nil, Connected: h.Session(sw) != nil}
	if resp.Connected && resp.Known {
		h.records[sw].duplicates = 0
	} else {
		h.drop(sw)
	}
	return resp
}

// connected returns the session of a switch, given its identity as text.
func (q queries) connected(text string) (*session.Session, error) {
	sw, err := flow.ParseDPID(text)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if s := q.Session(sw); s != nil {
		return s, nil
	}
	q.mu.Lock()
	known := q.records[sw] != nil
	q.mu.Unlock()
	if known {
		return nil, api.Errorf(codes.Unavailable, "switch %v is not connected", sw)
	}
	return nil, api.Errorf(codes.NotFound, "unknown switch %v; weft get switches lists those that have connected", sw)
}

func (q queries) listPorts(_ context.Context, req *api.ListPortsRequest) (*api.ListPortsResponse, error) {
	resp := &api.ListPortsResponse{}
	if req.Dpid != "" {
		s, err := q.connected(req.Dpid)
		if err != nil {
			return nil, err
		}
		resp.Ports = s.PortList()
		return resp, nil
	}
	for _, s := range q.Up.All() {
		resp.Ports = append(resp.Ports, s.PortList()...)
	}
	sort.Slice(resp.Ports, func(i, j int) bool {
		a, b := resp.Ports[i], resp.Ports[j]
		return a.Dpid < b.Dpid || a.Dpid == b.Dpid && a.Port < b.Port
	})
	return resp, nil
}

func (q queries) readFlows(ctx context.Context, req *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadFlowsResponse{}
	n := 0
	err = s.Multipart(ctx, &openflow.MultipartRequest{
		Type: openflow.MultipartFlow, Table: flow.TableAll, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
	}, func(body []byte) (int, error) {
		err := s.Version.DecodeFlowStats(body, func(f *openflow.FlowStats) error {
			n++
			s.Seen(&f.Entry)
			e := api.NewFlowEntry(s.DPID, &f.Entry)
			if req.Owner != "" && e.Owner != req.Owner {
				return nil
			}
			e.Packets, e.Bytes = f.Packets, f.Bytes
			e.Duration = float64(f.DurationSec) + float64(f.DurationNsec)/1e9
			resp.Flows = append(resp.Flows, e)
			return nil
		})
		return n, err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// readAll asks a switch for all elements of a kind; decode appends those of a
// reply to a list.
func readAll[T any](ctx context.Context, s *session.Session, req openflow.MultipartRequest, decode func([]byte, []T) ([]T, error)) (list []T, err error) {
	err = s.Multipart(ctx, &req, func(body []byte) (_ int, err error) {
		list, err = decode(body, list)
		return len(list), err
	})
	return list, err
}

// index returns the elements by their ids.
func index[T any](list []T, id func(*T) uint32) map[uint32]*T {
	of := make(map[uint32]*T, len(list))
	for i := range list {
		of[id(&list[i])] = &list[i]
	}
	return of
}

func (q queries) readGroups(ctx context.Context, req *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadGroupsResponse{}
	if s.Version == openflow.V10 {
		return resp, nil // the switch has no groups
	}
	groups, err := readAll(ctx, s, openflow.MultipartRequest{Type: openflow.MultipartGroupDesc}, s.Version.DecodeGroupDesc)
	if err != nil || len(groups) == 0 {
		return resp, err
	}
	stats, err := readAll(ctx, s, openflow.MultipartRequest{Type: openflow.MultipartGroup, Group: flow.GroupAll}, s.Version.DecodeGroupStats)
	if err != nil {
		return nil, err
	}
	of := index(stats, func(g *openflow.GroupStats) uint32 { return g.ID })
	for i := range groups {
		resp.Groups = append(resp.Groups, newGroup(s.DPID, &groups[i], of[groups[i].ID]))
	}
	sort.Slice(resp.Groups, func(i, j int) bool { return resp.Groups[i].Id < resp.Groups[j].Id })
	return resp, nil
}

func (q queries) readMeters(ctx context.Context, req *api.ReadMetersRequest) (*api.ReadMetersResponse, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadMetersResponse{}
	if s.Version == openflow.V10 {
		return resp, nil // the switch has no meters
	}
	meters, err := readAll(ctx, s, openflow.MultipartRequest{Type: openflow.MultipartMeterConfig, Meter: flow.MeterAll}, s.Version.DecodeMeterConfig)
	if err != nil || len(meters) == 0 {
		return resp, err
	}
	stats, err := readAll(ctx, s, openflow.MultipartRequest{Type: openflow.MultipartMeter, Meter: flow.MeterAll}, s.Version.DecodeMeterStats)
	if err != nil {
		return nil, err
	}
	of := index(stats, func(m *openflow.MeterStats) uint32 { return m.ID })
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

// newGroup returns the message for a group and its counters, nil if the switch
// has not reported any.
func newGroup(sw flow.DPID, g *flow.Group, st *openflow.GroupStats) *api.Group {
	out := api.NewGroup(sw, g)
	if st == nil {
		return out
	}
	out.Packets, out.Bytes = st.Packets, st.Bytes
	for i, c := range st.Buckets {
		if i < len(out.Buckets) {
			out.Buckets[i].Packets, out.Buckets[i].Bytes = c.Packets, c.Bytes
		}
	}
	return out
}

func (q queries) readPortStats(ctx context.Context, req *api.ReadPortStatsRequest) (*api.ReadPortStatsResponse, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	list, err := readAll(ctx, s, openflow.MultipartRequest{Type: openflow.MultipartPortStats, Port: flow.PortAny}, s.Version.DecodePortStats)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadPortStatsResponse{}
	for _, p := range list {
		resp.Ports = append(resp.Ports, &api.PortStats{
			Dpid: req.Dpid, Port: uint32(p.Port), RxPackets: keptCounter(p.RxPackets), TxPackets: keptCounter(p.TxPackets),
			RxBytes: keptCounter(p.RxBytes), TxBytes: keptCounter(p.TxBytes), RxDropped: keptCounter(p.RxDropped), TxDropped: keptCounter(p.TxDropped),
			RxErrors: keptCounter(p.RxErrors), TxErrors: keptCounter(p.TxErrors),
		})
	}
	return resp, nil
}

// keptCounter replaces the value of a counter that the switch does not keep, all ones,
// by 0.
func keptCounter(counter uint64) uint64 {
	if counter == ^uint64(0) {
		return 0
	}
	return counter
}

func (q queries) readTableStats(ctx context.Context, req *api.ReadTableStatsRequest) (*api.ReadTableStatsResponse, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	list, err := readAll(ctx, s, openflow.MultipartRequest{Type: openflow.MultipartTable}, s.Version.DecodeTableStats)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadTableStatsResponse{}
	for _, t := range list {
		resp.Tables = append(resp.Tables, &api.TableStats{
			Dpid: req.Dpid, Table: uint32(t.Table), Active: t.Active, Lookups: t.Lookups, Matched: t.Matched, MaxEntries: t.MaxEntries,
		})
	}
	return resp, nil
}

func (q queries) modifyPort(ctx context.Context, req *api.ModifyPortRequest) (*api.ApplyResult, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	return s.ModifyPort(ctx, req)
}

// sendExperimenter answers api.SendExperimenter.
func (q queries) sendExperimenter(ctx context.Context, req *api.SendExperimenterRequest) (*api.ApplyResult, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	m := openflow.Experimenter{ID: req.Experimenter, Type: req.ExpType, Data: req.Data}
	return s.Confirm(ctx, func(xid uint32) ([]byte, error) { return s.Version.AppendExperimenter(nil, xid, &m) })
}

// listLimits answers api.ListLimits.
func (q queries) listLimits(_ context.Context, req *api.ListLimitsRequest) (*api.ListLimitsResponse, error) {
	if req.GetDpid() != "" {
		s, err := q.connected(req.Dpid)
		if err != nil {
			return nil, err
		}
		req = &api.ListLimitsRequest{Dpid: s.DPID.String()}
	}
	return &api.ListLimitsResponse{Limits: q.Limits(req.GetDpid()), Shed: q.Shed()}, nil
}
