package sim

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// reply is what a responder makes of a packet-in: messages to send. n counts
// the packet-ins of the connection from 0.
type reply func(v openflow.Version, n int, in *flow.PacketIn) []byte

// respond serves switches as a controller that answers by reply, and returns
// its address and a count of the error messages that it has received.
func respond(t *testing.T, v openflow.Version, f reply) (string, *atomic.Int64) {
	t.Helper()
	ln := listen(t)
	errors := new(atomic.Int64)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go respondTo(c, v, f, errors)
		}
	}()
	return ln.Addr().String(), errors
}

func respondTo(c net.Conn, v openflow.Version, f reply, errors *atomic.Int64) {
	defer c.Close()
	hello := v.AppendFeaturesRequest(v.AppendHello(nil, 1, v), 2)
	if _, err := c.Write(hello); err != nil {
		return
	}
	in := bufio.NewReaderSize(c, 64<<10)
	for n := 0; ; {
		head, err := in.Peek(openflow.HeaderLen)
		if err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(in, msg); err != nil {
			return
		}
		switch openflow.Type(msg[1]) {
		case openflow.TypeError:
			errors.Add(1)
		case openflow.TypePacketIn:
			var pi flow.PacketIn
			if v.DecodePacketIn(msg, &pi) != nil {
				return
			}
			packet.Parse(pi.Data, &pi.Key)
			if _, err := c.Write(f(v, n, &pi)); err != nil {
				return
			}
			n++
		}
	}
}

// flowMod answers with an entry for a buffer_id.
func flowMod(v openflow.Version, buffer uint32, out flow.Port) []byte {
	m := adding(1, 1, flow.Match{}.WithEthDst(flow.MAC{2}), flow.Output(out))
	m.BufferID = buffer
	b, err := v.AppendFlowMod(nil, 1, &m)
	if err != nil {
		panic(err)
	}
	return b
}

// packetOutOf answers with a packet-out.
func packetOutOf(v openflow.Version, buffer uint32, out flow.Port, data []byte) []byte {
	b, err := v.AppendPacketOut(nil, 1, &flow.PacketOut{BufferID: buffer, InPort: 1, Actions: []flow.Action{flow.Output(out)}, Data: data})
	if err != nil {
		panic(err)
	}
	return b
}

// measure puts a short load on a responder.
func measure(t *testing.T, v openflow.Version, address string, load Load) *Result {
	t.Helper()
	return measureUntil(t, v, address, load, func(*Result) bool { return true })
}

// measureUntil puts a short load on a responder, and again with more patience until
// an answer of some kind is seen: on a busy machine none may come in time.
func measureUntil(t *testing.T, v openflow.Version, address string, load Load, seen func(*Result) bool) *Result {
	t.Helper()
	n := start(t, Config{Topology: isolated(t, 2, 8, 4), Version: v, Address: address})
	ctx := within(t, testwait.Limit)
	if err := n.WaitUp(ctx, 0); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(testwait.Limit); ; load.Patience *= 2 {
		r, err := n.Measure(ctx, load)
		if err != nil {
			t.Fatal(err)
		}
		if seen(r) || time.Now().After(end) {
			return r
		}
	}
}

// brief is a load that a test can afford.
var brief = Load{Window: 8, Duration: 60 * time.Millisecond, Patience: 40 * time.Millisecond}

// patient is one whose packets are all answered, however slow the machine is.
var patient = Load{Window: 8, Duration: 60 * time.Millisecond, Patience: testwait.Limit}

func TestEveryKindOfAnswerCounts(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, errors := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			switch n % 3 {
			case 0:
				return flowMod(v, in.BufferID, flow.PortFlood)
			case 1:
				return packetOutOf(v, in.BufferID, flow.PortFlood, nil)
			}
			return packetOutOf(v, flow.BufferNone, flow.PortFlood, in.Data)
		})
		r := measure(t, v, address, patient)
		if r.Answered < 8 || r.Flooded != r.Answered || r.Lost+r.Wrong+r.Late+r.Duplicates != 0 || errors.Load() != 0 {
			t.Errorf("%+v", r.Counts)
		}
	})
}

func TestWrongBufferDoesNotCount(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, errors := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			return flowMod(v, in.BufferID^0x0100_0000, flow.PortFlood)
		})
		r := measureUntil(t, v, address, brief, func(r *Result) bool { return r.Wrong > 0 })
		if r.Answered != 0 || r.Wrong == 0 || r.Lost == 0 {
			t.Errorf("%+v, want no answers, and wrong ones counted", r.Counts)
		}
		if errors.Load() == 0 {
			t.Error("the controller was not told that there is no such buffer")
		}
	})
}

