package session

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// outs returns a write of some packet-outs, an entry, and what a process that is not
// master may send.
func outs(t *testing.T, n int) (b []byte) {
	t.Helper()
	v := openflow.V13
	var err error
	for i := range n {
		if b, err = v.AppendPacketOut(b, uint32(i), &flow.PacketOut{BufferID: flow.BufferNone, Actions: []flow.Action{flow.Output(1)}, Data: make([]byte, 60)}); err != nil {
			t.Fatal(err)
		}
	}
	if b, err = v.AppendFlowMod(b, 99, &flow.Mod{}); err != nil {
		t.Fatal(err)
	}
	b, err = v.AppendEchoReply(b, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.AppendBarrierRequest(b, 101)
}

// TestShedIsCountedEach: of a write that is not sent each message that programs the
// switch counts, by reason, whenever it is dropped; and the counts outlive the process.
func TestShedIsCountedEach(t *testing.T) {
	memory := make([]byte, recovery.Size)
	tally, _ := recovery.Open(memory, time.Now())
	h := &Shared{tally: tally}
	want := func(why recovery.Reason, messages, packetOuts uint64) {
		t.Helper()
		if m, o := tally.ShedFor(why); m != messages || o != packetOuts {
			t.Errorf("%v: %d messages, %d packet-outs; want %d and %d", why, m, o, messages, packetOuts)
		}
	}
	ours, _ := socketPair(t)
	s := &Session{channel: channel{shared: h, out: newOutbox(ours, 1<<20, &mastership.Fence{}, trialAccount())}}
	s.out.shed = s.shed
	b := outs(t, 30)
	if err := s.out.put(b); err != errFenced {
		t.Fatal(err)
	} else {
		s.shed(err, b)
	}
	want(recovery.NotMaster, 31, 30)
	s.shed(errQueueFull, outs(t, 4))
	want(recovery.QueueFull, 5, 4)
	s.shed(admission.ErrClosed, outs(t, 5))
	want(recovery.Away, 6, 5)
	h.shedOp(recovery.Away, flow.OpFlow)
	h.shedOp(recovery.Away, flow.OpPacketOut)
	want(recovery.Away, 8, 6)
	if s.count.shed.Load() != 31+5+6 {
		t.Errorf("of the session: %d", s.count.shed.Load())
	}

	// What waited in the queue when the mastership ended.
	s.out.queued = append(s.out.queued, outs(t, 7)...)
	s.out.release()
	want(recovery.NotMaster, 31+8, 30+7)
	// What waited when the connection ended.
	s.out.queued = append(s.out.queued, outs(t, 9)...)
	s.out.close()
	want(recovery.Away, 8+10, 6+9)

	tally, _ = recovery.Open(memory, time.Now())
	want(recovery.NotMaster, 39, 37)
}
