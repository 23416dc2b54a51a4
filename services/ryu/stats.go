package ryu

import (
	"context"
	"math"
	"strconv"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// statsRoutes are the routes of ofctl_rest that read.
func (s *switches) statsRoutes() []route {
	read := func(path string, f func(context.Context, *question) (any, error)) route {
		return route{"GET", "/stats/" + path, s.reading(f)}
	}
	both := func(path string, f func(context.Context, *question) (any, error)) []route {
		return []route{read(path, f), {"POST", "/stats/" + path, s.reading(f)}}
	}
	none := func(context.Context, *question) (any, error) {
		return nil, &failure{501, "OpenFlow 1.3 has no such message"}
	}
	list := []route{
		{"GET", "/stats/switches", s.listSwitches},
		read("desc/{dpid}", s.desc),
		read("table/{dpid}", s.tables),
		read("tablefeatures/{dpid}", s.tableFeatures),
		read("port/{dpid}", s.ports),
		read("port/{dpid}/{port}", s.ports),
		read("portdesc/{dpid}", s.portDesc),
		read("portdesc/{dpid}/{port}", s.portDesc),
		read("queue/{dpid}", s.queues),
		read("queue/{dpid}/{port}", s.queues),
		read("queue/{dpid}/{port}/{queue}", s.queues),
		read("queueconfig/{dpid}", s.queueConfig),
		read("queueconfig/{dpid}/{port}", s.queueConfig),
		read("queuedesc/{dpid}", none),
		read("queuedesc/{dpid}/{port}", none),
		read("queuedesc/{dpid}/{port}/{queue}", none),
		read("group/{dpid}", s.groups),
		read("group/{dpid}/{group}", s.groups),
		read("groupdesc/{dpid}", s.groupDesc),
		read("groupdesc/{dpid}/{group}", s.groupDesc),
		read("groupfeatures/{dpid}", s.groupFeatures),
		read("meter/{dpid}", s.meters),
		read("meter/{dpid}/{meter}", s.meters),
		read("meterconfig/{dpid}", s.meterConfig),
		read("meterconfig/{dpid}/{meter}", s.meterConfig),
		read("meterdesc/{dpid}", none),
		read("meterdesc/{dpid}/{meter}", none),
		read("meterfeatures/{dpid}", s.meterFeatures),
		read("role/{dpid}", s.role),
	}
	list = append(list, both("flow/{dpid}", s.flows)...)
	list = append(list, both("flowdesc/{dpid}", s.flows)...)
	return append(list, both("aggregateflow/{dpid}", s.aggregate)...)
}

// question is one request that reads from a switch.
type question struct {
	*request
	sw   flow.DPID
	body dict
}

// reading makes a handler that reads from the switch in the path and returns the
// value to show under the switch's number.
func (s *switches) reading(f func(context.Context, *question) (any, error)) handler {
	return func(ctx context.Context, r *request) (any, error) {
		sw, err := s.connected(r.args["dpid"])
		if err != nil {
			return nil, err
		}
		body, err := r.dict()
		if err != nil {
			return nil, err
		}
		v, err := f(ctx, &question{r, sw, body})
		if err != nil {
			return nil, err
		}
		return map[string]any{strconv.FormatUint(uint64(sw), 10): v}, nil
	}
}

// ask reads from the switch. If a switch refuses, the answer is empty, as in Ryu.
func (s *switches) ask(ctx context.Context, q *question, req *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
	req.Dpid = q.sw.String()
	resp, err := s.net.read(ctx, req)
	if err != nil && refused(err) {
		q.note("the switch refuses: " + err.Error())
		return &api.ReadMultipartResponse{}, nil
	}
	return resp, err
}

// pathNumber reads a number of the path; without one, or with ALL, it is all.
func (q *question) pathNumber(name string, all uint32) (uint32, error) {
	text, ok := q.args[name]
	if !ok || text == "ALL" {
		return all, nil
	}
	n, err := number(name, text, math.MaxUint32)
	return uint32(n), err
}

func (s *switches) listSwitches(context.Context, *request) (any, error) {
	list := []uint64{}
	for _, sw := range s.view().connected() {
		list = append(list, uint64(sw))
	}
	return list, nil
}

func (s *switches) desc(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_DESC})
	d := resp.GetDesc()
	if d == nil {
		return map[string]any{}, err
	}
	return map[string]any{
		"mfr_desc": d.Manufacturer, "hw_desc": d.Hardware, "sw_desc": d.Software, "serial_num": d.Serial, "dp_desc": d.Datapath,
	}, err
}

// filter reads which flow entries the request selects.
func filter(d dict, req *api.ReadMultipartRequest) error {
	var err error
	if req.Table, err = tables.in(d, "table_id", 0xff); err != nil {
		return err
	}
	if req.Table > 0xff {
		return bad("table_id: %d: want 0 to 255", req.Table)
	}
	if _, err = d.number("flags", 0, math.MaxUint16); err != nil {
		return err
	}
	if req.OutPort, err = ports.in(d, "out_port", uint32(flow.PortAny)); err != nil {
		return err
	}
	if req.OutGroup, err = groups.in(d, "out_group", flow.GroupAny); err != nil {
		return err
	}
	if req.Cookie, err = d.number("cookie", 0, math.MaxUint64); err != nil {
		return err
	}
	if req.CookieMask, err = d.number("cookie_mask", 0, math.MaxUint64); err != nil {
		return err
	}
	in, err := d.dict("match")
	if err != nil {
		return err
	}
	m, err := readMatch(in)
	req.Match = m.Text()
	return err
}

