package openflow

import (
	"github.com/weft-sdn/weft/flow"
)

// goldenOthers is every other message, OpenFlow 1.0's own forms included.
func goldenOthers() []golden {
	g := func(name, codec string, v Version, x any) golden {
		return golden{name: name, codec: codec, version: v, value: x}
	}
	in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 60, Reason: flow.ReasonAction, Table: 3, Cookie: 0x574503, Data: frame()}
	in.Key.InPort, in.Key.Metadata, in.Key.TunnelID = 7, 0x11, 0x22
	in10 := flow.PacketIn{BufferID: 5, TotalLen: 60, Data: frame()}
	in10.Key.InPort = flow.PortLocal
	out := flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: []flow.Action{flow.SetEthDst(macA), flow.Output(flow.PortAll)}, Data: frame()}
	out10 := out
	out10.InPort = 3
	group := flow.Group{Kind: flow.GroupKindSelect, ID: 6, Buckets: []flow.Bucket{
		{Weight: 10, WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.SetEthDst(macA), flow.Output(1)}},
		{Weight: 20, WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(2)}}}}
	failover := flow.Group{Kind: flow.GroupKindFastFailover, ID: 7, Buckets: []flow.Bucket{
		{WatchPort: 1, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(1)}},
		{WatchPort: 2, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(2)}}}}
	meter := flow.Meter{ID: 5, Flags: MeterFlagKbps | MeterFlagBurst | MeterFlagStats, Bands: []flow.Band{
		{Kind: flow.MeterDrop, Rate: 20000, BurstSize: 2000}, {Kind: flow.MeterDSCPRemark, Rate: 10000, BurstSize: 1000, PrecLevel: 1}}}
	eth1 := PortDesc{No: 1, HWAddr: macA, Name: "eth1", Config: PortConfigNoPacketIn, State: PortStateLive,
		Curr: Port10GbFD | PortFiber, Advertised: Port1GbFD | PortCopper, Supported: Port100MbFD | PortAutoneg, Peer: Port10MbHD | PortPause, CurrSpeed: 10000000, MaxSpeed: 100000}
	local := PortDesc{No: flow.PortLocal, HWAddr: macB, Name: "br0", Config: PortConfigDown, State: PortStateLinkDown}
	stats := FlowStats{Entry: add(flow.Match{}.WithInPort(1).WithEthType(flow.EthTypeIPv4).WithTCPDst(80), flow.Output(2)).Entry, DurationSec: 61, DurationNsec: 5000000, Packets: 1234, Bytes: 56789}
	stats.Entry.Goto = 4
	stats2 := FlowStats{Entry: add(flow.Match{}).Entry, Packets: 1}
	stats2.Table, stats2.Apply = 4, nil
	stats10 := FlowStats{Entry: add(flow.Match{}.WithInPort(1).WithEthType(flow.EthTypeIPv4).WithTCPDst(80), flow.Output(2)).Entry, DurationSec: 61, DurationNsec: 5000000, Packets: 1234, Bytes: 56789}
	portStats := PortStats{Port: 1, RxPackets: 1, TxPackets: 2, RxBytes: 3, TxBytes: 4, RxDropped: 5, TxDropped: 6, RxErrors: 7, TxErrors: 8,
		RxFrameErr: 9, RxOverErr: 10, RxCRCErr: 11, Collisions: 12, DurationSec: 13, DurationNsec: 14000000}
	portStats10 := portStats
	portStats10.DurationSec, portStats10.DurationNsec = 0, 0
	removed := FlowRemoved{Reason: RemovedHardTimeout, Table: 3, Priority: 1000, IdleTimeout: 10, HardTimeout: 20, Cookie: 0x574503,
		DurationSec: 20, DurationNsec: 1000000, Packets: 7, Bytes: 700, Match: flow.Match{}.WithInPort(1)}
	removed10 := removed
	removed10.Table, removed10.HardTimeout = 0, 0
	caps := CapFlowStats | CapTableStats | CapPortStats | CapQueueStats
	return []golden{
		g("hello", "hello", V13, VersionsOf(V10, V13)),
		g("error", "error", V13, Error{Type: ErrBadMatch, Code: BadMatchBadPrereq, Xid: 9, Data: V13.AppendBarrierRequest(nil, 9)}),
		g("error10", "error", V10, Error{Type: ErrFlowModFailed, Code: FlowModFailedOverlap, Xid: 9, Data: V10.AppendBarrierRequest(nil, 9)}),
		g("features-reply", "features-reply", V13, Features{DPID: 0xa1, Buffers: 256, Tables: 254, AuxiliaryID: 2, Capabilities: caps | CapGroupStats | CapPortBlocked}),
		g("features-reply10", "features-reply", V10, Features{DPID: 0xa1, Buffers: 256, Tables: 1, Capabilities: caps | CapARPMatchIP, Actions: 0xfff, Ports: []PortDesc{ten(eth1), ten(local)}}),
		g("set-config", "set-config", V13, config{FragDrop, 128}),
		g("set-config10", "set-config", V10, config{FragNormal, flow.NoBuffer}),
		g("packet-in", "packet-in", V13, in),
		g("packet-in10", "packet-in", V10, in10),
		g("packet-out", "packet-out", V13, out),
		g("packet-out10", "packet-out", V10, out10),
		g("flow-removed", "flow-removed", V13, removed),
		g("flow-removed10", "flow-removed", V10, removed10),
		g("port-status", "port-status", V13, portStatus{PortModified, eth1}),
		g("port-status10", "port-status", V10, portStatus{PortDeleted, ten(eth1)}),
		g("port-mod", "port-mod", V13, PortMod{1, macA, PortConfigDown, PortConfigDown | PortConfigNoFwd, Port1GbFD | PortCopper}),
		g("port-mod10", "port-mod", V10, PortMod{1, macA, PortConfigNoFlood, PortConfigNoFlood, Port1GbFD | PortCopper}),
		g("table-mod", "table-mod", V13, TableMod{Table: 5, Config: 3}),
		g("group-mod-select", "group-mod", V13, flow.GroupMod{Command: flow.Add, Group: group}),
		g("group-mod-failover", "group-mod", V13, flow.GroupMod{Command: flow.Modify, Group: failover}),
		g("group-mod-delete", "group-mod", V13, flow.GroupMod{Command: flow.Delete, Group: flow.Group{ID: 6}}),
		g("meter-mod", "meter-mod", V13, flow.MeterMod{Command: flow.Modify, Meter: meter}),
		g("role-request", "role-request", V13, role{RoleMaster, 42}),
		g("role-reply", "role-reply", V13, role{RoleSlave, 43}),
		g("get-async-reply", "get-async-reply", V13, Async{[2]uint32{7, 0}, [2]uint32{7, 7}, [2]uint32{15, 0}}),
		g("set-async", "set-async", V13, Async{[2]uint32{7, 0}, [2]uint32{7, 7}, [2]uint32{15, 0}}),
		g("queue-get-config-request", "queue-get-config-request", V13, flow.Port(3)),
		g("queue-get-config-request10", "queue-get-config-request", V10, flow.Port(3)),
		g("queue-get-config-reply", "queue-get-config-reply", V13, queueConfig{3, []Queue{{Port: 3, ID: 1, MinRate: 100, MaxRate: 500}, {Port: 3, ID: 2, MinRate: QueueRateNone, MaxRate: QueueRateNone}}}),
		g("queue-get-config-reply10", "queue-get-config-reply", V10, queueConfig{3, []Queue{{Port: 3, ID: 1, MinRate: 100, MaxRate: QueueRateNone}}}),

		g("desc-request", "multipart-request", V13, MultipartRequest{Type: MultipartDesc}),
		g("flow-request", "multipart-request", V13, MultipartRequest{Type: MultipartFlow, Table: 3, OutPort: 4, OutGroup: 5, Cookie: 0x10, CookieMask: 0xf0, Match: flow.Match{}.WithInPort(1)}),
		g("flow-request10", "multipart-request", V10, MultipartRequest{Type: MultipartFlow, Table: flow.TableAll, OutPort: 4, OutGroup: flow.GroupAny, Match: flow.Match{}.WithInPort(1)}),
		g("aggregate-request", "multipart-request", V13, MultipartRequest{Type: MultipartAggregate, Table: flow.TableAll, OutPort: flow.PortAny, OutGroup: flow.GroupAny}),
		g("table-request", "multipart-request", V13, MultipartRequest{Type: MultipartTable}),
		g("port-request", "multipart-request", V13, MultipartRequest{Type: MultipartPortStats, Port: flow.PortAny}),
		g("port-request10", "multipart-request", V10, MultipartRequest{Type: MultipartPortStats, Port: flow.PortAny}),
		g("queue-request", "multipart-request", V13, MultipartRequest{Type: MultipartQueue, Port: 3, Queue: QueueAll}),
		g("queue-request10", "multipart-request", V10, MultipartRequest{Type: MultipartQueue, Port: flow.PortAny, Queue: 4}),
		g("group-request", "multipart-request", V13, MultipartRequest{Type: MultipartGroup, Group: 6}),
		g("group-desc-request", "multipart-request", V13, MultipartRequest{Type: MultipartGroupDesc}),
		g("group-features-request", "multipart-request", V13, MultipartRequest{Type: MultipartGroupFeatures}),
		g("meter-request", "multipart-request", V13, MultipartRequest{Type: MultipartMeter, Meter: 5}),
		g("meter-config-request", "multipart-request", V13, MultipartRequest{Type: MultipartMeterConfig, Meter: flow.MeterAll}),
		g("meter-features-request", "multipart-request", V13, MultipartRequest{Type: MultipartMeterFeatures}),
		g("table-features-request", "multipart-request", V13, MultipartRequest{Type: MultipartTableFeatures}),
		g("port-desc-request", "multipart-request", V13, MultipartRequest{Type: MultipartPortDesc}),

		g("desc", "desc", V13, Desc{"Weft", "simulated", "1.0", "7", "s1"}),
		g("desc10", "desc", V10, Desc{"Weft", "simulated", "1.0", "7", "s1"}),
		g("flow-stats", "flow-stats", V13, []FlowStats{stats, stats2}),
		g("flow-stats10", "flow-stats", V10, []FlowStats{stats10}),
		g("aggregate", "aggregate", V13, Aggregate{Packets: 1234, Bytes: 56789, Flows: 3}),
		g("aggregate10", "aggregate", V10, Aggregate{Packets: 1234, Bytes: 56789, Flows: 3}),
		g("table-stats", "table-stats", V13, []TableStats{{Table: 0, Active: 3, Lookups: 100, Matched: 90}, {Table: 1}}),
		g("table-stats10", "table-stats", V10, []TableStats{{Table: 0, Name: "classifier", Wildcards: wildAll, MaxEntries: 1000, Active: 3, Lookups: 100, Matched: 90}}),
		g("port-stats", "port-stats", V13, []PortStats{portStats}),
		g("port-stats10", "port-stats", V10, []PortStats{portStats10}),
		g("queue-stats", "queue-stats", V13, []QueueStats{{Port: 3, Queue: 1, TxBytes: 4, TxPackets: 5, TxErrors: 6, DurationSec: 7, DurationNsec: 8000000}}),
		g("queue-stats10", "queue-stats", V10, []QueueStats{{Port: 3, Queue: 1, TxBytes: 4, TxPackets: 5, TxErrors: 6}}),
		g("group-stats", "group-stats", V13, []GroupStats{{ID: 6, RefCount: 2, Packets: 3, Bytes: 4, DurationSec: 5, DurationNsec: 6000000, Buckets: []Counter{{1, 2}, {2, 2}}}}),
		g("group-desc", "group-desc", V13, []flow.Group{group, failover}),
		g("group-features", "group-features", V13, GroupFeatures{Types: 15, Capabilities: GroupCapSelectWeight | GroupCapChaining, MaxGroups: [4]uint32{10, 20, 30, 40}, Actions: [4]ActionSet{1, 1 << 22, 1<<25 | 1, 1}}),
		g("meter-stats", "meter-stats", V13, []MeterStats{{ID: 5, Flows: 2, Packets: 3, Bytes: 4, DurationSec: 5, DurationNsec: 6000000, Bands: []Counter{{1, 2}}}}),
		g("meter-config", "meter-config", V13, []flow.Meter{meter}),
		g("meter-features", "meter-features", V13, MeterFeatures{MaxMeter: 100, BandTypes: 1 << flow.MeterDrop, Capabilities: 15, MaxBands: 4, MaxColor: 5}),
		g("table-features", "table-features", V13, []TableFeatures{fullTable()}),
		g("port-desc", "port-desc", V13, []PortDesc{eth1, local}),
	}
}

