package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/flow"
)

// Append adds to d what the message decides on a packet and returns its
// verdict. If anything in the message is wrong, d stays as it is and the
// InvalidArgument error says which operation, which field, and what it may be.
//
// A dpid that is empty is the packet's switch, and data that is empty the
// packet. The cookie of an entry must not be one of Weft's own, and deletes only
// entries that have it: so no app deletes the entries of Weft's services.
func (d *Decision) Append(in *flow.PacketIn, to *flow.Decision) (flow.Verdict, error) {
	fail := func(err error) (flow.Verdict, error) {
		return flow.Next, Errorf(codes.InvalidArgument, "decision: %w", err)
	}
	verdict, err := valueOf[flow.Verdict]("verdict", verdicts[:], d.GetVerdict())
	if err != nil {
		return fail(err)
	}
	if n := len(d.GetOperations()); n > MaxOperations {
		return fail(fmt.Errorf("%d operations: want at most %d", n, MaxOperations))
	}
	adds := make([]func(*flow.Decision), 0, len(d.GetOperations()))
	for i, o := range d.GetOperations() {
		add, err := o.check(in)
		if err != nil {
			return fail(fmt.Errorf("operation %d: %w", i, err))
		}
		adds = append(adds, add)
	}
	for _, add := range adds {
		add(to)
	}
	return verdict, nil
}

// check returns what adds a checked operation to a decision.
func (o *Operation) check(in *flow.PacketIn) (func(*flow.Decision), error) {
	switch o := o.GetOperation().(type) {
	case *Operation_AddFlow:
		return checkFlow("add_flow", o.AddFlow, in, flow.Add)
	case *Operation_DeleteFlow:
		return checkFlow("delete_flow", o.DeleteFlow, in, flow.DeleteStrict)
	case *Operation_PacketOut:
		return checkOut(o.PacketOut, in)
	case *Operation_AddGroup:
		return checkGroup("add_group", o.AddGroup, in, flow.Add)
	case *Operation_ModifyGroup:
		return checkGroup("modify_group", o.ModifyGroup, in, flow.Modify)
	case *Operation_DeleteGroup:
		return checkGroup("delete_group", o.DeleteGroup, in, flow.Delete)
	case *Operation_Fence:
		if !o.Fence {
			return nil, fmt.Errorf("fence: want true; leave the operation out for none")
		}
		return (*flow.Decision).Fence, nil
	}
	return nil, fmt.Errorf("it is empty: want one of add_flow, delete_flow, packet_out, add_group, modify_group, delete_group, fence")
}

// switchOf reads a dpid; an empty one is the packet's switch.
func switchOf(dpid string, in *flow.PacketIn) (flow.DPID, error) {
	if dpid == "" {
		return in.Switch, nil
	}
	return flow.ParseDPID(dpid)
}

