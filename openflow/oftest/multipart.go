package oftest

import (
	"maps"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// replyRoom is how many octets of a multipart reply's body go in one message.
const replyRoom = 60_000

// parts are the bodies of a multipart reply, cut between elements.
type parts struct{ bodies [][]byte }

// add adds an element; one that the version has no form for is left out.
func (p *parts) add(element []byte, err error) {
	if err != nil {
		return
	}
	if n := len(p.bodies); n == 0 || len(p.bodies[n-1])+len(element) > replyRoom {
		p.bodies = append(p.bodies, nil)
	}
	last := &p.bodies[len(p.bodies)-1]
	*last = append(*last, element...)
}

// multipart answers a multipart request (§7.3.5).
func (s *Switch) multipart(c *conn, xid uint32, msg []byte) error {
	v := c.version
	var r openflow.MultipartRequest
	if err := v.DecodeMultipartRequest(msg, &r); err != nil {
		return err
	}
	var p parts
	var err error
	switch r.Type {
	case openflow.MultipartDesc:
		p.add(v.AppendDesc(nil, &s.cfg.Desc), nil)
	case openflow.MultipartFlow:
		err = s.flowReply(v, &r, &p)
	case openflow.MultipartAggregate:
		err = s.aggregateReply(v, &r, &p)
	case openflow.MultipartTable:
		s.tableReply(v, &p)
	case openflow.MultipartPortStats:
		err = s.portStatsReply(v, &r, &p)
	case openflow.MultipartQueue:
		if s.ports[r.Port] == nil && r.Port != flow.PortAny {
			err = refuse(openflow.ErrQueueOpFailed, openflow.QueueOpFailedBadPort)
		} else if r.Queue != openflow.QueueAll {
			err = refuse(openflow.ErrQueueOpFailed, openflow.QueueOpFailedBadQueue)
		}
	case openflow.MultipartPortDesc:
		for _, port := range s.portList() {
			desc := c.view(port.PortDesc)
			p.add(v.AppendPortDesc(nil, &desc))
		}
	case openflow.MultipartTableFeatures:
		if err = s.refuseFeatures(c, &r); err == nil {
			s.tableFeaturesReply(v, &p)
		}
	case openflow.MultipartExperimenter:
		err = refuse(openflow.ErrBadRequest, openflow.BadRequestBadExperimenter)
	default:
		err = s.groupOrMeterReply(v, &r, &p)
	}
	if err != nil {
		return err
	}
	if len(p.bodies) == 0 {
		p.bodies = [][]byte{nil}
	}
	for i, body := range p.bodies {
		s.send(c, must(v.AppendMultipartReply(nil, xid, r.Type, i < len(p.bodies)-1, body)))
	}
	return nil
}

// asked calls each for the entries that a flow or aggregate request is about.
func (s *Switch) asked(r *openflow.MultipartRequest, each func(*entry)) error {
	if r.Table != flow.TableAll && int(r.Table) >= len(s.tables) {
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadTableID)
	}
	if err := openflow.CheckMatch(&r.Match); err != nil {
		return err
	}
	for t := range s.tables {
		if r.Table != flow.TableAll && int(r.Table) != t {
			continue
		}
		for _, e := range s.tables[t].entries {
			if r.Match.Covers(&e.Match) && (e.Cookie^r.Cookie)&r.CookieMask == 0 && e.leadsTo(r.OutPort, r.OutGroup) {
				each(e)
			}
		}
	}
	return nil
}

func (s *Switch) flowReply(v openflow.Version, r *openflow.MultipartRequest, p *parts) error {
	return s.asked(r, func(e *entry) {
		st := s.stats(e)
		p.add(v.AppendFlowStats(nil, &st))
	})
}

func (s *Switch) aggregateReply(v openflow.Version, r *openflow.MultipartRequest, p *parts) error {
	var a openflow.Aggregate
	err := s.asked(r, func(e *entry) {
		a.Flows++
		a.Packets += e.packets
		a.Bytes += e.bytes
	})
	p.add(v.AppendAggregate(nil, &a), nil)
	return err
}

