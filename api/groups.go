package api

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/flow"
)

// meterFlags are the words for the bits of a meter's flags, from the lowest
// (OpenFlow 1.3.5 §7.3.4.4).
var meterFlags = [...]string{"kbps", "pktps", "burst", "stats"}

// NewGroup returns the message for a group of a switch, without counters.
func NewGroup(sw flow.DPID, g *flow.Group) *Group {
	m := newGroup(sw, g)
	for i := range g.Buckets {
		if w := g.Buckets[i].WatchGroup; w != flow.GroupAny {
			m.Buckets[i].WatchGroup = w
		}
	}
	return m
}

// Group returns the switch and the group that the message describes, or an
// InvalidArgument error that says what is wrong and what it may be.
func (g *Group) Group() (flow.DPID, flow.Group, error) {
	out, err := g.group()
	sw, swErr := flow.ParseDPID(g.GetDpid())
	if swErr != nil {
		err = swErr
	}
	if err != nil {
		return 0, flow.Group{}, Errorf(codes.InvalidArgument, "group %d: %w", g.GetId(), err)
	}
	return sw, out, nil
}

// groupBuckets bounds the buckets of a group: more, of one action each, do not fit
// an OpenFlow message.
const groupBuckets = 2000

func (g *Group) group() (flow.Group, error) {
	out := flow.Group{ID: g.GetId()}
	if id := flow.Port(g.GetId()); id == 0 || id > flow.PortMax {
		return out, fmt.Errorf("id: want 1 to %d", uint32(flow.PortMax))
	}
	kind, err := valueOf[flow.GroupKind]("type", groups[:], g.GetType())
	if err != nil {
		return out, err
	}
	out.Kind = kind
	if n := len(g.GetBuckets()); n > groupBuckets || kind == flow.GroupKindIndirect && n != 1 {
		return out, fmt.Errorf("%d buckets: want at most %d, and exactly one in a group of type indirect", n, groupBuckets)
	}
	for i, b := range g.GetBuckets() {
		k := flow.Bucket{Weight: uint16(b.GetWeight()), WatchPort: flow.PortAny, WatchGroup: flow.GroupAny}
		if b.GetWeight() > math.MaxUint16 || len(b.GetActions()) > maxActions {
			return out, fmt.Errorf("bucket %d: weight %d and %d actions: want at most 65535 and %d", i, b.GetWeight(), len(b.GetActions()), maxActions)
		}
		if b.GetWatchPort() != 0 {
			k.WatchPort = flow.Port(b.GetWatchPort())
		}
		if b.GetWatchGroup() != 0 {
			k.WatchGroup = b.GetWatchGroup()
		}
		if k.Actions, err = parseActions(b.GetActions()); err != nil {
			return out, fmt.Errorf("bucket %d: %w", i, err)
		}
		out.Buckets = append(out.Buckets, k)
	}
	return out, nil
}

// NewMeter returns the message for a meter of a switch, without counters.
func NewMeter(sw flow.DPID, m *flow.Meter) *Meter {
	out := &Meter{Dpid: sw.String(), Id: m.ID}
	for i, word := range meterFlags {
		if m.Flags&(1<<i) != 0 {
			out.Flags = append(out.Flags, word)
		}
	}
	for _, b := range m.Bands {
		band := &Band{Type: "drop", Rate: b.Rate, Burst: b.BurstSize, Precedence: uint32(b.PrecLevel)}
		switch b.Kind {
		case flow.MeterDrop:
		case flow.MeterDSCPRemark:
			band.Type = "dscp_remark"
		default:
			band.Type = fmt.Sprintf("kind_%d", b.Kind)
		}
		out.Bands = append(out.Bands, band)
	}
	return out
}

// maxBands bounds the bands of a meter in a request.
const maxBands = 16

// Meter returns the switch and the meter that the message describes, or an
// InvalidArgument error that says what is wrong and what it may be.
func (m *Meter) Meter() (flow.DPID, flow.Meter, error) {
	out, err := m.meter()
	sw, swErr := flow.ParseDPID(m.GetDpid())
	if swErr != nil {
		err = swErr
	}
	if err != nil {
		return 0, flow.Meter{}, Errorf(codes.InvalidArgument, "meter %d: %w", m.GetId(), err)
	}
	return sw, out, nil
}

func (m *Meter) meter() (flow.Meter, error) {
	out := flow.Meter{ID: m.GetId()}
	if out.ID == 0 || out.ID > 0xffff0000 {
		return out, fmt.Errorf("id: want 1 to %d", uint32(0xffff0000))
	}
	for _, word := range m.GetFlags() {
		i := slices.Index(meterFlags[:], strings.ToLower(word))
		if i < 0 {
			return out, fmt.Errorf("flag %q: want one of %q", word, meterFlags)
		}
		out.Flags |= 1 << i
	}
	if unit := out.Flags & 3; unit != 1 && unit != 2 {
		return out, fmt.Errorf("flags %q: want one of kbps and pktps", m.GetFlags())
	}
	if n := len(m.GetBands()); n == 0 || n > maxBands {
		return out, fmt.Errorf("%d bands: want 1 to %d", n, maxBands)
	}
	for i, b := range m.GetBands() {
		band := flow.Band{Kind: flow.MeterDrop, Rate: b.GetRate(), BurstSize: b.GetBurst()}
		switch b.GetType() {
		case "drop", "":
			if b.GetPrecedence() != 0 {
				return out, fmt.Errorf("band %d: precedence %d: only bands of type dscp_remark have one", i, b.GetPrecedence())
			}
		case "dscp_remark":
			band.Kind, band.PrecLevel = flow.MeterDSCPRemark, uint8(b.GetPrecedence())
			if p := b.GetPrecedence(); p == 0 || p > 2 {
				return out, fmt.Errorf("band %d: precedence %d: want 1 or 2", i, p)
			}
		default:
			return out, fmt.Errorf("band %d: type %q: want drop or dscp_remark", i, b.GetType())
		}
		if band.Rate == 0 {
			return out, fmt.Errorf("band %d: rate 0: want at least 1", i)
		}
		out.Bands = append(out.Bands, band)
	}
	return out, nil
}
