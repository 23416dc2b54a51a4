package oftest

import (
	"bytes"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

func TestPacketIn(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	frame := udp(1, 2)
	if e := s.Receive(1, frame); len(e.Messages) != 0 {
		t.Error("OpenFlow 1.3: a miss without a table-miss entry is dropped")
	}
	c.add(flow.Entry{Cookie: 5, Apply: []flow.Action{{Kind: flow.ActionOutput, Arg: uint32(flow.PortController), MaxLen: 20}}})
	in := c.packetIns(s.Receive(1, frame))
	if len(in) != 1 || in[0].Reason != flow.ReasonNoMatch || in[0].Cookie != 5 || in[0].Key.InPort != 1 || in[0].BufferID != flow.BufferNone || !bytes.Equal(in[0].Data, frame) {
		t.Errorf("by the table-miss entry: %+v", in)
	}
	c.add(flow.Entry{Priority: 1, Match: flow.Match{}.WithInPort(1), Apply: out(flow.PortController)})
	if in := c.packetIns(s.Receive(1, frame)); len(in) != 1 || in[0].Reason != flow.ReasonAction {
		t.Errorf("by an action: %+v", in)
	}
}

func TestBuffers(t *testing.T) {
	s := New(Config{Buffers: 2})
	c := connect(t, s, v13)
	c.add(flow.Entry{Apply: []flow.Action{{Kind: flow.ActionOutput, Arg: uint32(flow.PortController), MaxLen: 20}}})
	frame := udp(1, 2)
	keep := func() uint32 {
		t.Helper()
		in := c.packetIns(s.Receive(1, frame))
		if len(in) != 1 || len(in[0].Data) != 20 || int(in[0].TotalLen) != len(frame) || in[0].BufferID == flow.BufferNone {
			t.Fatalf("%+v", in)
		}
		return in[0].BufferID
	}
	release := func(id uint32) Effects {
		return c.send(v13.AppendPacketOut(nil, c.next(), &flow.PacketOut{BufferID: id, InPort: 1, Actions: out(2)}))
	}
	first, second, third := keep(), keep(), keep()
	c.wantError(release(first), openflow.ErrBadRequest, openflow.BadRequestBufferUnknown) // it made room
	e := release(second)
	wantPorts(t, e, 2)
	if !bytes.Equal(e.Frames[0].Data, frame) {
		t.Error("the packet was not kept whole")
	}
	c.wantError(release(second), openflow.ErrBadRequest, openflow.BadRequestBufferUnknown)
	// A flow-mod that releases: the packet takes the new entry.
	e = c.mod(flow.Mod{BufferID: third, Entry: flow.Entry{Priority: 1, Apply: out(3)}})
	wantPorts(t, e, 3)
	e = c.mod(flow.Mod{BufferID: third, Entry: flow.Entry{Priority: 2, Apply: out(3)}})
	c.wantError(e, openflow.ErrBadRequest, openflow.BadRequestBufferUnknown)
	if len(s.Flows()) != 3 {
		t.Error("the entry of a flow-mod with a buffer unknown is not there (§6.4: it is as if a packet-out followed)")
	}
	// Who asks for all of it gets all of it.
	c.add(flow.Entry{Priority: 3, Apply: out(flow.PortController)})
	if in := c.packetIns(s.Receive(1, frame)); in[0].BufferID != flow.BufferNone || !bytes.Equal(in[0].Data, frame) {
		t.Errorf("%+v", in)
	}
}

func TestPacketOut(t *testing.T) {
	s := New(Config{Local: true})
	c := connect(t, s, v13)
	c.add(flow.Entry{Priority: 1, Match: flow.Match{}.WithInPort(1), Apply: out(2)})
	s.SetLink(4, false)
	for _, test := range []struct {
		in   flow.Port
		list []flow.Action
		want []flow.Port
	}{
		{flow.PortController, out(3), []flow.Port{3}},
		{flow.PortController, out(99), nil},
		{flow.PortController, out(4), nil},
		{1, out(1), nil},
		{1, out(flow.PortIn), []flow.Port{1}},
		{1, out(flow.PortTable), []flow.Port{2}},
		{2, out(flow.PortTable), nil},
		{1, out(flow.PortAll), []flow.Port{2, 3, flow.PortLocal}},
		{flow.PortController, out(flow.PortFlood), []flow.Port{1, 2, 3, flow.PortLocal}},
		{flow.PortController, out(flow.PortLocal), []flow.Port{flow.PortLocal}},
		{flow.PortController, []flow.Action{flow.Output(1), flow.SetEthDst(mac(9)), flow.Output(2)}, []flow.Port{1, 2}},
	} {
		e := c.send(v13.AppendPacketOut(nil, c.next(), &flow.PacketOut{BufferID: flow.BufferNone, InPort: test.in, Actions: test.list, Data: udp(1, 2)}))
		c.fine(e)
		t.Log(test.in, flow.FormatActions(test.list))
		wantPorts(t, e, test.want...)
	}
	e := c.send(v13.AppendPacketOut(nil, c.next(), &flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: out(flow.PortController), Data: udp(1, 2)}))
	if in := c.packetIns(e); len(in) != 1 || in[0].Reason != flow.ReasonAction || in[0].Key.InPort != flow.PortController {
		t.Errorf("%+v", in)
	}
	c.wantError(c.send(v13.AppendPacketOut(nil, c.next(), &flow.PacketOut{BufferID: flow.BufferNone, InPort: 1, Actions: out(1), Data: []byte{1}})),
		openflow.ErrBadRequest, openflow.BadRequestBadPacket)
}

