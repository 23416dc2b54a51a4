package session

import (
	"bufio"
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// TestEchoIsTimedWhereItIsRead: how long an answer that has been read waits for
// what was read before it, and for the call to go on, is not its round trip.
func TestEchoIsTimedWhereItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{}
		r := &echoRound{resp: &api.EchoSwitchesResponse{Echoes: make([]*api.SwitchEcho, 2)}, left: 2, done: make(chan struct{})}
		time.Sleep(2 * time.Millisecond)
		for i := range 2 {
			if err := s.alive.echoes.add(echo{uint32(i), time.Now(), r, i}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Millisecond)
		read := time.Now().UnixNano()
		time.Sleep(40 * time.Millisecond)
		s.alive.echoReply(0, read)
		time.Sleep(5 * time.Millisecond)
		e := r.end("no answer").Echoes
		if e[0].RttUs != 3000 || e[0].Error != "" || s.alive.echo.Load() != int64(3*time.Millisecond) {
			t.Errorf("%v", e[0])
		}
		if e[1].Error != "no answer" {
			t.Errorf("%v", e[1])
		}
	})
}

// TestOutboxKeepsMessagesWhole: messages that are urgent go between others, never
// into them, and each kind stays in order.
func TestOutboxKeepsMessagesWhole(t *testing.T) {
	t.Parallel()
	ours, theirs := socketPair(t)
	o := newOutbox(ours, 1<<20, nil, trialAccount())
	drained := make(chan error, 1)
	go func() { drained <- o.drain() }()
	const bulk, urgent = 20_000, 2_000
	go func() {
		var b []byte
		for n := uint32(0); n < bulk; {
			b = b[:0]
			for range min(1+n%90, bulk-n) {
				b, _ = openflow.V13.AppendEchoReply(b, n, make([]byte, 1+n%1400))
				n++
			}
			if err := o.putWait(b); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	go func() {
		for n := uint32(0); n < urgent; {
			msg, _ := openflow.V13.AppendEchoRequest(nil, n, nil)
			if o.putFirst(msg) == nil {
				n++
			}
			time.Sleep(20 * time.Microsecond)
		}
	}()
	in := bufio.NewReaderSize(theirs, 1<<16)
	_ = theirs.SetReadDeadline(time.Now().Add(testwait.Limit))
	next := map[openflow.Type]uint32{}
	for next[openflow.TypeEchoReply] < bulk || next[openflow.TypeEchoRequest] < urgent {
		head, err := in.Peek(openflow.HeaderLen)
		if err != nil {
			t.Fatal(err)
		}
		msg := make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(in, msg); err != nil {
			t.Fatal(err)
		}
		h, err := openflow.ParseHeader(msg)
		if err != nil || h.Xid != next[h.Type] {
			t.Fatalf("%v, %v; want number %d", h, err, next[h.Type])
		}
		next[h.Type]++
	}
	o.close()
	if err := <-drained; err != nil {
		t.Error(err)
	}
}
