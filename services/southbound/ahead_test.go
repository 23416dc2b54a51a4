package southbound

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
	"github.com/weft-sdn/weft/wefttest"
)

// packetIn is one whose frame is nothing but a header of a type.
func packetIn(t *testing.T, v openflow.Version, ethType uint16) []byte {
	t.Helper()
	frame := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, byte(ethType >> 8), byte(ethType)}
	in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Data: frame, Key: flow.Key{InPort: 1}}
	msg, err := v.AppendPacketIn(nil, 0, &in)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// behindPackets has a switch send a thousand packet-ins, and behind them, in the
// same batch, an echo request, a port status and an LLDP frame. It returns how many
// packet-ins were dealt with before each of them. before is called when the switch
// is up; a stage waits for patience for what is to be first.
func behindPackets(t *testing.T, h *wefttest.Harness, v openflow.Version, config string, patience time.Duration, before func()) (echo, port, probe int64) {
	t.Helper()
	const many = 1000
	var dealt, lldp atomic.Int64
	lldp.Store(-1)
	hold, held := make(chan struct{}), make(chan struct{})
	answered, told := make(chan struct{}), make(chan struct{})
	var once sync.Once
	wait := func(c chan struct{}) { // for what is to be first
		select {
		case <-c:
		case <-time.After(patience):
		}
	}
	h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
		if in.Key.EthType == flow.EthTypeLLDP {
			lldp.CompareAndSwap(-1, dealt.Load())
			return flow.Done
		}
		switch dealt.Load() {
		case 0:
			once.Do(func() { close(held); <-hold })
		case 1:
			wait(answered)
			wait(told)
		}
		dealt.Add(1)
		return flow.Done
	})
	w := newWorld(t, h, config)
	c := w.wire()
	c.v = v
	c.join(9)
	w.up(9)
	before()
	one := packetIn(t, v, flow.EthTypeIPv4)
	c.send(one, nil)
	<-held
	var b []byte
	for range many {
		b = append(b, one...)
	}
	b, err := v.AppendEchoRequest(b, 77, []byte("now"))
	if err != nil {
		t.Fatal(err)
	}
	desc := portDesc(2, false)
	if b, err = v.AppendPortStatus(b, 0, openflow.PortModified, &desc); err != nil {
		t.Fatal(err)
	}
	b = append(b, packetIn(t, v, flow.EthTypeLLDP)...)
	if len(b) > session.ReadMax {
		t.Fatalf("%d octets: more than a batch", len(b))
	}
	c.send(b, nil)
	var got sync.WaitGroup
	got.Go(func() {
		for {
			msg, err := c.read(testwait.Limit)
			if err != nil {
				t.Errorf("no echo: %v", err)
				return
			}
			if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypeEchoReply && xidOf(msg) == 77 {
				if string(msg[openflow.HeaderLen:]) != "now" {
					t.Errorf("the echo is %q", msg[openflow.HeaderLen:])
				}
				echo = dealt.Load()
				close(answered)
				return
			}
		}
	})
	close(hold)
	wefttest.Await(h, api.PortChangedEvent, func(e *api.PortChanged) bool { return e.Port.Port == 2 && !e.Port.Up })
	port = dealt.Load()
	close(told)
	got.Wait()
	w.eventually("all packet-ins are dealt with", func() bool { return dealt.Load() == many+1 && lldp.Load() >= 0 })
	c.alive()
	return echo, port, lldp.Load()
}

// TestRealTimeFirst: an echo, a port status and a probe behind a thousand
// packet-ins are dealt with before them, and each message once.
func TestRealTimeFirst(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, v13} {
		t.Run(v.String(), func(t *testing.T) {
			wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
				if echo, port, probe := behindPackets(t, h, v, "", testwait.Limit, func() {}); echo > 1 || port > 1 || probe > 1 {
					t.Errorf("%d packet-ins before the echo, %d before the port status, %d before the probe; want only the one that was at work", echo, port, probe)
				}
			})
		})
	}
}

// TestInOrder: where that is wanted, all is dealt with as it came.
func TestInOrder(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		if _, _, probe := behindPackets(t, h, v13, "realtime_first: false", 10*time.Millisecond, func() {}); probe <= 1000 {
			t.Errorf("%d packet-ins before the probe, want all", probe)
		}
	})
}
