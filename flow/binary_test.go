package flow

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func randomPacketIn(r *rand.Rand) PacketIn {
	m := randomMatch(r, false)
	p := PacketIn{Switch: DPID(r.Uint64()), Time: int64(r.Uint64()), BufferID: BufferNone, TotalLen: uint16(r.Uint32()),
		Reason: ReasonAction, Table: 3, Key: m.Key, Data: make([]byte, r.IntN(100)), Role: RoleEdge}
	if r.IntN(2) == 0 {
		p.Key = meets(r, &m) // every field set
		p.Key.CTState, p.Key.CTZone, p.Key.CTMark = 0, 0, 0
		p.BufferID, p.Cookie = r.Uint32(), NewCookie(OwnerRoutes, 1, 2)
		p.Src, p.Dst, p.DstMAC = Location{1, 2}, Location{3, 4}, MAC{2, 1, 2, 3, 4, 5}
		p.Unapproved, p.HeldBy = true, []string{"portal", "badges"}
	}
	return p
}

// same compares what two decisions are about, in order: operations, not where
// they are kept.
func same(t *testing.T, a, b *Decision) {
	t.Helper()
	if len(a.Ops) != len(b.Ops) {
		t.Fatalf("%d operations became %d", len(a.Ops), len(b.Ops))
	}
	for i, x := range a.Ops {
		y := b.Ops[i]
		if x.Kind != y.Kind || x.Switch != y.Switch {
			t.Fatalf("operation %d: %+v became %+v", i, x, y)
		}
		var v, w any
		switch x.Kind {
		case OpFlow:
			m, n := a.Flows[x.Index], b.Flows[y.Index]
			if !m.Entry.Same(&n.Entry) || m.Entry.Key() != n.Entry.Key() || m.Entry.Cookie != n.Entry.Cookie {
				t.Fatalf("operation %d: %v became %v", i, m.Entry, n.Entry)
			}
			m.Entry, n.Entry = Entry{}, Entry{}
			v, w = m, n
		case OpGroup:
			v, w = a.Groups[x.Index], b.Groups[y.Index]
		case OpMeter:
			v, w = a.Meters[x.Index], b.Meters[y.Index]
		case OpPacketOut:
			v, w = a.Outs[x.Index], b.Outs[y.Index]
		}
		if !reflect.DeepEqual(v, w) {
			t.Fatalf("operation %d:\n%+v became\n%+v", i, v, w)
		}
	}
}

func TestDecisionRoundTrip(t *testing.T) {
	r := newRand(20)
	var d, got Decision
	for range 3000 {
		randomDecision(r, &d)
		if d.Trace = 0; r.IntN(2) == 0 {
			d.Trace = r.Uint64()
		}
		for _, encode := range []func([]byte) ([]byte, error){d.AppendBinary, d.AppendRecords} {
			b, err := encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			clearAll(b) // nothing may alias the input
			same(t, &d, &got)
			if got.Trace != d.Trace {
				t.Fatalf("trace %d became %d", d.Trace, got.Trace)
			}
		}
	}
}

func clearAll(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

func TestEntryRoundTrip(t *testing.T) {
	r := newRand(21)
	var got Entry
	for range 3000 {
		e := randomEntry(r)
		b, err := e.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		clearAll(b)
		if !e.Same(&got) || e.Key() != got.Key() || e.Cookie != got.Cookie || e.HasWrite != got.HasWrite {
			t.Fatalf("%v became %v", e, got)
		}
	}
}

func TestPacketInRoundTrip(t *testing.T) {
	r := newRand(22)
	var got PacketIn
	for range 3000 {
		p := randomPacketIn(r)
		b, err := p.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		clearAll(b)
		if p.Data == nil {
			p.Data = []byte{}
		}
		if !reflect.DeepEqual(p, got) {
			t.Fatalf("%+v\nbecame\n%+v", p, got)
		}
	}
}

// leaves calls do with the path of every number and truth value in v, a
// struct; matches and what is behind slices have tests of their own.
func leaves(v reflect.Value, path string, do func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Match]() {
			return
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !strings.HasPrefix(name, "CT") { // of conditions only, not of packet-ins
				leaves(v.Field(i), path+"."+name, do)
			}
		}
	case reflect.Array:
		leaves(v.Index(v.Len()-1), path, do)
	case reflect.Slice, reflect.String:
	default:
		do(path, v)
	}
}

