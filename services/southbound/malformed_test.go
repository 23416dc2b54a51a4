package southbound

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
	"google.golang.org/grpc/codes"
)

// The tests named after advisories are about messages by which controllers
// were made to hang or crash. Here each costs at most the connection that it
// comes by, within a second, and another switch goes on working.

// octets reads hex digits, spaces allowed.
func octets(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(text), []byte(" "), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replying is a malformed reply to something that the service asks.
type replying struct {
	name string
	ask  func(*wefttest.Harness) error
	body string // of the multipart reply
}

func readFlows(h *wefttest.Harness) error {
	_, err := wefttest.Call(h, api.ReadFlows, &api.ReadFlowsRequest{Dpid: flow.DPID(9).String()})
	return err
}

func readGroups(h *wefttest.Harness) error {
	_, err := wefttest.Call(h, api.ReadGroups, &api.ReadGroupsRequest{Dpid: flow.DPID(9).String()})
	return err
}

const (
	// An entry of flow statistics before its match, but for the length.
	flowHead = "00 00 00000001 00000000 0001 0000 0000 0000 00000000 0000000000000000 0000000000000000 0000000000000000"
	noMatch  = "0001 0004 00000000"
)

// malformedReplies has the service ask, answers with what is malformed, and
// checks what malformed messages may cost.
func malformedReplies(t *testing.T, list ...replying) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		for _, r := range list {
			c := w.joined(9)
			asked := make(chan error, 1)
			go func() { asked <- r.ask(w.h) }()
			request := c.want(openflow.TypeMultipartRequest)
			var m openflow.MultipartRequest
			if err := v13.DecodeMultipartRequest(request, &m); err != nil {
				t.Fatal(err)
			}
			c.send(v13.AppendMultipartReply(nil, xidOf(request), m.Type, false, octets(t, r.body)))
			c.closed()
			if err := <-asked; err == nil || api.KindOf(err) == codes.DeadlineExceeded {
				t.Errorf("%s: %v for who asked; want an error, and not that nobody answered", r.name, err)
			}
			w.down(9)
			w.works(1)
		}
	})
}

func TestCVE_2024_34487_FlowStatsInstructionOfLength0(t *testing.T) {
	malformedReplies(t, replying{"instruction", readFlows, "0040" + flowHead + noMatch + "0004 0000 00000000"})
}

func TestCVE_2024_34484_ActionOfLength0(t *testing.T) {
	malformedReplies(t,
		replying{"in flow statistics", readFlows, "0050" + flowHead + noMatch + "0004 0018 00000000" + "0000 0000 00000001 0000 000000000000"},
		replying{"in a bucket", readGroups, "0028 00 00 00000001" + "0020 0000 ffffffff ffffffff 00000000" + "0000 0000 00000001 0000 000000000000"})
}

func TestCVE_2024_34483_BucketOfLength0(t *testing.T) {
	malformedReplies(t, replying{"bucket", readGroups, "0018 00 00 00000001" + "0000 0000 ffffffff ffffffff 00000000"})
}

func TestCVE_2024_34488_MultipartElementOfLength0(t *testing.T) {
	malformedReplies(t,
		replying{"flow statistics", readFlows, "0000" + flowHead + noMatch},
		replying{"group description", readGroups, "0000 00 00 00000001"},
		replying{"cut short", readFlows, "0038 00 00 0000"},
		replying{"longer than the message", readFlows, "ffff" + flowHead + noMatch})
}

func TestCVE_2024_28732_MatchOfLength0(t *testing.T) {
	malformedReplies(t,
		replying{"match of length 0", readFlows, "0038" + flowHead + "0001 0000 00000000"},
		replying{"field of length 0", readFlows, "0040" + flowHead + "0001 000c 80000000 00000000 00000000"},
		replying{"field longer than the match", readFlows, "0040" + flowHead + "0001 0008 800000ff 00000000"})
	malformedMessages(t, true,
		"040a 0032 00000000 ffffffff 0008 00 00 0000000000000000 0001 0000 00000000 0000 0000000000000000 00000000000000000000",
		"040a 002a 00000000 ffffffff 0000 00 00 0000000000000000 0001 fff0 00000000 0000 0000000000000000",
		"040b 0038 00000000 0000000000000000 0000 00 00 00000000 00000000 0000 0000 0000000000000000 0000000000000000 0001 0000 00000000")
}

