package openflow

import (
	"math/rand/v2"

	"github.com/weft-sdn/weft/flow"
)

func many[T any](r *rand.Rand, most int, f func() T) []T {
	var list []T
	for range r.IntN(most + 1) {
		list = append(list, f())
	}
	return list
}

func data(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func mac(r *rand.Rand) flow.MAC { return flow.MAC(data(r, 6)) }

func word(r *rand.Rand, most int) string {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = 'a' + byte(r.IntN(26))
	}
	return string(b)
}

// port is any port that the version can number.
func port(r *rand.Rand, v Version) flow.Port {
	if r.IntN(3) == 0 {
		return flow.PortIn + flow.Port(r.IntN(8))
	}
	if v == V10 {
		return flow.Port(r.IntN(0xff00))
	}
	return flow.Port(r.Uint32())
}

func command3(r *rand.Rand) flow.Command {
	return []flow.Command{flow.Add, flow.Modify, flow.Delete}[r.IntN(3)]
}

// protocols is the sets of fields that OpenFlow lets a match have together.
var protocols = []struct {
	ether    uint16
	ip       uint8
	icmp     uint8
	fields   []flow.Field
	fields10 []flow.Field
}{
	{0x9000, 0, 0, nil, nil},
	{flow.EthTypeIPv4, 0, 0, []flow.Field{flow.FieldIPDSCP, flow.FieldIPECN, flow.FieldIPv4Src, flow.FieldIPv4Dst},
		[]flow.Field{flow.FieldIPDSCP, flow.FieldIPv4Src, flow.FieldIPv4Dst}},
	{flow.EthTypeIPv4, flow.IPProtoTCP, 0, []flow.Field{flow.FieldIPv4Src, flow.FieldTCPSrc, flow.FieldTCPDst},
		[]flow.Field{flow.FieldIPv4Src, flow.FieldTCPSrc, flow.FieldTCPDst}},
	{flow.EthTypeIPv4, flow.IPProtoUDP, 0, []flow.Field{flow.FieldIPv4Dst, flow.FieldUDPSrc, flow.FieldUDPDst},
		[]flow.Field{flow.FieldIPv4Dst, flow.FieldUDPSrc, flow.FieldUDPDst}},
	{flow.EthTypeIPv4, flow.IPProtoSCTP, 0, []flow.Field{flow.FieldSCTPSrc, flow.FieldSCTPDst}, nil},
	{flow.EthTypeIPv4, flow.IPProtoICMP, 0, []flow.Field{flow.FieldICMPv4Type, flow.FieldICMPv4Code},
		[]flow.Field{flow.FieldICMPv4Type, flow.FieldICMPv4Code}},
	{flow.EthTypeARP, 0, 0, []flow.Field{flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldARPSHA, flow.FieldARPTHA},
		[]flow.Field{flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA}},
	{flow.EthTypeIPv6, 0, 0, []flow.Field{flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldIPv6FLabel, flow.FieldIPv6ExtHdr}, nil},
	{flow.EthTypeIPv6, flow.IPProtoICMPv6, flow.ICMPv6Solicit, []flow.Field{flow.FieldICMPv6Code, flow.FieldNDTarget, flow.FieldNDSLL}, nil},
	{flow.EthTypeIPv6, flow.IPProtoICMPv6, flow.ICMPv6Advert, []flow.Field{flow.FieldNDTarget, flow.FieldNDTLL}, nil},
	{flow.EthTypeMPLS, 0, 0, []flow.Field{flow.FieldMPLSLabel, flow.FieldMPLSTC, flow.FieldMPLSBOS}, nil},
	{flow.EthTypePBB, 0, 0, []flow.Field{flow.FieldPBBISID}, nil},
}

// value is a random value of a field, in wire order, that fits its bits.
func value(r *rand.Rand, f flow.Field) (v [16]byte) {
	copy(v[:], data(r, f.Len()))
	for i, over := 0, 8*f.Len()-f.Bits(); over > 0; i, over = i+1, over-8 {
		v[i] &= byte(0xff >> min(over, 8))
	}
	return v
}

func put(r *rand.Rand, m *flow.Match, f flow.Field) {
	if f.Maskable() && f != flow.FieldVLAN && r.IntN(2) == 0 {
		m.PutMasked(f, value(r, f), value(r, f))
		return
	}
	m.Put(f, value(r, f))
}

