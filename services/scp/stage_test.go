package scp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// syn has the first packet of a connection come in, and returns what becomes of it.
func (g *rig) syn(from, to int, port uint16, flags uint8) (flow.Verdict, *flow.Decision) {
	return g.synFrom(at(from), to, port, flags)
}

func (g *rig) synFrom(from string, to int, port uint16, flags uint8) (flow.Verdict, *flow.Decision) {
	frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr(at(to))},
		packet.TCPFields{SrcPort: 40000, DstPort: port, Flags: flags, Seq: 7}, nil)
	in := wefttest.NewPacketIn(1, 3, frame)
	in.Time = g.now.Load()
	d := &flow.Decision{}
	return g.proxy.packet(in, d), d
}

// Who uses a producer's own address is held to the same policy, in either
// direction, and counted.
func TestDirect(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(2, sbi.SMF)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.eventually("the first survey", g.proxy.surveyed.Load)
	for what, c := range map[string]struct {
		from, to int
		port     uint16
		flags    uint8
		want     flow.Verdict
	}{
		"AMF to UDM":            {1, 5, 7777, packet.TCPSyn, flow.Next},
		"SMF to UDM":            {2, 5, 7777, packet.TCPSyn, flow.Drop},
		"a stranger to UDM":     {9, 5, 7777, packet.TCPSyn, flow.Drop},
		"at another port":       {2, 5, 22, packet.TCPSyn, flow.Next},
		"within a connection":   {2, 5, 7777, packet.TCPAck, flow.Next},
		"to who restricts none": {9, 2, 7777, packet.TCPSyn, flow.Next},
	} {
		verdict, d := g.syn(c.from, c.to, c.port, c.flags)
		if verdict != c.want || (len(d.Outs) == 1) != (c.want == flow.Drop) {
			t.Errorf("%s: %v, with %d packets", what, verdict, len(d.Outs))
		}
		if len(d.Outs) == 1 {
			if r, ok := packet.ParseTCP(d.Outs[0].Data); !ok || r.Flags()&packet.TCPRst == 0 || r.Ack() != 8 || r.SrcPort() != c.port {
				t.Errorf("%s: no reset that its sender takes", what)
			}
		}
	}
	// Who has been used may call back, even where it could not connect by itself.
	if verdict, _ := g.syn(2, 5, 7777, packet.TCPSyn); verdict != flow.Drop {
		t.Errorf("SMF to UDM: %v", verdict)
	}
	g.syn(5, 2, 7777, packet.TCPSyn)
	if verdict, _ := g.syn(2, 5, 7777, packet.TCPSyn); verdict != flow.Next {
		t.Errorf("SMF calls UDM back: %v", verdict)
	}
	resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Type: "UDM"}, g.back)
	if err != nil || len(resp.Pairs) != 2 || !resp.Pairs[0].Direct || resp.Pairs[0].Consumer != at(1) {
		t.Errorf("%v, %v", resp, err)
	}
	// When the policy shrinks, the next connection is refused.
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.SMF} })
	if verdict, _ := g.syn(1, 5, 7777, packet.TCPSyn); verdict != flow.Drop {
		t.Errorf("AMF, no longer allowed: %v", verdict)
	}
}

// TestNRFConnects: the NRF's notifications reach their subscribers, also those who
// subscribed before the front served, and have sent it nothing.
func TestNRFConnects(t *testing.T) {
	for _, strict := range []bool{false, true} {
		g := newRig(t, func(cfg *Config) { cfg.Strict = strict })
		g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
		nrf, _, _ := g.cfg.nrf()
		for what, c := range map[string]struct {
			from string
			want flow.Verdict
		}{"the NRF": {nrf.Addr().String(), flow.Next}, "a stranger": {at(9), flow.Drop}} {
			if verdict, d := g.synFrom(c.from, 5, 7777, packet.TCPSyn); verdict != c.want || len(d.Flows) != 0 {
				t.Errorf("strict %v: %s: %v", strict, what, verdict)
			}
		}
		g.stop()
	}
}

// The packets of a registered consumer to a producer's own address are counted at its
// switch, by two entries that let them go on.
func TestDirectCounted(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	if _, d := g.syn(1, 5, 7777, packet.TCPSyn); len(d.Flows) != 0 {
		t.Errorf("at a switch that is not known: %v", d.Flows)
	}
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	g.now.Add(countRest + 1)
	_, d := g.syn(1, 5, 7777, packet.TCPSyn)
	if len(d.Flows) != 2 {
		t.Fatalf("%v", d.Flows)
	}
	for _, m := range d.Flows {
		if e := m.Entry; e.Table != flow.TableTranslate || e.Goto != flow.TableForward || e.Priority != flow.PriorityCounted || e.IdleTimeout != countIdle || len(e.Apply) != 0 {
			t.Errorf("%+v", e)
		}
		g.back.counted = append(g.back.counted, m.Entry)
	}
	if _, d := g.syn(1, 5, 7777, packet.TCPSyn); len(d.Flows) != 0 {
		t.Errorf("again at once: %v", d.Flows)
	}
	if _, d := g.syn(9, 5, 7777, packet.TCPSyn); len(d.Flows) != 0 {
		t.Errorf("of a stranger: %v", d.Flows)
	}
	resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{}, g.back)
	if err != nil || len(resp.Pairs) == 0 {
		t.Fatalf("%v, %v", resp, err)
	}
	for _, p := range resp.Pairs {
		if counted := p.Packets == 6 && p.Bytes == 600; counted != (p.Consumer == at(1)) {
			t.Errorf("%v", p)
		}
	}
}

