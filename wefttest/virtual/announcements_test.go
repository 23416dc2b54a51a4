package virtual

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// announcements returns, by kind, the one frame that a station sends after it has moved.
func announcements(s, peer *station) map[string][]byte {
	group4 := func(last ...byte) packet.Ether {
		return packet.Ether{Src: s.mac, Dst: flow.MAC{1, 0, 0x5e, last[0], last[1], last[2]}}
	}
	group6 := func(last byte) packet.Ether {
		return packet.Ether{Src: s.mac, Dst: flow.MAC{0x33, 0x33, 0, 0, 0, last}}
	}
	at := netip.MustParseAddr
	v4 := func(dst string, ttl uint8) packet.IP { return packet.IP{Src: s.ip, Dst: at(dst), TTL: ttl} }
	v6 := func(dst string) packet.IP { return packet.IP{Src: s.linkLocal(), Dst: at(dst), TTL: 1} }
	own := func(dst flow.MAC, kind uint16, body ...byte) []byte {
		return packet.Pad(append(packet.AppendEthernet(nil, packet.Ether{Src: s.mac, Dst: dst}, kind), body...))
	}
	// protocol returns a datagram of a protocol: UDP with another number.
	protocol := func(e packet.Ether, ip packet.IP, number uint8) []byte {
		b := packet.AppendUDP(nil, e, ip, 0x1600, 0, make([]byte, 8))
		if ip.Src.Is6() {
			b[14+6] = number
			return b
		}
		b[14+9] = number
		b[14+10], b[14+11] = 0, 0
		var sum uint32
		for i := 14; i < 34; i += 2 {
			sum += uint32(b[i])<<8 | uint32(b[i+1])
		}
		sum = sum>>16 + sum&0xffff
		sum = ^(sum>>16 + sum)
		b[24], b[25] = byte(sum>>8), byte(sum)
		return b
	}
	listener := make([]byte, 20)
	copy(listener[4:], at("ff02::1:ff00:1").AsSlice())
	solicited := packet.Ether{Src: s.mac, Dst: flow.MAC{0x33, 0x33, 0xff, 0, 0, s.mac[5]}}
	unspecified := netip.IPv6Unspecified()
	rarp := append([]byte{0, 1, 8, 0, 6, 4, 0, 3}, s.mac[:]...)
	return map[string][]byte{
		"gratuitous ARP request": packet.Pad(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: s.mac, SenderIP: s.ip, TargetIP: s.ip})),
		"gratuitous ARP reply":   packet.Pad(packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: s.mac, SenderIP: s.ip, TargetMAC: flow.Broadcast, TargetIP: s.ip})),
		"ARP probe":              packet.Pad(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: s.mac, SenderIP: netip.IPv4Unspecified(), TargetIP: s.ip})),
		"RARP of a hypervisor":   own(flow.Broadcast, flow.EthTypeRARP, append(append(rarp, 0, 0, 0, 0), append(s.mac[:], 0, 0, 0, 0)...)...),
		"unsolicited advertisement": packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: s.mac, SrcIP: s.linkLocal(), DstMAC: flow.MAC{0x33, 0x33, 0, 0, 0, 1},
			DstIP: at("ff02::1"), Target: s.linkLocal(), Override: true}),
		"detection of duplicates": packet.AppendICMP(nil, solicited, packet.IP{Src: unspecified, Dst: at("ff02::1:ff00:1"), TTL: 255}, flow.ICMPv6Solicit, 0,
			append(make([]byte, 4), s.linkLocal().AsSlice()...)),
		"router solicitation": packet.AppendICMP(nil, group6(2), packet.IP{Src: unspecified, Dst: at("ff02::2"), TTL: 255}, flow.ICMPv6RSolicit, 0, make([]byte, 4)),
		"DHCPv4 discover": packet.AppendDHCPv4(nil, packet.Ether{Src: s.mac, Dst: flow.Broadcast}, packet.IP{Src: at("0.0.0.0"), Dst: at("255.255.255.255"), TTL: 64},
			packet.DHCPv4Fields{Type: packet.DHCPDiscover, ClientMAC: s.mac}),
		"DHCPv4 request": packet.AppendDHCPv4(nil, packet.Ether{Src: s.mac, Dst: flow.Broadcast}, packet.IP{Src: at("0.0.0.0"), Dst: at("255.255.255.255"), TTL: 64},
			packet.DHCPv4Fields{Type: packet.DHCPRequest, ClientMAC: s.mac, RequestedIP: s.ip}),
		"DHCPv6 solicit": packet.AppendUDP(nil, packet.Ether{Src: s.mac, Dst: flow.MAC{0x33, 0x33, 0, 1, 0, 2}}, v6("ff02::1:2"), 546, 547, []byte{1, 0, 0, 1}),

		"IGMPv2 report":        protocol(group4(1, 2, 3), v4("239.1.2.3", 1), 2),
		"IGMPv3 report":        protocol(group4(0, 0, 0x16), v4("224.0.0.22", 1), 2),
		"MLDv1 report":         packet.AppendICMP(nil, group6(1), v6("ff02::1:ff00:1"), 131, 0, listener),
		"MLDv2 report":         packet.AppendICMP(nil, group6(0x16), v6("ff02::16"), 143, 0, listener[:4]),
		"VRRP over IPv4":       protocol(group4(0, 0, 0x12), v4("224.0.0.18", 255), 112),
		"VRRP over IPv6":       protocol(group6(0x12), v6("ff02::12"), 112),
		"router advertisement": packet.AppendICMP(nil, group6(1), v6("ff02::1"), flow.ICMPv6RAdvert, 0, make([]byte, 12)),
		"EAPOL start":          own(flow.MAC{1, 0x80, 0xc2, 0, 0, 3}, flow.EthTypeEAPOL, 1, 1, 0, 0),
		"LLDP of a host": packet.AppendLLDP(nil, packet.Ether{Src: s.mac, Dst: packet.LLDPNearestBridge}, packet.LLDPFields{
			ChassisSubtype: packet.ChassisLocal, ChassisID: []byte("host"), PortSubtype: packet.PortLocal, PortID: []byte("eth0"), TTL: 120}),
		"XID of an access point": own(flow.Broadcast, 6, 0, 1, 0xaf, 0x81, 1, 0),
		"broadcast with SNAP":    own(flow.Broadcast, 8, 0xaa, 0xaa, 3, 0, 0, 0xc, 0, 1),
		"unicast":                s.echo(peer.mac, peer.ip, 1<<40, false),
	}
}