// randomMatch is a match in normal form that obeys CheckMatch and that the
// version can express.
func randomMatch(r *rand.Rand, v Version) flow.Match {
	var m flow.Match
	coin := func() bool { return r.IntN(2) == 0 }
	if coin() {
		m = m.WithInPort(port(r, v))
		if v != V10 && coin() {
			put(r, &m, flow.FieldInPhyPort)
		}
	}
	for _, f := range []flow.Field{flow.FieldMetadata, flow.FieldTunnelID, flow.FieldEthDst, flow.FieldEthSrc} {
		if coin() && v != V10 {
			put(r, &m, f)
		} else if coin() && (f == flow.FieldEthDst || f == flow.FieldEthSrc) {
			m.Put(f, value(r, f))
		}
	}
	switch r.IntN(4) {
	case 0:
		m = m.WithoutVLAN()
	case 1:
		m = m.WithVLAN(uint16(r.IntN(4096)))
		if coin() {
			m = m.WithVLANPCP(uint8(r.IntN(8)))
		}
	case 2:
		if m = m.WithAnyVLAN(); v == V10 || coin() {
			m = m.WithVLANPCP(uint8(r.IntN(8)))
		}
	}
	if coin() {
		return m
	}
	p := &protocols[r.IntN(len(protocols))]
	m = m.WithEthType(p.ether)
	fields := p.fields
	if v == V10 {
		if fields = p.fields10; fields == nil {
			return m
		}
	}
	if p.ip != 0 {
		m = m.WithIPProto(p.ip)
	}
	if p.icmp != 0 {
		m = m.WithICMPv6Type(p.icmp)
	}
	for _, f := range fields {
		switch {
		case coin():
		case v != V10:
			put(r, &m, f)
		case f == flow.FieldARPOp:
			m = m.WithARPOp(uint16(r.IntN(256)))
		case f.Len() == 4:
			var mask [16]byte
			be.PutUint32(mask[:], ^uint32(0)<<r.IntN(33))
			m.PutMasked(f, value(r, f), mask)
		default:
			m.Put(f, value(r, f))
		}
	}
	return m
}

// randomActions is actions of the version; in OpenFlow 1.0 transport ports are
// those of the protocol that the match names, or TCP's.
func randomActions(r *rand.Rand, v Version, ip uint8) []flow.Action {
	return manyActions(r, func() []flow.Action {
		if v == V10 {
			return randomAction10(r, ip)
		}
		a := flow.Action{}
		switch r.IntN(6) {
		case 0:
			a = flow.Action{Kind: flow.ActionOutput, Arg: r.Uint32(), MaxLen: uint16(r.Uint32())}
		case 1:
			a.Kind = []flow.ActionKind{flow.ActionGroup, flow.ActionSetQueue}[r.IntN(2)]
			a.Arg = r.Uint32()
		case 2:
			a.Kind = []flow.ActionKind{flow.ActionCopyTTLOut, flow.ActionCopyTTLIn, flow.ActionDecMPLSTTL,
				flow.ActionPopVLAN, flow.ActionDecNwTTL, flow.ActionPopPBB}[r.IntN(6)]
		case 3:
			a.Kind = []flow.ActionKind{flow.ActionPushVLAN, flow.ActionPushMPLS, flow.ActionPopMPLS, flow.ActionPushPBB}[r.IntN(4)]
			a.Arg = uint32(r.IntN(1 << 16))
		case 4:
			a.Kind = []flow.ActionKind{flow.ActionSetMPLSTTL, flow.ActionSetNwTTL}[r.IntN(2)]
			a.Arg = uint32(r.IntN(256))
		case 5:
			if r.IntN(4) == 0 {
				return []flow.Action{{Kind: flow.ActionExperimenter, Arg: r.Uint32(), Data: string(data(r, 8*r.IntN(4)))}}
			}
			a.Kind, a.Field = flow.ActionSetField, flow.Field(r.IntN(int(flow.NumFields)))
			a.Value = value(r, a.Field)
		}
		return []flow.Action{a}
	})
}

func manyActions(r *rand.Rand, f func() []flow.Action) (list []flow.Action) {
	for range r.IntN(6) {
		list = append(list, f()...)
	}
	return list
}

func randomAction10(r *rand.Rand, ip uint8) []flow.Action {
	out := flow.Action{Kind: flow.ActionOutput, Arg: uint32(port(r, V10))}
	src, dst := flow.FieldTCPSrc, flow.FieldTCPDst
	if ip == flow.IPProtoUDP {
		src, dst = flow.FieldUDPSrc, flow.FieldUDPDst
	}
	switch r.IntN(5) {
	case 0: // enqueue, then back to no queue
		return []flow.Action{{Kind: flow.ActionSetQueue, Arg: r.Uint32() >> 1}, out, {Kind: flow.ActionSetQueue, Arg: QueueNone}, out}
	case 1:
		return []flow.Action{flow.PopVLAN()}
	case 2:
		return []flow.Action{{Kind: flow.ActionExperimenter, Arg: r.Uint32(), Data: string(data(r, 8*r.IntN(4)))}}
	case 3:
		fields := []flow.Field{flow.FieldVLANPCP, flow.FieldEthSrc, flow.FieldEthDst, flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldIPDSCP, src, dst}
		f := fields[r.IntN(len(fields))]
		return []flow.Action{{Kind: flow.ActionSetField, Field: f, Value: value(r, f)}}
	}
	return []flow.Action{flow.SetVLAN(uint16(r.IntN(4096)))}
}

