package sim

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// partSize is how large a part of a reply is before the next is begun.
const partSize = 32 << 10

// parts collects the bodies of a multipart reply and sends them.
type parts struct {
	nd   *node
	xid  uint32
	kind openflow.MultipartType
	body []byte
}

// put adds what has been appended to p.body, sending parts that are full.
func (p *parts) put(body []byte, err error) {
	if err != nil {
		return
	}
	p.body = body
	if len(p.body) >= partSize {
		p.nd.queue(p.nd.version.AppendMultipartReply(p.nd.pending, p.xid, p.kind, true, p.body))
		p.body = p.body[:0]
	}
}

// end sends the last part.
func (p *parts) end() {
	p.nd.queue(p.nd.version.AppendMultipartReply(p.nd.pending, p.xid, p.kind, false, p.body))
	p.nd.net.body = p.body[:0]
}

// multipart answers a request for statistics or descriptions.
func (nd *node) multipart(h openflow.Header, msg []byte) error {
	var r openflow.MultipartRequest
	v := nd.version
	if err := v.DecodeMultipartRequest(msg, &r); err != nil {
		return err
	}
	p := parts{nd: nd, xid: h.Xid, kind: r.Type, body: nd.net.body[:0]}
	switch r.Type {
	case openflow.MultipartDesc:
		p.put(v.AppendDesc(p.body, &openflow.Desc{
			Manufacturer: "Weft", Hardware: "simulated switch", Software: "sim", Serial: nd.dpid.String(), Datapath: nd.net.cfg.Topology.Name,
		}), nil)
	case openflow.MultipartFlow:
		nd.eachFlow(&r, func(e *entry) {
			s := openflow.FlowStats{Entry: e.Entry, Packets: e.packets, Bytes: e.bytes}
			s.DurationSec, s.DurationNsec = nd.net.age(e.since)
			p.put(v.AppendFlowStats(p.body, &s))
		})
	case openflow.MultipartAggregate:
		var a openflow.Aggregate
		nd.eachFlow(&r, func(e *entry) {
			a.Flows++
			a.Packets += e.packets
			a.Bytes += e.bytes
		})
		p.put(v.AppendAggregate(p.body, &a), nil)
	case openflow.MultipartTable:
		nd.tableStats(&p)
	case openflow.MultipartPortStats:
		for i := range nd.ports {
			if pt := &nd.ports[i]; r.Port == flow.PortAny || r.Port == pt.desc.No {
				s := openflow.PortStats{Port: pt.desc.No, RxPackets: pt.rx.Packets, RxBytes: pt.rx.Bytes, TxPackets: pt.tx.Packets, TxBytes: pt.tx.Bytes, TxDropped: pt.drops}
				s.DurationSec, s.DurationNsec = nd.net.age(0)
				p.put(v.AppendPortStats(p.body, &s))
			}
		}
	case openflow.MultipartPortDesc:
		for i := range nd.ports {
			p.put(v.AppendPortDesc(p.body, &nd.ports[i].desc))
		}
	case openflow.MultipartGroup:
		for id, g := range nd.table.groups {
			if r.Group == flow.GroupAll || r.Group == id {
				p.put(v.AppendGroupStats(p.body, &openflow.GroupStats{ID: id, Buckets: make([]openflow.Counter, len(g.Buckets))}))
			}
		}
	case openflow.MultipartGroupDesc:
		for _, g := range nd.table.groups {
			p.put(v.AppendGroupDesc(p.body, g))
		}
	case openflow.MultipartGroupFeatures:
		most := uint32(nd.table.maxGroups)
		p.put(v.AppendGroupFeatures(p.body, &openflow.GroupFeatures{
			Types: 1<<flow.GroupKindAll | 1<<flow.GroupKindIndirect | 1<<flow.GroupKindFastFailover, MaxGroups: [4]uint32{most, 0, most, most},
		}), nil)
	case openflow.MultipartMeterFeatures:
		p.put(v.AppendMeterFeatures(p.body, &openflow.MeterFeatures{}), nil) // there are none
	case openflow.MultipartQueue, openflow.MultipartMeter, openflow.MultipartMeterConfig: // none either
	default:
		nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBadMultipart)
		return nil
	}
	p.end()
	return nil
}

// eachFlow calls f for the entries that a request selects.
func (nd *node) eachFlow(r *openflow.MultipartRequest, f func(*entry)) {
	for _, e := range nd.table.entries {
		if r.Table != flow.TableAll && r.Table != e.Table || (e.Cookie^r.Cookie)&r.CookieMask != 0 {
			continue
		}
		if e.leadsTo(r.OutPort, r.OutGroup) && r.Match.Covers(&e.Match) {
			f(e)
		}
	}
}

// tableStats writes the statistics of every table.
func (nd *node) tableStats(p *parts) {
	var active [tables]uint32
	for _, e := range nd.table.entries {
		active[e.Table]++
	}
	count := tables
	if nd.version == openflow.V10 {
		count = 1
	}
	for t := range count {
		s := openflow.TableStats{Table: uint8(t), Active: active[t], Name: "simulated", Wildcards: 0x3fffff, MaxEntries: uint32(nd.table.maxEntries)}
		if t == 0 {
			s.Lookups, s.Matched = nd.table.lookups, nd.table.matched
		}
		p.put(nd.version.AppendTableStats(p.body, &s), nil)
	}
}
