package hosts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

func TestLearnAndLookUp(t *testing.T) {
	r := newRig(t, nil)
	in := r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	if in.Src != at(1, 1) || in.Dst != (flow.Location{}) {
		t.Errorf("src %v, dst %v", in.Src, in.Dst)
	}
	r.wantChanges("learnt 02:00:00:00:00:01 " + at(1, 1).String())
	in = r.accept(at(2, 3), arpReply(mac(2), "10.0.0.2", mac(1), "10.0.0.1"))
	if in.Src != at(2, 3) || in.Dst != at(1, 1) || in.DstMAC != mac(1) {
		t.Errorf("src %v, dst %v, dst mac %v", in.Src, in.Dst, in.DstMAC)
	}
	in = r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	if in.Dst != at(2, 3) || in.DstMAC != mac(2) {
		t.Errorf("ARP request for a known host: dst %v, mac %v", in.Dst, in.DstMAC)
	}
	gateway := flow.MAC{2, 9, 9, 9, 9, 9}
	in = r.accept(at(1, 1), udp(mac(1), gateway, "10.0.0.1", "10.0.0.2"))
	if in.Dst != at(2, 3) || in.DstMAC != mac(2) {
		t.Errorf("through a router: dst %v, mac %v", in.Dst, in.DstMAC)
	}
	r.roles[at(2, 9)] = flow.RoleLink // the same packet, one switch on
	in = r.accept(at(2, 9), udp(mac(1), mac(2), "10.0.0.1", "10.0.0.2"))
	if in.Src != at(1, 1) || in.Dst != at(2, 3) {
		t.Errorf("on a link: src %v, dst %v", in.Src, in.Dst)
	}
	r.wantAt(mac(1), at(1, 1))
}

func TestIPv6(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), solicit(mac(1), "::", "fe80::1")) // duplicate address detection: no claim yet
	if h := r.host(newID(mac(1), 0)); len(h.addresses) != 0 {
		t.Errorf("addresses %v after duplicate address detection", h.addresses)
	}
	r.accept(at(1, 1), advert(mac(1), "fe80::1"))
	r.accept(at(1, 1), advert(mac(1), "2001:db8::1"))
	r.changes()
	in := r.accept(at(2, 1), solicit(mac(2), "fe80::2", "2001:db8::1"))
	if in.Dst != at(1, 1) || in.DstMAC != mac(1) {
		t.Errorf("solicitation: dst %v, mac %v", in.Dst, in.DstMAC)
	}
	h, err := r.find("2001:db8::1", -1)
	if err != nil || !slices.Equal(h.Ipv6, []string{"fe80::1", "2001:db8::1"}) {
		t.Errorf("%v, %v", h, err)
	}
}

func TestVLANsAreApart(t *testing.T) {
	r := newRig(t, nil)
	tagged := func(vid uint16, m flow.MAC, addr string) []byte {
		return packet.AppendARPRequest(nil, flow.VLANPresent|vid, packet.ARPFields{SenderMAC: m, SenderIP: ip(addr), TargetIP: ip("10.0.0.9")})
	}
	r.accept(at(1, 1), tagged(10, mac(1), "10.0.0.1"))
	r.accept(at(2, 1), tagged(20, mac(1), "10.0.0.1"))
	r.accept(at(3, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.accept(at(3, 1), tagged(0, mac(1), "10.0.0.1")) // a priority tag is none
	if n := len(r.list().Hosts); n != 3 {
		t.Fatalf("%d hosts, want one in each VLAN", n)
	}
	for vlan, sw := range map[int32]flow.DPID{10: 1, 20: 2, 0: 3} {
		if h, err := r.find("10.0.0.1", vlan); err != nil || h.At.Flow().Switch != sw {
			t.Errorf("VLAN %d: %v, %v", vlan, h, err)
		}
	}
	in := r.accept(at(4, 1), packet.AppendARPRequest(nil, flow.VLANPresent|20, packet.ARPFields{SenderMAC: mac(7), SenderIP: ip("10.0.0.7"), TargetIP: ip("10.0.0.1")}))
	if in.Dst != at(2, 1) {
		t.Errorf("ARP in VLAN 20 finds %v", in.Dst)
	}
}

func TestDataTeachesNoAddress(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), udp(mac(1), mac(2), "192.0.2.1", "10.0.0.2")) // routed, for all we know
	if h := r.host(newID(mac(1), 0)); len(h.addresses) != 0 {
		t.Errorf("addresses %v from a data packet", h.addresses)
	}
}