func randomEntry(r *rand.Rand, v Version) flow.Entry {
	e := flow.Entry{
		Table: uint8(r.IntN(255)), Priority: uint16(r.Uint32()), IdleTimeout: uint16(r.Uint32()), HardTimeout: uint16(r.Uint32()),
		Flags: uint16(r.IntN(4)), Cookie: flow.Cookie(r.Uint64()), Match: randomMatch(r, v),
	}
	e.Apply = randomActions(r, v, e.Match.Key.IPProto)
	if v == V10 {
		e.Table = 0
		return e
	}
	e.Flags = uint16(r.IntN(32))
	e.Goto, e.Clear, e.Meter = uint8(r.IntN(3)), r.IntN(2) == 0, uint32(r.IntN(3))
	if e.HasWrite = r.IntN(2) == 0; e.HasWrite {
		e.Write = randomActions(r, v, 0)
	}
	if r.IntN(2) == 0 {
		e.MetaMask = r.Uint64()
		e.Metadata = r.Uint64() & e.MetaMask
	}
	return e
}

func randomMod(r *rand.Rand, v Version) flow.Mod {
	m := flow.Mod{
		Command: flow.Command(r.IntN(5)), Entry: randomEntry(r, v),
		BufferID: r.Uint32(), OutPort: port(r, v), OutGroup: r.Uint32(), CookieMask: flow.Cookie(r.Uint64()),
	}
	if v == V10 {
		m.OutGroup, m.CookieMask = flow.GroupAny, 0
		if m.Command >= flow.Delete {
			m.Entry.Table = flow.TableAll
		}
	}
	return m
}

func randomPacketIn(r *rand.Rand, v Version) flow.PacketIn {
	in := flow.PacketIn{BufferID: r.Uint32(), TotalLen: uint16(r.Uint32()), Reason: flow.Reason(r.IntN(3)), Data: data(r, r.IntN(100))}
	in.Key.InPort = port(r, v)
	if v != V10 {
		in.Table, in.Cookie = uint8(r.Uint32()), flow.Cookie(r.Uint64())
		in.Key.InPhyPort = flow.Port(r.IntN(2) * r.IntN(100))
		in.Key.Metadata, in.Key.TunnelID = uint64(r.IntN(2))*r.Uint64(), uint64(r.IntN(2))*r.Uint64()
	}
	return in
}

func randomPacketOut(r *rand.Rand, v Version) flow.PacketOut {
	o := flow.PacketOut{BufferID: flow.BufferNone, InPort: port(r, v), Actions: randomActions(r, v, 0), Data: data(r, r.IntN(100))}
	if v == V10 && o.InPort == flow.PortAny {
		o.InPort = flow.PortController
	}
	if r.IntN(2) == 0 {
		o.BufferID, o.Data = r.Uint32()>>1, []byte{}
	}
	return o
}

func randomFlowRemoved(r *rand.Rand, v Version) FlowRemoved {
	x := FlowRemoved{
		Reason: RemovedReason(r.IntN(4)), Table: uint8(r.Uint32()), Priority: uint16(r.Uint32()), IdleTimeout: uint16(r.Uint32()), HardTimeout: uint16(r.Uint32()),
		Cookie: flow.Cookie(r.Uint64()), DurationSec: r.Uint32(), DurationNsec: r.Uint32(), Packets: r.Uint64(), Bytes: r.Uint64(), Match: randomMatch(r, v),
	}
	if v == V10 {
		x.Table, x.HardTimeout = 0, 0
	}
	return x
}

func portFeatures(r *rand.Rand, v Version) uint32 {
	if v == V10 {
		return r.Uint32() & (0x7f | 0xf800)
	}
	return r.Uint32()
}

func randomPort(r *rand.Rand, v Version) PortDesc {
	p := PortDesc{
		No: port(r, v), HWAddr: mac(r), Name: word(r, 15), Config: r.Uint32(), State: r.Uint32(),
		Curr: portFeatures(r, v), Advertised: portFeatures(r, v), Supported: portFeatures(r, v), Peer: portFeatures(r, v),
		CurrSpeed: r.Uint32(), MaxSpeed: r.Uint32(),
	}
	if v == V10 {
		p.CurrSpeed, p.MaxSpeed = portSpeed(p.Curr), portSpeed(p.Supported)
	}
	return p
}

