package ryu

import (
	"context"
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The names of group types, meter flags and capabilities, by their bits.
var (
	groupTypes    = []string{"ALL", "SELECT", "INDIRECT", "FF"}
	groupAbility  = []string{"SELECT_WEIGHT", "SELECT_LIVENESS", "CHAINING", "CHAINING_CHECKS"}
	meterFlags    = []string{"KBPS", "PKTPS", "BURST", "STATS"}
	meterBands    = map[uint32]string{1: "DROP", 2: "DSCP_REMARK", 0xffff: "EXPERIMENTER"}
	bandNames     = []string{"", "DROP", "DSCP_REMARK"}
	actionNumbers = []named{
		{"OUTPUT", 0}, {"COPY_TTL_OUT", 11}, {"COPY_TTL_IN", 12}, {"SET_MPLS_TTL", 15}, {"DEC_MPLS_TTL", 16}, {"PUSH_VLAN", 17},
		{"POP_VLAN", 18}, {"PUSH_MPLS", 19}, {"POP_MPLS", 20}, {"SET_QUEUE", 21}, {"GROUP", 22}, {"SET_NW_TTL", 23},
		{"DEC_NW_TTL", 24}, {"SET_FIELD", 25}, {"PUSH_PBB", 26}, {"POP_PBB", 27},
	}
)

// bits returns the names of the bits that are set.
func bits(set uint32, names []string) []string {
	list := []string{}
	for i, name := range names {
		if set&(1<<i) != 0 && name != "" {
			list = append(list, name)
		}
	}
	return list
}

func (s *switches) groups(ctx context.Context, q *question) (any, error) {
	group, err := q.pathNumber("group", flow.GroupAll)
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_GROUP_STATS, Group: group})
	list := []any{}
	for _, g := range resp.GetGroups() {
		buckets := []any{}
		for _, b := range g.Buckets {
			buckets = append(buckets, map[string]any{"packet_count": b.Packets, "byte_count": b.Bytes})
		}
		list = append(list, map[string]any{
			"length":   40 + 16*len(g.Buckets), // OpenFlow 1.3.5 §7.3.5.9
			"group_id": groups.toUser(g.Group), "ref_count": g.RefCount, "packet_count": g.Packets, "byte_count": g.Bytes,
			"duration_sec": g.DurationSec, "duration_nsec": g.DurationNsec, "bucket_stats": buckets,
		})
	}
	return list, err
}

func (s *switches) groupDesc(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_GROUP_DESC})
	list := []any{}
	for _, g := range resp.GetGroupDescs() {
		buckets := []any{}
		for _, b := range g.Buckets {
			buckets = append(buckets, map[string]any{
				"weight": b.Weight, "watch_port": b.WatchPort, "watch_group": b.WatchGroup, "actions": showTexts(b.Actions),
			})
		}
		var kind any
		if g.Type < uint32(len(groupTypes)) {
			kind = groupTypes[g.Type]
		}
		list = append(list, map[string]any{"type": kind, "group_id": groups.toUser(g.Group), "buckets": buckets})
	}
	return list, err
}

func (s *switches) groupFeatures(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_GROUP_FEATURES})
	f := resp.GetGroupFeatures()
	if f == nil || len(f.MaxGroups) != len(groupTypes) || len(f.Actions) != len(groupTypes) {
		return []any{}, err
	}
	most, actions := []any{}, []any{}
	for i, name := range groupTypes {
		most = append(most, map[string]any{name: f.MaxGroups[i]})
		can := []string{}
		for _, a := range actionNumbers {
			if f.Actions[i]&(1<<a.number) != 0 {
				can = append(can, a.name)
			}
		}
		actions = append(actions, map[string]any{name: can})
	}
	return []any{map[string]any{
		"types": bits(f.Types, groupTypes), "capabilities": bits(f.Capabilities, groupAbility), "max_groups": most, "actions": actions,
	}}, err
}

func (s *switches) meters(ctx context.Context, q *question) (any, error) {
	meter, err := q.pathNumber("meter", flow.MeterAll)
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_METER_STATS, Meter: meter})
	list := []any{}
	for _, m := range resp.GetMeters() {
		bands := []any{}
		for _, b := range m.Bands {
			bands = append(bands, map[string]any{"packet_band_count": b.Packets, "byte_band_count": b.Bytes})
		}
		list = append(list, map[string]any{
			"len":      40 + 16*len(m.Bands), // OpenFlow 1.3.5 §7.3.5.12
			"meter_id": meters.toUser(m.Meter), "flow_count": m.Flows, "packet_in_count": m.Packets, "byte_in_count": m.Bytes,
			"duration_sec": m.DurationSec, "duration_nsec": m.DurationNsec, "band_stats": bands,
		})
	}
	return list, err
}

