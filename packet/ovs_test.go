package packet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestOpenVSwitchExtractsTheSame: Open vSwitch extracts from frames, good ones
// and spoilt ones, the fields that Parse does. Left out is where both are right
// in their own way: frames whose IP packet is cut off, of which Parse reads
// what is there and Open vSwitch nothing; more than two tags; RARP, which Open
// vSwitch reads as ARP; ARP operations above 255, which it has as 0; ICMP and
// ICMPv6 in the IP version that they are not for, and IGMP, whose type Open
// vSwitch has as a port.
func TestOpenVSwitchExtractsTheSame(t *testing.T) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Fatal("ovs-ofctl is not installed: apt-get install openvswitch-switch")
	}
	r := rand.New(rand.NewPCG(1, 2))
	good := frames()
	list := good
	for i := range 20000 {
		f := good[i%len(good)]
		b := bytes.Clone(f.frame)
		for range r.IntN(4) {
			b[r.IntN(min(len(b), 90))] = interesting[r.IntN(len(interesting))]
		}
		if r.IntN(4) == 0 {
			b = b[:ethernetLen+r.IntN(len(b)-ethernetLen)]
		}
		list = append(list, named{f.name + ", spoilt", b})
	}
	out, err := exec.Command("ovs-ofctl", "parse-pcap", writePcap(t, list)).Output()
	if err != nil {
		t.Fatalf("ovs-ofctl parse-pcap: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(list) {
		t.Fatalf("Open vSwitch tells of %d frames, want %d", len(lines), len(list))
	}
	compared, failed := 0, 0
	for i, line := range lines {
		var k flow.Key
		whole := Parse(list[i].frame, &k)
		var l layers
		locate(list[i].frame, &l)
		if !whole || l.tags > 2 || k.EthType == 0x8035 || k.ARPOp > 255 ||
			k.IPProto == 2 || k.IPProto == 1 && k.EthType == flow.EthTypeIPv6 || k.IPProto == 58 && k.EthType == flow.EthTypeIPv4 {
			continue
		}
		compared++
		if diff := differs(line, &k); diff != "" {
			if failed++; failed <= 10 {
				t.Errorf("%s: %s\nOpen vSwitch %s\nParse %+v\n%x", list[i].name, diff, line, k, list[i].frame)
			}
		}
	}
	t.Logf("%d frames compared, %d differ", compared, failed)
	if compared < 10000 {
		t.Errorf("only %d frames compared", compared)
	}
}

// interesting are octets that stand for something in some header.
var interesting = []byte{0, 1, 2, 4, 5, 6, 8, 17, 41, 43, 44, 50, 51, 58, 59, 60, 0x45, 0x46, 0x60, 0x81, 0x86, 0x88, 0xa8, 0xdd, 0x47,
	0xe7, 0xff, 132, 135, 136, 0x20, 0x40, 0x80}

// differs returns how a flow that Open vSwitch prints differs from k.
func differs(line string, k *flow.Key) string {
	ip4, ip6 := k.EthType == flow.EthTypeIPv4, k.EthType == flow.EthTypeIPv6
	num := func(v uint64) func(string) bool {
		return func(s string) bool { n, err := strconv.ParseUint(s, 0, 64); return err == nil && n == v }
	}
	str := func(v fmt.Stringer) func(string) bool {
		return func(s string) bool { return s == v.String() }
	}
	v4 := func(v [4]byte) func(string) bool { return str(netip.AddrFrom4(v)) }
	v6 := func(v [16]byte) func(string) bool {
		return func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.As16() == v }
	}
	checks := map[string]func(string) bool{
		"dl_src": str(k.EthSrc), "dl_dst": str(k.EthDst), "dl_type": num(uint64(k.EthType)),
		"dl_vlan": num(uint64(k.VLAN & 0xfff)), "dl_vlan_pcp": num(uint64(k.VLANPCP)),
		"arp_spa": v4(k.ARPSPA), "arp_tpa": v4(k.ARPTPA), "arp_op": num(uint64(k.ARPOp)),
		"arp_sha": str(k.ARPSHA), "arp_tha": str(k.ARPTHA),
		"nw_src": v4(k.IPv4Src), "nw_dst": v4(k.IPv4Dst), "nw_proto": num(uint64(k.IPProto)),
		"nw_tos": num(uint64(k.IPDSCP) << 2), "nw_ecn": num(uint64(k.IPECN)),
		"ipv6_src": v6(k.IPv6Src), "ipv6_dst": v6(k.IPv6Dst), "ipv6_label": num(uint64(k.IPv6Label)),
		"tp_src": num(uint64(k.TPSrc)), "tp_dst": num(uint64(k.TPDst)),
		"icmp_type": num(uint64(k.ICMPType)), "icmp_code": num(uint64(k.ICMPCode)),
		"nw_frag":   func(s string) bool { return s == [...]string{"no", "first", "", "later"}[k.IPFrag&3] },
		"nd_target": v6(k.NDTarget), "nd_sll": str(k.NDSLL), "nd_tll": str(k.NDTLL),
		"mpls_label": num(uint64(k.MPLSLabel)), "mpls_tc": num(uint64(k.MPLSTC)), "mpls_bos": num(uint64(k.MPLSBOS)), "mpls_ttl": num(uint64(k.MPLSTTL)),
	}
	is := func(ok bool, proto uint8) bool { return ok && k.IPProto == proto }
	words := map[string]bool{
		"arp": k.EthType == flow.EthTypeARP, "ip": ip4, "ipv6": ip6, "icmp": is(ip4, 1), "icmp6": is(ip6, 58),
		"tcp": is(ip4, 6), "tcp6": is(ip6, 6), "udp": is(ip4, 17), "udp6": is(ip6, 17), "sctp": is(ip4, 132), "sctp6": is(ip6, 132),
		"mpls": k.EthType == flow.EthTypeMPLS, "mplsm": k.EthType == flow.EthTypeMPLSMC,
	}
	seen := map[string]bool{}
	for _, item := range strings.Split(line, ",") {
		name, value, ok := strings.Cut(item, "=")
		seen[name] = true
		if ok {
			if check := checks[name]; check != nil && !check(value) {
				return item
			}
		} else if !words[name] {
			return item
		}
	}
	if seen["dl_vlan"] != (k.VLAN != 0) {
		return "a tag that only one sees"
	}
	if !seen["nd_target"] && k.NDTarget != [16]byte{} || !seen["arp_op"] && k.ARPOp != 0 || !seen["icmp_type"] && k.ICMPType != 0 ||
		!seen["tp_src"] && k.TPSrc != 0 {
		return "fields that only Parse sees"
	}
	return ""
}
