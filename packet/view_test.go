package packet

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// frame returns the frame of frames() with this name.
func frame(t *testing.T, name string) []byte {
	t.Helper()
	for _, f := range frames() {
		if f.name == name {
			return f.frame
		}
	}
	t.Fatalf("no frame %q", name)
	return nil
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestARPView(t *testing.T) {
	a, ok := ParseARP(frame(t, "arp request tagged, unicast"))
	if !ok {
		t.Fatal("no ARP")
	}
	equal(t, "op", a.Op(), ARPRequest)
	equal(t, "sender", a.SenderMAC(), macA)
	equal(t, "sender address", a.SenderIP(), ip4A)
	equal(t, "target", a.TargetMAC(), flow.MAC{})
	equal(t, "target address", a.TargetIP(), ip4B)
	b := AppendARPReply(nil, 0, ARPFields{SenderMAC: macA})
	b[ethernetLen+4] = 8 // hardware address length
	if _, ok := ParseARP(b); ok {
		t.Error("ARP for 8-octet addresses is taken for Ethernet's")
	}
}

func TestNDView(t *testing.T) {
	nd, ok := ParseND(frame(t, "nd solicit"))
	if !ok {
		t.Fatal("no ND")
	}
	mac, has := nd.SourceMAC()
	equal(t, "source", mac, macA)
	equal(t, "has source", has, true)
	equal(t, "target", nd.Target(), ip6B)
	nd, ok = ParseND(frame(t, "nd advert tagged"))
	mac, _ = nd.TargetMAC()
	equal(t, "advert", ok, true)
	equal(t, "target", mac, macB)
	equal(t, "router", nd.Router(), true)
	equal(t, "solicited", nd.Solicited(), true)
	equal(t, "override", nd.Override(), true)
	nd, ok = ParseND(frame(t, "nd solicit, duplicate address detection"))
	_, has = nd.SourceMAC()
	equal(t, "DAD", ok, true)
	equal(t, "DAD has source", has, false)
	nd, ok = ParseND(frame(t, "router advert"))
	equal(t, "router advert", ok, true)
	equal(t, "lifetime", nd.RouterLifetime(), 100)
	equal(t, "prefixes", slices.Equal(nd.Prefixes(nil), []netip.Prefix{netip.MustParsePrefix("fd00:1::/64")}), true)
	equal(t, "target of a router", nd.Target(), netip.Addr{})
	nd, ok = ParseND(frame(t, "router solicit"))
	mac, _ = nd.SourceMAC()
	equal(t, "router solicit", ok, true)
	equal(t, "source", mac, macA)
}

// TestNDRefused: RFC 4861 §7.1 has these dropped.
func TestNDRefused(t *testing.T) {
	good := frame(t, "nd solicit")
	for name, change := range map[string]func([]byte) []byte{
		"hop limit 254":          func(b []byte) []byte { b[ethernetLen+7] = 254; return b },
		"wrong checksum":         func(b []byte) []byte { b[ethernetLen+ipv6Len+2] ^= 1; return b },
		"another target":         func(b []byte) []byte { b[ethernetLen+ipv6Len+23] ^= 1; return b },
		"cut off":                func(b []byte) []byte { return b[:len(b)-1] },
		"option of length zero":  func(b []byte) []byte { b[ethernetLen+ipv6Len+ndLen+1] = 0; return b },
		"option beyond the end":  func(b []byte) []byte { b[ethernetLen+ipv6Len+ndLen+1] = 2; return b },
		"code 1":                 func(b []byte) []byte { b[ethernetLen+ipv6Len+1] = 1; return b },
		"an echo":                func([]byte) []byte { return frame(t, "echo reply v6") },
		"a message over version": func(b []byte) []byte { b[ethernetLen] = 0x40; return b },
	} {
		if _, ok := ParseND(change(bytes.Clone(good))); ok {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDHCPViews(t *testing.T) {
	d, ok := ParseDHCPv4(frame(t, "dhcp ack"))
	if !ok {
		t.Fatal("no DHCP")
	}
	equal(t, "type", d.Type(), DHCPAck)
	equal(t, "reply", d.Reply(), true)
	equal(t, "xid", d.XID(), 0x12345678)
	equal(t, "client", d.ClientMAC(), macB)
	equal(t, "address", d.YourIP(), ip4B)
	equal(t, "lease", d.LeaseTime(), 3600)
	server, _ := d.ServerID()
	equal(t, "server", server, ip4A)
	d, ok = ParseDHCPv4(frame(t, "dhcp discover"))
	requested, _ := d.RequestedIP()
	equal(t, "discover", ok, true)
	equal(t, "requested", requested, ip4B)
	equal(t, "reply", d.Reply(), false)
	equal(t, "relay", d.RelayIP(), netip.IPv4Unspecified())

	for _, name := range []string{"dhcpv6 reply", "dhcpv6 relay-reply"} {
		d, ok := ParseDHCPv6(frame(t, name))
		m, client, ok2 := d.Message()
		if !ok || !ok2 {
			t.Fatalf("%s: not found", name)
		}
		equal(t, name+": type", m.Type(), DHCPv6Reply)
		equal(t, name+": xid", m.XID(), 0xabcdef)
		if d.Relayed() {
			equal(t, "client", client, llA)
			equal(t, "link", d.LinkAddress(), ip6A)
			equal(t, "no address outside", len(d.Addresses(nil)), 0)
		}
		want := []IAAddress{{7, netip.MustParseAddr("fd00::100"), 3600, 7200}, {8, netip.MustParseAddr("fd00::101"), 60, 120}}
		if got := m.Addresses(nil); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
		duid, _ := m.Option(DHCPv6OptClientID)
		equal(t, "client id", len(duid), 10)
	}
}

func TestLLDPView(t *testing.T) {
	b := frame(t, "lldp")
	u, ok := ParseLLDP(b)
	if !ok {
		t.Fatal("no LLDP")
	}
	kind, id := u.ChassisID()
	equal(t, "chassis", kind, ChassisMAC)
	equal(t, "chassis", flow.MAC(id), macA)
	kind, id = u.PortID()
	equal(t, "port", kind, PortLocal)
	equal(t, "port", string(id), "7")
	equal(t, "ttl", u.TTL(), 120)
	v, ok := u.Organization([3]byte{0x26, 0xe1, 0x57}, 1)
	equal(t, "organization", string(v), "signature")
	equal(t, "found", ok, true)
	_, ok = u.Organization([3]byte{0x26, 0xe1, 0x57}, 2)
	equal(t, "found", ok, false)
	v, _ = u.Find(TLVSystemName)
	equal(t, "name", string(v), "s1")
	n := 0
	for range u.All {
		n++
	}
	equal(t, "TLVs", n, 5)
	if got, ok := ParseLLDP(Pad(b)); !ok || !bytes.Equal(got, u) {
		t.Error("padding is part of the data unit")
	}
}

// TestCVE_2025_29310_LLDPWrongEnd: an LLDP data unit whose end, order or
// lengths are wrong is refused and nothing else happens.
func TestCVE_2025_29310_LLDPWrongEnd(t *testing.T) {
	unit := func(tlvs ...[]byte) []byte {
		return append(AppendEthernet(nil, Ether{Dst: LLDPNearestBridge, Src: macA}, flow.EthTypeLLDP), bytes.Join(tlvs, nil)...)
	}
	chassis, port, ttl := []byte{2, 2, 7, 1}, []byte{4, 2, 7, 1}, []byte{6, 2, 0, 120}
	for name, b := range map[string][]byte{
		"end with a value":        unit(chassis, port, ttl, []byte{0, 2, 1, 1}),
		"end cut off":             unit(chassis, port, ttl, []byte{0}),
		"end of length 511":       unit(chassis, port, ttl, []byte{1, 0xff}),
		"end first":               unit([]byte{0, 0}, chassis, port, ttl),
		"end before ttl":          unit(chassis, port, []byte{0, 0}),
		"nothing":                 unit(),
		"port before chassis":     unit(port, chassis, ttl),
		"chassis twice":           unit(chassis, chassis, port, ttl),
		"chassis again later":     unit(chassis, port, ttl, chassis),
		"empty chassis":           unit([]byte{2, 0}, port, ttl),
		"chassis without an id":   unit([]byte{2, 1, 7}, port, ttl),
		"ttl of one octet":        unit(chassis, port, []byte{6, 1, 0}),
		"value cut off":           unit(chassis, port, ttl, []byte{10, 200, 1}),
		"organization too short":  unit(chassis, port, ttl, []byte{254, 3, 0, 0, 0}),
		"organization cut off":    unit(chassis, port, ttl, []byte{254, 5, 0, 0}),
		"another TLV among three": unit(chassis, []byte{10, 1, 1}, port, ttl),
	} {
		if _, ok := ParseLLDP(b); ok {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, ok := ParseLLDP(unit(chassis, port, ttl)); !ok {
		t.Error("a data unit without end TLV is refused")
	}
}

func TestTransportViews(t *testing.T) {
	tcp, ok := ParseTCP(frame(t, "tcp v6"))
	if !ok {
		t.Fatal("no TCP")
	}
	equal(t, "port", tcp.DstPort(), 40007)
	equal(t, "seq", tcp.Seq(), 9)
	equal(t, "ack", tcp.Ack(), 8)
	equal(t, "flags", tcp.Flags(), TCPPsh|TCPAck)
	equal(t, "payload", string(tcp.Payload()), "odd")
	udp, ok := ParseUDP(frame(t, "udp v4 qinq"))
	equal(t, "udp", ok, true)
	equal(t, "payload", string(udp.Payload()), "inner")
	echo, ok := ParseICMP(Pad(frame(t, "echo request v4")))
	equal(t, "echo", ok, true)
	equal(t, "id", echo.EchoID(), 1)
	equal(t, "seq", echo.EchoSeq(), 2)
	equal(t, "payload without padding", string(echo.Payload()), "weft!")
	ip, ok := ParseIPv4(frame(t, "tcp v4 syn"))
	equal(t, "ip", ok, true)
	equal(t, "ttl", ip.TTL(), 64)
	equal(t, "dscp", ip.DSCP(), 46)
	equal(t, "checksum", ip.ChecksumGood(), true)
	equal(t, "length", ip.TotalLen(), 40)
	equal(t, "src", ip.Src(), ip4A)
	if _, ok := ParseTCP(frame(t, "udp v6")); ok {
		t.Error("UDP is taken for TCP")
	}
}

func TestTags(t *testing.T) {
	got := Tags(nil, frame(t, "udp v4 qinq"))
	want := []Tag{{flow.EthTypeQinQ, 100, 3, false}, {flow.EthTypeVLAN, 5, 3, false}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBuildersDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		AppendARPReply(buf, 0, ARPFields{SenderMAC: macA, SenderIP: ip4A, TargetMAC: macB, TargetIP: ip4B})
		AppendNDAdvert(buf, vlan5, NDFields{SrcMAC: macA, SrcIP: ip6A, Target: ip6B})
		AppendNDSolicit(buf, 0, NDFields{SrcMAC: macA, SrcIP: ip6A, Target: ip6B})
		AppendTCP(buf, etAB, v4, TCPFields{}, nil)
		AppendUDP(buf, etAB, v6, 1, 2, nil)
		AppendICMPEcho(buf, etAB, v4, Echo{})
		AppendLLDP(buf, etAB, LLDPFields{ChassisID: macA[:], PortID: macA[:], Organization: []OrgTLV{{}}})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendARPReply(b *testing.B) {
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		AppendARPReply(buf, 0, ARPFields{SenderMAC: macA, SenderIP: ip4A, TargetMAC: macB, TargetIP: ip4B})
	}
}

func BenchmarkParseLLDP(b *testing.B) {
	frame := AppendLLDP(nil, etAB, LLDPFields{ChassisID: macA[:], PortID: macA[:], Organization: []OrgTLV{{Value: make([]byte, 40)}}})
	b.ReportAllocs()
	for b.Loop() {
		if u, ok := ParseLLDP(frame); !ok || u.TTL() != 0 {
			b.Fatal("no LLDP")
		}
	}
}
