package southbound

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// reading says how to ask for one kind of api.ReadMultipart, and how to add the
// body of an answer to the response.
type reading struct {
	kind openflow.MultipartType
	add  func(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error
}

// readings are the kinds that are multipart messages.
var readings = map[api.Multipart]reading{
	api.Multipart_MULTIPART_DESC:           {openflow.MultipartDesc, addDesc},
	api.Multipart_MULTIPART_FLOW:           {openflow.MultipartFlow, addFlows},
	api.Multipart_MULTIPART_AGGREGATE:      {openflow.MultipartAggregate, addAggregate},
	api.Multipart_MULTIPART_TABLE:          {openflow.MultipartTable, addTables},
	api.Multipart_MULTIPART_TABLE_FEATURES: {openflow.MultipartTableFeatures, addTableFeatures},
	api.Multipart_MULTIPART_PORT_STATS:     {openflow.MultipartPortStats, addPorts},
	api.Multipart_MULTIPART_PORT_DESC:      {openflow.MultipartPortDesc, addPortDescs},
	api.Multipart_MULTIPART_QUEUE_STATS:    {openflow.MultipartQueue, addQueues},
	api.Multipart_MULTIPART_GROUP_STATS:    {openflow.MultipartGroup, addGroups},
	api.Multipart_MULTIPART_GROUP_DESC:     {openflow.MultipartGroupDesc, addGroupDescs},
	api.Multipart_MULTIPART_GROUP_FEATURES: {openflow.MultipartGroupFeatures, addGroupFeatures},
	api.Multipart_MULTIPART_METER_STATS:    {openflow.MultipartMeter, addMeters},
	api.Multipart_MULTIPART_METER_CONFIG:   {openflow.MultipartMeterConfig, addMeterConfigs},
	api.Multipart_MULTIPART_METER_FEATURES: {openflow.MultipartMeterFeatures, addMeterFeatures},
}

// readMultipart answers api.ReadMultipart.
func (q queries) readMultipart(ctx context.Context, req *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
	s, err := q.connected(req.Dpid)
	if err != nil {
		return nil, err
	}
	resp := &api.ReadMultipartResponse{}
	switch req.Kind {
	case api.Multipart_MULTIPART_QUEUE_CONFIG:
		return resp, readQueueConfig(ctx, s, flow.Port(req.Port), resp)
	case api.Multipart_MULTIPART_ROLE:
		return resp, readRole(ctx, s, resp)
	}
	r, ok := readings[req.Kind]
	if !ok {
		return nil, api.Errorf(codes.InvalidArgument, "kind %v: want one of those of OpenFlow 1.3", req.Kind)
	}
	if req.Table > uint32(flow.TableAll) {
		return nil, api.Errorf(codes.InvalidArgument, "table %d: want 0 to 255", req.Table)
	}
	m := &openflow.MultipartRequest{
		Type: r.kind, Table: uint8(req.Table), OutPort: flow.Port(req.OutPort), OutGroup: req.OutGroup,
		Cookie: flow.Cookie(req.Cookie), CookieMask: flow.Cookie(req.CookieMask),
		Port: flow.Port(req.Port), Queue: req.Queue, Group: req.Group, Meter: req.Meter,
	}
	if m.Match, err = flow.ParseMatch(req.Match); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	parts := 0
	err = s.Multipart(ctx, m, func(body []byte) (int, error) {
		parts++
		err := r.add(s, body, resp)
		if n := elements(resp); n > 0 {
			return n, err
		}
		return parts, err
	})
	if err != nil {
		return nil, s.Unanswered(err)
	}
	return resp, nil
}

// elements returns how many elements a response with one list has.
func elements(r *api.ReadMultipartResponse) int {
	return len(r.Flows) + len(r.Tables) + len(r.TableFeatures) + len(r.Ports) + len(r.PortDescs) + len(r.Queues) +
		len(r.Groups) + len(r.GroupDescs) + len(r.Meters) + len(r.MeterConfigs)
}

func readQueueConfig(ctx context.Context, s *session.Session, port flow.Port, resp *api.ReadMultipartResponse) error {
	msg, err := s.Exchange(ctx, func(xid uint32) ([]byte, error) { return s.Version.AppendQueueGetConfigRequest(nil, xid, port) })
	if err != nil {
		return err
	}
	port, queues, err := s.Version.DecodeQueueGetConfigReply(msg)
	if err != nil {
		return s.Garbled(err)
	}
	c := &api.QueueConfig{Port: uint32(port)}
	for _, q := range queues {
		c.Queues = append(c.Queues, &api.QueueDesc{Port: uint32(q.Port), Queue: q.ID, MinRate: uint32(q.MinRate), MaxRate: uint32(q.MaxRate)})
	}
	resp.QueueConfigs = append(resp.QueueConfigs, c)
	return nil
}

func readRole(ctx context.Context, s *session.Session, resp *api.ReadMultipartResponse) error {
	role, generation, err := s.CurrentRole(ctx)
	if err == nil {
		resp.Role = &api.RoleState{Role: uint32(role), Generation: generation}
	}
	return err
}

func addDesc(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	read, err := s.Version.DecodeDesc(body)
	d := session.PrintableDesc(read)
	resp.Desc = &api.SwitchDesc{Manufacturer: d.Manufacturer, Hardware: d.Hardware, Software: d.Software, Serial: d.Serial, Datapath: d.Datapath}
	return err
}

func addFlows(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	off := 0
	return s.Version.DecodeFlowStats(body, func(f *openflow.FlowStats) error {
		length := binary.BigEndian.Uint16(body[off:]) // as the decoder does
		off += int(length)
		e := api.NewFlowEntry(s.DPID, &f.Entry)
		e.Packets, e.Bytes = f.Packets, f.Bytes
		resp.Flows = append(resp.Flows, &api.FlowRecord{
			Flow: e, Length: uint32(length), DurationSec: f.DurationSec, DurationNsec: f.DurationNsec, Partial: f.Partial, Cookie: uint64(f.Cookie),
		})
		return nil
	})
}

func addAggregate(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	a, err := s.Version.DecodeAggregate(body)
	resp.Aggregate = &api.AggregateStats{Packets: a.Packets, Bytes: a.Bytes, Flows: a.Flows}
	return err
}

func addTables(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodeTableStats(body, nil)
	for _, t := range list {
		resp.Tables = append(resp.Tables, &api.TableCounters{Table: uint32(t.Table), Active: t.Active, Lookups: t.Lookups, Matched: t.Matched})
	}
	return err
}

func addTableFeatures(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	tables, err := s.Version.DecodeTableFeatures(body, nil)
	if err != nil {
		return err
	}
	lists, err := s.Version.DecodeTableProperties(body, nil)
	if err != nil {
		return err
	}
	for i := range tables {
		t := &tables[i]
		f := &api.TableFeatures{
			Table: uint32(t.Table), Name: session.Printable(t.Name), MetadataMatch: t.MetadataMatch, MetadataWrite: t.MetadataWrite,
			Config: t.Config, MaxEntries: t.MaxEntries,
		}
		for _, p := range lists[i] {
			q := &api.TableProperty{Kind: uint32(p.Kind), Tables: p.Tables}
			for _, n := range p.Numbers {
				q.Numbers = append(q.Numbers, uint32(n.Type)<<16|uint32(n.Length))
			}
			for _, o := range p.Fields {
				q.Fields = append(q.Fields, o.Header)
			}
			f.Properties = append(f.Properties, q)
		}
		resp.TableFeatures = append(resp.TableFeatures, f)
	}
	return nil
}

func addPorts(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodePortStats(body, nil)
	for _, p := range list {
		resp.Ports = append(resp.Ports, &api.PortCounters{
			Port: uint32(p.Port), RxPackets: p.RxPackets, TxPackets: p.TxPackets, RxBytes: p.RxBytes, TxBytes: p.TxBytes,
			RxDropped: p.RxDropped, TxDropped: p.TxDropped, RxErrors: p.RxErrors, TxErrors: p.TxErrors,
			RxFrameErr: p.RxFrameErr, RxOverErr: p.RxOverErr, RxCrcErr: p.RxCRCErr, Collisions: p.Collisions,
			DurationSec: p.DurationSec, DurationNsec: p.DurationNsec,
		})
	}
	return err
}

func addPortDescs(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodePortDesc(body, nil)
	for _, p := range list {
		resp.PortDescs = append(resp.PortDescs, &api.PortDesc{
			Port: uint32(p.No), HwAddr: p.HWAddr.String(), Name: session.Printable(p.Name), Config: p.Config, State: p.State, Curr: p.Curr,
			Advertised: p.Advertised, Supported: p.Supported, Peer: p.Peer, CurrSpeed: p.CurrSpeed, MaxSpeed: p.MaxSpeed,
		})
	}
	return err
}

func addQueues(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodeQueueStats(body, nil)
	for _, q := range list {
		resp.Queues = append(resp.Queues, &api.QueueCounters{
			Port: uint32(q.Port), Queue: q.Queue, TxBytes: q.TxBytes, TxPackets: q.TxPackets, TxErrors: q.TxErrors,
			DurationSec: q.DurationSec, DurationNsec: q.DurationNsec,
		})
	}
	return err
}
