package sim

import (
	"bytes"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// probe returns an LLDP frame that can be told from others.
func probe(id byte) []byte {
	return packet.AppendLLDP(nil, packet.Ether{Dst: flow.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}, Src: flow.MAC{2, 0, 0, 0, 0, id}}, packet.LLDPFields{})
}

// trap makes a switch send LLDP to the controller, which OpenFlow 1.3 does not
// by itself.
func (s *session) trap() {
	s.t.Helper()
	if s.v == openflow.V13 {
		s.mod(adding(65535, 0x1dd, flow.Match{}.WithEthType(flow.EthTypeLLDP), flow.Output(flow.PortController)))
	}
	s.fence()
}

// line opens n switches in a row with a host port each; links are between
// ports as Linear numbers them.
func line(t *testing.T, v openflow.Version, n int) ([]*session, *Network) {
	t.Helper()
	topo, err := Linear(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := topo.AttachHosts(1, 1); err != nil {
		t.Fatal(err)
	}
	c := newController(t)
	net := start(t, Config{Topology: topo, Version: v, Address: c.address()})
	return c.openAll(v, n), net
}

// arrivals returns the packet-ins that have come to a switch.
func (s *session) arrivals() []flow.PacketIn {
	s.t.Helper()
	var list []flow.PacketIn
	for _, m := range s.fence() {
		if typeOf(s.t, m) == openflow.TypePacketIn {
			list = append(list, s.packetIn(m))
		}
	}
	return list
}

func TestProbeCrossesLink(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		sw, _ := line(t, v, 3)
		frame := probe(1)
		if v == openflow.V13 { // without an entry the far switch drops it
			sw[0].out(frame, flow.PortController, flow.Output(1))
			sw[0].fence()
			if got := sw[1].arrivals(); len(got) != 0 {
				t.Errorf("%d packet-ins from a switch without entries", len(got))
			}
		}
		for _, s := range sw {
			s.trap()
		}
		sw[0].out(frame, flow.PortController, flow.Output(1))
		sw[0].fence()
		got := sw[1].arrivals()
		if len(got) != 1 || got[0].Key.InPort != 1 || !bytes.Equal(got[0].Data, frame) {
			t.Fatalf("at the far end: %+v", got)
		}
		if v == openflow.V13 && (got[0].Cookie != 0x1dd || got[0].Reason != flow.ReasonAction) {
			t.Errorf("packet-in %+v: not that of the entry", got[0])
		}
		if back := sw[0].arrivals(); len(back) != 0 {
			t.Errorf("%d packet-ins at the sender", len(back))
		}
	})
}

func TestFloodLeavesOutIngress(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		for _, to := range []flow.Port{flow.PortFlood, flow.PortAll} {
			sw, n := line(t, v, 3)
			for _, s := range sw {
				s.trap()
			}
			sw[1].out(probe(2), 1, flow.Output(to)) // port 1 leads to the first switch
			sw[1].fence()
			if got := sw[0].arrivals(); len(got) != 0 {
				t.Errorf("output to %v: sent out of the port it came in by", to)
			}
			if got := sw[2].arrivals(); len(got) != 1 {
				t.Errorf("output to %v: %d packet-ins at the far end, want 1", to, len(got))
			}
			if st, err := n.Stats(within(t, testwait.Limit)); err != nil || st.Delivered != 1 || st.Carried != 1 {
				t.Errorf("output to %v: %+v, %v; want one frame over a link and one to a host", to, st, err)
			}
		}
	})
}

func TestPortDownAndUp(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		sw, n := line(t, v, 2)
		sw[1].trap()
		ctx := within(t, testwait.Limit)
		for _, up := range []bool{false, true} {
			if err := n.SetLink(ctx, 0, up); err != nil {
				t.Fatal(err)
			}
			for i, s := range sw {
				reason, p, err := v.DecodePortStatus(s.expect(openflow.TypePortStatus))
				if err != nil || reason != openflow.PortModified || p.No != 1 || p.Up() != up {
					t.Errorf("switch %d, link up is %v: %v %+v, %v", i, up, reason, p, err)
				}
			}
			sw[0].out(probe(3), flow.PortController, flow.Output(1))
			sw[0].fence()
			if got := len(sw[1].arrivals()); (got == 1) != up {
				t.Errorf("link up is %v: %d frames crossed", up, got)
			}
		}
	})
}

func TestSilentFailure(t *testing.T) {
	sw, n := line(t, openflow.V13, 2)
	sw[1].trap()
	for _, mute := range []bool{true, false} {
		if err := n.MuteLink(within(t, testwait.Limit), 0, mute); err != nil {
			t.Fatal(err)
		}
		sw[0].out(probe(4), flow.PortController, flow.Output(1))
		if rest := sw[0].fence(); len(rest) != 0 {
			t.Errorf("the switch noticed: %v", typeOf(t, rest[0]))
		}
		if got := len(sw[1].arrivals()); (got == 0) != mute {
			t.Errorf("mute is %v: %d frames crossed", mute, got)
		}
	}
	if n.SetLink(within(t, testwait.Limit), 1, true) == nil || n.MuteLink(within(t, testwait.Limit), -1, true) == nil {
		t.Error("a link that is not there was changed")
	}
}

func TestEntriesForwardOverLinks(t *testing.T) {
	sw, n := line(t, openflow.V13, 3)
	dst := flow.MAC{2, 0, 0, 0, 0, 0x33}
	frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Dst: dst, Src: flow.MAC{2, 0, 0, 0, 0, 1}}, 0x88b5))
	sw[1].mod(adding(10, 1, flow.Match{}.WithEthDst(dst), flow.Output(2)))
	sw[1].fence()
	sw[2].mod(adding(0, 2, flow.Match{}, flow.Output(flow.PortController)))
	sw[2].fence()
	sw[0].out(frame, flow.PortController, flow.Output(1))
	sw[0].fence()
	got := sw[2].arrivals()
	if len(got) != 1 || got[0].Reason != flow.ReasonNoMatch || got[0].Cookie != 2 {
		t.Errorf("%+v, want one packet-in of the table-miss entry", got)
	}
	if f := sw[1].flows(openflow.MultipartRequest{}); len(f) != 1 || f[0].Packets != 1 {
		t.Errorf("the entry on the way has counted %+v", f)
	}
	// A loop of entries comes to an end.
	sw[2].mod(adding(10, 3, flow.Match{}.WithEthDst(dst), flow.Output(flow.PortIn)))
	sw[2].fence()
	sw[1].mod(adding(10, 1, flow.Match{}.WithEthDst(dst), flow.Output(2), flow.Output(flow.PortIn)))
	sw[1].fence()
	sw[0].out(frame, flow.PortController, flow.Output(1))
	sw[0].fence()
	if st, err := n.Stats(within(t, testwait.Limit)); err != nil || st.Dropped == 0 {
		t.Errorf("%+v, %v", st, err)
	}
}
