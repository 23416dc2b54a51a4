package southbound

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// purse is an account whose owner takes down what becomes of it.
type purse struct {
	*account
	mu      sync.Mutex // guards what follows
	dropped bool
	gaveUp  bool
}

func newPurse(m *memory, began int64) *purse {
	p := &purse{}
	p.account = &account{
		memory: m, began: time.Unix(began, 0),
		drop:    func(*excess) { p.mu.Lock(); defer p.mu.Unlock(); p.dropped = true },
		abandon: func(*excess) { p.mu.Lock(); defer p.mu.Unlock(); p.gaveUp = true },
	}
	return p
}

func (p *purse) fate() (dropped, gaveUp bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped, p.gaveUp
}

// TestMemoryAddsUp: whatever sessions do, what is held is the sum of what is held
// for each, and within its bounds.
func TestMemoryAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		m := newMemory(&Config{SessionBytes: 800, TotalBytes: 4000})
		var list []*purse
		for n := range 3000 {
			if len(list) < 40 && r.IntN(4) == 0 {
				list = append(list, newPurse(m, int64(n)))
			}
			if len(list) == 0 {
				continue
			}
			p := list[r.IntN(len(list))]
			switch n := 1 + r.IntN(120); r.IntN(7) {
			case 0, 1:
				_ = p.take(n)
			case 2, 3:
				_ = p.takeAnswer(n)
			case 4:
				m.mu.Lock()
				n, k := min(n, p.answers), min(n, p.held-p.answers)
				m.mu.Unlock()
				p.giveAnswer(n)
				p.give(k)
			case 5:
				p.establish()
			default:
				if n < 5 {
					p.end()
				}
			}
			held, begun := m.size()
			sum, sumBegun := 0, 0
			for _, p := range list {
				if p.held < 0 || p.answers < 0 || p.answers > p.held || p.held > m.session || !p.known && p.held > m.session/handshakeShare {
					t.Fatalf("%+v", p.account)
				}
				sum += p.held
				if !p.known {
					sumBegun += p.held
				}
			}
			if held != sum || begun != sumBegun || held > m.all || begun > m.all/handshakeShare {
				t.Fatalf("%d and %d are held; by all %d and %d", held, begun, sum, sumBegun)
			}
		}
	}
}

// TestWhoMakesRoom: of those at their handshake who holds most, the latest of
// equals; only if there are none, the longest answer of another.
func TestWhoMakesRoom(t *testing.T) {
	m := newMemory(&Config{SessionBytes: 8000, TotalBytes: 8000})
	up, small, first, second := newPurse(m, 1), newPurse(m, 2), newPurse(m, 3), newPurse(m, 4)
	up.establish()
	take := func(p *purse, n int) {
		t.Helper()
		if err := p.take(n); err != nil {
			t.Fatal(err)
		}
	}
	take(up, 3000)
	take(small, 200)
	take(first, 400)
	take(second, 400)
	take(small, 100) // of 1000 for handshakes 1100 would be held
	if !second.closed || first.closed || up.closed {
		t.Errorf("closed: %v, %v, %v", second.closed, first.closed, up.closed)
	}
	take(up, 4300)
	if err := up.takeAnswer(400); err != nil || !first.closed || small.closed {
		t.Errorf("%v; closed: %v, %v", err, first.closed, small.closed)
	}
	other := newPurse(m, 5)
	other.establish()
	take(other, 300)
	if small.closed == false || other.closed || up.closed {
		t.Errorf("closed: %v, %v, %v", small.closed, other.closed, up.closed)
	}
	take(other, 200)
	for end := time.Now().Add(prompt); ; time.Sleep(time.Millisecond) {
		if _, gaveUp := up.fate(); gaveUp {
			break
		} else if time.Now().After(end) {
			t.Fatal("the longest answer is not given up")
		}
	}
	if dropped, _ := up.fate(); dropped || up.closed || up.answers != 0 {
		t.Error("a switch that is up is disconnected to make room")
	}
	if err := other.take(7000); err == nil {
		t.Error("more is taken than there is")
	}
}

