package session

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/beats"
)

// wanted reads what is sent to a switch until there is an echo request, and
// answers it.
func wanted(t *testing.T, end net.Conn) {
	t.Helper()
	_ = end.SetReadDeadline(time.Now().Add(testwait.Limit))
	var buf []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := end.Read(piece)
		if err != nil {
			t.Fatalf("no echo request: %v", err)
		}
		for buf = append(buf, piece[:n]...); len(buf) >= openflow.HeaderLen && len(buf) >= int(binary.BigEndian.Uint16(buf[2:])); {
			msg := buf[:binary.BigEndian.Uint16(buf[2:])]
			buf = buf[len(msg):]
			if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypeEchoRequest {
				reply, err := openflow.V13.AppendEchoReply(nil, h.Xid, nil)
				if err == nil {
					_, err = end.Write(reply)
				}
				if err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
}

// pumped has the first of two switches send packet-ins that leave by the second
// while the test does something. No timer sends beats.
func pumped(t *testing.T, realtimeFirst bool, body func(h *Shared, end net.Conn)) {
	t.Helper()
	sessions, ends := gatheringHub(t, 2)
	h := sessions[0].shared
	cfg := *h.Config.Load()
	cfg.RealtimeFirst = realtimeFirst
	h.Config.Store(&cfg)
	stop := make(chan struct{})
	var work sync.WaitGroup
	for _, s := range sessions {
		work.Go(func() { _ = s.receive() }) // until its end is closed
	}
	work.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if _, err := ends[0].Write(numbered(t, nil, 0, i, i+1)); err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { _ = h.ReadEarly(ctx) }) // until ctx ends
	defer watching.Wait()
	defer cancel()
	defer work.Wait()
	defer func() {
		close(stop)
		for _, e := range ends {
			e.Close()
		}
	}()
	if err := h.Beats.Give(beats.Order{Interval: time.Second, Deadline: time.Second, LostAfter: 3}); err != nil {
		t.Fatal(err)
	}
	body(h, ends[1])
}

// TestBeatsBetweenPackets: beats that are due are sent between packet-ins, also to
// switches that send none.
func TestBeatsBetweenPackets(t *testing.T) {
	pumped(t, true, func(_ *Shared, end net.Conn) {
		for range 2 {
			wanted(t, end)
		}
	})
}

// TestBeatsJoin: a beat that is due soon goes with what is written to its switch.
func TestBeatsJoin(t *testing.T) {
	pumped(t, false, func(h *Shared, end net.Conn) {
		first := make(chan struct{})
		go func() {
			defer close(first)
			wanted(t, end)
		}()
		for sent := false; !sent; { // the first beat is joined with nothing
			select {
			case <-first:
				sent = true
			case <-time.After(time.Millisecond):
				h.Beats.Turn(time.Now())
			}
		}
		wanted(t, end)
	})
}
