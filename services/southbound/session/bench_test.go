package session

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// socketPair returns the ends of a connection.
func socketPair(tb testing.TB) (ours, theirs net.Conn) {
	tb.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		if ends[i], err = net.FileConn(f); err != nil {
			tb.Fatal(err)
		}
		f.Close()
		tb.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// learner is a session whose stage answers every packet with an entry and the
// packet itself, and whose switch reads and throws away.
func learner(tb testing.TB, v openflow.Version) *Session {
	tb.Helper()
	ours, theirs := socketPair(tb)
	h := newAlone()
	h.Open = func(dpid, func(*flow.Decision)) Pipeline {
		return stageOf(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			m := d.AddFlow(in.Switch)
			m.Entry.Priority, m.Entry.IdleTimeout, m.Entry.Cookie = 10, 60, 7
			m.Entry.Match.Set = flow.FieldInPort.Bit() | flow.FieldEthDst.Bit() | flow.FieldEthSrc.Bit()
			m.Entry.Match.Key.InPort, m.Entry.Match.Key.EthDst, m.Entry.Match.Key.EthSrc = in.Key.InPort, in.Key.EthDst, in.Key.EthSrc
			if v == openflow.V10 {
				m.Entry.Cookie = 0
			}
			m.Entry.Apply = d.Actions(flow.Output(2))
			d.PacketOut(in.Switch, flow.PacketOut{BufferID: in.BufferID, InPort: in.Key.InPort, Actions: m.Entry.Apply, Data: in.Data})
			return flow.Done
		})
	}
	s := NewSession(h, ours, nil)
	s.Version, s.DPID = v, 1
	s.Activate()
	drained := make(chan struct{})
	go func() {
		_ = s.out.drain() // the test closes what it writes to
		close(drained)
	}()
	read := make(chan struct{})
	go func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{theirs}, make([]byte, 1<<18))
		close(read)
	}()
	s.in.acquire()
	tb.Cleanup(func() {
		s.out.close()
		s.Conn.Close()
		<-drained
		<-read
		theirs.Close()
	})
	return s
}

// batch is packet-ins as one read brings them.
func packetBatch(tb testing.TB, v openflow.Version) [][]byte {
	var msgs [][]byte
	for i := range 64 {
		frame := make([]byte, 60)
		frame[5], frame[11], frame[12], frame[13] = byte(i), byte(i+1), 8, 6
		in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 60, Data: frame, Key: flow.Key{InPort: 1}}
		msg, err := v.AppendPacketIn(nil, 0, &in)
		if err != nil {
			tb.Fatal(err)
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

// answer has a session deal with a batch.
func (s *Session) answer(tb testing.TB, msgs [][]byte) {
	for _, m := range msgs {
		if err := s.message(m); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.flush(); err != nil {
		tb.Fatal(err)
	}
}

// TestPacketInAllocatesNothing: from the packet-in to the flow-mod and the
// packet-out in the socket no memory is allocated.
func TestPacketInAllocatesNothing(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		s := learner(t, v)
		msgs := packetBatch(t, v)
		for range 100 {
			s.answer(t, msgs)
		}
		if n := testing.AllocsPerRun(200, func() { s.answer(t, msgs) }); n >= 1 {
			t.Errorf("%v: %v allocations for %d packet-ins, want none", v, n, len(msgs))
		}
	}
}

// BenchmarkPacketIn measures what a packet-in costs the controller: decode,
// parse, a trivial stage, encode of a flow-mod and a packet-out, and a write
// for every 64 of them.
func BenchmarkPacketIn(b *testing.B) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		b.Run(v.String(), func(b *testing.B) {
			s := learner(b, v)
			msgs := packetBatch(b, v)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += len(msgs) {
				s.answer(b, msgs)
			}
		})
	}
}

// stageOf makes a pipeline of a function.
type stageOf func(*flow.PacketIn, *flow.Decision) flow.Verdict

func (f stageOf) Packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict { return f(in, d) }
func (stageOf) Flush()                                                    {}
func (stageOf) Returned() (all, probes uint64)                            { return 0, 0 }
func (stageOf) Close()                                                    {}
