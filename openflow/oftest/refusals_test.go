package oftest

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// refusal is a message that a switch refuses.
type refusal struct {
	name      string
	before    [][]byte // messages that are taken
	msg       []byte
	typ, code uint16
	why       string // Open vSwitch says something else, or takes the message
}

const v13 = openflow.V13

func modOf(change func(*flow.Mod)) []byte {
	m := flow.Mod{BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	m.Entry.Priority = 7
	m.Entry.Apply = []flow.Action{flow.Output(1)}
	change(&m)
	return mustMod(v13, 77, m)
}

// acting is a flow-mod with a match and one action.
func acting(match flow.Match, list ...flow.Action) []byte {
	return modOf(func(m *flow.Mod) { m.Entry.Match, m.Entry.Apply = match, list })
}

func groupOf(cmd flow.Command, kind flow.GroupKind, id uint32, buckets ...flow.Bucket) []byte {
	return must(v13.AppendGroupMod(nil, 77, &flow.GroupMod{Command: cmd, Group: flow.Group{Kind: kind, ID: id, Buckets: buckets}}))
}

func bucketOf(list ...flow.Action) flow.Bucket {
	return flow.Bucket{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: list}
}

func meterOf(cmd flow.Command, id uint32, flags uint16, bands ...flow.Band) []byte {
	return must(v13.AppendMeterMod(nil, 77, &flow.MeterMod{Command: cmd, Meter: flow.Meter{ID: id, Flags: flags, Bands: bands}}))
}

func outOf(o flow.PacketOut) []byte { return must(v13.AppendPacketOut(nil, 77, &o)) }

func askOf(r openflow.MultipartRequest) []byte {
	return must(v13.AppendMultipartRequest(nil, 77, &r))
}

func setOf(f flow.Field, value ...byte) flow.Action {
	a := flow.Action{Kind: flow.ActionSetField, Field: f}
	copy(a.Value[:], value)
	return a
}

// changed returns a message with octets put in at a place.
func changed(msg []byte, at int, octets ...byte) []byte {
	msg = bytes.Clone(msg)
	copy(msg[at:], octets)
	return msg
}

// lengthened returns a message with octets behind it that its length counts.
func lengthened(msg []byte, octets ...byte) []byte {
	msg = append(bytes.Clone(msg), octets...)
	binary.BigEndian.PutUint16(msg[2:], uint16(len(msg)))
	return msg
}

// raw is a message of a type with a body.
func raw(typ uint8, body ...byte) []byte {
	return lengthened([]byte{4, typ, 0, 8, 0, 0, 0, 77}, body...)
}

var (
	anyIP = flow.Match{}.WithEthType(flow.EthTypeIPv4)
	drop  = flow.Band{Kind: flow.MeterDrop, Rate: 1000}
)

// refusals are messages of OpenFlow 1.3 that a switch refuses, and how.
func refusals() []refusal {
	const (
		request, action, instruction, match = openflow.ErrBadRequest, openflow.ErrBadAction, openflow.ErrBadInstruction, openflow.ErrBadMatch
		mod, group, meter                   = openflow.ErrFlowModFailed, openflow.ErrGroupModFailed, openflow.ErrMeterModFailed
	)
	one := groupOf(flow.Add, flow.GroupKindAll, 1, bucketOf(flow.Output(1)))
	chain := groupOf(flow.Add, flow.GroupKindAll, 2, bucketOf(flow.ToGroup(1)))
	plain := modOf(func(*flow.Mod) {})
	masked := modOf(func(m *flow.Mod) {
		m.Entry.Match.PutMasked(flow.FieldEthDst, [16]byte{2, 0, 0, 0, 0, 1}, [16]byte{255, 255, 255, 255, 0, 255})
	})
	list := []refusal{
		{name: "flow-mod in table 254", msg: modOf(func(m *flow.Mod) { m.Entry.Table = 254 }), typ: mod, code: openflow.FlowModFailedBadTableID, why: "table 254 is there in Open vSwitch, but its own"},
		{name: "flow-mod in all tables", msg: modOf(func(m *flow.Mod) { m.Entry.Table = 255 }), typ: mod, code: openflow.FlowModFailedBadTableID},
		{name: "flow-mod of an unknown command", msg: changed(plain, 25, 5), typ: mod, code: openflow.FlowModFailedBadCommand},
		{name: "flow-mod with an unknown flag", msg: modOf(func(m *flow.Mod) { m.Entry.Flags = 1 << 5 }), typ: mod, code: openflow.FlowModFailedBadFlags},
		{name: "flow-mod that overlaps", before: [][]byte{plain}, msg: modOf(func(m *flow.Mod) {
			m.Entry.Flags, m.Entry.Match = flow.FlagOverlap, flow.Match{}.WithInPort(1)
		}), typ: mod, code: openflow.FlowModFailedOverlap},
		{name: "flow-mod that overlaps what it would replace", before: [][]byte{plain}, msg: modOf(func(m *flow.Mod) { m.Entry.Flags = flow.FlagOverlap }),
			typ: mod, code: openflow.FlowModFailedOverlap, why: "to Open vSwitch an entry is no overlap of one that it replaces"},
		{name: "flow-mod cut short", msg: changed(plain[:48], 2, 0, 48), typ: request, code: openflow.BadRequestBadLen, why: "what is cut off is the match, and so says Open vSwitch"},

		{name: "match without prerequisite", msg: acting(flow.Match{Set: flow.FieldIPv4Dst.Bit()}), typ: match, code: openflow.BadMatchBadPrereq},
		{name: "match of a port of the wrong protocol", msg: acting(flow.Match{Set: flow.FieldEthType.Bit() | flow.FieldIPProto.Bit() | flow.FieldTCPDst.Bit(), Key: flow.Key{EthType: flow.EthTypeIPv4, IPProto: 17}}), typ: match, code: openflow.BadMatchBadPrereq},
		{name: "match of a VLAN priority without VLAN", msg: acting(flow.Match{Set: flow.FieldVLANPCP.Bit()}), typ: match, code: openflow.BadMatchBadPrereq},
		{name: "match of a value too large", msg: acting(flow.Match{Set: flow.FieldEthType.Bit() | flow.FieldIPDSCP.Bit(), Key: flow.Key{EthType: flow.EthTypeIPv4, IPDSCP: 64}}), typ: match, code: openflow.BadMatchBadValue},
		{name: "match with a mask where none may be", msg: acting(flow.Match{Set: flow.FieldEthType.Bit(), Masked: flow.FieldEthType.Bit(), Key: flow.Key{EthType: 0x0800}, Mask: flow.Key{EthType: 0xff00}}), typ: match, code: openflow.BadMatchBadMask},
		{name: "match of a value outside its mask", msg: changed(masked, 48+4+4+4, 9), typ: match, code: openflow.BadMatchBadWildcards},
		{name: "match of a field twice", msg: twice(), typ: match, code: openflow.BadMatchDupField},
		{name: "match of an unknown field", msg: changed(acting(flow.Match{}.WithInPort(1)), 48+4, 0x80, 0, 0x7e), typ: match, code: openflow.BadMatchBadField},
		{name: "match of another type", msg: changed(plain, 48, 0, 0), typ: match, code: openflow.BadMatchBadType,
			why: "Open vSwitch takes type 0 for the match of OpenFlow 1.1, which has another length"},
		{name: "match longer than the message", msg: changed(plain, 50, 0xff, 0xf0), typ: match, code: openflow.BadMatchBadLen},

		{name: "goto the same table", msg: modOf(func(m *flow.Mod) { m.Entry.Table, m.Entry.Goto = 3, 3 }), typ: instruction, code: openflow.BadInstructionBadTableID},
		{name: "goto an earlier table", msg: modOf(func(m *flow.Mod) { m.Entry.Table, m.Entry.Goto = 3, 2 }), typ: instruction, code: openflow.BadInstructionBadTableID},
		{name: "goto a table that is not there", msg: modOf(func(m *flow.Mod) { m.Entry.Goto = 254 }), typ: instruction, code: openflow.BadInstructionBadTableID, why: "table 254 is there in Open vSwitch, but its own"},
		{name: "unknown instruction", msg: changed(plain, 56, 0, 9), typ: instruction, code: openflow.BadInstructionUnknownInst},
		{name: "experimenter instruction", msg: changed(plain, 56, 0xff, 0xff), typ: instruction, code: openflow.BadInstructionBadExperimenter},
		{name: "instruction of length 0", msg: changed(plain, 58, 0, 0), typ: instruction, code: openflow.BadInstructionBadLen},
		{name: "meter that is not there", msg: modOf(func(m *flow.Mod) { m.Entry.Meter = 9 }), typ: meter, code: openflow.MeterModFailedInvalidMeter},

		{name: "output to port 0", msg: acting(flow.Match{}, flow.Output(0)), typ: action, code: openflow.BadActionBadOutPort,
			why: "port 0 is one like others to Open vSwitch"},
		{name: "output to any port", msg: acting(flow.Match{}, flow.Output(flow.PortAny)), typ: action, code: openflow.BadActionBadOutPort},
		{name: "output to an undefined reserved port", msg: acting(flow.Match{}, flow.Output(0xfffffff0)), typ: action, code: openflow.BadActionBadOutPort},
		{name: "output to the tables", msg: acting(flow.Match{}, flow.Output(flow.PortTable)), typ: action, code: openflow.BadActionBadOutPort,
			why: "Open vSwitch takes it for a resubmission to the first table"},
		{name: "output to the normal pipeline", msg: acting(flow.Match{}, flow.Output(flow.PortNormal)), typ: action, code: openflow.BadActionBadOutPort,
			why: "the fake is no hybrid switch"},
		{name: "group that is not there", msg: acting(flow.Match{}, flow.ToGroup(9)), typ: action, code: openflow.BadActionBadOutGroup},
		{name: "set-field without prerequisite", msg: acting(flow.Match{}, setOf(flow.FieldIPv4Dst, 1)), typ: action, code: openflow.BadActionMatchInconsistent},
		{name: "set-field of the protocol's port, of another", msg: acting(anyIP.WithIPProto(17), setOf(flow.FieldTCPDst, 1)), typ: action, code: openflow.BadActionMatchInconsistent},
		{name: "set-field of a value too large", msg: acting(anyIP, setOf(flow.FieldIPDSCP, 64)), typ: action, code: openflow.BadActionBadSetArgument},
		{name: "set-field of a VLAN without the tag's bit", msg: acting(flow.Match{}.WithAnyVLAN(), setOf(flow.FieldVLAN, 0, 5)), typ: action, code: openflow.BadActionBadSetArgument},
		{name: "set-field of metadata", msg: acting(flow.Match{}, setOf(flow.FieldMetadata)), typ: action, code: openflow.BadActionBadSetType,
			why: "Open vSwitch can do more than §7.2.5 allows"},
		{name: "set-field of the ingress port", msg: acting(flow.Match{}, setOf(flow.FieldInPort)), typ: action, code: openflow.BadActionBadSetType,
			why: "Open vSwitch can do more than §7.2.5 allows"},
		{name: "set-field of an unknown field", msg: changed(acting(flow.Match{}, setOf(flow.FieldEthDst)), 64+4, 0x80, 0, 0x7e), typ: action, code: openflow.BadActionBadSetType, why: "Open vSwitch holds its length to be wrong, too, and says that"},
		{name: "set-field of wrong length", msg: changed(acting(flow.Match{}, setOf(flow.FieldEthDst)), 64+7, 5), typ: action, code: openflow.BadActionBadSetLen},
		{name: "pop of a tag that is not there", msg: acting(flow.Match{}, flow.PopVLAN()), typ: action, code: openflow.BadActionMatchInconsistent},
		{name: "push of a tag that is none", msg: acting(flow.Match{}, flow.PushVLAN(0x0800)), typ: action, code: openflow.BadActionBadArgument},
		{name: "push of a label that is none", msg: acting(flow.Match{}, flow.Action{Kind: flow.ActionPushMPLS, Arg: 0x0800}), typ: action, code: openflow.BadActionBadArgument},
		{name: "dec-ttl without IP", msg: acting(flow.Match{}, flow.Action{Kind: flow.ActionDecNwTTL}), typ: action, code: openflow.BadActionMatchInconsistent},
		{name: "pop of a label that is not there", msg: acting(anyIP, flow.Action{Kind: flow.ActionPopMPLS, Arg: 0x0800}), typ: action, code: openflow.BadActionMatchInconsistent},
		{name: "unknown action", msg: changed(plain, 64, 0, 99), typ: action, code: openflow.BadActionBadType},
		{name: "experimenter action", msg: acting(flow.Match{}, flow.Action{Kind: flow.ActionExperimenter, Arg: 77}), typ: action, code: openflow.BadActionBadExperimenter},
		{name: "action of length 0", msg: changed(plain, 66, 0, 0), typ: action, code: openflow.BadActionBadLen},

		{name: "packet-out of a buffer that is not there", msg: outOf(flow.PacketOut{BufferID: 5, InPort: flow.PortController}), typ: request, code: openflow.BadRequestBufferUnknown},
		{name: "packet-out in by no port", msg: outOf(flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortFlood, Data: udp(1, 2)}), typ: request, code: openflow.BadRequestBadPort},
		{name: "packet-out in by any port", msg: outOf(flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortAny, Data: udp(1, 2)}), typ: request, code: openflow.BadRequestBadPort,
			why: "Open vSwitch lets a packet come from nowhere"},
		{name: "packet-out to any port", msg: outOf(flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: udp(1, 2), Actions: []flow.Action{flow.Output(flow.PortAny)}}), typ: action, code: openflow.BadActionBadOutPort},
		{name: "packet-out of a packet that lacks the field", msg: outOf(flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: udp(1, 2), Actions: []flow.Action{setOf(flow.FieldARPOp, 0, 1)}}), typ: action, code: openflow.BadActionMatchInconsistent},
		{name: "packet-out to a group that is not there", msg: outOf(flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: udp(1, 2), Actions: []flow.Action{flow.ToGroup(9)}}), typ: action, code: openflow.BadActionBadOutGroup},

		{name: "group that exists", before: [][]byte{one}, msg: one, typ: group, code: openflow.GroupModFailedGroupExists},
		{name: "modify of a group that is not there", msg: groupOf(flow.Modify, flow.GroupKindAll, 9), typ: group, code: openflow.GroupModFailedUnknownGroup},
		{name: "group number too large", msg: groupOf(flow.Add, flow.GroupKindAll, 0xffffff01), typ: group, code: openflow.GroupModFailedInvalidGroup},
		{name: "group of unknown type", msg: groupOf(flow.Add, 4, 9), typ: group, code: openflow.GroupModFailedBadType},
		{name: "group-mod of unknown command", msg: changed(one, 8, 0, 99), typ: group, code: openflow.GroupModFailedBadCommand},
		{name: "indirect group of two", msg: groupOf(flow.Add, flow.GroupKindIndirect, 9, bucketOf(), bucketOf()), typ: group, code: openflow.GroupModFailedInvalidGroup},
		{name: "weight outside select", msg: groupOf(flow.Add, flow.GroupKindAll, 9, flow.Bucket{Weight: 1, WatchPort: flow.PortAny, WatchGroup: flow.GroupAny}), typ: group, code: openflow.GroupModFailedInvalidGroup},
		{name: "failover bucket that watches nothing", msg: groupOf(flow.Add, flow.GroupKindFastFailover, 9, bucketOf()), typ: group, code: openflow.GroupModFailedInvalidGroup},
		{name: "group that leads to itself", before: [][]byte{one, chain}, msg: groupOf(flow.Modify, flow.GroupKindAll, 1, bucketOf(flow.ToGroup(2))), typ: group, code: openflow.GroupModFailedLoop,
			why: "Open vSwitch has no CHAINING_CHECKS: it cuts loops off when a packet is in one"},
		{name: "delete of a group in a chain", before: [][]byte{one, chain}, msg: groupOf(flow.Delete, flow.GroupKindAll, 1), typ: group, code: openflow.GroupModFailedChainedGroup,
			why: "Open vSwitch has no CHAINING_CHECKS"},
		{name: "bucket of length 0", msg: changed(one, 16, 0, 0), typ: group, code: openflow.GroupModFailedBadBucket},

		{name: "meter that exists", before: [][]byte{meterOf(flow.Add, 1, openflow.MeterFlagKbps, drop)}, msg: meterOf(flow.Add, 1, openflow.MeterFlagKbps, drop), typ: meter, code: openflow.MeterModFailedMeterExists},
		{name: "modify of a meter that is not there", msg: meterOf(flow.Modify, 9, openflow.MeterFlagKbps, drop), typ: meter, code: openflow.MeterModFailedUnknownMeter},
		{name: "meter 0", msg: meterOf(flow.Add, 0, openflow.MeterFlagKbps, drop), typ: meter, code: openflow.MeterModFailedInvalidMeter},
		{name: "meter in two units", msg: meterOf(flow.Add, 9, openflow.MeterFlagKbps|openflow.MeterFlagPktps, drop), typ: meter, code: openflow.MeterModFailedBadFlags},
		{name: "meter of unknown flag", msg: meterOf(flow.Add, 9, openflow.MeterFlagKbps|1<<7, drop), typ: meter, code: openflow.MeterModFailedBadFlags},
		{name: "meter that remarks", msg: meterOf(flow.Add, 9, openflow.MeterFlagKbps, flow.Band{Kind: flow.MeterDSCPRemark, Rate: 1, PrecLevel: 1}), typ: meter, code: openflow.MeterModFailedBadBand},
		{name: "meter-mod of unknown command", msg: changed(meterOf(flow.Add, 9, 1, drop), 8, 0, 3), typ: meter, code: openflow.MeterModFailedBadCommand},
		{name: "meter of rate 0", msg: meterOf(flow.Add, 9, openflow.MeterFlagKbps, flow.Band{Kind: flow.MeterDrop}), typ: meter, code: openflow.MeterModFailedBadRate},
	}
	return append(list, otherRefusals()...)
}