func TestDHCP(t *testing.T) {
	r := newRig(t, nil)
	server, client := mac(9), mac(1)
	r.accept(at(2, 1), arpRequest(server, "10.0.0.254", "10.0.0.1"))
	discover := packet.AppendDHCPv4(nil, packet.Ether{Src: client, Dst: flow.Broadcast}, packet.IP{Src: ip("0.0.0.0"), Dst: ip("255.255.255.255"), TTL: 64},
		packet.DHCPv4Fields{Type: packet.DHCPDiscover, ClientMAC: client})
	r.accept(at(1, 1), discover)
	answer := func(kind uint8) []byte {
		return packet.AppendDHCPv4(nil, packet.Ether{Src: server, Dst: client}, packet.IP{Src: ip("10.0.0.254"), Dst: ip("10.0.0.1"), TTL: 64},
			packet.DHCPv4Fields{Type: kind, ClientMAC: client, YourIP: ip("10.0.0.1"), ServerID: ip("10.0.0.254")})
	}
	r.accept(at(2, 1), answer(packet.DHCPOffer))
	if r.holder(ip("10.0.0.1"), 0) != nil {
		t.Error("an offer is taken for an acknowledgement")
	}
	r.accept(at(2, 1), answer(packet.DHCPAck))
	if h := r.holder(ip("10.0.0.1"), 0); h == nil || h.id.mac() != client {
		t.Errorf("10.0.0.1 is %v", h)
	}
	reply := packet.AppendUDP(nil, packet.Ether{Src: server, Dst: client}, packet.IP{Src: ip("fe80::9"), Dst: ip("fe80::1"), TTL: 64},
		packet.DHCPv6ServerPort, packet.DHCPv6ClientPort, packet.AppendDHCPv6(nil, packet.DHCPv6Fields{Type: packet.DHCPv6Reply,
			Addresses: []packet.IAAddress{{Addr: ip("2001:db8::5"), Valid: 100}, {Addr: ip("2001:db8::6"), Valid: 0}}}))
	r.accept(at(2, 1), reply)
	if h := r.holder(ip("2001:db8::5"), 0); h == nil || h.id.mac() != client {
		t.Errorf("2001:db8::5 is %v", h)
	}
	if r.holder(ip("2001:db8::6"), 0) != nil {
		t.Error("an address that is taken away is bound")
	}
}

func TestUnsettledAndBlockedPorts(t *testing.T) {
	r := newRig(t, nil)
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.2")
	r.roles[at(1, 1)] = flow.RoleUnsettled
	r.refusedAs(unsettled, at(1, 1), frame)
	r.roles[at(1, 1)] = flow.RoleBlocked
	r.refusedAs(blocked, at(1, 1), frame)
	r.roles[at(1, 1)] = flow.RoleLink
	if in := r.accept(at(1, 1), frame); in.Src != (flow.Location{}) || r.tally.n[onLink].Load() != 1 {
		t.Errorf("unknown sender on a link is at %v, %v", in.Src, r.tally.list())
	}
	r.wantAt(mac(1), flow.Location{})
}

// TestTunnelFrames: a labelled frame of a tunnel that meets a switch without the entries
// (one that has just come back) makes no host of the tunnel's address, and goes no further,
// whatever is known of the port. Labelled frames of hosts are as other frames.
func TestTunnelFrames(t *testing.T) {
	r := newRig(t, nil)
	labelled := func(src flow.MAC) []byte {
		frame := packet.AppendEthernet(nil, packet.Ether{Src: src, Dst: flow.TunnelMAC(1, 1)}, flow.EthTypeMPLS)
		return append(frame, 0, 1, 0x81, 64, 1, 2, 3, 4, 5, 6, 7, 8)
	}
	for _, role := range []flow.PortRole{flow.RoleEdge, flow.RoleLink, flow.RoleUnsettled} {
		r.roles[at(1, 1)] = role
		r.refusedAs(tunnel, at(1, 1), labelled(flow.TunnelMAC(2, 2)))
	}
	r.wantAt(flow.TunnelMAC(2, 2), flow.Location{})
	r.roles[at(1, 1)] = flow.RoleEdge
	r.accept(at(1, 1), labelled(mac(1)))
	r.wantAt(mac(1), at(1, 1))
}

