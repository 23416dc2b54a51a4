package packet

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
)

func TestParseTCP4(t *testing.T) {
	k := flow.Key{InPort: 3, Metadata: 7, TunnelID: 9, NDTarget: [16]byte{1}}
	if !Parse(tcp4(), &k) {
		t.Fatal("not whole")
	}
	want := flow.Key{InPort: 3, Metadata: 7, TunnelID: 9, EthDst: macB, EthSrc: macA, EthType: 0x0800, IPDSCP: 46,
		IPProto: 6, IPv4Src: [4]byte{10, 0, 0, 1}, IPv4Dst: [4]byte{10, 0, 0, 2}, TPSrc: 1234, TPDst: 40008}
	if k != want {
		t.Fatalf("got %+v\nwant %+v", k, want)
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	var k flow.Key
	for _, f := range frames() {
		if n := testing.AllocsPerRun(20, func() {
			Parse(f.frame, &k)
			ParseARP(f.frame)
			ParseND(f.frame)
			ParseTCP(f.frame)
			ParseDHCPv4(f.frame)
			ParseDHCPv6(f.frame)
			ParseLLDP(f.frame)
		}); n != 0 {
			t.Errorf("%s: %v allocations", f.name, n)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	nd := AppendNDSolicit(nil, 0, NDFields{SrcMAC: macA, SrcIP: ip6A, Target: ip6B})
	for name, frame := range map[string][]byte{
		"TCP4": tcp4(),
		"TCP6": AppendTCP(nil, etAB, IP{Src: ip6A, Dst: ip6B}, TCPFields{SrcPort: 1234, DstPort: 80}, nil),
		"ARP":  AppendARPRequest(nil, 0, ARPFields{SenderMAC: macA, SenderIP: ip4A, TargetIP: ip4B}),
		"ND":   nd,
	} {
		b.Run(name, func(b *testing.B) {
			var k flow.Key
			b.ReportAllocs()
			for b.Loop() {
				Parse(frame, &k)
			}
		})
	}
}

func BenchmarkParseEthernet(b *testing.B) {
	frame := tcp4()
	var k flow.Key
	b.ReportAllocs()
	for b.Loop() {
		ParseEthernet(frame, &k)
	}
}