func TestAnswerOnOtherConnectionDoesNotCount(t *testing.T) {
	// The buffer_ids of one switch are sent to the other.
	ids := make(chan uint32, 1024)
	address, _ := respond(t, openflow.V10, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
		var b []byte
		if in.Key.EthSrc.Uint64()&0xffff <= 8 { // a host of the first switch
			select {
			case ids <- in.BufferID:
			default:
			}
			return nil
		}
		for range 2 {
			select {
			case id := <-ids:
				b = append(b, flowMod(v, id, flow.PortFlood)...)
			default:
			}
		}
		return append(b, flowMod(v, in.BufferID, flow.PortFlood)...)
	})
	load := brief
	load.Window = 64
	r := measureUntil(t, openflow.V10, address, load, func(r *Result) bool { return r.Wrong > 0 })
	if r.Wrong == 0 || r.Lost == 0 || r.Duplicates != 0 {
		t.Errorf("%+v", r.Counts)
	}
}

func TestDuplicatesCountOnce(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, _ := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			b := flowMod(v, in.BufferID, flow.PortFlood)
			return append(b, packetOutOf(v, in.BufferID, flow.PortFlood, nil)...)
		})
		r := measure(t, v, address, patient)
		// An answer and its duplicate may lie on either side of the end.
		if d := int64(r.Answered) - int64(r.Duplicates); r.Answered < 8 || d < -16 || d > 16 || r.Wrong+r.Late != 0 || r.Answered > r.Sent {
			t.Errorf("%+v, want each answer once and its duplicate apart", r.Counts)
		}
	})
}

func TestAnswersToNothingDoNotCount(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, errors := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			b := flowMod(v, flow.BufferNone, flow.PortFlood)                                             // names no packet
			b = append(b, packetOutOf(v, flow.BufferNone, flow.PortFlood, append([]byte{}, 1, 2, 3))...) // some other frame
			b, err := v.AppendEchoRequest(b, 1, nil)
			if err != nil {
				panic(err)
			}
			return b
		})
		r := measureUntil(t, v, address, brief, func(r *Result) bool { return r.Nameless > 0 })
		if r.Answered != 0 || r.Nameless == 0 || r.Wrong+r.Duplicates+r.Late != 0 || errors.Load() != 0 {
			t.Errorf("%+v, %d errors: want no answers, and none wrong either", r.Counts, errors.Load())
		}
	})
}

func TestLateAnswersDoNotCount(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, _ := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			if n%8 == 0 {
				time.Sleep(60 * time.Millisecond)
			}
			return flowMod(v, in.BufferID, flow.PortFlood)
		})
		load := brief
		load.Duration = 200 * time.Millisecond
		r := measureUntil(t, v, address, load, func(r *Result) bool { return r.Late > 0 })
		if r.Late == 0 || r.Lost == 0 || r.Wrong+r.Duplicates != 0 {
			t.Errorf("%+v, want late answers", r.Counts)
		}
	})
}

func TestWhereAnswersSendIsCounted(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, _ := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			host := in.Key.EthDst.Uint64() & 0xffff
			right := flow.Port(1 + (host-1)%8%4)
			switch n % 3 {
			case 0:
				return flowMod(v, in.BufferID, right)
			case 1:
				return flowMod(v, in.BufferID, right%4+1)
			}
			m := adding(1, 1, flow.Match{})
			m.BufferID = in.BufferID
			b, _ := v.AppendFlowMod(nil, 1, &m)
			return b
		})
		r := measure(t, v, address, patient)
		near := func(n uint64) bool { return n*3+30 > r.Answered && n*3 < r.Answered+30 }
		if r.Answered < 8 || r.Flooded != 0 || !near(r.ToHost) || !near(r.Elsewhere) || !near(r.Nowhere) {
			t.Errorf("%+v, want a third each to the host, elsewhere and nowhere", r.Counts)
		}
	})
}

func TestUnbufferedNeedsTheFrameBack(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		address, _ := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			if in.BufferID != flow.BufferNone {
				t.Errorf("buffer_id %#x of a packet sent whole", in.BufferID)
			}
			b := flowMod(v, flow.BufferNone, flow.PortFlood)
			if n%2 == 1 {
				return b
			}
			return append(b, packetOutOf(v, flow.BufferNone, flow.PortFlood, in.Data)...)
		})
		load := brief
		load.Unbuffered = true
		r := measureUntil(t, v, address, load, func(r *Result) bool { return r.Answered > 0 })
		if r.Answered == 0 || r.Lost == 0 || r.Nameless <= r.Answered || r.Wrong+r.Duplicates != 0 {
			t.Errorf("%+v, want every second packet answered", r.Counts)
		}
	})
}