// A direct pair whose consumer reaches the producer by an end point, too, has a row of its own
// while it has packets.
func TestDirectBesideBalanced(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	_, d := g.syn(1, 5, 7777, packet.TCPSyn)
	for _, m := range d.Flows {
		g.back.counted = append(g.back.counted, m.Entry)
	}
	for _, want := range []int{2, 1} {
		resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Type: "UDM"}, g.back)
		if n := len(resp.GetPairs()); err != nil || n != want || resp.Pairs[0].Direct {
			t.Errorf("%d rows, want %d: %v, %v", n, want, resp, err)
		}
		g.back.counted = nil // idle
		g.proxy.direct.all(func(_ directKey, x *directPair) { x.since -= 2 * int64(countLag) })
	}
}

// The reset for a member of a virtual network leaves as frames of that do at its
// port.
func TestResetInNetworks(t *testing.T) {
	g := newRig(t)
	g.register(2, sbi.SMF)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	const inside = 3000 | flow.VLANPresent
	for _, test := range []struct {
		what string
		tag  uint32
		port uint32
		want []flow.Action // none: there is no packet
	}{
		{"untagged", 0, 3, []flow.Action{flow.PopVLAN(), flow.Output(3)}},
		{"with a tag of its own", 7, 3, []flow.Action{flow.SetVLAN(7), flow.Output(3)}},
		{"no longer a member", 0, 4, nil},
	} {
		g.feed(&api.SegmentChanged{Segment: &api.Segment{Vlan: 3000, Ports: []*api.SegmentPort{{Dpid: flow.DPID(1).String(), Port: test.port, Tag: test.tag}}}})
		frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}, VLAN: inside},
			packet.IP{Src: netip.MustParseAddr(at(2)), Dst: netip.MustParseAddr(at(5))}, packet.TCPFields{SrcPort: 40000, DstPort: 7777, Flags: packet.TCPSyn, Seq: 7}, nil)
		in := wefttest.NewPacketIn(1, 3, frame)
		d := &flow.Decision{}
		if v := g.proxy.packet(in, d); v != flow.Drop || (len(d.Outs) == 1) != (test.want != nil) {
			t.Errorf("%s: %v, with %d packets", test.what, v, len(d.Outs))
			continue
		}
		if test.want != nil && !slices.Equal(d.Outs[0].Actions, test.want) {
			t.Errorf("%s: %v, want %v", test.what, d.Outs[0].Actions, test.want)
		}
	}
}

// A packet that is none of the proxy's business costs no allocation.
func TestStageAllocates(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(at(1)), Dst: netip.MustParseAddr(at(8))},
		packet.TCPFields{SrcPort: 40000, DstPort: 80, Flags: packet.TCPSyn}, nil)
	in := wefttest.NewPacketIn(1, 3, frame)
	d := &flow.Decision{}
	if n := testing.AllocsPerRun(1000, func() { g.proxy.packet(in, d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkStage is a packet that is none of the proxy's business: without a core,
// and beside one.
func BenchmarkStage(b *testing.B) {
	frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(at(1)), Dst: netip.MustParseAddr(at(8))},
		packet.TCPFields{SrcPort: 40000, DstPort: 80, Flags: packet.TCPSyn}, nil)
	g := newRig(b)
	for _, n := range []int{0, 1} {
		if n > 0 {
			g.register(5, sbi.UDM)
		}
		b.Run([]string{"none", "core"}[n], func(b *testing.B) {
			in, d := wefttest.NewPacketIn(1, 3, frame), &flow.Decision{}
			b.ReportAllocs()
			for b.Loop() {
				g.proxy.packet(in, d)
			}
		})
	}
}

// TestUndecided: until the NRF has been asked for its instances, a connection of a client that is
// not known is neither let through nor reset: it may be of a consumer that is registered.
func TestUndecided(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.eventually("the first survey", g.proxy.surveyed.Load)
	g.stop()
	g.proxy.surveyed.Store(false)
	if v, d := g.syn(1, 5, 7777, packet.TCPSyn); v != flow.Drop || len(d.Outs) != 0 {
		t.Errorf("before the survey: %v %v", v, d.Ops)
	}
	g.nrf.set(func(n *fakeNRF) { n.book[id(1)] = []byte(profile(1, sbi.AMF)) })
	g.proxy.survey(t.Context(), g.front.nrf)
	if v, _ := g.syn(1, 5, 7777, packet.TCPSyn); v != flow.Next {
		t.Errorf("the consumer is registered: %v", v)
	}
	if v, d := g.syn(9, 5, 7777, packet.TCPSyn); v != flow.Drop || len(d.Outs) != 1 {
		t.Errorf("nobody has registered it: %v %v", v, d.Ops)
	}
}