// otherRefusals are those of messages that program no tables.
func otherRefusals() []refusal {
	port := openflow.PortMod{Port: 1, HWAddr: New(Config{DPID: 0xaa}).ports[1].HWAddr}
	portMod := func(change func(*openflow.PortMod)) []byte {
		m := port
		change(&m)
		return must(v13.AppendPortMod(nil, 77, &m))
	}
	const request = openflow.ErrBadRequest
	return []refusal{
		{name: "port-mod of a port that is not there", msg: portMod(func(m *openflow.PortMod) { m.Port = 99 }), typ: openflow.ErrPortModFailed, code: openflow.PortModFailedBadPort},
		{name: "port-mod of another address", msg: portMod(func(m *openflow.PortMod) { m.HWAddr[0] ^= 4 }), typ: openflow.ErrPortModFailed, code: openflow.PortModFailedBadHWAddr},
		{name: "table-mod of a table that is not there", msg: must(v13.AppendTableMod(nil, 77, &openflow.TableMod{Table: 254})), typ: openflow.ErrTableModFailed, code: openflow.TableModFailedBadTable, why: "table 254 is there in Open vSwitch, but its own"},
		{name: "set-config of reassembly", msg: v13.AppendSetConfig(nil, 77, openflow.FragReasm, 0), typ: openflow.ErrSwitchConfigFailed, code: openflow.SwitchConfigFailedBadFlags,
			why: "Open vSwitch passes over what it does not do"},
		{name: "role that is none", msg: must(v13.AppendRoleRequest(nil, 77, 4, 0)), typ: openflow.ErrRoleRequestFailed, code: openflow.RoleRequestFailedBadRole},
		{name: "stale generation", before: [][]byte{must(v13.AppendRoleRequest(nil, 77, openflow.RoleMaster, 10))}, msg: must(v13.AppendRoleRequest(nil, 77, openflow.RoleMaster, 9)),
			typ: openflow.ErrRoleRequestFailed, code: openflow.RoleRequestFailedStale},
		{name: "flow statistics of a table that is not there", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartFlow, Table: 254, OutPort: flow.PortAny, OutGroup: flow.GroupAny}),
			typ: request, code: openflow.BadRequestBadTableID, why: "table 254 is there in Open vSwitch, but its own"},
		{name: "port statistics of a port that is not there", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartPortStats, Port: 99}), typ: request, code: openflow.BadRequestBadPort, why: "Open vSwitch answers with no ports"},
		{name: "group statistics of a group that is not there", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartGroup, Group: 99}), typ: openflow.ErrGroupModFailed, code: openflow.GroupModFailedUnknownGroup,
			why: "Open vSwitch answers with no groups"},
		{name: "meter statistics of a meter that is not there", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartMeter, Meter: 99}), typ: openflow.ErrMeterModFailed, code: openflow.MeterModFailedUnknownMeter},
		{name: "queue statistics of a port that is not there", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartQueue, Port: 99, Queue: openflow.QueueAll}), typ: openflow.ErrQueueOpFailed, code: openflow.QueueOpFailedBadPort},
		{name: "queue statistics of a queue that is not there", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartQueue, Port: 1, Queue: 3}), typ: openflow.ErrQueueOpFailed, code: openflow.QueueOpFailedBadQueue},
		{name: "queues of a port that is not there", msg: must(v13.AppendQueueGetConfigRequest(nil, 77, 99)), typ: openflow.ErrQueueOpFailed, code: openflow.QueueOpFailedBadPort},
		{name: "multipart of unknown type", msg: changed(askOf(openflow.MultipartRequest{Type: openflow.MultipartDesc}), 8, 0, 99), typ: request, code: openflow.BadRequestBadMultipart},
		{name: "experimenter multipart", msg: askOf(openflow.MultipartRequest{Type: openflow.MultipartExperimenter, Experimenter: 77}), typ: request, code: openflow.BadRequestBadExperimenter},
		{name: "experimenter message", msg: raw(4, 0, 0, 0, 77, 0, 0, 0, 0), typ: request, code: openflow.BadRequestBadExperimenter},
		{name: "message of unknown type", msg: raw(99), typ: request, code: openflow.BadRequestBadType},
		{name: "message of another version", msg: changed(raw(5), 0, 1), typ: request, code: openflow.BadRequestBadVersion},
		{name: "message only switches send", msg: raw(21), typ: request, code: openflow.BadRequestBadType},
		{name: "features request with a body", msg: raw(5, 0, 0, 0, 0), typ: request, code: openflow.BadRequestBadLen},
		{name: "barrier request with a body", msg: raw(20, 0, 0, 0, 0), typ: request, code: openflow.BadRequestBadLen},
		{name: "role request cut short", msg: raw(24, 0, 0, 0, 1), typ: request, code: openflow.BadRequestBadLen},
	}
}