// everyField sets every field of v in turn and hands v to cross, which is to
// return it from the far side.
func everyField(t *testing.T, v any, cross func() any) {
	t.Helper()
	leaves(reflect.ValueOf(v).Elem(), reflect.TypeOf(v).Elem().Name(), func(path string, f reflect.Value) {
		was := reflect.ValueOf(f.Interface())
		switch {
		case f.CanUint():
			f.SetUint(f.Uint() ^ 1)
		case f.CanInt():
			f.SetInt(1)
		default:
			f.SetBool(true)
		}
		if got := cross(); !reflect.DeepEqual(got, reflect.ValueOf(v).Elem().Interface()) {
			t.Errorf("%s does not cross", path)
		}
		f.Set(was)
	})
}

// TestEveryFieldCrosses: no field is forgotten by the encoding, one that is
// added later included.
func TestEveryFieldCrosses(t *testing.T) {
	p := PacketIn{BufferID: BufferNone, Data: []byte{1}}
	everyField(t, &p, func() any {
		b, _ := p.AppendBinary(nil)
		var q PacketIn
		if err := q.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		return q
	})
	e := Entry{Apply: []Action{PopVLAN()}, Write: []Action{PopVLAN()}}
	everyField(t, &e, func() any {
		b, _ := e.AppendBinary(nil)
		var q Entry
		if err := q.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		return q
	})
	through := func(fill func(d *Decision)) *Decision {
		var d, q Decision
		fill(&d)
		b, err := d.AppendBinary(nil)
		if err == nil {
			err = q.UnmarshalBinary(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return &q
	}
	m := Mod{BufferID: BufferNone, OutPort: PortAny, OutGroup: GroupAny}
	everyField(t, &m, func() any { return through(func(d *Decision) { d.Flow(1, m) }).Flows[0] })
	g := GroupMod{}
	everyField(t, &g, func() any { return through(func(d *Decision) { d.Group(1, g) }).Groups[0] })
	k := Bucket{}
	everyField(t, &k, func() any {
		return through(func(d *Decision) { d.Group(1, GroupMod{Group: Group{Buckets: []Bucket{k}}}) }).Groups[0].Group.Buckets[0]
	})
	n := MeterMod{}
	everyField(t, &n, func() any { return through(func(d *Decision) { d.Meter(1, n) }).Meters[0] })
	band := Band{}
	everyField(t, &band, func() any {
		return through(func(d *Decision) { d.Meter(1, MeterMod{Meter: Meter{Bands: []Band{band}}}) }).Meters[0].Meter.Bands[0]
	})
	o := PacketOut{}
	everyField(t, &o, func() any { return through(func(d *Decision) { d.PacketOut(1, o) }).Outs[0] })
}

// TestBinaryCutOff: an encoding with its end missing, octets added, or another
// first octet is refused.
func TestBinaryCutOff(t *testing.T) {
	r := newRand(23)
	for range 200 {
		var d, got Decision
		for d.Empty() {
			randomDecision(r, &d)
		}
		e, p := randomEntry(r), randomPacketIn(r)
		for _, encode := range []func([]byte) ([]byte, error){d.AppendBinary, d.AppendRecords} {
			b, _ := encode(nil)
			for n := 1; n < len(b); n++ {
				// a decision may end after any operation
				if got.UnmarshalBinary(b[:n]) == nil && len(got.Ops) >= len(d.Ops) {
					t.Fatalf("%d of %d octets of a decision are taken for all of it", n, len(b))
				}
			}
		}
		var ge Entry
		b, _ := e.AppendBinary(nil)
		for n := range b {
			if ge.UnmarshalBinary(b[:n]) == nil {
				t.Fatalf("%d of %d octets of an entry are taken for one", n, len(b))
			}
		}
		if err := ge.UnmarshalBinary(append(b, 0)); err == nil || !strings.Contains(err.Error(), "octets after the end") {
			t.Fatalf("trailing octet: %v", err)
		}
		var gp PacketIn
		b, _ = p.AppendBinary(nil)
		for n := range b {
			if gp.UnmarshalBinary(b[:n]) == nil {
				t.Fatalf("%d of %d octets of a packet-in are taken for one", n, len(b))
			}
		}
	}
	var p PacketIn
	if err := p.UnmarshalBinary([]byte{wireEntry}); err == nil || err.Error() != "flow: decode packet-in: value of kind 3, want 2" {
		t.Error(err)
	}
	if err := p.UnmarshalBinary([]byte{0x22}); err == nil || err.Error() != "flow: decode packet-in: version 2 of the encoding, want 1" {
		t.Error(err)
	}
}

func TestEncodeErrors(t *testing.T) {
	bad := Entry{Apply: []Action{{Kind: ActionSetField, Field: NumFields}}}
	if _, err := bad.AppendBinary(nil); err == nil {
		t.Error("a set-field of no field is encoded")
	}
	bad = Entry{Match: Match{Set: 1 << NumFields}}
	if _, err := bad.AppendBinary(nil); err == nil {
		t.Error("a match on no field is encoded")
	}
	d := Decision{Ops: []Op{{Kind: OpFlow, Index: 1}}}
	if _, err := d.AppendBinary(nil); err == nil {
		t.Error("an operation on nothing is encoded")
	}
}

// FuzzUnmarshal: hostile input is refused or decodes to what encodes again to a
// value with the same encoding.
func FuzzUnmarshal(f *testing.F) {
	r := newRand(24)
	var d Decision
	for range 20 {
		randomDecision(r, &d)
		b, _ := d.AppendBinary(nil)
		f.Add(b)
		b, _ = d.AppendRecords(nil)
		f.Add(b)
		e, p := randomEntry(r), randomPacketIn(r)
		b, _ = e.AppendBinary(nil)
		f.Add(b)
		b, _ = p.AppendBinary(nil)
		f.Add(b)
	}
	type value interface {
		AppendBinary([]byte) ([]byte, error)
		UnmarshalBinary([]byte) error
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, pair := range [][2]value{{&Decision{}, &Decision{}}, {&Entry{}, &Entry{}}, {&PacketIn{}, &PacketIn{}}} {
			if pair[0].UnmarshalBinary(b) != nil {
				continue
			}
			one, err := pair[0].AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := pair[1].UnmarshalBinary(one); err != nil {
				t.Fatal(err)
			}
			two, err := pair[1].AppendBinary(nil)
			if err != nil || !bytes.Equal(one, two) {
				t.Fatalf("%x\nbecame\n%x, %v", one, two, err)
			}
		}
	})
}

// pathDecision is a path of five switches set up and its packet released.
func pathDecision(d *Decision) {
	d.Reset()
	for i := range 5 {
		m := d.AddFlow(DPID(i + 1))
		m.Entry.Priority, m.Entry.Cookie, m.Entry.IdleTimeout = 100, NewCookie(OwnerRoutes, 1, uint32(i)), 60
		m.Entry.Match = Match{}.WithInPort(1).WithEthSrc(MAC{1}).WithEthDst(MAC{2}).WithIPv4Dst(netip.MustParsePrefix("10.0.0.1/32"))
		m.Entry.Apply = d.Actions(Output(2))
	}
	d.Fence()
	d.PacketOut(5, PacketOut{BufferID: BufferNone, InPort: 1, Actions: d.Actions(Output(PortTable)), Data: make([]byte, 98)})
}

func TestBinaryDoesNotAllocate(t *testing.T) {
	var d, e Decision
	pathDecision(&d)
	d.Group(1, GroupMod{Add, Group{Buckets: []Bucket{{Actions: []Action{Output(1)}}}}})
	d.Meter(1, MeterMod{Add, Meter{Bands: []Band{{Kind: MeterDrop}}}})
	p := randomPacketIn(newRand(25))
	var q PacketIn
	entry := Entry{Match: Match{}.WithInPort(1), Apply: []Action{Output(1)}}
	var entry2 Entry
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		b, err := d.AppendBinary(buf[:0])
		if err == nil {
			err = e.UnmarshalBinary(b)
		}
		if b, _ = p.AppendBinary(buf[:0]); err == nil {
			err = q.UnmarshalBinary(b)
		}
		if b, _ = entry.AppendBinary(buf[:0]); err == nil {
			err = entry2.UnmarshalBinary(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecisionAppend(b *testing.B) {
	var d Decision
	pathDecision(&d)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = d.AppendBinary(buf[:0])
	}
	b.ReportMetric(float64(len(buf)), "octets")
}

func BenchmarkDecisionUnmarshal(b *testing.B) {
	var d, e Decision
	pathDecision(&d)
	buf, _ := d.AppendBinary(nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.UnmarshalBinary(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPacketIn() PacketIn {
	return PacketIn{Switch: 1, Time: 1, BufferID: BufferNone, TotalLen: 98, Data: make([]byte, 98), Role: RoleEdge, Src: Location{1, 1},
		Key: Key{InPort: 1, EthDst: MAC{1}, EthSrc: MAC{2}, EthType: 0x800, IPProto: 6, IPv4Src: [4]byte{10}, IPv4Dst: [4]byte{10, 1}, TPSrc: 1, TPDst: 2}}
}

func BenchmarkPacketInAppend(b *testing.B) {
	p := benchPacketIn()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = p.AppendBinary(buf[:0])
	}
	b.ReportMetric(float64(len(buf)), "octets")
}

func BenchmarkPacketInUnmarshal(b *testing.B) {
	p := benchPacketIn()
	buf, _ := p.AppendBinary(nil)
	var q PacketIn
	b.ReportAllocs()
	for b.Loop() {
		if err := q.UnmarshalBinary(buf); err != nil {
			b.Fatal(err)
		}
	}
}