func checkFlow(what string, f *FlowEntry, in *flow.PacketIn, c flow.Command) (func(*flow.Decision), error) {
	sw, err := switchOf(f.GetDpid(), in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(f.GetActions()) > maxActions || len(f.GetWriteActions()) > maxActions {
		return nil, fmt.Errorf("%s: more than %d actions", what, maxActions)
	}
	e, err := f.entry()
	if err == nil {
		err = checkActions(append(e.Apply[:len(e.Apply):len(e.Apply)], e.Write...))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if e.Cookie&markMask == flow.NewCookie(0, 0, 0)&markMask {
		return nil, fmt.Errorf("%s: cookie %016x begins with 5745, as those of Weft's own entries do: choose another", what, uint64(e.Cookie))
	}
	m := flow.Mod{Command: c, Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	if c == flow.DeleteStrict {
		m.CookieMask = math.MaxUint64
	}
	return func(d *flow.Decision) { d.Flow(sw, m) }, nil
}

// checkActions reports actions that are good in a packet-out only.
func checkActions(list []flow.Action) error {
	for _, a := range list {
		if a.Kind == flow.ActionOutput && flow.Port(a.Arg) == flow.PortTable {
			return fmt.Errorf("action %q: packet-outs only", a)
		}
	}
	return nil
}

func checkOut(o *PacketOut, in *flow.PacketIn) (func(*flow.Decision), error) {
	sw, err := switchOf(o.GetDpid(), in)
	if err != nil {
		return nil, fmt.Errorf("packet_out: %w", err)
	}
	if len(o.GetActions()) > maxActions {
		return nil, fmt.Errorf("packet_out: more than %d actions", maxActions)
	}
	actions, err := parseActions(o.GetActions())
	if err != nil {
		return nil, fmt.Errorf("packet_out: %w", err)
	}
	if len(o.GetData()) > math.MaxUint16 {
		return nil, fmt.Errorf("packet_out: data of %d octets: want at most %d", len(o.GetData()), math.MaxUint16)
	}
	p := flow.Port(o.GetInPort())
	if p != 0 && !p.Physical() && p != flow.PortController && p != flow.PortLocal {
		return nil, fmt.Errorf("packet_out: in_port %v: want a port of the switch, or 0", p)
	}
	out := flow.PacketOut{BufferID: flow.BufferNone, InPort: p, Actions: actions, Data: o.GetData()}
	if len(out.Data) == 0 {
		if sw == in.Switch {
			if out.InPort == 0 {
				out.InPort = in.Key.InPort
			}
			out.BufferID = in.BufferID
		} else if in.BufferID != flow.BufferNone && len(in.Data) < int(in.TotalLen) {
			return nil, fmt.Errorf("packet_out: switch %v keeps most of the packet itself, so only it can send it: give data", in.Switch)
		}
		if out.BufferID == flow.BufferNone {
			out.Data = in.Data
		}
	}
	if out.InPort == 0 {
		out.InPort = flow.PortController
	}
	return func(d *flow.Decision) { d.PacketOut(sw, out) }, nil
}

func checkGroup(what string, g *Group, in *flow.PacketIn, c flow.Command) (func(*flow.Decision), error) {
	fail := func(format string, args ...any) (func(*flow.Decision), error) {
		return nil, fmt.Errorf(what+": "+format, args...)
	}
	sw, err := switchOf(g.GetDpid(), in)
	if err != nil {
		return fail("%w", err)
	}
	if id := flow.Port(g.GetId()); id == 0 || id > flow.PortMax {
		return fail("id %d: want 1 to %d", id, uint32(flow.PortMax))
	}
	kind, err := valueOf[flow.GroupKind]("type", groups[:], g.GetType())
	if err != nil {
		return fail("%w", err)
	}
	mod := flow.GroupMod{Command: c, Group: flow.Group{Kind: kind, ID: g.GetId()}}
	if len(g.GetBuckets()) > maxBuckets {
		return fail("%d buckets: want at most %d", len(g.GetBuckets()), maxBuckets)
	}
	if kind == flow.GroupKindIndirect && len(g.GetBuckets()) != 1 && c != flow.Delete {
		return fail("%d buckets: want one in a group of type indirect", len(g.GetBuckets()))
	}
	for i, b := range g.GetBuckets() {
		k := flow.Bucket{Weight: uint16(b.GetWeight()), WatchPort: flow.PortAny, WatchGroup: flow.GroupAny}
		if b.GetWeight() > math.MaxUint16 || len(b.GetActions()) > maxActions {
			return fail("bucket %d: weight %d and %d actions: want at most 65535 and %d", i, b.GetWeight(), len(b.GetActions()), maxActions)
		}
		if kind == flow.GroupKindSelect && k.Weight == 0 {
			k.Weight = 1 // of 0, a switch would never choose it
		}
		if b.GetWatchPort() != 0 {
			k.WatchPort = flow.Port(b.GetWatchPort())
		}
		if k.Actions, err = parseActions(b.GetActions()); err == nil {
			err = checkActions(k.Actions)
		}
		if err != nil {
			return fail("bucket %d: %w", i, err)
		}
		mod.Group.Buckets = append(mod.Group.Buckets, k)
	}
	return func(d *flow.Decision) { d.Group(sw, mod) }, nil
}

func parseCookie(s string) (flow.Cookie, error) {
	if s == "" {
		return 0, nil
	}
	c, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("cookie %q: want up to 16 hex digits", s)
	}
	return flow.Cookie(c), nil
}