// twice is a flow-mod whose match names a field twice.
func twice() []byte {
	one := acting(flow.Match{}.WithInPort(1))
	msg := append(bytes.Clone(one[:60]), 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0)
	binary.BigEndian.PutUint16(msg[50:], 4+16)
	msg = append(msg, one[64:]...)
	binary.BigEndian.PutUint16(msg[2:], uint16(len(msg)))
	return msg
}

// TestRefusals: the switch refuses every one of refusals, with the error that
// the specification gives, about the message's transaction and with its first
// octets, and does nothing of it.
func TestRefusals(t *testing.T) {
	for _, r := range refusals() {
		t.Run(r.name, func(t *testing.T) {
			s := New(Config{DPID: 0xaa})
			c := connect(t, s, v13)
			for _, m := range r.before {
				c.fine(s.Message(c.id, m))
			}
			flows, groups := len(s.Flows()), len(s.Groups())
			e := c.wantError(s.Message(c.id, r.msg), r.typ, r.code)
			if e.Xid != 77 || !bytes.Equal(e.Data, r.msg[:min(64, len(r.msg))]) {
				t.Errorf("xid %d, data %x", e.Xid, e.Data)
			}
			if len(s.Flows()) != flows || len(s.Groups()) != groups {
				t.Error("something of it was done")
			}
		})
	}
}

// TestOpenVSwitchRefusesTheSame: so does Open vSwitch, but where the list says
// why not.
func TestOpenVSwitchRefusesTheSame(t *testing.T) {
	o := startOVS(t, v13)
	for _, r := range refusals() {
		d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Now: time.Now()})}
		d.clean()
		o.exchange(v13, meterOf(flow.Delete, flow.MeterAll, 0))
		for _, m := range r.before {
			if text := errorOf(v13, o.exchange(v13, m)); text != "" {
				t.Errorf("%s: %s", r.name, text)
			}
		}
		want := (&openflow.Error{Type: r.typ, Code: r.code}).Error()
		got := errorOf(v13, o.exchange(v13, r.msg))
		if r.why == "" && got != want {
			t.Errorf("%s: Open vSwitch says %q, want %q", r.name, got, want)
		}
		if r.why != "" && got == want {
			t.Errorf("%s: Open vSwitch says the same as the specification, but the list has it that %s", r.name, r.why)
		}
	}
}
