package southbound

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/session"
	"github.com/weft-sdn/weft/wefttest"
)

// count returns how often a bound has been exceeded.
func (w *world) excesses(b admission.Bound) float64 {
	return w.h.Metric("excesses_total", "bound", string(b))
}

// begun plays a switch up to the question for something, which it returns.
func (w *world) begun(sw flow.DPID, upTo openflow.MultipartType) (*wire, []byte) {
	w.t.Helper()
	c := w.wire()
	c.send(v13.AppendHello(nil, 1), nil)
	for {
		msg, err := c.read(testwait.Limit)
		if err != nil {
			w.t.Fatal(err)
		}
		var r openflow.MultipartRequest
		if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypeMultipartRequest && v13.DecodeMultipartRequest(msg, &r) == nil && r.Type == upTo {
			return c, msg
		}
		c.answer(sw, msg)
	}
}

// describe sends descriptions of ports, some in each part, and one more part.
func (c *wire) describe(xid uint32, ports, each int) {
	c.t.Helper()
	var body []byte
	for n := range ports {
		p := portDesc(flow.Port(n+1), true)
		body, _ = v13.AppendPortDesc(body, &p)
		if (n+1)%each == 0 {
			c.send(v13.AppendMultipartReply(nil, xid, openflow.MultipartPortDesc, true, body))
			body = body[:0]
		}
	}
	c.send(v13.AppendMultipartReply(nil, xid, openflow.MultipartPortDesc, false, body))
}

// TestTooManyPorts: a switch that describes more ports than a switch can have is
// disconnected.
func TestTooManyPorts(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		c, msg := w.begun(9, openflow.MultipartPortDesc)
		go c.describe(xidOf(msg), 300_000, 1000)
		w.eventually("the switch is disconnected", func() bool { return w.excesses(admission.BoundPorts) == 1 })
		if w.info(9) != nil {
			t.Error("it is known")
		}
		w.eventually("its memory is given back", func() bool { return w.h.Metric("held_bytes", "of", "all") <= 4*session.PortBytes })
		w.works(1)
	})
}

// TestEndlessAnswers: answers without end, in parts with and without content,
// cost the session and no more than its share of the memory.
func TestEndlessAnswers(t *testing.T) {
	inAllModes(t, "session_bytes: 4194304\ntotal_bytes: 4194304", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		for n, body := range [][]byte{bytes.Repeat(octets(t, "0038"+flowHead+noMatch), 1000), nil} {
			c := w.joined(9)
			asked := make(chan error, 1)
			go func() { asked <- readFlows(w.h) }()
			request := c.want(openflow.TypeMultipartRequest)
			part, err := v13.AppendMultipartReply(nil, xidOf(request), openflow.MultipartFlow, true, body)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for many := bytes.Repeat(part, 1+60_000/len(part)); ; {
					if _, err := c.conn.Write(many); err != nil {
						return
					}
				}
			}()
			if err := <-asked; err == nil {
				t.Error("it is answered")
			}
			w.down(9)
			w.eventually("it is counted", func() bool { return w.excesses(admission.BoundAnswer) == float64(n+1) })
			w.works(1)
		}
	})
}

// TestTooManyElements: an answer with more tables than there are numbers.
func TestTooManyElements(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		c := w.joined(9)
		asked := make(chan error, 1)
		go func() {
			_, err := wefttest.Call(w.h, api.ReadTableStats, &api.ReadTableStatsRequest{Dpid: flow.DPID(9).String()})
			asked <- err
		}()
		request := c.want(openflow.TypeMultipartRequest)
		c.send(v13.AppendMultipartReply(nil, xidOf(request), openflow.MultipartTable, false, make([]byte, 24*(admission.TablesMost+1))))
		if err := <-asked; err == nil {
			t.Error("it is answered")
		}
		w.down(9)
		if n := w.excesses(admission.BoundTables); n != 1 {
			t.Errorf("%v counted", n)
		}
		w.works(1)
	})
}

// TestHandshakesShareMemory: connections that begin long messages, or that read
// no answers to their echoes, each within its bound, are disconnected when all of
// them exceed theirs; switches that are up and those that come notice nothing.
func TestHandshakesShareMemory(t *testing.T) {
	inAllModes(t, "session_bytes: 8388608\ntotal_bytes: 8388608", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		long := v13.AppendHello(nil, 1)
		long[2], long[3] = 0xff, 0xff
		long = append(long, make([]byte, 60_000)...)
		var echoes []byte
		for range 20 {
			echoes, _ = v13.AppendEchoRequest(echoes, 7, make([]byte, 60_000))
		}
		stop := make(chan struct{})
		var attackers sync.WaitGroup
		defer attackers.Wait()
		defer close(stop)
		for n := range 60 {
			attackers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					c := w.wire()
					if n%2 == 0 {
						c.send(long, nil)
					} else {
						c.send(v13.AppendHello(nil, 1), nil)
						c.send(echoes, nil)
					}
					_ = c.conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
					if n%2 == 0 {
						_, _ = c.in.Read(make([]byte, 1))
						_, _ = c.in.Read(make([]byte, 1<<10))
					} else {
						select {
						case <-stop:
						case <-time.After(300 * time.Millisecond):
						}
					}
					c.conn.Close()
				}
			})
		}
		w.eventually("some are disconnected to make room", func() bool { return w.excesses(admission.BoundAll) > 5 })
		for sw := range flow.DPID(3) {
			w.device(oftest.Config{DPID: 2 + sw})
			w.works(2 + sw)
			w.works(1)
			if held := w.h.Metric("held_bytes", "of", "handshakes"); held > 1<<20 {
				t.Errorf("%v octets are held for handshakes", held)
			}
		}
	})
}