// ten is a port as OpenFlow 1.0 describes it.
func ten(p PortDesc) PortDesc {
	p.State &= PortStateLinkDown
	p.CurrSpeed, p.MaxSpeed = portSpeed(p.Curr), portSpeed(p.Supported)
	return p
}

// frame is an ARP request as a packet to carry.
func frame() []byte {
	b := append(append(flow.Broadcast[:], macA[:]...), 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1)
	b = append(append(b, macA[:]...), 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2)
	return append(b, make([]byte, 60-len(b))...)
}

func fullTable() TableFeatures {
	f := TableFeatures{
		Table: 2, Name: "acl", MetadataMatch: 0xff, MetadataWrite: 0xff00, Config: 3, MaxEntries: 1000,
		Given:        knownTableProperties,
		Instructions: 0x7e, InstructionsMiss: 1 << instrApplyActions,
		WriteActions: 1<<flow.ActionOutput | 1<<flow.ActionGroup, WriteActionsMiss: 1 << flow.ActionOutput,
		ApplyActions: 1<<flow.ActionOutput | 1<<flow.ActionSetField, ApplyActionsMiss: 1 << flow.ActionGroup,
		Match: flow.FieldInPort.Bit() | flow.FieldEthDst.Bit() | flow.FieldIPv6Src.Bit(), Maskable: flow.FieldEthDst.Bit() | flow.FieldIPv6Src.Bit(),
		Wildcards: flow.FieldInPort.Bit(), WriteSetField: flow.FieldEthDst.Bit(), WriteSetFieldMiss: flow.FieldEthSrc.Bit(),
		ApplySetField: flow.FieldEthDst.Bit() | flow.FieldVLAN.Bit(), ApplySetFieldMiss: flow.FieldVLANPCP.Bit(),
	}
	f.NextTables.Add(3)
	f.NextTables.Add(254)
	f.NextTablesMiss.Add(4)
	return f
}
