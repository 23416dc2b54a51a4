package session

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// gatheringHub is sessions 1 to n of switches whose packets all go out by the
// last. Their other ends are returned.
func gatheringHub(t *testing.T, n int) (sessions []*Session, ends []net.Conn) {
	t.Helper()
	h := newAlone()
	h.Open = func(dpid, func(*flow.Decision)) Pipeline {
		return stageOf(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			d.PacketOut(dpid(n), flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(flow.Output(2)), Data: in.Data})
			return flow.Done
		})
	}
	for i := range n {
		ours, theirs := socketPair(t)
		s := NewSession(h, ours, nil)
		s.Version, s.DPID = openflow.V13, dpid(i+1)
		s.Activate()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			s.write()
		}()
		t.Cleanup(func() {
			s.Conn.Close()
			s.out.close()
			<-drained
		})
		sessions, ends = append(sessions, s), append(ends, theirs)
	}
	return sessions, ends
}

// numbered appends packet-ins that carry their sender and numbers.
func numbered(t *testing.T, b []byte, sender byte, from, to int) []byte {
	t.Helper()
	for i := from; i < to; i++ {
		frame := make([]byte, 60)
		frame[5], frame[11], frame[12], frame[13] = 1, 2, 8, 6
		frame[20] = sender
		binary.BigEndian.PutUint32(frame[24:], uint32(i))
		var err error
		if b, err = openflow.V13.AppendPacketIn(b, 0, &flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 60, Data: frame, Key: flow.Key{InPort: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestPacketsOfManyReadersGoOutOnce: packets that leave by another switch than
// they came from arrive there once each and in the order of their sender,
// whether they come alone or many at a time.
func TestPacketsOfManyReadersGoOutOnce(t *testing.T) {
	const readers, packets = 8, 1000 // fewer than a send queue holds: what is more may be shed
	sessions, ends := gatheringHub(t, readers+1)
	var work sync.WaitGroup
	defer work.Wait()
	for i := range readers {
		work.Go(func() { _ = sessions[i].receive() }) // until its end is closed
		work.Go(func() {
			defer ends[i].Close()
			for at, step := 0, 1; at < packets; at, step = at+step, step*3%97+1 {
				_, _ = ends[i].Write(numbered(t, nil, byte(i), at, min(at+step, packets))) // a failure shows below
			}
		})
	}
	var next [readers]uint32
	target := ends[readers]
	_ = target.SetReadDeadline(time.Now().Add(testwait.Limit))
	var buf []byte
	piece := make([]byte, 64<<10)
	for got := 0; got < readers*packets; {
		n, err := target.Read(piece)
		if err != nil {
			t.Fatalf("%v, after %d packets of %d", err, got, readers*packets)
		}
		buf = append(buf, piece[:n]...)
		for {
			msg, rest, err := openflow.Next(buf)
			if err != nil {
				t.Fatal(err)
			}
			if msg == nil {
				break
			}
			var out flow.PacketOut
			if err := openflow.V13.DecodePacketOut(msg, &out); err != nil {
				t.Fatal(err)
			}
			sender, number := out.Data[20], binary.BigEndian.Uint32(out.Data[24:])
			if number != next[sender] {
				t.Fatalf("packet %d of sender %d, want %d", number, sender, next[sender])
			}
			next[sender]++
			buf = rest
			got++
		}
	}
}

// TestHeldGoesBeforeWhatFollows: what is held goes out before what is sent at
// once, and what a session has had held goes out though the session ends.
func TestHeldGoesBeforeWhatFollows(t *testing.T) {
	ours, theirs := socketPair(t)
	o := newOutbox(ours, 1<<20, nil, trialAccount())
	say := func(text string) []byte { // a message as far as the outbox looks at it
		b := make([]byte, openflow.HeaderLen, openflow.HeaderLen+len(text))
		b[3] = byte(openflow.HeaderLen + len(text))
		return append(b, text...)
	}
	if mine, err := o.hold(say("a")); !mine || err != nil {
		t.Errorf("mine %v, %v", mine, err)
	}
	if mine, err := o.hold(say("b")); mine || err != nil {
		t.Errorf("mine %v of the second, %v", mine, err)
	}
	if err := o.put(say("c")); err != nil {
		t.Fatal(err)
	}
	o.release() // there is nothing left
	if mine, err := o.hold(say("d")); !mine || err != nil {
		t.Errorf("mine %v, %v", mine, err)
	}
	o.release()
	if mine, err := o.hold(say("long")); !mine || err != nil {
		t.Errorf("mine %v, %v", mine, err)
	}
	o.limit = 16
	if err := o.put(say("more")); err != nil { // the switch takes it: what is held waits for nobody
		t.Error(err)
	}
	want := bytes.Join([][]byte{say("a"), say("b"), say("c"), say("d"), say("long"), say("more")}, nil)
	got := make([]byte, len(want))
	_ = theirs.SetReadDeadline(time.Now().Add(testwait.Limit))
	if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	o.close()
	if _, err := o.hold(say("e")); err != admission.ErrClosed {
		t.Errorf("held for one that is closed: %v", err)
	}

	sessions, ends := gatheringHub(t, 2)
	s := sessions[0]
	s.in.acquire()
	for msg, rest, err := openflow.Next(numbered(t, nil, 0, 0, 3)); msg != nil; msg, rest, err = openflow.Next(rest) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.message(msg); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.holding) != 1 {
		t.Fatalf("held for %d switches, want 1", len(s.holding))
	}
	release(s.holding)
	_ = ends[1].SetReadDeadline(time.Now().Add(testwait.Limit))
	if n, err := ends[1].Read(make([]byte, 4096)); err != nil || n < 3*60 {
		t.Errorf("%d octets, %v", n, err)
	}
}

// TestGatheringIsSentInTime: who comes late sends all that is gathered.
func TestGatheringIsSentInTime(t *testing.T) {
	var g gathering
	a, b := &Session{}, &Session{}
	if first, due := g.add([]*Session{a}, 1000); !first || due {
		t.Errorf("first %v, due %v", first, due)
	}
	if first, due := g.add([]*Session{b}, 1000+gatherMost); first || due {
		t.Errorf("first %v, due %v within the time", first, due)
	}
	if first, due := g.add(nil, 1001+gatherMost); first || !due {
		t.Errorf("first %v, due %v after it", first, due)
	}
	list := g.take()
	if len(list) != 2 || len(g.take()) != 0 {
		t.Errorf("%d were gathered, want 2, once", len(list))
	}
	g.giveBack(list)
}

// TestHeldDoesNotWaitForSlowReader: a packet for another switch goes out though
// the switch that it came from does not read what it is sent.
func TestHeldDoesNotWaitForSlowReader(t *testing.T) {
	sessions, ends := gatheringHub(t, 2)
	slow := sessions[0]
	cfg := *slow.shared.Config.Load()
	cfg.RealtimeFirst = false // answers to echoes wait behind all else
	slow.shared.Config.Store(&cfg)
	echo := make([]byte, 60<<10)
	binary.BigEndian.PutUint32(echo, uint32(openflow.V13)<<24|uint32(openflow.TypeEchoRequest)<<16|uint32(len(echo)))
	for slow.out.put(echo) != errQueueFull {
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer slow.out.close()
	defer ends[0].Close()
	work.Go(func() { _ = slow.receive() }) // until its end is closed
	if _, err := ends[0].Write(append(numbered(t, nil, 0, 0, 1), echo...)); err != nil {
		t.Fatal(err)
	}
	_ = ends[1].SetReadDeadline(time.Now().Add(testwait.Limit))
	if _, err := ends[1].Read(make([]byte, 4096)); err != nil {
		t.Error(err)
	}
}

// TestEndWhileWaitingForRoom: a session that waits for its switch to read ends
// when its connection does.
func TestEndWhileWaitingForRoom(t *testing.T) {
	sessions, _ := gatheringHub(t, 1)
	s := sessions[0]
	msg := make([]byte, 60<<10)
	binary.BigEndian.PutUint32(msg, uint32(openflow.V13)<<24|uint32(openflow.TypeEchoRequest)<<16|uint32(len(msg)))
	for s.out.put(msg) != errQueueFull {
	}
	ended := make(chan error)
	go func() { ended <- s.out.putWait(msg) }()
	time.Sleep(10 * time.Millisecond) // either is right: it waits, or is about to
	s.End("the switch does not read")
	select {
	case err := <-ended:
		if err != admission.ErrClosed {
			t.Error(err)
		}
	case <-time.After(testwait.Limit):
		t.Error("it waits on")
	}
}

// TestHeldGoesOutThoughItsHolderIsHeldUp: what is held for a switch goes out
// although whoever holds it does not get to that.
func TestHeldGoesOutThoughItsHolderIsHeldUp(t *testing.T) {
	sessions, ends := gatheringHub(t, 1)
	if mine, err := sessions[0].out.hold(numbered(t, nil, 0, 0, 1)); !mine || err != nil {
		t.Fatal(mine, err)
	}
	sessions[0].Check(time.Now(), &Timeouts{time.Minute, time.Minute, time.Minute})
	_ = ends[0].SetReadDeadline(time.Now().Add(testwait.Limit))
	if _, err := ends[0].Read(make([]byte, 4096)); err != nil {
		t.Error(err)
	}
}