func (s *Switch) tableReply(v openflow.Version, p *parts) {
	for i := range s.tables {
		t := &s.tables[i]
		p.add(v.AppendTableStats(nil, &openflow.TableStats{
			Table: uint8(i), Active: uint32(len(t.entries)), Lookups: t.lookups, Matched: t.matched,
			Name: tableName(i), Wildcards: 1<<22 - 1, MaxEntries: s.maxEntries(),
		}), nil)
	}
}

func (s *Switch) portStatsReply(v openflow.Version, r *openflow.MultipartRequest, p *parts) error {
	if r.Port != flow.PortAny && s.ports[r.Port] == nil {
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadPort)
	}
	for _, port := range s.portList() {
		if r.Port != flow.PortAny && r.Port != port.No {
			continue
		}
		st := port.stats
		st.DurationSec, st.DurationNsec = s.sinceParts(port.since)
		p.add(v.AppendPortStats(nil, &st))
	}
	return nil
}

// groupOrMeterReply answers the requests about groups and meters.
func (s *Switch) groupOrMeterReply(v openflow.Version, r *openflow.MultipartRequest, p *parts) error {
	switch r.Type {
	case openflow.MultipartGroup:
		if r.Group != flow.GroupAll && s.groups[r.Group] == nil {
			return refuse(openflow.ErrGroupModFailed, openflow.GroupModFailedUnknownGroup)
		}
		for _, g := range s.groupList() {
			if r.Group == flow.GroupAll || r.Group == g.ID {
				st := openflow.GroupStats{ID: g.ID, RefCount: s.references(g.ID), Packets: g.packets.Packets, Bytes: g.packets.Bytes, Buckets: g.buckets}
				st.DurationSec, st.DurationNsec = s.sinceParts(g.since)
				p.add(v.AppendGroupStats(nil, &st))
			}
		}
	case openflow.MultipartGroupDesc:
		for _, g := range s.groupList() {
			p.add(v.AppendGroupDesc(nil, &g.Group))
		}
	case openflow.MultipartGroupFeatures:
		f := openflow.GroupFeatures{Types: 0b1111, Capabilities: openflow.GroupCapSelectWeight | openflow.GroupCapSelectLiveness | openflow.GroupCapChaining | openflow.GroupCapChainingChecks}
		for i := range f.MaxGroups {
			f.MaxGroups[i], f.Actions[i] = groupMax, actions
			if s.cfg.MaxGroups > 0 {
				f.MaxGroups[i] = uint32(s.cfg.MaxGroups)
			}
		}
		p.add(v.AppendGroupFeatures(nil, &f), nil)
	case openflow.MultipartMeter, openflow.MultipartMeterConfig:
		if r.Meter != flow.MeterAll && s.meters[r.Meter] == nil {
			return refuse(openflow.ErrMeterModFailed, openflow.MeterModFailedUnknownMeter)
		}
		for _, id := range slices.Sorted(maps.Keys(s.meters)) {
			if r.Meter == flow.MeterAll || r.Meter == id {
				p.add(s.meterElement(v, r.Type, s.meters[id]))
			}
		}
	case openflow.MultipartMeterFeatures:
		f := openflow.MeterFeatures{MaxMeter: meterMax, BandTypes: 1 << flow.MeterDrop, Capabilities: uint32(meterFlags), MaxBands: bandsMax}
		if s.cfg.MaxMeters > 0 {
			f.MaxMeter = uint32(s.cfg.MaxMeters)
		}
		p.add(v.AppendMeterFeatures(nil, &f), nil)
	}
	return nil
}

func (s *Switch) meterElement(v openflow.Version, t openflow.MultipartType, m *meter) ([]byte, error) {
	if t == openflow.MultipartMeterConfig {
		return v.AppendMeterConfig(nil, &m.Meter)
	}
	st := openflow.MeterStats{ID: m.ID, Packets: m.packets.Packets, Bytes: m.packets.Bytes, Bands: m.dropped}
	for t := range s.tables {
		for _, e := range s.tables[t].entries {
			if e.Meter == m.ID {
				st.Flows++
			}
		}
	}
	st.DurationSec, st.DurationNsec = s.sinceParts(m.since)
	return v.AppendMeterStats(nil, &st)
}
