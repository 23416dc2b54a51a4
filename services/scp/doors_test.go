package scp

import (
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// TestDoorEntries: of the TCP of a core, only what hosts send to doors comes to the controller;
// the rest goes on, and no packet is dropped.
func TestDoorEntries(t *testing.T) {
	var net nib.Snapshot
	feed := wefttest.Network(reads, func(c nib.Change) { net = c.Is })
	edge := func(sw flow.DPID, port uint32, role string) {
		feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: port}, Role: role}})
	}
	for sw, s := range map[flow.DPID]*api.Switch{1: {Openflow: "1.3", Tables: 254}, 2: {Openflow: "1.3", Tables: 254}, 3: {Openflow: "1.0", Tables: 254}, 4: {Openflow: "1.3", Tables: 1}} {
		s.Dpid, s.Connected = sw.String(), true
		feed(&api.SwitchChanged{Switch: s})
		edge(sw, 9, "link")
		if sw != 2 {
			edge(sw, 1, "edge")
		}
	}
	v4, v6 := netip.MustParseAddrPort("10.0.0.5:7777"), netip.MustParseAddrPort("[fd00::5]:7777")
	nrf := netip.MustParseAddr("10.0.0.1")
	plan := planDoors(net, 0, []netip.AddrPort{v4, v6}, []netip.Addr{nrf})
	for sw := flow.DPID(2); sw <= 4; sw++ {
		if len(plan[sw]) != 0 {
			t.Errorf("switch %v, which has no ports of hosts or one table: %v", sw, plan[sw])
		}
	}
	for what, c := range map[string]struct {
		port     flow.Port
		from, to string
		dst      uint16
		want     bool // to the controller
	}{
		"to a door":             {1, "10.0.0.2", "10.0.0.5", 7777, true},
		"to a door by IPv6":     {1, "fd00::2", "fd00::5", 7777, true},
		"another port":          {1, "10.0.0.2", "10.0.0.5", 22, false},
		"another host":          {1, "10.0.0.2", "10.0.0.6", 7777, false},
		"from a link":           {9, "10.0.0.2", "10.0.0.5", 7777, false},
		"from a link by IPv6":   {9, "fd00::2", "fd00::5", 7777, false},
		"the NRF's own packets": {1, "10.0.0.1", "10.0.0.5", 7777, false},
	} {
		frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(c.from), Dst: netip.MustParseAddr(c.to)},
			packet.TCPFields{SrcPort: 4000, DstPort: c.dst, Flags: packet.TCPAck}, nil)
		key := packet.Headers(wefttest.NewPacketIn(1, c.port, frame))
		var best *flow.Entry
		for i := range plan[1] {
			if e := &plan[1][i]; e.Match.Matches(key) && (best == nil || e.Priority > best.Priority) {
				best = e
			}
		}
		if best == nil || (best.Goto == 0) != c.want || c.want && best.Apply[0] != flow.Output(flow.PortController) {
			t.Errorf("%s: %+v", what, best)
		}
	}
}

// TestDoorGates: a switch has gates while it has all that is behind them, for the IP
// versions of its doors.
func TestDoorGates(t *testing.T) {
	g := &doorGates{switches: map[flow.DPID]*doorSwitch{}}
	door := func(m flow.Match) flow.Entry {
		return flow.Entry{Table: flow.TableProxy, Priority: flow.PriorityDoor, Match: m}
	}
	check := func(what string, gates int) {
		t.Helper()
		d := g.due(0)
		if len(d.Flows) != gates {
			t.Errorf("%s: %d gates, want %d", what, len(d.Flows), gates)
		}
		for _, f := range d.Flows {
			if e := f.Entry; e.Table != flow.TableTranslate || e.Goto != flow.TableProxy || e.HardTimeout != gateTime || e.Priority >= flow.PriorityCounted {
				t.Errorf("%s: %+v", what, e)
			}
		}
	}
	list := []flow.Entry{door(flow.Match{}.WithIPDst(netip.MustParsePrefix("10.0.0.5/32")))}
	g.declared(1, list)
	check("not confirmed", 0)
	g.answered(1, nil)
	check("confirmed", 1)
	g.declared(1, append(list, door(flow.Match{}.WithIPDst(netip.MustParsePrefix("fd00::5/128")))))
	g.answered(1, nil)
	check("both IP versions", 2)
	g.answered(1, []*api.WantedFlow{{}})
	check("one refused", 0)
	g.declared(1, nil)
	g.answered(1, nil)
	check("no doors", 0)
}

// TestLed: what a door's entry has led to the controller gets the entries of its pair: also
// of a stranger whom the producer admits, and within a connection; never of one whom it does
// not, for by these its next connection would pass.
func TestLed(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(2, sbi.SMF)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.register(6, sbi.PCF)
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	led := func(from, to int, flags uint8) (flow.Verdict, *flow.Decision) {
		frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(at(from)), Dst: netip.MustParseAddr(at(to))},
			packet.TCPFields{SrcPort: 40000, DstPort: 7777, Flags: flags, Seq: 7}, nil)
		in, d := wefttest.NewPacketIn(1, 3, frame), &flow.Decision{}
		in.Time, in.Table, in.Cookie = g.now.Load(), flow.TableProxy, flow.NewCookie(flow.OwnerSCP, 0, 0)
		return g.proxy.packet(in, d), d
	}
	for _, c := range []struct {
		what     string
		from, to int
		flags    uint8
		want     flow.Verdict
		entries  int
	}{
		{"AMF to UDM, within a connection", 1, 5, packet.TCPAck, flow.Next, 2},
		{"again at once", 1, 5, packet.TCPSyn, flow.Next, 0},
		{"SMF to UDM, within a connection", 2, 5, packet.TCPAck, flow.Next, 0},
		{"SMF to UDM", 2, 5, packet.TCPSyn, flow.Drop, 0},
		{"a stranger to who restricts none", 9, 6, packet.TCPSyn, flow.Next, 2},
	} {
		if v, d := led(c.from, c.to, c.flags); v != c.want || len(d.Flows) != c.entries {
			t.Errorf("%s: %v with %d entries, want %v with %d", c.what, v, len(d.Flows), c.want, c.entries)
		}
	}
	g.now.Add(countSoon + 1)
	if _, d := led(1, 5, packet.TCPAck); len(d.Flows) != 2 {
		t.Errorf("still without entries: %v", d.Flows)
	}
	p, d := g.proxy, &flow.Decision{}
	if p.direct.withdraw(p.index.Load(), false, p.trusted, d); !d.Empty() {
		t.Errorf("all pairs are allowed: %v", d.Flows)
	}
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.SMF} })
	p.direct.withdraw(p.index.Load(), false, p.trusted, d)
	if len(d.Flows) != 1 || d.Flows[0].Command != flow.Delete || d.Flows[0].Entry.Cookie.Generation() != 1 || d.Flows[0].CookieMask != ^flow.Cookie(0) {
		t.Errorf("AMF is no longer allowed: %v", d.Flows)
	}
	v, d := led(1, 5, packet.TCPAck)
	if v != flow.Drop || len(d.Flows) != 0 || len(d.Outs) != 1 {
		t.Fatalf("its connection: %v, %v", v, d)
	}
	if r, ok := packet.ParseTCP(d.Outs[0].Data); !ok || r.Flags() != packet.TCPRst || r.SrcPort() != 7777 {
		t.Errorf("its connection is not reset: %v", r)
	}
}
