package scp

import (
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// TestOwnAddressBalanced: where the policy of a type balances connections to its producers' own
// addresses, those of consumers are the balancer's, with the VIP of the end point. Those stay as they
// are of which a certain producer may be meant: of an SCP, callbacks, of the producers' own type, of a
// consumer that has chosen among them, of the NRF and of somebody unknown; and of producers that
// cannot stand in for each other.
func TestOwnAddressBalanced(t *testing.T) {
	g := newRig(t)
	for n, of := range map[int]sbi.NFType{1: sbi.AMF, 2: sbi.SMF, 3: sbi.SCP, 4: sbi.AUSF, 5: sbi.UDM, 6: sbi.UDM, 7: sbi.PCF, 8: sbi.PCF, 11: "NSSF"} {
		g.register(n, of, func(p *sbi.NFProfile) {
			if n == 8 { // has another slice
				p.SNSSAIs = []sbi.Snssai{{SST: 2}}
			}
		})
	}
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	led := func(from, to int, flags uint8) (flow.Cookie, *flow.Decision) {
		t.Helper()
		frame := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, packet.IP{Src: netip.MustParseAddr(at(from)), Dst: netip.MustParseAddr(at(to))},
			packet.TCPFields{SrcPort: 40000, DstPort: 7777, Flags: flags, Seq: 7}, nil)
		in, d := wefttest.NewPacketIn(1, 3, frame), &flow.Decision{}
		in.Time, in.Table, in.Cookie = g.now.Load(), flow.TableProxy, flow.NewCookie(flow.OwnerSCP, 0, 0)
		if v := g.proxy.packet(in, d); v != flow.Next {
			t.Errorf("%d to %d: %v", from, to, v)
		}
		return in.Cookie, d
	}
	g.discover(1, sbi.AMF, sbi.UDM, "")
	g.discover(1, sbi.AMF, sbi.PCF, "")
	led(1, 5, packet.TCPSyn)
	before := g.proxy.index.Load()
	for _, of := range []string{"UDM", "PCF"} {
		g.policy(&api.ScpPolicy{Type: of, OwnAddress: "balance"})
	}
	x, d := g.proxy.index.Load(), &flow.Decision{}
	if x.close(before, []flow.DPID{1}, d); len(d.Flows) != 4 { // of two doors
		t.Errorf("pairs' entries: %v", d.Flows)
	}
	g.discover(11, "NSSF", sbi.UDM, "&target-nf-instance-id="+id(5))
	led(6, 2, packet.TCPSyn) // so that 2 may call back
	given, left := flow.OwnAddressCookie("scp-udm.7777"), flow.NewCookie(flow.OwnerSCP, 0, 0)
	for _, c := range []struct {
		what     string
		from, to int
		flags    uint8
		want     flow.Cookie
		entries  int
	}{
		{"a consumer's", 1, 5, packet.TCPSyn, given, 0},
		{"its next packet", 1, 5, packet.TCPAck, given, 0},
		{"a consumer's, at the other", 1, 6, packet.TCPSyn, given, 0},
		{"another consumer's", 4, 6, packet.TCPSyn, given, 0},
		{"an SCP's", 3, 5, packet.TCPSyn, left, 2},
		{"an SMF's callback", 2, 6, packet.TCPSyn, left, 2},
		{"an SMF's to the other", 2, 5, packet.TCPSyn, given, 0},
		{"a UDM's", 5, 6, packet.TCPSyn, left, 2},
		{"who has asked for one by its id", 11, 6, packet.TCPSyn, left, 2},
		{"a stranger's", 9, 5, packet.TCPSyn, left, 2},
		{"to producers that differ", 1, 7, packet.TCPSyn, left, 2},
	} {
		if cookie, d := led(c.from, c.to, c.flags); cookie != c.want || len(d.Flows) != c.entries || len(d.Outs) != 0 {
			t.Errorf("%s: %x with %d entries, want %x with %d", c.what, cookie, len(d.Flows), c.want, c.entries)
		}
	}
	g.proxy.serves(false, g.now.Load())
	if cookie, _ := led(4, 5, packet.TCPSyn); cookie != left {
		t.Errorf("the front does not serve: %x", cookie)
	}
	g.proxy.serves(true, g.now.Load())
	g.discover(4, sbi.AUSF, sbi.UDM, "&target-nf-set-id=set1.udmset.5gc.mnc001.mcc001")
	if cookie, _ := led(4, 5, packet.TCPSyn); cookie != left {
		t.Errorf("who has asked for a set: %x", cookie)
	}
	resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Type: "UDM"}, g.back)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range resp.Pairs {
		if p.Consumer == at(1) && p.Direct && p.Producer == at(6)+":7777" && p.Refused != 0 {
			t.Errorf("%v", p)
		}
	}
}
