package oftest

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// controller is a controller of a switch under test.
type controller struct {
	t   testing.TB
	s   *Switch
	id  int
	v   openflow.Version
	xid uint32
}

// connect opens a connection and says hello.
func connect(t testing.TB, s *Switch, v openflow.Version) *controller {
	t.Helper()
	id, _ := s.Connect()
	c := &controller{t: t, s: s, id: id, v: v, xid: 1000}
	if e := s.Message(id, v.AppendHello(nil, 1, v)); len(e.Messages) > 0 {
		t.Fatalf("answer to hello: %x", e.Messages)
	}
	return c
}

func (c *controller) next() uint32 { c.xid++; return c.xid }

// send hands the switch a message that has been encoded.
func (c *controller) send(msg []byte, err error) Effects {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.s.Message(c.id, msg)
}

// mod sends a flow-mod whose narrowing fields are those that narrow nothing.
func (c *controller) mod(m flow.Mod) Effects {
	c.t.Helper()
	if m.OutPort == 0 {
		m.OutPort = flow.PortAny
	}
	if m.OutGroup == 0 {
		m.OutGroup = flow.GroupAny
	}
	if m.BufferID == 0 {
		m.BufferID = flow.BufferNone
	}
	return c.send(c.v.AppendFlowMod(nil, c.next(), &m))
}

// add adds an entry, which must not be refused.
func (c *controller) add(e flow.Entry) {
	c.t.Helper()
	c.fine(c.mod(flow.Mod{Entry: e}))
}

func (c *controller) group(cmd flow.Command, g flow.Group) Effects {
	c.t.Helper()
	return c.send(c.v.AppendGroupMod(nil, c.next(), &flow.GroupMod{Command: cmd, Group: g}))
}

func (c *controller) meter(cmd flow.Command, m flow.Meter) Effects {
	c.t.Helper()
	return c.send(c.v.AppendMeterMod(nil, c.next(), &flow.MeterMod{Command: cmd, Meter: m}))
}

// fine checks that the switch has refused nothing.
func (c *controller) fine(e Effects) {
	c.t.Helper()
	for _, m := range e.Messages {
		if h, _ := openflow.ParseHeader(m.Data); h.Type == openflow.TypeError {
			x, _ := c.v.DecodeError(m.Data)
			c.t.Fatalf("refused: %v", x.Error())
		}
	}
}

// wantError checks that there is one error message, about the last message sent.
func (c *controller) wantError(e Effects, typ, code uint16) openflow.Error {
	c.t.Helper()
	if len(e.Messages) != 1 || e.Messages[0].Conn != c.id {
		c.t.Fatalf("%d messages, want one error of type %d, code %d", len(e.Messages), typ, code)
	}
	x, err := c.v.DecodeError(e.Messages[0].Data)
	if err != nil {
		c.t.Fatal(err)
	}
	if x.Type != typ || x.Code != code {
		c.t.Fatalf("%v, want type %d, code %d", x.Error(), typ, code)
	}
	return x
}

// multipart asks and returns the bodies of the replies.
func (c *controller) multipart(r openflow.MultipartRequest) [][]byte {
	c.t.Helper()
	if r.Type == openflow.MultipartFlow || r.Type == openflow.MultipartAggregate {
		if r.Table == 0 {
			r.Table = flow.TableAll
		}
		if r.OutPort == 0 {
			r.OutPort = flow.PortAny
		}
		if r.OutGroup == 0 {
			r.OutGroup = flow.GroupAny
		}
	}
	e := c.send(c.v.AppendMultipartRequest(nil, c.next(), &r))
	c.fine(e)
	var bodies [][]byte
	for i, m := range e.Messages {
		reply, err := c.v.DecodeMultipartReply(m.Data)
		if err != nil || reply.Type != r.Type || reply.More != (i < len(e.Messages)-1) {
			c.t.Fatalf("reply %d: %+v, %v", i, reply, err)
		}
		bodies = append(bodies, reply.Body)
	}
	return bodies
}

// packetIns returns the packet-ins among messages to c.
func (c *controller) packetIns(e Effects) (list []flow.PacketIn) {
	c.t.Helper()
	for _, m := range e.Messages {
		if h, _ := openflow.ParseHeader(m.Data); h.Type != openflow.TypePacketIn || m.Conn != c.id {
			continue
		}
		var in flow.PacketIn
		if err := c.v.DecodePacketIn(m.Data, &in); err != nil {
			c.t.Fatal(err)
		}
		list = append(list, in)
	}
	return list
}

// types returns the types of the messages to c.
func (c *controller) types(e Effects) (list []openflow.Type) {
	for _, m := range e.Messages {
		if m.Conn == c.id {
			h, _ := openflow.ParseHeader(m.Data)
			list = append(list, h.Type)
		}
	}
	return list
}

// outPorts returns the ports by which frames have left.
func outPorts(e Effects) []flow.Port {
	list := []flow.Port{}
	for _, f := range e.Frames {
		list = append(list, f.Port)
	}
	return list
}

func wantPorts(t testing.TB, e Effects, want ...flow.Port) {
	t.Helper()
	if got := outPorts(e); !slices.Equal(got, want) {
		t.Fatalf("left by %v, want %v", got, want)
	}
}

// at is a time after the one at which switches start.
func at(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }

func mac(n byte) flow.MAC { return flow.MAC{2, 0, 0, 0, 0, n} }

// udp is a frame of IPv4 and UDP between two hosts.
func udp(src, dst byte) []byte {
	ip := packet.IP{Src: netip.AddrFrom4([4]byte{10, 0, 0, src}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, dst})}
	return packet.Pad(packet.AppendUDP(nil, packet.Ether{Dst: mac(dst), Src: mac(src)}, ip, 1000, 2000, []byte("datagram")))
}
