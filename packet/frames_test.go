package packet

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

var update = flag.Bool("update", false, "rewrite testdata")

var (
	macA = flow.MAC{2, 0, 0, 0, 0, 0xa}
	macB = flow.MAC{2, 0, 0, 0, 0, 0xb}
	ip4A = netip.MustParseAddr("10.0.0.1")
	ip4B = netip.MustParseAddr("10.0.0.2")
	ip6A = netip.MustParseAddr("fd00::a")
	ip6B = netip.MustParseAddr("fd00::b")
	llA  = netip.MustParseAddr("fe80::a")
	etAB = Ether{Dst: macB, Src: macA}
	v4   = IP{Src: ip4A, Dst: ip4B}
	v6   = IP{Src: ip6A, Dst: ip6B}
)

const vlan5 = flow.VLANPresent | 5

type named struct {
	name  string
	frame []byte
}

func tcp4() []byte {
	return AppendTCP(nil, etAB, IP{Src: ip4A, Dst: ip4B, DSCP: 46}, TCPFields{SrcPort: 1234, DstPort: 40008, Flags: TCPSyn}, nil)
}

// sctp4 returns an SCTP INIT over IPv4, for which there is no builder.
func sctp4() []byte {
	b := AppendEthernet(nil, etAB, flow.EthTypeIPv4)
	b = appendIP(b, v4, flow.IPProtoSCTP, 32)
	at := len(b)
	b = append(b, 0x12, 0x34, 0x0b, 0x59, 0, 0, 0, 0, 0, 0, 0, 0) // ports, tag, checksum
	b = append(b, 1, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 0, 1, 0, 1, 0, 0, 0, 1)
	sumSCTP(b[at:])
	return b
}

// ext6 returns a UDP datagram over IPv6 behind extension headers: pairs of
// number and the header's octets but the first.
func ext6(payload []byte, headers ...[]byte) []byte {
	var ext []byte
	udp := AppendUDP(nil, Ether{}, v6, 40004, 40005, payload)[ethernetLen+ipv6Len:]
	first := flow.IPProtoUDP
	for i := len(headers) - 1; i >= 0; i-- {
		h := append([]byte{first}, headers[i][1:]...)
		first = headers[i][0]
		ext = append(h, ext...)
	}
	b := AppendEthernet(nil, etAB, flow.EthTypeIPv6)
	b = appendIP(b, v6, first, len(ext)+len(udp))
	return append(append(b, ext...), udp...)
}

var (
	hdrHop   = []byte{extHopByHop, 0, 1, 4, 0, 0, 0, 0}
	hdrDest  = []byte{extDestOpts, 0, 1, 4, 0, 0, 0, 0}
	hdrRoute = []byte{extRouting, 2, 4, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}
	hdrFrag  = []byte{extFragment, 0, 0, 0, 0, 0, 0, 1} // atomic
)

