package southbound

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
	"github.com/weft-sdn/weft/wefttest"
)

// echoes reads until the answers to echoes after one number up to another have
// come, in their order.
func (c *wire) echoes(after, last uint32) {
	c.t.Helper()
	for want := after + 1; want <= last; {
		msg, err := c.read(testwait.Limit)
		if err != nil {
			c.t.Fatalf("no answer to echo %d: %v", want, err)
		}
		if h, _ := openflow.ParseHeader(msg); h.Type != openflow.TypeEchoReply {
			continue
		} else if h.Xid != want || binary.BigEndian.Uint32(msg[openflow.HeaderLen:]) != want {
			c.t.Fatalf("echo %d is answered, want %d", h.Xid, want)
		}
		want++
	}
}

// pulse has the service see that there are heartbeats.
func (c *wire) pulse() {
	c.t.Helper()
	for n := range uint32(3) {
		c.send(appendEcho(c.t, nil, n+1), nil)
		c.echoes(n, n+1)
	}
}

// appendEcho appends an echo request with a number.
func appendEcho(t *testing.T, b []byte, n uint32) []byte {
	t.Helper()
	b, err := v13.AppendEchoRequest(b, n, binary.BigEndian.AppendUint32(nil, n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// atWork has a switch with heartbeats send a packet-in that is dealt with until
// goOn is called, and counts those that have been begun.
func atWork(t *testing.T, h *wefttest.Harness, config string) (w *world, c *wire, begun *atomic.Int64, goOn func()) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	begun = &atomic.Int64{}
	h.Stage(func(*flow.PacketIn, *flow.Decision) flow.Verdict {
		if begun.Add(1) == 1 {
			held <- struct{}{}
			<-hold
		}
		return flow.Done
	})
	w = newWorld(t, h, config)
	c = w.joined(9)
	c.pulse()
	c.send(packetIn(t, v13, flow.EthTypeIPv4), nil)
	<-held
	return w, c, begun, func() { close(hold) }
}

// TestEchoesDoNotWait: echoes are answered while a packet-in is being dealt with,
// however long that takes and whatever waits behind it.
func TestEchoesDoNotWait(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		w, c, dealt, goOn := atWork(t, h, "")
		one := packetIn(t, v13, flow.EthTypeIPv4)
		const many = 50
		for n := range uint32(many) {
			echo := appendEcho(t, one[:len(one):len(one)], n+1)
			c.send(echo[:len(echo)-3], nil)
			c.send(echo[len(echo)-3:], nil)
		}
		c.echoes(0, many)
		if n := dealt.Load(); n != 1 {
			t.Errorf("%d packet-ins are dealt with, want that at work", n)
		}
		goOn()
		w.eventually("all packet-ins are dealt with", func() bool { return dealt.Load() == many+1 })
		c.alive()
	})
}

// TestReadAhead: all that a switch sends while a packet-in of it is being dealt
// with is dealt with afterwards, and echoes behind it are answered then.
func TestReadAhead(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		w, c, dealt, goOn := atWork(t, h, "flood_rate: 0")
		one := packetIn(t, v13, flow.EthTypeIPv4)
		many := 20*session.EarlyMost/len(one) + 1
		var sent sync.WaitGroup
		sent.Go(func() {
			for range many {
				if _, err := c.conn.Write(one); err != nil {
					t.Error(err)
					return
				}
			}
			if _, err := c.conn.Write(appendEcho(t, nil, 1)); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(20 * time.Millisecond)
		if n := dealt.Load(); n != 1 {
			t.Errorf("%d packet-ins are dealt with, want that at work", n)
		}
		goOn()
		sent.Wait()
		c.echoes(0, 1)
		w.eventually("all packet-ins are dealt with", func() bool { return dealt.Load() == int64(many+1) })
	})
}

// TestReadInPieces: messages arrive whole and in their order however the network
// cuts them, with echoes first or not, and when that changes.
func TestReadInPieces(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var dealt, wrong atomic.Int64
		h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
			if in.Key.InPort != flow.Port(dealt.Add(1)) {
				wrong.Add(1)
			}
			return flow.Done
		})
		w := newWorld(t, h, "flood_rate: 0")
		c := w.joined(9)
		c.pulse()
		r := rand.New(rand.NewPCG(7, uint64(h.Mode)))
		const many = 1000
		packets, echoes := 0, uint32(0)
		for _, first := range []bool{true, false, true} {
			if err := wefttest.Reconfigure(h, func(c *Config) { c.RealtimeFirst = first }); err != nil {
				t.Fatal(err)
			}
			var all []byte
			before := echoes
			for range many {
				packets++
				in := flow.PacketIn{BufferID: flow.BufferNone, Data: make([]byte, 60+r.IntN(1000)), Key: flow.Key{InPort: flow.Port(packets)}}
				in.TotalLen = uint16(len(in.Data))
				var err error
				if all, err = v13.AppendPacketIn(all, 0, &in); err != nil {
					t.Fatal(err)
				}
				if r.IntN(3) == 0 {
					echoes++
					all = appendEcho(t, all, echoes)
				}
			}
			var sent sync.WaitGroup
			sent.Go(func() {
				for len(all) > 0 {
					n := min(len(all), 1+r.IntN(1<<r.IntN(15)))
					if _, err := c.conn.Write(all[:n]); err != nil {
						t.Error(err)
						return
					}
					all = all[n:]
				}
			})
			c.echoes(before, echoes)
			sent.Wait()
			w.eventually("all packet-ins are dealt with", func() bool { return dealt.Load() == int64(packets) })
		}
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d packet-ins not in their order", n)
		}
	})
}