// malformedMessages sends messages, each by a connection of its own. Either it
// is closed within a second, and must be if so it says, or it goes on working.
func malformedMessages(t *testing.T, close bool, messages ...string) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		for _, m := range messages {
			c := w.joined(9)
			c.send(octets(t, m), nil)
			if close {
				c.closed()
			} else {
				c.alive()
				c.conn.Close()
			}
			w.down(9)
			w.works(1)
		}
	})
}

// alive checks that a connection is open and answered.
func (c *wire) alive() {
	c.t.Helper()
	c.send(c.v.AppendEchoRequest(nil, 0xa11fe, nil))
	for end := time.Now().Add(testwait.Limit); ; {
		msg, err := c.read(time.Until(end))
		if err != nil {
			c.t.Fatalf("the connection does not go on: %v", err)
		}
		if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypeEchoReply && h.Xid == 0xa11fe {
			return
		}
	}
}

// What follows nobody has asked for when it comes: it is passed over,
// whatever its body holds.

func TestCVE_2024_34486_QueuePropertyOfLength0(t *testing.T) {
	malformedMessages(t, false, "0417 0028 00000001 00000001 00000000 00000001 00000001 0018 000000000000 0001 0000 00000000")
}

func TestCVE_2020_35141_QueueOfLength0(t *testing.T) {
	malformedMessages(t, false, "0417 0020 00000001 00000001 00000000 00000001 00000001 0000 000000000000")
}

func TestCVE_2020_35139_BundleControl(t *testing.T) {
	malformedMessages(t, false, "0421 0018 00000001 00000001 0000 0000 0000 0000 00000000", "04ff 0008 00000001")
}

// TestRyu188_FlowModInstructionOfLength0 also stands for Ryu's issue 189.
func TestRyu188_FlowModInstructionOfLength0(t *testing.T) {
	malformedMessages(t, false, "040e 0040 00000001 0000000000000000 0000000000000000 00 00 0000 0000 0000 ffffffff ffffffff ffffffff 0000 0000 0001 0004 00000000 0004 0000 00000000")
}

func TestRyu196_TableFeaturesPropertyOfLength0(t *testing.T) {
	malformedMessages(t, false, "0413 0058 00000001 000c 0000 00000000 0048 00 0000000000"+
		"0000000000000000000000000000000000000000000000000000000000000000 0000000000000000 0000000000000000 00000000 00000000 0000 0000 00000000")
}

// TestCVE_2024_34489: a hello whose element has length 0, the first message.
func TestCVE_2024_34489_HelloElementOfLength0(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		c := w.wire()
		c.send(octets(t, "04000010000000130001000000000010"), nil)
		c.closed()
		w.works(1)
	})
}

// TestHeaders: lengths and versions that cannot be.
func TestHeaders(t *testing.T) {
	malformedMessages(t, true, "0402 0007 00000001", "0402 0000 00000001", "0302 0008 00000001", "0002 0008 00000001", "040a 0008 00000001", "040c 0008 00000001", "0413 0008 00000001", "0401 0008 00000001")
}