// TestTTL: a packet whose time is up goes no further, and to the controller if
// that asks for it.
func TestTTL(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Match: anyIP, Apply: []flow.Action{{Kind: flow.ActionDecNwTTL}, flow.Output(2)}})
	frame := udp(1, 2)
	e := s.Receive(1, frame)
	wantPorts(t, e, 2)
	if e.Frames[0].Data[22] != frame[22]-1 {
		t.Errorf("TTL %d after %d", e.Frames[0].Data[22], frame[22])
	}
	last := bytes.Clone(frame)
	last[22] = 1
	wantPorts(t, s.Receive(1, last))
	async := openflow.Async{PacketIn: [2]uint32{1 << flow.ReasonInvalidTTL}}
	c.fine(c.send(v13.AppendSetAsync(nil, c.next(), &async)))
	e = s.Receive(1, last)
	if in := c.packetIns(e); len(in) != 1 || in[0].Reason != flow.ReasonInvalidTTL || len(e.Frames) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestFragmentsDropped(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Apply: out(2)})
	part := udp(1, 2)
	part[20] |= 0x20 // more follow
	wantPorts(t, s.Receive(1, part), 2)
	c.fine(c.send(v13.AppendSetConfig(nil, c.next(), openflow.FragDrop, 100), nil))
	wantPorts(t, s.Receive(1, part))
	wantPorts(t, s.Receive(1, udp(1, 2)), 2)
}

// TestOpenFlow10 is what OpenFlow 1.0 has otherwise.
func TestOpenFlow10(t *testing.T) {
	s := New(Config{})
	old, recent := connect(t, s, openflow.V10), connect(t, s, v13)
	frame := udp(1, 2)
	old.fine(old.send(openflow.V10.AppendSetConfig(nil, old.next(), 0, 30), nil))
	e := s.Receive(1, frame)
	if in := old.packetIns(e); len(in) != 1 || in[0].Reason != flow.ReasonNoMatch || len(recent.packetIns(e)) != 0 {
		t.Errorf("a miss comes to %+v; it concerns OpenFlow 1.0 alone", e.Messages)
	}
	// Modify adds; setting the VLAN of a frame without a tag adds one.
	old.fine(old.mod(flow.Mod{Command: flow.Modify, Entry: flow.Entry{Priority: 3, Cookie: 1, Apply: []flow.Action{flow.SetVLAN(5), flow.Output(2)}}}))
	e = s.Receive(1, frame)
	wantPorts(t, e, 2)
	if f := e.Frames[0].Data; f[12] != 0x81 || f[15] != 5 {
		t.Errorf("frame %x", f)
	}
	// Modify changes the cookie too.
	old.fine(old.mod(flow.Mod{Command: flow.ModifyStrict, Entry: flow.Entry{Priority: 3, Cookie: 2, Apply: out(3)}}))
	if f := s.Flows(); len(f) != 1 || f[0].Cookie != 2 || f[0].Packets != 1 {
		t.Errorf("%+v", f)
	}
	// What it has no form for it is not shown.
	recent.add(flow.Entry{Table: 1, Goto: 2})
	n := 0
	for _, b := range old.multipart(openflow.MultipartRequest{Type: openflow.MultipartFlow}) {
		if err := openflow.V10.DecodeFlowStats(b, func(*openflow.FlowStats) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("%d entries shown, want 1", n)
	}
	// Floods leave out ports that are told so.
	p, _ := s.Port(4)
	old.fine(old.send(openflow.V10.AppendPortMod(nil, old.next(), &openflow.PortMod{Port: 4, HWAddr: p.HWAddr, Config: openflow.PortConfigNoFlood, Mask: openflow.PortConfigNoFlood})))
	old.fine(old.mod(flow.Mod{Entry: flow.Entry{Priority: 9, Apply: out(flow.PortFlood)}}))
	wantPorts(t, s.Receive(1, frame), 2, 3)
	// Groups are beyond it.
	msg := groupOf(flow.Add, flow.GroupKindAll, 1)
	msg[0] = byte(openflow.V10)
	if e := s.Message(old.id, msg); len(e.Messages) != 1 {
		t.Errorf("%d answers to a group-mod", len(e.Messages))
	}
	// A match without wildcards outranks all (OpenFlow 1.0.1 §3.4).
	exact := flow.Match{}.WithInPort(1).WithEthSrc(mac(1)).WithEthDst(mac(2)).WithVLAN(5).WithVLANPCP(0).WithIPDSCP(0)
	exact = exact.WithEthType(flow.EthTypeIPv4).WithUDPSrc(1).WithUDPDst(2)
	exact.Put(flow.FieldIPv4Src, [16]byte{10, 0, 0, 1})
	exact.Put(flow.FieldIPv4Dst, [16]byte{10, 0, 0, 2})
	old.fine(old.mod(flow.Mod{Entry: flow.Entry{Priority: 1, Match: exact, Apply: out(2)}}))
	if f := s.Flows(); f[0].Priority != flow.PriorityMax {
		t.Errorf("priority %d", f[0].Priority)
	}
}