func (s *switches) meterConfig(ctx context.Context, q *question) (any, error) {
	meter, err := q.pathNumber("meter", flow.MeterAll)
	if err != nil {
		return nil, err
	}
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_METER_CONFIG, Meter: meter})
	list := []any{}
	for _, m := range resp.GetMeterConfigs() {
		bands := []any{}
		for _, b := range m.Bands {
			band := map[string]any{"type": meterBands[b.Type], "rate": b.Rate, "burst_size": b.BurstSize}
			if b.Type == uint32(flow.MeterDSCPRemark) {
				band["prec_level"] = b.PrecLevel
			}
			bands = append(bands, band)
		}
		list = append(list, map[string]any{"flags": bits(m.Flags, meterFlags), "meter_id": meters.toUser(m.Meter), "bands": bands})
	}
	return list, err
}

func (s *switches) meterFeatures(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_METER_FEATURES})
	f := resp.GetMeterFeatures()
	if f == nil {
		return []any{}, err
	}
	return []any{map[string]any{
		"max_meter": f.MaxMeter, "band_types": bits(f.BandTypes, bandNames), "capabilities": bits(f.Capabilities, meterFlags),
		"max_bands": f.MaxBands, "max_color": f.MaxColor,
	}}, err
}

// propertyNames are Ryu's names of the properties of a table, by number.
var propertyNames = map[uint32]string{
	0: "INSTRUCTIONS", 1: "INSTRUCTIONS_MISS", 2: "NEXT_TABLES", 3: "NEXT_TABLES_MISS", 4: "WRITE_ACTIONS", 5: "WRITE_ACTIONS_MISS",
	6: "APPLY_ACTIONS", 7: "APPLY_ACTIONS_MISS", 8: "MATCH", 10: "WILDCARDS", 12: "WRITE_SETFIELD", 13: "WRITE_SETFIELD_MISS",
	14: "APPLY_SETFIELD", 15: "APPLY_SETFIELD_MISS", 0xfffe: "EXPERIMENTER", 0xffff: "EXPERIMENTER_MISS",
}

func (s *switches) tableFeatures(ctx context.Context, q *question) (any, error) {
	resp, err := s.ask(ctx, q, &api.ReadMultipartRequest{Kind: api.Multipart_MULTIPART_TABLE_FEATURES})
	list := []any{}
	for _, t := range resp.GetTableFeatures() {
		properties := []any{}
		for _, p := range t.Properties {
			properties = append(properties, showProperty(p))
		}
		list = append(list, map[string]any{
			"table_id": tables.toUser(t.Table), "name": t.Name, "metadata_match": t.MetadataMatch, "metadata_write": t.MetadataWrite,
			"config": t.Config, "max_entries": t.MaxEntries, "properties": properties,
		})
	}
	return list, err
}

func showProperty(p *api.TableProperty) map[string]any {
	out := map[string]any{"type": "UNKNOWN"}
	if name, ok := propertyNames[p.Kind]; ok {
		out["type"] = name
	}
	switch {
	case p.Kind < 2 || p.Kind >= 4 && p.Kind < 8:
		ids := []any{}
		for _, n := range p.Numbers {
			ids = append(ids, map[string]any{"type": n >> 16, "len": n & 0xffff})
		}
		out[map[bool]string{true: "instruction_ids", false: "action_ids"}[p.Kind < 2]] = ids
	case p.Kind < 4:
		ids := []int{}
		for _, t := range p.Tables {
			ids = append(ids, int(t))
		}
		out["table_ids"] = ids
	case p.Kind < 16:
		ids := []any{}
		for _, h := range p.Fields {
			ids = append(ids, map[string]any{"type": fieldName(h), "hasmask": h >> 8 & 1, "length": h & 0xff})
		}
		out["oxm_ids"] = ids
	}
	return out
}

// fieldName returns Ryu's name of the field of an OXM header.
func fieldName(header uint32) string {
	n := header >> 9 // class and field
	switch class, field := header>>16, n&0x7f; {
	case class == 0x8000 && field <= uint32(flow.FieldIPv6ExtHdr): // those behind are not of the standard
		return flow.Field(field).String()
	case class == 0 && field < uint32(len(nxm0)):
		return nxm0[field]
	case class == 1 && nxm1[field] != "":
		return nxm1[field]
	}
	return fmt.Sprintf("field_%d", n)
}