// frames returns one frame of every builder and kind.
func frames() []named {
	nd := NDFields{SrcMAC: macA, SrcIP: ip6A, Target: ip6B}
	adv := NDFields{SrcMAC: macB, SrcIP: ip6B, DstMAC: macA, DstIP: ip6A, Target: ip6B, Router: true, Solicited: true, Override: true}
	arp := ARPFields{SenderMAC: macA, SenderIP: ip4A, TargetMAC: macB, TargetIP: ip4B}
	tagged := Ether{Dst: macB, Src: macA, VLAN: vlan5, PCP: 3}
	qinq, _ := Apply(AppendUDP(nil, tagged, v4, 40002, 40003, []byte("inner")), flow.PushVLAN(flow.EthTypeQinQ))
	qinq, _ = Apply(qinq, flow.SetVLAN(100))
	mpls, _ := Apply(tcp4(), flow.Action{Kind: flow.ActionPushMPLS, Arg: uint32(flow.EthTypeMPLS)})
	label := flow.Action{Kind: flow.ActionSetField, Field: flow.FieldMPLSLabel}
	binary.BigEndian.PutUint32(label.Value[:], 1000)
	mpls, _ = Apply(mpls, label)
	pbb, _ := Apply(tcp4(), flow.Action{Kind: flow.ActionPushPBB, Arg: uint32(flow.EthTypePBB)})
	ra := make([]byte, 12, 64)
	ra[0], ra[3] = 64, 100
	ra = append(ra, optSourceMAC, 1, 2, 0, 0, 0, 0, 0xa)
	ra = append(ra, optPrefix, 4, 64, 0xc0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0)
	prefix := netip.MustParseAddr("fd00:1::").As16()
	ra = append(ra, prefix[:]...)
	all := Ether{Dst: flow.MAC{0x33, 0x33, 0, 0, 0, 1}, Src: macA}
	reply := AppendDHCPv6(nil, DHCPv6Fields{Type: DHCPv6Reply, XID: 0xabcdef, ClientID: []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 0xb},
		ServerID:  []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 0xa},
		Addresses: []IAAddress{{7, netip.MustParseAddr("fd00::100"), 3600, 7200}, {8, netip.MustParseAddr("fd00::101"), 60, 120}}})
	relayed := AppendDHCPv6Relay(nil, DHCPv6RelayFields{Type: DHCPv6RelayReply, LinkAddress: ip6A, PeerAddress: llA}, reply)
	dhcp := DHCPv4Fields{XID: 0x12345678, ClientMAC: macB}
	discover, ack := dhcp, dhcp
	discover.Type, discover.RequestedIP = DHCPDiscover, ip4B
	ack.Type, ack.YourIP, ack.ServerID, ack.LeaseTime = DHCPAck, ip4B, ip4A, 3600
	ack.SubnetMask, ack.Router = netip.MustParseAddr("255.255.255.0"), ip4A
	snap := append(append(append([]byte{}, macB[:]...), macA[:]...), 0, 36, 0xaa, 0xaa, 3, 0, 0, 0, 8, 6)
	snap = append(snap, AppendARPRequest(nil, 0, arp)[ethernetLen:]...)
	return []named{
		{"arp request", Pad(AppendARPRequest(nil, 0, ARPFields{SenderMAC: macA, SenderIP: ip4A, TargetIP: ip4B}))},
		{"arp request tagged, unicast", AppendARPRequest(nil, vlan5, arp)},
		{"arp reply", AppendARPReply(nil, 0, arp)},
		{"arp over snap", snap},
		{"nd solicit", AppendNDSolicit(nil, 0, nd)},
		{"nd solicit, duplicate address detection", AppendNDSolicit(nil, 0, NDFields{SrcMAC: macA, SrcIP: netip.IPv6Unspecified(), Target: ip6B})},
		{"nd advert tagged", AppendNDAdvert(nil, vlan5, adv)},
		{"nd advert unsolicited", AppendNDAdvert(nil, 0, NDFields{SrcMAC: macB, SrcIP: ip6B, Target: ip6B, Override: true})},
		{"router solicit", AppendICMP(nil, all, IP{Src: llA, Dst: netip.IPv6LinkLocalAllRouters(), TTL: 255}, flow.ICMPv6RSolicit, 0, []byte{0, 0, 0, 0, optSourceMAC, 1, 2, 0, 0, 0, 0, 0xa})},
		{"router advert", AppendICMP(nil, all, IP{Src: llA, Dst: netip.IPv6LinkLocalAllNodes(), TTL: 255}, flow.ICMPv6RAdvert, 0, ra)},
		{"echo request v4", AppendICMPEcho(nil, etAB, v4, Echo{ID: 1, Seq: 2, Data: []byte("weft!")})},
		{"echo reply v6", AppendICMPEcho(nil, etAB, v6, Echo{Reply: true, ID: 1, Seq: 2, Data: []byte("weft!")})},
		{"tcp v4 syn", tcp4()},
		{"tcp v6", AppendTCP(nil, etAB, v6, TCPFields{SrcPort: 40006, DstPort: 40007, Flags: TCPPsh | TCPAck, Seq: 9, Ack: 8}, []byte("odd"))},
		{"udp v4 tagged", AppendUDP(nil, tagged, v4, 40000, 40001, []byte("odd"))},
		{"udp v6", AppendUDP(nil, etAB, v6, 40000, 40001, nil)},
		{"udp v4 qinq", qinq},
		{"udp v6 hop-by-hop, routing, destination options", ext6([]byte("x"), hdrHop, hdrRoute, hdrDest)},
		{"udp v6 atomic fragment", ext6([]byte("x"), hdrFrag)},
		{"sctp v4", sctp4()},
		{"mpls", mpls},
		{"pbb", pbb},
		{"dhcp discover", AppendDHCPv4(nil, Ether{Dst: flow.Broadcast, Src: macB}, IP{Src: netip.IPv4Unspecified(), Dst: netip.MustParseAddr("255.255.255.255")}, discover)},
		{"dhcp ack", AppendDHCPv4(nil, etAB, v4, ack)},
		{"dhcpv6 reply", AppendUDP(nil, etAB, v6, DHCPv6ServerPort, DHCPv6ClientPort, reply)},
		{"dhcpv6 relay-reply", AppendUDP(nil, etAB, v6, DHCPv6ServerPort, DHCPv6ServerPort, relayed)},
		{"lldp", AppendLLDP(nil, Ether{Dst: LLDPNearestBridge, Src: macA}, LLDPFields{
			ChassisSubtype: ChassisMAC, ChassisID: macA[:], PortSubtype: PortLocal, PortID: []byte("7"), TTL: 120, SystemName: "s1",
			Organization: []OrgTLV{{[3]byte{0x26, 0xe1, 0x57}, 1, []byte("signature")}}})},
	}
}

// TestGolden: the builders' frames are those in testdata/frames.txt, which
// TestTshark has found good.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, f := range frames() {
		fmt.Fprintf(&b, "%s\n%x\n", f.name, f.frame)
	}
	const file = "testdata/frames.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := 0; i < len(got) && i < len(old); i++ {
		if got[i] != old[i] {
			t.Fatalf("%s:%d\ngot  %s\nwant %s\n(-update accepts the change)", file, i+1, got[i], old[i])
		}
	}
	if len(got) != len(old) {
		t.Fatalf("%s has %d lines, want %d (-update accepts the change)", file, len(old), len(got))
	}
}
