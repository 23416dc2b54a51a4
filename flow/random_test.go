package flow

import "math/rand/v2"

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// profiles are prerequisites and the fields that they allow.
var profiles = []struct {
	base   Match
	fields []Field
}{
	{Match{}, nil},
	{Match{}.WithEthType(EthTypeARP), []Field{FieldARPOp, FieldARPSPA, FieldARPTPA, FieldARPSHA, FieldARPTHA}},
	{Match{}.WithEthType(EthTypeIPv4), []Field{FieldIPv4Src, FieldIPv4Dst, FieldIPDSCP, FieldIPECN}},
	{Match{}.WithEthType(EthTypeIPv4).WithIPProto(6), []Field{FieldIPv4Src, FieldIPv4Dst, FieldTCPSrc, FieldTCPDst}},
	{Match{}.WithEthType(EthTypeIPv4).WithIPProto(17), []Field{FieldIPv4Src, FieldUDPSrc, FieldUDPDst}},
	{Match{}.WithEthType(EthTypeIPv4).WithIPProto(132), []Field{FieldSCTPSrc, FieldSCTPDst}},
	{Match{}.WithEthType(EthTypeIPv4).WithIPProto(1), []Field{FieldICMPv4Type, FieldICMPv4Code}},
	{Match{}.WithEthType(EthTypeIPv6).WithIPProto(6), []Field{FieldIPv6Src, FieldIPv6Dst, FieldIPv6FLabel, FieldIPv6ExtHdr, FieldTCPDst}},
	{Match{}.WithICMPv6Type(135), []Field{FieldIPv6Src, FieldIPv6Dst, FieldNDTarget, FieldNDSLL, FieldICMPv6Code}},
	{Match{}.WithICMPv6Type(136), []Field{FieldIPv6Src, FieldNDTarget, FieldNDTLL}},
	{Match{}.WithEthType(EthTypeMPLS), []Field{FieldMPLSLabel, FieldMPLSTC, FieldMPLSBOS}},
	{Match{}.WithEthType(EthTypePBB), []Field{FieldPBBISID}},
}

// randomMatch returns a normal match that Check accepts; narrow ones have
// values and masks so small that two of them often meet.
func randomMatch(r *rand.Rand, narrow bool) Match {
	p := profiles[r.IntN(len(profiles))]
	m := p.base
	fields := append([]Field{FieldInPort, FieldMetadata, FieldEthDst, FieldEthSrc, FieldVLAN, FieldTunnelID}, p.fields...)
	for _, f := range fields {
		if r.IntN(2) == 0 {
			continue
		}
		vh, vl := r.Uint64(), r.Uint64()
		mh, ml := f.ones()
		if narrow {
			vh, vl = 0, vl&3
		}
		vh, vl = vh&mh, vl&ml
		if f.Maskable() && r.IntN(2) == 0 {
			mh, ml = mh&r.Uint64(), ml&r.Uint64()
			if narrow {
				mh, ml = 0, ml&3
			}
		} else if f == FieldVLAN && vl != 0 {
			vl |= uint64(VLANPresent)
		}
		if f == FieldVLAN && vl != 0 && ml == 0x1fff {
			vl |= uint64(VLANPresent)
		}
		m.put(f, vh, vl, mh, ml)
	}
	if m.Set.Has(FieldVLAN) && !m.Masked.Has(FieldVLAN) && m.Key.VLAN != 0 && r.IntN(2) == 0 {
		m = m.WithVLANPCP(uint8(r.IntN(8)))
	}
	return m
}

// meets returns a key that m matches, otherwise random, within the ranges of
// the fields.
func meets(r *rand.Rand, m *Match) Key {
	var k Key
	for f := Field(0); f < NumFields; f++ {
		oh, ol := f.ones()
		k.store(f, r.Uint64()&oh, r.Uint64()&ol)
	}
	for f := Field(0); f < NumFields; f++ {
		if m.Set.Has(f) {
			vh, vl, mh, ml := m.condition(f)
			kh, kl := k.load(f)
			k.store(f, kh&^mh|vh, kl&^ml|vl)
		}
	}
	return k
}

