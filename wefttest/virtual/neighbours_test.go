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
	"github.com/weft-sdn/weft/packet"
)

// linkLocal and global return the IPv6 addresses of a station.
func (s *station) linkLocal() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 15: s.mac[5]})
}

func (s *station) global() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 15: s.mac[5]})
}

// arp returns a unicast ARP packet that says of a station that it has an address.
func arp(op uint16, from, to *station, ip netip.Addr, mac flow.MAC) []byte {
	f := packet.ARPFields{SenderMAC: from.mac, SenderIP: ip, TargetMAC: to.mac, TargetIP: to.ip}
	b := packet.AppendARPReply(nil, 0, f)
	if op == packet.ARPRequest {
		b = packet.AppendARPRequest(nil, 0, f)
	}
	copy(b[22:], mac[:])
	return packet.Pad(b)
}

// icmp6 returns a unicast message of neighbour discovery about an address; option
// 0 is none.
func icmp6(from, to *station, src, dst netip.Addr, kind uint8, about netip.Addr, option uint8, mac flow.MAC) []byte {
	body := make([]byte, 4, 28)
	if kind == flow.ICMPv6Advert {
		body[0] = 0x60 // solicited, override
	}
	if about.IsValid() {
		body = append(body, about.AsSlice()...)
	}
	if option != 0 {
		body = append(append(body, option, 1), mac[:]...)
	}
	return packet.AppendICMP(nil, packet.Ether{Dst: to.mac, Src: from.mac}, packet.IP{Src: src, Dst: dst, TTL: 255}, kind, 0, body)
}

// revalidations returns what two stations say to find that the other is still
// there, as Linux does: it asks from its link-local address, and its answers to
// unicast solicitations do not give its Ethernet address.
func revalidations(a, b *station) map[string][]byte {
	return map[string][]byte{
		"ARP request":          arp(packet.ARPRequest, a, b, a.ip, a.mac),
		"ARP reply":            arp(packet.ARPReply, a, b, a.ip, a.mac),
		"solicitation":         icmp6(a, b, a.global(), b.global(), flow.ICMPv6Solicit, b.global(), 1, a.mac),
		"of Linux":             icmp6(a, b, a.linkLocal(), b.global(), flow.ICMPv6Solicit, b.global(), 1, a.mac),
		"advertisement":        icmp6(a, b, a.global(), b.global(), flow.ICMPv6Advert, a.global(), 2, a.mac),
		"of Linux, global":     icmp6(a, b, a.global(), b.linkLocal(), flow.ICMPv6Advert, a.global(), 0, a.mac),
		"of Linux, link-local": icmp6(a, b, a.linkLocal(), b.linkLocal(), flow.ICMPv6Advert, a.linkLocal(), 0, a.mac),
	}
}

// forgeries returns what a thief says to poison what a victim knows of another
// station.
func forgeries(thief, victim, other *station) map[string][]byte {
	posed := &station{ip: thief.ip, mac: other.mac}
	return map[string][]byte{
		"request with the other's address":      arp(packet.ARPRequest, thief, victim, other.ip, thief.mac),
		"reply with the other's address":        arp(packet.ARPReply, thief, victim, other.ip, thief.mac),
		"reply with both of the other's":        arp(packet.ARPReply, thief, victim, other.ip, other.mac),
		"its own address at a third":            arp(packet.ARPReply, thief, victim, thief.ip, flow.MAC{2, 9, 9, 9, 9, 9}),
		"the other itself, at another port":     arp(packet.ARPReply, posed, victim, other.ip, other.mac),
		"solicitation from the other's address": icmp6(thief, victim, other.global(), victim.global(), flow.ICMPv6Solicit, victim.global(), 1, thief.mac),
		"from its own, with a third":            icmp6(thief, victim, thief.global(), victim.global(), flow.ICMPv6Solicit, victim.global(), 1, flow.MAC{2, 9, 9, 9, 9, 9}),
		"from the other's link-local":           icmp6(thief, victim, other.linkLocal(), victim.global(), flow.ICMPv6Solicit, victim.global(), 1, thief.mac),
		"advertisement of the other's":          icmp6(thief, victim, thief.global(), victim.global(), flow.ICMPv6Advert, other.global(), 2, thief.mac),
		"of the other's, without address":       icmp6(thief, victim, thief.global(), victim.global(), flow.ICMPv6Advert, other.global(), 0, thief.mac),
		"of its own, with a third":              icmp6(thief, victim, thief.global(), victim.global(), flow.ICMPv6Advert, thief.global(), 2, flow.MAC{2, 9, 9, 9, 9, 9}),
	}
}

