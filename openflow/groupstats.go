package openflow

import "github.com/weft-sdn/weft/flow"

// Counter counts packets and octets.
type Counter struct {
	Packets uint64
	Bytes   uint64
}

// GroupStats is the counters of a group (OpenFlow 1.3.5 §7.3.5.9).
type GroupStats struct {
	ID           uint32
	RefCount     uint32 // entries and groups that lead to it
	Packets      uint64
	Bytes        uint64
	DurationSec  uint32
	DurationNsec uint32
	Buckets      []Counter
}

// GroupFeatures is what a switch can do with groups (OpenFlow 1.3.5
// §7.3.5.11); arrays are indexed by flow.GroupKind.
type GroupFeatures struct {
	Types        uint32 // 1 << flow.GroupKind
	Capabilities uint32 // GroupCap…
	MaxGroups    [4]uint32
	Actions      [4]ActionSet
}

// Bits of GroupFeatures.Capabilities.
const (
	GroupCapSelectWeight   uint32 = 1 << 0
	GroupCapSelectLiveness uint32 = 1 << 1
	GroupCapChaining       uint32 = 1 << 2
	GroupCapChainingChecks uint32 = 1 << 3
)

const (
	groupStatsLen    = 40 // before the buckets
	groupDescLen     = 8  // before the buckets
	groupFeaturesLen = 40
	counterLen       = 16
)

// AppendGroupStats appends one group to the body of a group statistics reply.
func (v Version) AppendGroupStats(dst []byte, s *GroupStats) ([]byte, error) {
	start := len(dst)
	dst = be.AppendUint64(dst, uint64(s.ID))
	dst = be.AppendUint64(dst, uint64(s.RefCount)<<32)
	dst = be.AppendUint64(dst, s.Packets)
	dst = be.AppendUint64(dst, s.Bytes)
	dst = be.AppendUint32(dst, s.DurationSec)
	dst = be.AppendUint32(dst, s.DurationNsec)
	return finishRecord(appendCounters(dst, s.Buckets), start, 0)
}

// DecodeGroupStats appends the groups in the body of a group statistics reply
// to dst.
func (v Version) DecodeGroupStats(body []byte, dst []GroupStats) ([]GroupStats, error) {
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 0, groupStatsLen)
		if err != nil {
			return dst, err
		}
		b := body[off : off+n]
		s := GroupStats{
			ID: be.Uint32(b[4:]), RefCount: be.Uint32(b[8:]), Packets: be.Uint64(b[16:]), Bytes: be.Uint64(b[24:]),
			DurationSec: be.Uint32(b[32:]), DurationNsec: be.Uint32(b[36:]),
		}
		if s.Buckets, err = v.counters(b, groupStatsLen, off); err != nil {
			return dst, err
		}
		dst = append(dst, s)
		off += n
	}
	return dst, nil
}

func appendCounters(dst []byte, list []Counter) []byte {
	for _, c := range list {
		dst = be.AppendUint64(dst, c.Packets)
		dst = be.AppendUint64(dst, c.Bytes)
	}
	return dst
}

// counters reads the counters that end record b, which is at off in its body.
func (v Version) counters(b []byte, from, off int) ([]Counter, error) {
	if (len(b)-from)%counterLen != 0 {
		return nil, inBody(v, malformed(TypeMultipartReply, from, "list of counters cut short", badRequestLen), off)
	}
	var list []Counter
	for b = b[from:]; len(b) > 0; b = b[counterLen:] {
		list = append(list, Counter{be.Uint64(b), be.Uint64(b[8:])})
	}
	return list, nil
}

// AppendGroupDesc appends one group to the body of a group description reply.
func (v Version) AppendGroupDesc(dst []byte, g *flow.Group) ([]byte, error) {
	start := len(dst)
	dst = be.AppendUint64(dst, uint64(g.Kind)<<40|uint64(g.ID))
	dst, err := appendBuckets(dst, "group description", g.Buckets)
	if err != nil {
		return dst[:start], err
	}
	return finishRecord(dst, start, 0)
}

// DecodeGroupDesc appends the groups in the body of a group description reply
// to dst. Actions that package flow has no place for are left out.
func (v Version) DecodeGroupDesc(body []byte, dst []flow.Group) ([]flow.Group, error) {
	var partial bool
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 0, groupDescLen)
		if err != nil {
			return dst, err
		}
		g := flow.Group{Kind: flow.GroupKind(body[off+2]), ID: be.Uint32(body[off+4:])}
		if g.Buckets, err = decodeBuckets(TypeMultipartReply, body, off+groupDescLen, off+n, nil, &partial); err != nil {
			return dst, inBody(v, err, 0)
		}
		dst = append(dst, g)
		off += n
	}
	return dst, nil
}

// AppendGroupFeatures appends the body of a group features reply.
func (v Version) AppendGroupFeatures(dst []byte, f *GroupFeatures) []byte {
	dst = be.AppendUint32(dst, f.Types)
	dst = be.AppendUint32(dst, f.Capabilities)
	for _, n := range f.MaxGroups {
		dst = be.AppendUint32(dst, n)
	}
	for _, a := range f.Actions {
		dst = be.AppendUint32(dst, uint32(a))
	}
	return dst
}

// DecodeGroupFeatures reads the body of a group features reply.
func (v Version) DecodeGroupFeatures(body []byte) (GroupFeatures, error) {
	if err := v.checkBody(body, groupFeaturesLen); err != nil {
		return GroupFeatures{}, err
	}
	f := GroupFeatures{Types: be.Uint32(body), Capabilities: be.Uint32(body[4:])}
	for i := range f.MaxGroups {
		f.MaxGroups[i] = be.Uint32(body[8+4*i:])
		f.Actions[i] = ActionSet(be.Uint32(body[24+4*i:]))
	}
	return f, nil
}