func randomActions(r *rand.Rand) []Action {
	var list []Action
	for range r.IntN(4) {
		switch r.IntN(8) {
		case 0:
			list = append(list, Output(Port(r.IntN(100)+1)))
		case 1:
			list = append(list, Action{Kind: ActionOutput, Arg: uint32(PortController), MaxLen: uint16(r.Uint32())})
		case 2:
			list = append(list, ToGroup(r.Uint32()), PushVLAN(0x8100), PopVLAN())
		case 3:
			f := Field(r.IntN(int(NumFields)))
			if f <= FieldMetadata {
				f = FieldEthDst
			}
			hi, lo := f.ones()
			v := align(f, r.Uint64()&hi, r.Uint64()&lo)
			if f == FieldVLAN {
				v[0] |= byte(VLANPresent >> 8)
			}
			list = append(list, Action{Kind: ActionSetField, Field: f, Value: v})
		case 4:
			form := actionForms[r.IntN(len(actionForms))]
			a := Action{Kind: form.kind}
			switch form.arg {
			case argNumber:
				a.Arg = r.Uint32()
			case argTTL:
				a.Arg = r.Uint32() & 0xff
			case argEthType:
				a.Arg = r.Uint32() & 0xffff
			}
			list = append(list, a)
		case 5:
			list = append(list, Action{Kind: ActionExperimenter, Arg: r.Uint32(), Data: string([]byte{0, 0xff, byte(r.Uint32())})})
		}
	}
	return list
}

func randomEntry(r *rand.Rand) Entry {
	e := Entry{Table: uint8(r.IntN(4)), Priority: uint16(r.Uint32()), Match: randomMatch(r, false), Apply: randomActions(r)}
	if r.IntN(2) == 0 {
		e.Cookie = NewCookie(Owner(r.IntN(6)), uint8(r.IntN(256)), r.Uint32())
	}
	if r.IntN(3) == 0 {
		e.IdleTimeout, e.HardTimeout, e.Flags = uint16(r.IntN(3)), uint16(r.Uint32()), uint16(r.IntN(32))
	}
	if r.IntN(3) == 0 {
		e.Write, e.HasWrite, e.Clear = randomActions(r), true, r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		e.Goto, e.Meter, e.Metadata, e.MetaMask = uint8(r.IntN(200)), r.Uint32(), r.Uint64(), r.Uint64()
	}
	return e
}

func randomDecision(r *rand.Rand, d *Decision) {
	d.Reset()
	for range r.IntN(8) {
		sw := DPID(r.IntN(3))
		switch r.IntN(6) {
		case 0:
			*d.AddFlow(sw) = Mod{Command: Command(r.IntN(5)), Entry: randomEntry(r), BufferID: r.Uint32(), OutPort: Port(r.Uint32()), OutGroup: GroupAny}
		case 1:
			m := d.AddFlow(sw)
			m.Entry.Match, m.Entry.Apply = randomMatch(r, false), d.Actions(Output(3))
		case 2:
			g := Group{Kind: GroupKindSelect, ID: r.Uint32()}
			for range r.IntN(3) {
				g.Buckets = append(g.Buckets, Bucket{uint16(r.Uint32()), PortAny, GroupAny, randomActions(r)})
			}
			d.Group(sw, GroupMod{Add, g})
		case 3:
			m := Meter{ID: r.Uint32(), Flags: 1}
			for range r.IntN(3) {
				m.Bands = append(m.Bands, Band{MeterDrop, r.Uint32(), r.Uint32(), 1})
			}
			d.Meter(sw, MeterMod{Delete, m})
		case 4:
			o := PacketOut{BufferID: BufferNone, InPort: PortController, Actions: randomActions(r)}
			if n := r.IntN(200); n > 0 {
				o.Data = make([]byte, n)
				o.Data[n-1] = byte(n)
			}
			d.PacketOut(sw, o)
		case 5:
			d.Fence()
		case 6:
			m := d.AddFlow(sw)
			m.Command, m.BufferID = Command(r.IntN(5)), r.Uint32()
			m.Entry = Entry{Table: uint8(r.Uint32()), Priority: uint16(r.Uint32()), IdleTimeout: uint16(r.Uint32()), HardTimeout: uint16(r.Uint32()),
				Flags: uint16(r.Uint32()), Cookie: Cookie(r.Uint64()), Match: randomMatch(r, false), Apply: d.Output(Port(r.Uint32()))}
			k := Match{}.WithInPort(Port(r.Uint32())).WithEthDst(MACFrom(r.Uint64())).WithEthSrc(MACFrom(r.Uint64()))
			if m.Entry.Match = k.WithoutVLAN(); r.IntN(2) == 0 {
				m.Entry.Match = k.WithVLAN(uint16(r.IntN(4096)))
			}
			m.Entry.Apply[0].MaxLen = uint16(r.Uint32())
		case 7:
			d.PacketOut(sw, PacketOut{BufferID: r.Uint32(), InPort: Port(r.Uint32()), Actions: d.Output(Port(r.Uint32())), Data: []byte{1, 2, 3}[:r.IntN(4)]})
		}
	}
}