func TestPortDownAndSwitchGone(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.accept(at(2, 1), arpRequest(mac(2), "10.0.0.2", "10.0.0.9"))
	r.accept(at(3, 1), arpRequest(mac(3), "10.0.0.3", "10.0.0.9"))
	r.changes()
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.switchChanged(r.now, 2, false, nil)
	r.roleChanged(r.now, at(3, 1), "link")
	r.wantChanges("gone 02:00:00:00:00:03 " + at(3, 1).String())
	r.run(9*time.Second, nil)
	r.wantChanges()
	r.run(2*time.Second, nil)
	r.wantChanges("gone 02:00:00:00:00:01 " + at(1, 1).String())
	r.run(time.Minute, nil)
	r.wantChanges("gone 02:00:00:00:00:02 " + at(2, 1).String())
	if len(r.list().Hosts) != 0 || r.holder(ip("10.0.0.1"), 0) != nil {
		t.Errorf("left: %v", r.list())
	}
	// a port back in time keeps its hosts
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.changes()
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.run(5*time.Second, nil)
	r.portChanged(r.now, 1, portMsg(1, 1, true), false)
	r.run(time.Minute, nil)
	r.wantChanges()
}

func TestAgeing(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Age = 10 * time.Second })
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.accept(at(2, 1), arpRequest(mac(2), "10.0.0.2", "10.0.0.9"))
	r.accept(at(3, 1), advert(mac(3), "2001:db8::3"))
	r.changes()
	one, three := r.alive(mac(1), at(1, 1), "10.0.0.1"), r.alive(mac(3), at(3, 1), "2001:db8::3")
	asked := 0
	r.run(11*time.Second, func(to flow.Location, f []byte) {
		asked++
		one(to, f)
		three(to, f)
	})
	r.wantChanges("gone 02:00:00:00:00:02 " + at(2, 1).String())
	if asked != 8 {
		t.Errorf("%d questions, want two each to two hosts, when they are new and when they age, and four to the one that is gone", asked)
	}
	r.run(11*time.Second, nil)
	if n := len(r.changes()); n != 2 {
		t.Errorf("%d hosts gone, want the other two", n)
	}
}

func TestMoves(t *testing.T) {
	r := newRig(t, nil)
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.accept(at(1, 1), frame)
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.accept(at(2, 2), frame) // the old port is down: at once
	r.wantAt(mac(1), at(2, 2))
	r.changes()

	r.run(3*time.Second, r.alive(mac(1), at(2, 2), "10.0.0.1"))
	r.refusedAs(unverified, at(3, 3), frame) // the old port is up: both are asked first
	if len(r.asked.Outs) != 2 || r.asked.Ops[0].Switch != 2 || r.asked.Ops[1].Switch != 3 {
		t.Fatalf("asked %+v", r.asked.Ops)
	}
	again := 0
	there := r.responds(mac(1), at(3, 3), "10.0.0.1")
	r.answerNow(there)
	r.run(400*time.Millisecond, func(to flow.Location, f []byte) { again++; there(to, f) })
	r.wantAt(mac(1), at(3, 3)) // it has answered before, and now only there
	if again != 2 {
		t.Errorf("asked %d times more, want 2", again)
	}
	r.wantClaims()
	r.wantChanges("moved 02:00:00:00:00:01 " + at(3, 3).String())
	if e := r.events[len(r.events)-1]; e.From.Flow() != at(2, 2) || e.Host.Moves != 2 {
		t.Errorf("event %v", e)
	}
}

func TestTooManyMoves(t *testing.T) {
	r := newRig(t, nil)
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.accept(at(1, 1), frame)
	for i := range flow.Port(5) {
		r.portChanged(r.now, 1, portMsg(1, i+1, false), false)
		r.accept(at(1, i+2), frame)
		r.now += int64(time.Second)
	}
	r.portChanged(r.now, 1, portMsg(1, 6, false), false)
	r.refusedAs(quarantined, at(1, 7), frame)
	r.refusedAs(quarantined, at(1, 7), frame)
	r.wantAt(mac(1), at(1, 6))
	r.now += int64(DefaultConfig().Quarantine)
	r.accept(at(1, 7), frame)
	r.wantAt(mac(1), at(1, 7))
}

func TestEventsAreMergedNeverLost(t *testing.T) {
	r := newRig(t, nil)
	for i := range byte(200) {
		r.accept(at(1, 1), arpRequest(mac(i), "10.0.0."+itoa(i+1), "10.0.1.1"))
	}
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.accept(at(2, 1), arpRequest(mac(0), "10.0.0.1", "10.0.1.1"))
	r.run(11*time.Second, nil)
	r.wantChanges("learnt 02:00:00:00:00:00 " + at(2, 1).String())
	r.accept(at(2, 1), advert(mac(0), "fe80::9"))
	r.wantChanges("addresses 02:00:00:00:00:00 " + at(2, 1).String())
	r.roleChanged(r.now, at(2, 1), "link")
	r.roleChanged(r.now, at(2, 1), "edge")
	r.accept(at(2, 1), advert(mac(0), "fe80::9"))
	r.wantChanges("gone 02:00:00:00:00:00 "+at(2, 1).String(), "learnt 02:00:00:00:00:00 "+at(2, 1).String())
}