// TestGarbage has many switches send what random octets have been put into.
// Whatever becomes of each, it is over within a second of the connection's
// being closed, and the service works on.
func TestGarbage(t *testing.T) {
	in := flow.PacketIn{BufferID: flow.BufferNone, Data: make([]byte, 60), TotalLen: 60, Key: flow.Key{InPort: 1}}
	packetIn, _ := v13.AppendPacketIn(nil, 0, &in)
	desc := portDesc(1, true)
	status, _ := v13.AppendPortStatus(nil, 0, openflow.PortModified, &desc)
	removed, _ := v13.AppendFlowRemoved(nil, 0, &openflow.FlowRemoved{Match: flow.Match{}.WithInPort(1)})
	features, _ := v13.AppendFeaturesReply(nil, 0, &openflow.Features{DPID: 9})
	good := [][]byte{packetIn, status, removed, features, v13.AppendHello(nil, 1, v13), v13.AppendError(nil, 1, &openflow.Error{Type: 1, Data: packetIn}),
		v13.AppendBarrierReply(nil, 1), octets(t, "0413 0048 00000001 0001 0000 00000000 0038"+flowHead+noMatch)}
	inAllModes(t, "new_sessions_per_second: 10000", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		r := rand.New(rand.NewPCG(3, uint64(w.h.Mode)))
		for i := range 150 {
			c := w.wire()
			if i%3 > 0 {
				c.join(flow.DPID(1000 + i))
			}
			for range 20 {
				m := bytes.Clone(good[r.IntN(len(good))])
				for range 1 + r.IntN(4) {
					m[r.IntN(len(m))] = byte(r.IntN(256))
				}
				c.send(m, nil)
			}
			c.conn.Close()
		}
		w.works(1)
		w.eventually("only one switch is up", func() bool { return w.h.Metric("switches") == 1 })
		w.works(1)
	})
}

// TestCVE_2018_1000617: packets that are not what their headers say do their
// switch no harm; nor does LLDP with a wrong end (CVE-2025-29310).
func TestCVE_2018_1000617_OddPackets(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		seen := make(chan int, 1<<16)
		w.h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
			seen <- len(in.Data)
			return flow.Done
		})
		c := w.joined(9)
		r := rand.New(rand.NewPCG(4, 4))
		sent := 0
		packetIn := func(frame []byte) {
			in := flow.PacketIn{BufferID: flow.BufferNone, Data: frame, TotalLen: uint16(len(frame)), Key: flow.Key{InPort: 1}}
			c.send(v13.AppendPacketIn(nil, 0, &in))
			sent++
		}
		packetIn(nil)
		for range 2000 {
			b := make([]byte, r.IntN(120))
			for i := range b {
				b[i] = byte(r.IntN(256))
			}
			if len(b) > 14 {
				copy(b[12:], [][]byte{{8, 0}, {8, 6}, {0x86, 0xdd}, {0x88, 0xcc}, {0x81, 0}, {0x88, 0x47}}[r.IntN(6)])
			}
			packetIn(b)
		}
		packetIn(octets(t, "0180c200000e 020000000001 88cc 0207 04 020000000001 0402 07 31 0602 0078 0001 ff"))
		c.alive()
		for range sent {
			<-seen
		}
	})
}

// TestCVE_2015_7516: a packet of every ethertype, the length of jumbo frames
// among them, reaches the pipeline.
func TestCVE_2015_7516_EveryEthertype(t *testing.T) {
	inAllModes(t, "flood_rate: 0", func(t *testing.T, w *world) {
		var seen [1 << 16]bool
		count := 0
		done := make(chan struct{})
		w.h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
			if n := int(in.Data[12])<<8 | int(in.Data[13]); !seen[n] {
				seen[n] = true
				if count++; count == len(seen) {
					close(done)
				}
			}
			return flow.Done
		})
		c := w.joined(9)
		frame := make([]byte, 64)
		in := flow.PacketIn{BufferID: flow.BufferNone, Data: frame, TotalLen: 64, Key: flow.Key{InPort: 1}}
		var b []byte
		for n := range len(seen) {
			frame[12], frame[13] = byte(n>>8), byte(n)
			b, _ = v13.AppendPacketIn(b, 0, &in)
		}
		go c.conn.Write(b)
		select {
		case <-done:
		case <-time.After(testwait.Limit):
			t.Fatal("not all have reached the pipeline")
		}
		c.alive()
	})
}