func (s *switches) flows(ctx context.Context, q *question) (any, error) {
	req := &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_FLOW}
	if err := filter(q.body, req); err != nil {
		return nil, err
	}
	_, chosen := q.body["priority"]
	if n, ok := q.body["priority"]; ok {
		if text := numberText(n); len(text) > 0 && text[0] == '-' {
			chosen = false // as Ryu has it
			delete(q.body, "priority")
		}
	}
	priority, err := q.body.number("priority", 0, math.MaxUint16)
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, req)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, f := range resp.GetFlows() {
		if chosen && uint64(f.Flow.Priority) != priority {
			continue
		}
		e, err := entryOf(f)
		if err != nil {
			return nil, &failure{500, "entry of the switch: " + err.Error()}
		}
		list = append(list, map[string]any{
			"length": f.Length, "table_id": tables.toUser(uint32(e.Table)), "duration_sec": f.DurationSec, "duration_nsec": f.DurationNsec,
			"priority": e.Priority, "idle_timeout": e.IdleTimeout, "hard_timeout": e.HardTimeout, "flags": e.Flags,
			"cookie": f.Cookie, "packet_count": f.Flow.Packets, "byte_count": f.Flow.Bytes,
			"match": showMatch(&e.Match), "actions": showActions(&e),
		})
	}
	return list, nil
}

func (s *switches) aggregate(ctx context.Context, q *question) (any, error) {
	req := &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_AGGREGATE}
	if err := filter(q.body, req); err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, req)
	list := []any{}
	if a := resp.GetAggregate(); a != nil {
		list = append(list, map[string]any{"packet_count": a.Packets, "byte_count": a.Bytes, "flow_count": a.Flows})
	}
	return list, err
}

func (s *switches) tables(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_TABLE})
	list := []any{}
	for _, t := range resp.GetTables() {
		list = append(list, map[string]any{
			"table_id": tables.toUser(t.Table), "active_count": t.Active, "lookup_count": t.Lookups, "matched_count": t.Matched,
		})
	}
	return list, err
}

func (s *switches) ports(ctx context.Context, q *question) (any, error) {
	port, err := q.pathNumber("port", uint32(flow.PortAny))
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_PORT_STATS, Port: port})
	list := []any{}
	for _, p := range resp.GetPorts() {
		list = append(list, map[string]any{
			"port_no": ports.toUser(p.Port), "rx_packets": p.RxPackets, "tx_packets": p.TxPackets, "rx_bytes": p.RxBytes, "tx_bytes": p.TxBytes,
			"rx_dropped": p.RxDropped, "tx_dropped": p.TxDropped, "rx_errors": p.RxErrors, "tx_errors": p.TxErrors,
			"rx_frame_err": p.RxFrameErr, "rx_over_err": p.RxOverErr, "rx_crc_err": p.RxCrcErr, "collisions": p.Collisions,
			"duration_sec": p.DurationSec, "duration_nsec": p.DurationNsec,
		})
	}
	return list, err
}

func (s *switches) portDesc(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_PORT_DESC})
	list := []any{}
	for _, p := range resp.GetPortDescs() {
		list = append(list, map[string]any{
			"port_no": ports.toUser(p.Port), "hw_addr": p.HwAddr, "name": p.Name, "config": p.Config, "state": p.State, "curr": p.Curr,
			"advertised": p.Advertised, "supported": p.Supported, "peer": p.Peer, "curr_speed": p.CurrSpeed, "max_speed": p.MaxSpeed,
		})
	}
	return list, err
}

func (s *switches) queues(ctx context.Context, q *question) (any, error) {
	port, err := q.pathNumber("port", uint32(flow.PortAny))
	if err != nil {
		return nil, err
	}
	queue, err := q.pathNumber("queue", math.MaxUint32)
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_QUEUE_STATS, Port: port, Queue: queue})
	list := []any{}
	for _, x := range resp.GetQueues() {
		list = append(list, map[string]any{
			"port_no": x.Port, "queue_id": x.Queue, "tx_bytes": x.TxBytes, "tx_packets": x.TxPackets, "tx_errors": x.TxErrors,
			"duration_sec": x.DurationSec, "duration_nsec": x.DurationNsec,
		})
	}
	return list, err
}

// noRate is the rate of a queue that has none.
const noRate = 0xffff

func (s *switches) queueConfig(ctx context.Context, q *question) (any, error) {
	port, err := q.pathNumber("port", uint32(flow.PortAny))
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_QUEUE_CONFIG, Port: port})
	list := []any{}
	for _, c := range resp.GetQueueConfigs() {
		of := []any{}
		for _, x := range c.Queues {
			properties := []any{}
			if x.MinRate != noRate {
				properties = append(properties, map[string]any{"property": "MIN_RATE", "rate": x.MinRate})
			}
			if x.MaxRate != noRate {
				properties = append(properties, map[string]any{"property": "MAX_RATE", "rate": x.MaxRate})
			}
			of = append(of, map[string]any{"queue_id": queues.toUser(x.Queue), "port": ports.toUser(x.Port), "properties": properties})
		}
		list = append(list, map[string]any{"port": ports.toUser(c.Port), "queues": of})
	}
	return list, err
}

func (s *switches) role(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_ROLE})
	list := []any{}
	if r := resp.GetRole(); r != nil {
		list = append(list, map[string]any{"role": roles.toUser(r.Role), "generation_id": r.Generation})
	}
	return list, err
}