func TestOpenLoopHasNoCoordinatedOmission(t *testing.T) {
	// The controller stands still once, for half of the measured time.
	address, _ := respond(t, openflow.V10, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
		if n == 100 {
			time.Sleep(150 * time.Millisecond)
		}
		return flowMod(v, in.BufferID, flow.PortFlood)
	})
	r := measure(t, openflow.V10, address, Load{Window: 4, Rate: 4000, Duration: 300 * time.Millisecond, Patience: testwait.Limit})
	if r.Answered < 1150 || r.Answered > 1210 || r.Unsent+r.Lost != 0 {
		t.Errorf("%+v, want all of the 1200 packets that were due", r.Counts)
	}
	// A window of 4 sends 4 packets during the pause; the others count too.
	if p := time.Duration(r.Latency.ValueAtPercentile(80)); p < 20*time.Millisecond {
		t.Errorf("latency at the 80th percentile is %v: packets that were due in the pause are missing", p)
	}
}

func TestOpenLoopCountsWhatIsNeverAnswered(t *testing.T) {
	address, _ := respond(t, openflow.V13, func(v openflow.Version, n int, in *flow.PacketIn) []byte { return nil })
	r := measure(t, openflow.V13, address, Load{Window: 4, Rate: 4000, Duration: 100 * time.Millisecond, Patience: 100 * time.Millisecond})
	if n := r.Lost + r.Unsent; r.Answered != 0 || n < 380 || n > 410 || uint64(r.Latency.TotalCount()) != n {
		t.Errorf("%+v, %d latencies: want all of the 400 packets that were due", r.Counts, r.Latency.TotalCount())
	}
	if p := time.Duration(r.Latency.Min()); p < 50*time.Millisecond {
		t.Errorf("a packet without an answer has a latency of %v", p)
	}
}

func TestFramesAreReal(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		bad := new(atomic.Int64)
		address, _ := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			ip, ok := packet.ParseIPv4(in.Data)
			if !ok || !ip.ChecksumGood() || in.Key.EthSrc == in.Key.EthDst || in.Key.IPv4Src[0] != 10 ||
				in.Key.EthSrc.Uint64()&0xffffff != uint64(in.Key.IPv4Src[1])<<16|uint64(in.Key.IPv4Src[2])<<8|uint64(in.Key.IPv4Src[3]) ||
				in.TotalLen != frameLen || in.Key.InPort != flow.Port(1+(in.Key.EthSrc.Uint64()&0xff-1)%8%4) {
				bad.Add(1)
			}
			return flowMod(v, in.BufferID, flow.PortFlood)
		})
		if r := measure(t, v, address, patient); r.Answered == 0 || bad.Load() != 0 {
			t.Errorf("%d of %d frames are not what a host sends", bad.Load(), r.Answered)
		}
	})
}

func TestAnnouncements(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		seen := make(chan flow.Key, 64)
		address, _ := respond(t, v, func(v openflow.Version, n int, in *flow.PacketIn) []byte {
			seen <- in.Key
			if n%2 == 0 {
				return nil // a controller need not answer
			}
			return packetOutOf(v, in.BufferID, flow.PortFlood, nil)
		})
		n := start(t, Config{Topology: isolated(t, 2, 8, 4), Version: v, Address: address})
		ctx := within(t, testwait.Limit)
		if err := n.WaitUp(ctx, 0); err != nil {
			t.Fatal(err)
		}
		hosts, answered, err := n.Announce(ctx, 3, 200*time.Millisecond)
		if err != nil || hosts != 16 || answered > 8 { // fewer if a busy machine lets an answer be late
			t.Errorf("%d hosts, %d answered, %v; want 16 hosts and no more than the 8 answers", hosts, answered, err)
		}
		who := map[flow.MAC]bool{}
		for len(seen) > 0 {
			k := <-seen
			if k.EthType != flow.EthTypeARP || k.ARPSPA != k.ARPTPA || k.EthDst != flow.Broadcast {
				t.Errorf("%+v is no ARP announcement", k)
			}
			who[k.EthSrc] = true
		}
		if len(who) != 16 {
			t.Errorf("%d hosts have spoken, want 16", len(who))
		}
	})
}

func TestLostConnectionIsNoAnswer(t *testing.T) {
	v := openflow.V13
	c := newController(t)
	n := start(t, Config{Topology: isolated(t, 1, 8, 4), Version: v, Address: c.address()})
	s := c.open(v)
	result := make(chan *Result)
	go func() {
		r, err := n.Measure(t.Context(), Load{Window: 8, Duration: 400 * time.Millisecond, Patience: time.Second})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	for range 8 {
		s.expect(openflow.TypePacketIn)
	}
	s.conn.Close()
	s = c.open(v) // it comes back and takes part again
	in := s.packetIn(s.expect(openflow.TypePacketIn))
	s.send(flowMod(v, in.BufferID, flow.PortFlood), nil)
	s.fence()
	s.conn.Close()
	if r := <-result; r.Answered != 1 || r.Lost < 15 || r.Wrong+r.Duplicates+r.Late != 0 {
		t.Errorf("%+v, want one answer, and the packets of the lost connections lost", r.Counts)
	}
}