func randomFeatures(r *rand.Rand, v Version) Features {
	f := Features{DPID: flow.DPID(r.Uint64()), Buffers: r.Uint32(), Tables: uint8(r.Uint32()), Capabilities: r.Uint32()}
	if v == V10 {
		f.Capabilities &= capabilities10
		f.Actions = r.Uint32()
		f.Ports = many(r, 5, func() PortDesc { return randomPort(r, v) })
	} else {
		f.AuxiliaryID = uint8(r.Uint32())
	}
	return f
}

func randomError(r *rand.Rand, v Version) Error {
	e := Error{Type: uint16(r.IntN(len(errorTypes))), Xid: r.Uint32(), Data: data(r, r.IntN(80))}
	e.Code = uint16(r.IntN(len(errorTypes[e.Type].codes)))
	if v == V10 {
		p := errorFrom10(errorTo10(pair{e.Type, e.Code}))
		e.Type, e.Code = p.typ, p.code
	} else if r.IntN(8) == 0 {
		e.Type, e.Code, e.Experimenter = ErrExperimenter, uint16(r.Uint32()), r.Uint32()
	}
	return e
}

func randomExperimenter(r *rand.Rand, v Version) Experimenter {
	e := Experimenter{ID: r.Uint32(), Data: data(r, r.IntN(40))}
	if v != V10 {
		e.Type = r.Uint32()
	}
	return e
}

func randomGroup(r *rand.Rand, v Version) flow.Group {
	return flow.Group{Kind: flow.GroupKind(r.IntN(4)), ID: r.Uint32(), Buckets: many(r, 3, func() flow.Bucket {
		return flow.Bucket{Weight: uint16(r.Uint32()), WatchPort: port(r, v), WatchGroup: r.Uint32(), Actions: randomActions(r, v, 0)}
	})}
}

func randomMeter(r *rand.Rand, v Version) flow.Meter {
	return flow.Meter{ID: r.Uint32(), Flags: uint16(r.Uint32()), Bands: many(r, 3, func() flow.Band {
		b := flow.Band{Kind: flow.MeterDrop, Rate: r.Uint32(), BurstSize: r.Uint32()}
		if r.IntN(2) == 0 {
			b.Kind, b.PrecLevel = flow.MeterDSCPRemark, uint8(r.Uint32())
		}
		return b
	})}
}

func randomRole(r *rand.Rand, v Version) role { return role{Role(r.IntN(4)), r.Uint64()} }

func randomAsync(r *rand.Rand, v Version) Async {
	two := func() [2]uint32 { return [2]uint32{r.Uint32(), r.Uint32()} }
	return Async{two(), two(), two()}
}

func randomQueueConfig(r *rand.Rand, v Version) queueConfig {
	c := queueConfig{port: port(r, v)}
	c.queues = many(r, 4, func() Queue {
		q := Queue{Port: c.port, ID: r.Uint32(), MinRate: QueueRateNone, MaxRate: QueueRateNone}
		if r.IntN(2) == 0 {
			q.MinRate = uint16(r.Uint32())
		}
		if v != V10 {
			q.Port, q.MaxRate = port(r, v), uint16(r.Uint32())
			q.Properties = many(r, 2, func() QueueProperty { return QueueProperty{r.Uint32(), data(r, 8*r.IntN(4))} })
		}
		return q
	})
	return c
}

func randomRequest(r *rand.Rand, v Version) MultipartRequest {
	types := []MultipartType{0, 1, 2, 3, 4, 5, MultipartExperimenter, 6, 7, 8, 9, 10, 11, 12, 13}
	if v == V10 {
		types = types[:7]
	}
	q := MultipartRequest{Type: types[r.IntN(len(types))], More: r.IntN(2) == 0}
	switch q.Type {
	case MultipartFlow, MultipartAggregate:
		q.Table, q.OutPort, q.OutGroup, q.Match = uint8(r.Uint32()), port(r, v), flow.GroupAny, randomMatch(r, v)
		if v != V10 {
			q.OutGroup, q.Cookie, q.CookieMask = r.Uint32(), flow.Cookie(r.Uint64()), flow.Cookie(r.Uint64())
		}
	case MultipartQueue:
		q.Queue = r.Uint32()
		if q.Port = port(r, v); q.Port == flow.PortAll {
			q.Port = flow.PortAny
		}
	case MultipartPortStats:
		q.Port = port(r, v)
	case MultipartGroup:
		q.Group = r.Uint32()
	case MultipartMeter, MultipartMeterConfig:
		q.Meter = r.Uint32()
	case MultipartTableFeatures:
		q.Features = many(r, 3, func() TableFeatures { return randomTableFeatures(r, v) })
	case MultipartExperimenter:
		x := randomExperimenter(r, v)
		q.Experimenter, q.ExpType, q.Data = x.ID, x.Type, x.Data
	}
	return q
}