// TestNeighbours: hosts that know each other over three switches find each other
// still there for an hour in which no controller runs, by ARP and by neighbour
// discovery. What would poison what they know does not get there, neither then nor
// while a controller runs, which hears of it.
func TestNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a, b, c := w.addSwitch(), w.addSwitch(), w.addSwitch()
		w.addLink(a, b)
		w.addLink(b, c)
		h1, h2, thief := w.addStation(a), w.addStation(c), w.addStation(a)
		if err := w.cluster.apply(ctx, layouts[0].with(w.chance)); err != nil {
			t.Fatal(err)
		}
		supervised, abandon := context.WithCancel(ctx)
		w.work.Go(func() { w.cluster.supervise(supervised) })
		for _, d := range w.devices {
			w.powerOn(ctx, d)
		}
		defer func() {
			cancel()
			w.cluster.stop()
			w.work.Wait()
		}()
		pairs := [][2]*station{{h1, h2}, {h2, h1}, {thief, h2}, {h2, thief}}
		for _, p := range pairs {
			if !p[0].ping(ctx, p[1], w.number(), 20*time.Second) {
				t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
			}
		}
		for _, s := range w.stations {
			router := &station{mac: flow.MAC{0x33, 0x33, 0, 0, 0, 2}}
			s.Send(icmp6(s, router, s.linkLocal(), netip.MustParseAddr("ff02::2"), flow.ICMPv6RSolicit, netip.Addr{}, 1, s.mac))
			s.Send(packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: s.mac, SrcIP: s.global(), Target: h1.global()}))
		}
		time.Sleep(5 * time.Second)
		says := func(s, to *station, frame []byte) (heard bool) {
			to.Received()
			s.Send(frame)
			time.Sleep(500 * time.Millisecond) // for what a controller hands on
			return slices.ContainsFunc(to.Received(), func(f []byte) bool { return slices.Equal(f, frame) })
		}
		talk := func(when string) {
			t.Helper()
			for _, p := range pairs {
				if !p[0].ping(ctx, p[1], w.number(), time.Second) {
					t.Errorf("%s: %s does not reach %s", when, p[0].name, p[1].name)
				}
				for what, frame := range revalidations(p[0], p[1]) {
					if !says(p[0], p[1], frame) {
						t.Errorf("%s: %s from %s does not reach %s", when, what, p[0].name, p[1].name)
					}
				}
			}
			for what, frame := range forgeries(thief, h2, h1) {
				if says(thief, h2, frame) {
					t.Errorf("%s: %s: reaches the victim", when, what)
				}
			}
		}
		refused := func() (n uint64) {
			resp, err := weft.Call(ctx, w.cluster.present().env, api.ListHosts, &api.ListHostsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range resp.Refused {
				n += k
			}
			return n
		}
		before := refused()
		talk("a controller runs")
		if n := refused() - before; n < uint64(len(forgeries(thief, h2, h1))) {
			t.Errorf("the controller has refused %d packets, want all forgeries", n)
		}
		if err := w.hosts(ctx, w.cluster.present()); err != nil {
			t.Error(err)
		}

		abandon()
		for _, p := range w.cluster.all() {
			w.cluster.kill(p)
		}
		for range 50 {
			time.Sleep(time.Minute)
			talk("none has run for " + time.Since(w.began).Truncate(time.Minute).String())
			if t.Failed() {
				t.Fatal(w.tables())
			}
		}
	})
}