func itoa(b byte) string {
	return strings.TrimLeft(string([]byte{'0' + b/100, '0' + b/10%10}), "0") + string('0'+b%10)
}

func TestFind(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	for _, a := range []string{"10.0.0.1", "::ffff:10.0.0.1", "02:00:00:00:00:01", "02:00:00:00:00:01"} {
		if h, err := r.find(a, -1); err != nil || h.Mac != mac(1).String() {
			t.Errorf("%s: %v, %v", a, h, err)
		}
	}
	if _, err := r.find("10.0.0.7", -1); err == nil || err.Error() != "host 10.0.0.7: not known" {
		t.Errorf("got %v", err)
	}
	if _, err := r.find("elsewhere", -1); err == nil || !strings.Contains(err.Error(), "want an Ethernet") {
		t.Errorf("got %v", err)
	}
	if _, err := r.find("10.0.0.1", 5); err == nil {
		t.Error("found in a VLAN where it is not")
	}
}

// TestReplacedSwitch shows that hosts are not taken to live on a port that is
// another device since its switch has returned.
func TestReplacedSwitch(t *testing.T) {
	r := newRig(t, nil)
	connect := func(macs ...byte) {
		var ports []*api.Port
		for i, m := range macs {
			msg := portMsg(1, flow.Port(i+1), true)
			msg.Mac = mac(m).String()
			ports = append(ports, msg)
		}
		r.switchChanged(r.now, 1, true, ports)
	}
	connect(101, 102)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.accept(at(1, 2), arpRequest(mac(2), "10.0.0.2", "10.0.0.1"))
	r.switchChanged(r.now, 1, false, nil)
	connect(103, 102)
	r.wantAt(mac(1), flow.Location{}) // its port was replaced
	r.wantAt(mac(2), at(1, 2))
}

// TestForgetSwitch shows that the hosts at a forgotten switch are given up, and
// learnt again where they are heard.
func TestForgetSwitch(t *testing.T) {
	r := newRig(t, nil)
	r.switchChanged(r.now, 1, true, []*api.Port{portMsg(1, 1, true)})
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.accept(at(2, 1), arpRequest(mac(2), "10.0.0.2", "10.0.0.1"))
	r.forgetSwitch(1)
	r.wantAt(mac(1), flow.Location{})
	r.wantAt(mac(2), at(2, 1))
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.wantAt(mac(1), at(1, 1))
	r.switchChanged(r.now, 1, false, nil)
	r.forgetSwitch(1)
	r.wantAt(mac(1), flow.Location{})
	if r.places.switches[1] != nil {
		t.Error("the switch is known")
	}
}

// TestEndsOfCircuits: who is behind the end of a circuit is no host, of the port or of a VLAN
// there: those that were are forgotten, and others are not learnt, until the circuit is gone.
func TestEndsOfCircuits(t *testing.T) {
	r := newRig(t, nil)
	tag := func(frame []byte, vlan byte) []byte {
		return slices.Concat(frame[:12], []byte{0x81, 0, 0, vlan}, frame[12:])
	}
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.accept(at(1, 1), frame)
	r.accept(at(1, 3), tag(arpRequest(mac(3), "10.0.0.3", "10.0.0.9"), 7))
	r.accept(at(1, 3), tag(arpRequest(mac(4), "10.0.0.4", "10.0.0.9"), 8))
	r.changes()
	for _, port := range []flow.Port{1, 2} {
		r.setCircuitEnd(at(1, port), 0, true)
	}
	r.wantChanges("gone 02:00:00:00:00:01 " + at(1, 1).String())
	r.setCircuitEnd(at(1, 3), 7, true)
	r.wantChanges("gone 02:00:00:00:00:03 " + at(1, 3).String())
	r.refusedAs(blocked, at(1, 1), frame)
	r.refusedAs(blocked, at(1, 2), tag(frame, 5))
	r.refusedAs(blocked, at(1, 3), tag(frame, 7))
	r.wantAt(mac(1), flow.Location{})
	r.accept(at(1, 3), tag(arpRequest(mac(5), "10.0.0.5", "10.0.0.9"), 8))
	r.setCircuitEnd(at(1, 1), 0, false)
	r.accept(at(1, 1), frame)
	r.wantAt(mac(1), at(1, 1))
}
