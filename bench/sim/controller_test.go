package sim

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

var versions = []openflow.Version{openflow.V10, openflow.V13}

// controller is the other end of simulated switches: a test plays it message
// by message.
type controller struct {
	t  *testing.T
	ln net.Listener
}

func newController(t *testing.T) *controller { return &controller{t, listen(t)} }

func (c *controller) address() string { return c.ln.Addr().String() }

// session is one switch as the controller sees it.
type session struct {
	t       *testing.T
	v       openflow.Version
	conn    net.Conn
	in      *bufio.Reader
	xid     uint32
	dpid    flow.DPID
	queue   [][]byte // messages that came while something else was awaited
	timeout time.Duration
}

// accept takes a connection without a word.
func (c *controller) accept(v openflow.Version) *session {
	c.t.Helper()
	_ = c.ln.(*net.TCPListener).SetDeadline(time.Now().Add(testwait.Limit))
	conn, err := c.ln.Accept()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return &session{t: c.t, v: v, conn: conn, in: bufio.NewReader(conn), xid: 100, timeout: testwait.Limit}
}

// open accepts a switch and takes it through the handshake.
func (c *controller) open(v openflow.Version) *session {
	c.t.Helper()
	s := c.accept(v)
	s.send(v.AppendHello(nil, 1, v), nil)
	s.expect(openflow.TypeHello)
	s.send(v.AppendFeaturesRequest(nil, 2), nil)
	f, err := v.DecodeFeaturesReply(s.expect(openflow.TypeFeaturesReply))
	if err != nil {
		c.t.Fatal(err)
	}
	s.dpid = f.DPID
	return s
}

// openAll opens n switches and returns them by their place in the topology.
func (c *controller) openAll(v openflow.Version, n int) []*session {
	c.t.Helper()
	all := make([]*session, n)
	for range n {
		s := c.open(v)
		all[s.dpid-1] = s
	}
	return all
}

// send writes one message.
func (s *session) send(msg []byte, err error) {
	s.t.Helper()
	if err == nil {
		_, err = s.conn.Write(msg)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// read returns the next message, nil if none comes in time.
func (s *session) read(within time.Duration) []byte {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(within))
	head, err := s.in.Peek(openflow.HeaderLen)
	if err != nil {
		return nil
	}
	msg := make([]byte, binary.BigEndian.Uint16(head[2:]))
	if _, err := io.ReadFull(s.in, msg); err != nil {
		return nil
	}
	return msg
}

func typeOf(t *testing.T, msg []byte) openflow.Type {
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		t.Fatal(err)
	}
	return h.Type
}

// expect returns the next message of a type; others are kept for later.
func (s *session) expect(want openflow.Type) []byte {
	s.t.Helper()
	for i, m := range s.queue {
		if typeOf(s.t, m) == want {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			return m
		}
	}
	for {
		m := s.read(s.timeout)
		if m == nil {
			s.t.Fatalf("no %v came; there are %d other messages", want, len(s.queue))
		}
		if typeOf(s.t, m) == want {
			return m
		}
		s.queue = append(s.queue, m)
	}
}

// fence waits until everything sent so far has been dealt with, and returns
// the messages that came meanwhile.
func (s *session) fence() [][]byte {
	s.t.Helper()
	s.xid++
	s.send(s.v.AppendBarrierRequest(nil, s.xid), nil)
	s.expect(openflow.TypeBarrierReply)
	q := s.queue
	s.queue = nil
	return q
}

// expectError returns the error message that comes next.
func (s *session) expectError(kind, code uint16) {
	s.t.Helper()
	e, err := s.v.DecodeError(s.expect(openflow.TypeError))
	if err != nil {
		s.t.Fatal(err)
	}
	if e.Type != kind || e.Code != code {
		s.t.Errorf("error %d/%d, want %d/%d", e.Type, e.Code, kind, code)
	}
}

// mod sends a flow-mod.
func (s *session) mod(m flow.Mod) {
	s.t.Helper()
	s.xid++
	s.send(s.v.AppendFlowMod(nil, s.xid, &m))
}

// adding returns a flow-mod that adds an entry.
func adding(priority uint16, cookie flow.Cookie, m flow.Match, apply ...flow.Action) flow.Mod {
	return flow.Mod{
		Command: flow.Add, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
		Entry: flow.Entry{Priority: priority, Cookie: cookie, Match: m, Apply: apply},
	}
}

// flows reads the flow entries.
func (s *session) flows(r openflow.MultipartRequest) []openflow.FlowStats {
	s.t.Helper()
	r.Type, r.Table, r.OutPort, r.OutGroup = openflow.MultipartFlow, flow.TableAll, flow.PortAny, flow.GroupAny
	var list []openflow.FlowStats
	s.parts(&r, func(body []byte) error {
		return s.v.DecodeFlowStats(body, func(f *openflow.FlowStats) error {
			c := *f
			c.Entry = f.Entry.Clone()
			list = append(list, c)
			return nil
		})
	})
	return list
}

// parts sends a multipart request and reads all parts of the reply.
func (s *session) parts(r *openflow.MultipartRequest, f func(body []byte) error) {
	s.t.Helper()
	s.xid++
	s.send(s.v.AppendMultipartRequest(nil, s.xid, r))
	for more := true; more; {
		reply, err := s.v.DecodeMultipartReply(s.expect(openflow.TypeMultipartReply))
		if err == nil && reply.Type != r.Type {
			s.t.Fatalf("multipart reply of type %v to a request of %v", reply.Type, r.Type)
		}
		if err == nil {
			err = f(reply.Body)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		more = reply.More
	}
}

// packetIn decodes a packet-in.
func (s *session) packetIn(msg []byte) flow.PacketIn {
	s.t.Helper()
	var in flow.PacketIn
	if err := s.v.DecodePacketIn(msg, &in); err != nil {
		s.t.Fatal(err)
	}
	return in
}

// out sends a packet-out of a frame.
func (s *session) out(frame []byte, in flow.Port, actions ...flow.Action) {
	s.t.Helper()
	s.xid++
	s.send(s.v.AppendPacketOut(nil, s.xid, &flow.PacketOut{BufferID: flow.BufferNone, InPort: in, Actions: actions, Data: frame}))
}
