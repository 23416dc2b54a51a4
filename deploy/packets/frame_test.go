package packets

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// anyPacket returns a packet-in as a southbound or a stage may hand it on.
func anyPacket(r *rand.Rand) *flow.PacketIn {
	in := &flow.PacketIn{
		Switch: flow.DPID(r.Uint64()), Time: r.Int64(), BufferID: flow.BufferNone, Reason: flow.Reason(r.IntN(3)), Table: uint8(r.Uint32()),
		Data: make([]byte, r.IntN(200)), Role: flow.PortRole(r.IntN(4)),
	}
	for i := range in.Data {
		in.Data[i] = byte(r.Uint32())
	}
	in.TotalLen = uint16(len(in.Data))
	if r.IntN(2) == 0 {
		in.BufferID, in.TotalLen, in.Cookie = r.Uint32(), uint16(r.Uint32()), flow.Cookie(r.Uint64())
	}
	if r.IntN(2) == 0 {
		in.Src, in.Dst = flow.Location{Switch: 1, Port: flow.Port(r.Uint32())}, flow.Location{Switch: flow.DPID(r.Uint64()), Port: 3}
		in.DstMAC = flow.MAC{2, byte(r.Uint32())}
	}
	if r.IntN(4) == 0 {
		in.Unapproved, in.HeldBy = true, []string{"portal", "badges"}[:1+r.IntN(2)]
	}
	in.Key.InPort = flow.Port(r.Uint32())
	if r.IntN(4) == 0 {
		in.Key.InPhyPort, in.Key.Metadata, in.Key.TunnelID = 7, r.Uint64(), r.Uint64()
	}
	if in.Parsed = !packet.ParseEthernet(in.Data, &in.Key); in.Parsed {
		packet.Parse(in.Data, &in.Key)
	}
	return in
}

// TestBatch puts packets of several sessions into batches, joins batches,
// and reads requests for all and for some of them.
func TestBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		var batches [2]batch
		var sent []*flow.PacketIn
		var sessions []uint64
		for i := range batches {
			p := &batches[i]
			p.begin(9, []string{"hosts", "forwarding"})
			for range 1 + r.IntN(20) {
				session := uint64(r.IntN(3))
				in := anyPacket(r)
				in.Switch = flow.DPID(session)
				d := &flow.Decision{}
				if r.IntN(3) == 0 {
					d.PacketOut(in.Switch, flow.PacketOut{BufferID: uint32(in.Switch), InPort: 1, Actions: d.Actions(flow.Output(flow.Port(len(sent))))})
				}
				if err := p.add(nil, session, in, d, in.Time); err != nil {
					t.Fatal(err)
				}
				sent, sessions = append(sent, in), append(sessions, session)
			}
		}
		p := &batches[0]
		p.join(&batches[1])
		var list []int
		for i := range p.records {
			if r.IntN(2) == 0 {
				list = append(list, i)
			}
		}
		check := func(request []byte, list []int) {
			t.Helper()
			c := members.Cursor{B: request}
			if c.Uint64() != 9 || len(c.Strings()) != 2 {
				t.Fatal("head")
			}
			for len(c.B) > 0 {
				session, sw, at, n := c.Uint64(), c.Uint64(), c.Uint64(), c.Uint32()
				for range n {
					got, want := &flow.PacketIn{Switch: flow.DPID(sw), Time: int64(at)}, *sent[list[0]]
					if sessions[list[0]] != session {
						t.Fatalf("packet %d in session %d, want %d", list[0], session, sessions[list[0]])
					}
					list = list[1:]
					var d flow.Decision
					if err := readPacket(&c, got, &d); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got.Data, want.Data) {
						t.Fatal("data")
					}
					got.Data, want.Data = nil, nil
					a, _ := got.AppendBinary(nil)
					b, _ := want.AppendBinary(nil)
					if !bytes.Equal(a, b) {
						t.Fatalf("got\n%+v, want\n%+v", got, want)
					}
				}
			}
			if c.Err != nil || len(list) > 0 {
				t.Fatalf("%v, %d left", c.Err, len(list))
			}
		}
		check(p.request(p.all()), p.all())
		check(p.request(list), list)
	}
}

// FuzzPacket reads hostile bytes.
func FuzzPacket(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b, err := appendPacket(nil, anyPacket(r), &flow.Decision{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := members.Cursor{B: b}
		var in flow.PacketIn
		var d flow.Decision
		if err := readPacket(&c, &in, &d); err == nil && c.Err != nil {
			t.Fatal("an error is not told")
		}
	})
}

// BenchmarkBatch is what a packet costs between two processes, but for its
// stages and the transport: put into a batch, read, its decision put into the
// answer, and read.
func BenchmarkBatch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	in := anyPacket(r)
	in.Data = make([]byte, 64)
	in.TotalLen = 64
	d := &flow.Decision{}
	m := d.AddFlow(in.Switch)
	m.Entry.Match.Set = flow.FieldInPort.Bit() | flow.FieldEthDst.Bit() | flow.FieldEthSrc.Bit()
	m.Entry.Apply = d.Output(2)
	const count = 256
	var p batch
	var answer []byte
	var got flow.PacketIn
	var dec, none flow.Decision
	b.ReportAllocs()
	for n := 0; n < b.N; n += count {
		p.begin(1, []string{"forwarding"})
		for range count {
			if err := p.add(nil, 1, in, &none, 0); err != nil {
				b.Fatal(err)
			}
		}
		c := members.Cursor{B: p.data[p.head+runHead:]}
		answer = append(answer[:0], members.AnswerOK)
		for range count {
			if err := readPacket(&c, &got, &dec); err != nil {
				b.Fatal(err)
			}
			answer, _ = appendVerdict(answer, flow.Done, d, (*flow.Decision).AppendRecords)
		}
		if err := p.answered(answer, p.all()); err != nil {
			b.Fatal(err)
		}
		for i := range p.records {
			if err := dec.UnmarshalBinary(p.records[i].decision); err != nil {
				b.Fatal(err)
			}
		}
		p.reset()
	}
}
