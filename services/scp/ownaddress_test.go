package scp

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// TestOwnAddressForbidden: where the policy of a type forbids its producers' own addresses, new
// connections there are reset and counted, with the reason. Those that are established go on, by
// entries of their own, and so do callbacks, those of an SCP, and all if no end point stands for
// the producer.
func TestOwnAddressForbidden(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(2, sbi.SMF)
	g.register(3, sbi.SCP)
	g.register(5, sbi.UDM)
	g.register(7, sbi.PCF)
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	led := func(from, to int, port uint16, flags uint8) (flow.Verdict, *flow.Decision) {
		frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(at(from)), Dst: netip.MustParseAddr(at(to))},
			packet.TCPFields{SrcPort: port, DstPort: 7777, Flags: flags, Seq: 7}, nil)
		in, d := wefttest.NewPacketIn(1, 3, frame), &flow.Decision{}
		in.Time, in.Table, in.Cookie = g.now.Load(), flow.TableProxy, flow.NewCookie(flow.OwnerSCP, 0, 0)
		return g.proxy.packet(in, d), d
	}
	before := g.proxy.index.Load()
	for _, of := range []string{"UDM", "PCF"} {
		g.policy(&api.ScpPolicy{Type: of, OwnAddress: "forbid"})
	}
	if v, _ := led(1, 5, 40000, packet.TCPSyn); v != flow.Next {
		t.Errorf("no end point stands for it: %v", v)
	}
	g.discover(1, sbi.AMF, sbi.UDM, "")
	x, d := g.proxy.index.Load(), &flow.Decision{}
	if x.close(before, []flow.DPID{1}, d); len(d.Flows) != 2 || d.Flows[0].Command != flow.Delete || d.Flows[0].Entry.Cookie&d.Flows[0].CookieMask != flow.NewCookie(flow.OwnerSCP, 1, 0) {
		t.Errorf("pairs' entries: %v", d.Flows)
	}
	if x.close(x, []flow.DPID{1}, d); len(d.Flows) != 2 {
		t.Errorf("removed again: %v", d.Flows)
	}
	v, d := led(1, 5, 40001, packet.TCPSyn)
	if v != flow.Drop || len(d.Outs) != 1 || len(d.Flows) != 0 {
		t.Errorf("a new connection: %v %v", v, d.Ops)
	}
	for _, c := range []struct {
		what    string
		from    int
		port    uint16
		flags   uint8
		entries int
	}{
		{"an established one", 1, 40000, packet.TCPAck, 2},
		{"again", 1, 40000, packet.TCPAck, 0},
		{"an SCP's", 3, 40000, packet.TCPSyn, 2},
	} {
		v, d := led(c.from, 5, c.port, c.flags)
		if v != flow.Next || len(d.Flows) != c.entries {
			t.Errorf("%s: %v %v", c.what, v, d.Flows)
		}
		for _, f := range d.Flows {
			if !strings.Contains(f.Entry.Match.String(), "=40000") {
				t.Errorf("%s: for all connections: %v", c.what, f.Entry.Match)
			}
		}
	}
	if v, _ := led(2, 5, 40000, packet.TCPSyn); v != flow.Drop {
		t.Errorf("an SMF's: %v", v)
	}
	led(5, 2, 40000, packet.TCPSyn)
	if v, _ := led(2, 5, 40000, packet.TCPSyn); v != flow.Next {
		t.Errorf("an SMF's callback: %v", v)
	}
	resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Type: "UDM"}, g.back)
	if err != nil || len(resp.Pairs) < 2 || resp.Pairs[1].Refused != 1 || resp.Pairs[1].Reason != reasonForbidden || !resp.Pairs[1].Direct {
		t.Errorf("%v, %v", resp, err)
	}
	g.proxy.serves(false, g.now.Load())
	if v, _ := led(1, 5, 40001, packet.TCPSyn); v != flow.Next {
		t.Errorf("the front does not serve: %v", v)
	}
	g.proxy.serves(true, g.now.Load())
	g.policy(&api.ScpPolicy{Type: "UDM"})
	g.now.Add(countSoon + 1)
	if v, d := led(1, 5, 40002, packet.TCPSyn); v != flow.Next || len(d.Flows) != 2 || strings.Contains(d.Flows[0].Entry.Match.String(), "tcp_src") {
		t.Errorf("allowed again: %v %v", v, d.Flows)
	}
}

// policy sets the policy of a type.
func (g *rig) policy(m *api.ScpPolicy) {
	g.t.Helper()
	if _, _, err := g.proxy.policies.Change(g.t.Context(), m.Type, func(*api.ScpPolicy) (*api.ScpPolicy, error) { return readPolicy(m) }); err != nil {
		g.t.Fatal(err)
	}
}

// TestOwnAddressRoom: a port of the network has a bounded number of connections with entries of
// their own.
func TestOwnAddressRoom(t *testing.T) {
	d, to, at := newDirect(), netip.MustParseAddrPort("10.0.0.5:7777"), flow.Location{Switch: 1, Port: 3}
	n := 0
	for port := range uint16(2 * mostGoOn) {
		if _, due := d.goesOn(connection{netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port+1), to}, at, 1+2*countSoon); due {
			n++
		}
	}
	if n != mostGoOn/portPart {
		t.Errorf("%d connections", n)
	}
	if _, due := d.goesOn(connection{netip.MustParseAddrPort("10.0.0.1:65000"), to}, at, 2+2*countSoon+countRest); !due {
		t.Error("they are over, and there is no room")
	}
}
