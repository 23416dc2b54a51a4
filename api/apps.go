package api

import (
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/flow"
)

// MaxOperations is how many operations one Decision of an app may have;
// maxActions how many actions are in one list, and maxBuckets buckets in a group.
const (
	MaxOperations = 256
	maxActions    = 64
	maxBuckets    = 64
)

// markMask selects the bits of a cookie that tell Weft's entries from others'.
const markMask flow.Cookie = 0xffff << 48

var (
	reasons  = [...]string{"no_match", "action", "invalid_ttl"}
	roles    = [...]string{"unsettled", "edge", "link", "blocked"}
	verdicts = [...]string{"next", "done", "drop"}
	groups   = [...]string{"all", "select", "indirect", "fast_failover"}
)

// NewPacketIn returns the message for a packet-in. The message shares its
// Data. Fields says what in.Key holds: all of it only if in.Parsed.
func NewPacketIn(in *flow.PacketIn) *PacketIn {
	m := headerFields(&in.Key)
	p := &PacketIn{
		Dpid: in.Switch.String(), InPort: uint32(in.Key.InPort), Reason: textOf(reasons[:], in.Reason), Table: uint32(in.Table),
		Cookie: fmt.Sprintf("%016x", uint64(in.Cookie)), Time: time.Unix(0, in.Time).UTC().Format(time.RFC3339Nano),
		TotalLen: uint32(in.TotalLen), Fields: m.Text(), Data: in.Data, Role: in.Role.String(),
	}
	if in.Src != (flow.Location{}) {
		p.Src = NewLocation(in.Src)
	}
	if in.Dst != (flow.Location{}) {
		p.Dst, p.DstMac = NewLocation(in.Dst), in.DstMAC.String()
	}
	p.HeldBy = in.HeldBy
	return p
}

// Flow returns the packet-in as a value, or an InvalidArgument error that says
// which field is wrong. It shares the message's Data, and is not Parsed.
func (p *PacketIn) Flow() (in flow.PacketIn, err error) {
	fail := func(format string, args ...any) (flow.PacketIn, error) {
		return flow.PacketIn{}, Errorf(codes.InvalidArgument, "packet-in: "+format, args...)
	}
	if in.Switch, err = flow.ParseDPID(p.GetDpid()); err != nil {
		return fail("%w", err)
	}
	if in.Reason, err = valueOf[flow.Reason]("reason", reasons[:], p.GetReason()); err != nil {
		return fail("%w", err)
	}
	if in.Role, err = valueOf[flow.PortRole]("role", roles[:], p.GetRole()); err != nil {
		return fail("%w", err)
	}
	if in.Cookie, err = parseCookie(p.GetCookie()); err != nil {
		return fail("%w", err)
	}
	if p.GetTime() != "" {
		at, err := time.Parse(time.RFC3339Nano, p.GetTime())
		if err != nil {
			return fail("time %q: want RFC 3339, such as 2026-01-02T15:04:05.999Z", p.GetTime())
		}
		in.Time = at.UnixNano()
	}
	if p.GetTable() > math.MaxUint8 || p.GetTotalLen() > math.MaxUint16 {
		return fail("table %d, total_len %d: want at most 255 and 65535", p.GetTable(), p.GetTotalLen())
	}
	m, err := flow.ParseMatch(p.GetFields())
	if err != nil {
		return fail("fields: %w", err)
	}
	in.Key, in.Key.InPort = m.Key, flow.Port(p.GetInPort())
	in.Table, in.TotalLen, in.BufferID, in.Data = uint8(p.GetTable()), uint16(p.GetTotalLen()), flow.BufferNone, p.GetData()
	in.Src, in.Dst = p.GetSrc().Flow(), p.GetDst().Flow()
	if p.GetDstMac() != "" {
		if in.DstMAC, err = flow.ParseMAC(p.GetDstMac()); err != nil {
			return fail("dst_mac: %w", err)
		}
	}
	in.HeldBy, in.Unapproved = p.GetHeldBy(), len(p.GetHeldBy()) > 0
	return in, nil
}

// NewDecision returns the message for what is decided on a packet. It fails on
// meters, and on flow-mods other than adding and strict deletion, for which an
// app's decision has no words.
func NewDecision(v flow.Verdict, d *flow.Decision) (*Decision, error) {
	m := &Decision{Verdict: textOf(verdicts[:], v)}
	for _, op := range d.Ops {
		o, err := newOperation(op, d)
		if err != nil {
			return nil, Errorf(codes.InvalidArgument, "decision: %w", err)
		}
		m.Operations = append(m.Operations, o)
	}
	return m, nil
}

func newOperation(op flow.Op, d *flow.Decision) (*Operation, error) {
	switch op.Kind {
	case flow.OpFlow:
		m := &d.Flows[op.Index]
		entry := NewFlowEntry(op.Switch, &m.Entry)
		switch m.Command {
		case flow.Add:
			return &Operation{Operation: &Operation_AddFlow{entry}}, nil
		case flow.DeleteStrict:
			return &Operation{Operation: &Operation_DeleteFlow{entry}}, nil
		}
	case flow.OpGroup:
		m := &d.Groups[op.Index]
		g := newGroup(op.Switch, &m.Group)
		switch m.Command {
		case flow.Add:
			return &Operation{Operation: &Operation_AddGroup{g}}, nil
		case flow.Modify:
			return &Operation{Operation: &Operation_ModifyGroup{g}}, nil
		case flow.Delete:
			return &Operation{Operation: &Operation_DeleteGroup{g}}, nil
		}
	case flow.OpPacketOut:
		o := &d.Outs[op.Index]
		out := &PacketOut{Dpid: op.Switch.String(), Actions: flow.ActionStrings(o.Actions), Data: o.Data}
		if o.InPort != flow.PortController {
			out.InPort = uint32(o.InPort)
		}
		return &Operation{Operation: &Operation_PacketOut{out}}, nil
	case flow.OpFence:
		return &Operation{Operation: &Operation_Fence{true}}, nil
	}
	return nil, fmt.Errorf("operation %d of kind %d on %v cannot be said by an app", op.Index, op.Kind, op.Switch)
}

func newGroup(sw flow.DPID, g *flow.Group) *Group {
	m := &Group{Dpid: sw.String(), Id: g.ID, Type: textOf(groups[:], g.Kind)}
	for i := range g.Buckets {
		b := &g.Buckets[i]
		k := &Bucket{Weight: uint32(b.Weight), Actions: flow.ActionStrings(b.Actions)}
		if b.WatchPort != flow.PortAny {
			k.WatchPort = uint32(b.WatchPort)
		}
		m.Buckets = append(m.Buckets, k)
	}
	return m
}

// textOf returns the word for a value, its number if there is none.
func textOf[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprint(uint8(v))
}

// valueOf returns the value of a word; that of none is the first.
func valueOf[T ~uint8](what string, words []string, word string) (T, error) {
	for i, w := range words {
		if w == word || word == "" {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%s %q: want one of %q", what, word, words)
}

// appPrefix begins the owner of entries that apps have asked for.
const appPrefix = "app "

// AppOwner returns the owner of the entries that an app asks for.
func AppOwner(name string) string { return appPrefix + name }

// AppOf returns the app that an owner of entries is, empty if it is none.
func AppOf(owner string) string {
	name, _ := strings.CutPrefix(owner, appPrefix)
	if name == owner {
		return ""
	}
	return name
}