// count returns how often a bound has been exceeded.
func (w *world) excesses(b bound) float64 {
	return w.h.Metric("excesses_total", "bound", string(b))
}

// begun plays a switch up to the question for something, which it returns.
func (w *world) begun(sw dpid, upTo openflow.MultipartType) (*wire, []byte) {
	w.t.Helper()
	c := w.wire()
	c.send(v13.AppendHello(nil, 1), nil)
	for {
		msg, err := c.read(prompt)
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
		w.eventually("the switch is disconnected", func() bool { return w.excesses(boundPorts) == 1 })
		if w.info(9) != nil {
			t.Error("it is known")
		}
		w.eventually("its memory is given back", func() bool { return w.h.Metric("held_bytes", "of", "all") <= 4*portBytes })
		w.works(1)
	})
}

// TestPortTooMany: a switch that has as many ports as it may have can change and
// replace them; one more is too many.
func TestPortTooMany(t *testing.T) {
	h := newHub(*defaults(), nil, slog.New(slog.DiscardHandler))
	s := &session{hub: h, ports: map[flow.Port]*port{}}
	s.account = h.memory.newAccount(s)
	var list []openflow.PortDesc
	for n := range portsMost {
		list = append(list, portDesc(flow.Port(n+1), true))
	}
	if err := s.addPorts(list); err != nil {
		t.Fatal(err)
	}
	extra := portDesc(portsMost+1, true)
	for _, step := range []struct {
		reason openflow.PortReason
		desc   *openflow.PortDesc
		over   bool
	}{
		{openflow.PortAdded, &extra, true}, {openflow.PortModified, &list[0], false}, {openflow.PortDeleted, &list[0], false},
		{openflow.PortAdded, &extra, false}, {openflow.PortAdded, &list[0], true},
	} {
		err := s.portStatus(step.reason, step.desc)
		if e := (*excess)(nil); errors.As(err, &e) != step.over || step.over && e.bound != boundPorts {
			t.Errorf("port %v, reason %d: %v", step.desc.No, step.reason, err)
		}
	}
	if held, _ := h.memory.size(); held != portsMost*portBytes {
		t.Errorf("%d octets are held", held)
	}
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
			w.eventually("it is counted", func() bool { return w.excesses(boundAnswer) == float64(n+1) })
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
			_, err := wefttest.Call(w.h, api.ReadTableStats, &api.ReadTableStatsRequest{Dpid: dpid(9).String()})
			asked <- err
		}()
		request := c.want(openflow.TypeMultipartRequest)
		c.send(v13.AppendMultipartReply(nil, xidOf(request), openflow.MultipartTable, false, make([]byte, 24*(tablesMost+1))))
		if err := <-asked; err == nil {
			t.Error("it is answered")
		}
		w.down(9)
		if n := w.excesses(boundTables); n != 1 {
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
		w.eventually("some are disconnected to make room", func() bool { return w.excesses(boundAll) > 5 })
		for sw := range dpid(3) {
			w.device(oftest.Config{DPID: 2 + sw})
			w.works(2 + sw)
			w.works(1)
			if held := w.h.Metric("held_bytes", "of", "handshakes"); held > 1<<20 {
				t.Errorf("%v octets are held for handshakes", held)
			}
		}
	})
}

// TestRefusalsAreBounded: errors without end about one message are no more kept
// than an answer is.
func TestRefusalsAreBounded(t *testing.T) {
	m := newMemory(&Config{SessionBytes: 1 << 20, TotalBytes: 1 << 20})
	a := newPurse(m, 1)
	a.establish()
	w := &waits{account: a.account}
	p, err := w.add(10, 2)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		waited, err := w.refuse(openflow.Error{Xid: 9})
		if err != nil {
			if e := err.(*excess); e.bound != boundAnswer {
				t.Error(err)
			}
			break
		}
		if !waited || n > m.session {
			t.Fatal(fmt.Sprint("kept: ", n))
		}
	}
	<-p.done
	if held, _ := m.size(); p.err == nil || held != 0 {
		t.Errorf("%v; %d octets are held", p.err, held)
	}
}