// bridgings returns frames of protocols between bridges that bear a station's address.
func bridgings(s *station) map[string][]byte {
	own := func(last byte, kind uint16, body ...byte) []byte {
		return packet.Pad(append(packet.AppendEthernet(nil, packet.Ether{Src: s.mac, Dst: flow.MAC{1, 0x80, 0xc2, 0, 0, last}}, kind), body...))
	}
	return map[string][]byte{
		"BPDU":  own(0, 38, 0x42, 0x42, 3),
		"pause": own(1, 0x8808, 0, 1),
		"LACP":  own(2, 0x8809, 1, 1),
	}
}

// TestAnnouncements: a host that has moved, while its former port stays up and silent, and
// says one thing is reached where it is now, whatever it says. What the switch floods by
// itself comes to all others once; frames between bridges move nobody.
func TestAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		cfg := oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
		a, b := w.addSwitchAs(cfg), w.addSwitchAs(cfg)
		w.addLink(a, b)
		peer, witness := w.addStation(a), w.addStation(a)
		type move struct {
			kind     string
			from, to *station
			bridging bool
		}
		var moves []move
		add := func(bridging bool, kinds []string) {
			for _, kind := range kinds {
				from, to := w.addStation(a), w.addStation(b)
				if kind == "VRRP over IPv4" {
					from.mac = flow.MAC{0, 0, 0x5e, 0, 1, 7}
				}
				to.mac, to.ip = from.mac, from.ip
				moves = append(moves, move{kind, from, to, bridging})
			}
		}
		add(false, sorted(announcements(peer, witness)))
		add(true, sorted(bridgings(peer)))
		if err := w.cluster.apply(ctx, layouts[0].with(w.chance)); err != nil {
			t.Fatal(err)
		}
		supervised, abandon := context.WithCancel(ctx)
		w.work.Go(func() { w.cluster.supervise(supervised) })
		defer func() {
			abandon()
			cancel()
			w.cluster.stop()
			w.work.Wait()
		}()
		for _, d := range w.devices {
			w.powerOn(ctx, d)
		}
		for _, m := range moves {
			if !m.from.ping(ctx, peer, w.number(), 30*time.Second) {
				t.Fatalf("%s: no answer\n%s", m.kind, w.logs.b.String())
			}
		}
		time.Sleep(5 * time.Second)
		for _, m := range moves {
			m.from.mu.Lock()
			m.from.mac, m.from.ip = flow.MAC{}, netip.Addr{} // silent
			m.from.mu.Unlock()
			frame := bridgings(m.to)[m.kind]
			if !m.bridging {
				frame = announcements(m.to, peer)[m.kind]
			}
			witness.Received()
			m.to.Send(frame)
			time.Sleep(3 * time.Second)
			if reached := peer.ping(ctx, m.to, w.number(), 2*time.Second); reached == m.bridging {
				t.Errorf("%s: reached %v where it is now", m.kind, reached)
			}
			times := 0
			for _, f := range witness.Received() {
				if string(f) == string(frame) {
					times++
				}
			}
			var k flow.Key
			packet.Parse(frame, &k)
			copied := slices.ContainsFunc(flow.Announcements(true), func(m flow.Match) bool { return m.Matches(&k) })
			if most := !k.EthDst.IsLinkLocal(); times > 1 || times > 0 && !most || times == 0 && most && copied {
				t.Errorf("%s: came to another host %d times", m.kind, times)
			}
		}
		resp, err := weft.Call(ctx, w.cluster.present().env, api.ListHosts, &api.ListHostsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range moves {
			for _, h := range resp.Hosts {
				if at := h.At.Flow(); h.Mac == m.to.mac.String() && (at.Switch == b.sw) == m.bridging {
					t.Errorf("%s: the host is at %v", m.kind, at)
				}
			}
		}
	})
}
