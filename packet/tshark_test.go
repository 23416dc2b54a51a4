package packet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// writePcap writes frames as a capture file and returns its path.
func writePcap(t *testing.T, list []named) string {
	t.Helper()
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for i, f := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f.frame)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f.frame)))
		b = append(b, f.frame...)
	}
	path := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tsharkFields are the fields of tshark that TestTshark looks at. Those of
// checksums are 1 where it is good, 0 where it is bad.
var tsharkFields = []string{
	"_ws.malformed", "_ws.expert.message", "ip.checksum.status", "tcp.checksum.status", "udp.checksum.status",
	"icmp.checksum.status", "icmpv6.checksum.status", "sctp.checksum.status",
	"eth.dst", "eth.src", "vlan.id", "vlan.priority", "ieee8021ad.id", "ieee8021ad.priority", "arp.opcode", "arp.src.proto_ipv4", "arp.dst.hw_mac",
	"ip.src", "ip.dsfield.dscp", "ipv6.dst", "tcp.dstport", "udp.srcport", "sctp.dstport", "icmpv6.type",
	"icmpv6.nd.ns.target_address", "mpls.label", "mpls.ttl",
	"dhcp.option.dhcp", "dhcpv6.iaaddr.ip", "dhcpv6.peeraddr", "lldp.chassis.id.mac", "lldp.time_to_live",
}

// TestTshark: an independent decoder finds the builders' frames, and what Apply
// makes of them, well formed, their checksums right, and sees what Parse sees.
func TestTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Fatal("tshark is not installed: apt-get install tshark")
	}
	list := frames()
	applied := map[int]bool{}
	for _, f := range frames() {
		for i, a := range rewrites() {
			if got, ok := Apply(bytes.Clone(f.frame), a); ok {
				applied[i] = true
				list = append(list, named{fmt.Sprintf("%s, %v", f.name, a), got})
				if i%3 == 0 { // and on top of the one before
					list = append(list, named{list[len(list)-1].name + ", pop", pops(got)})
				}
			}
		}
	}
	for i, a := range rewrites() {
		if !applied[i] {
			t.Errorf("%v: applies to no frame of the test", a)
		}
	}
	args := []string{"-r", writePcap(t, list), "-T", "fields", "-E", "separator=|", "-E", "occurrence=a", "-E", "aggregator=;",
		"-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "sctp.checksum:CRC 32c"}
	for _, f := range tsharkFields {
		args = append(args, "-e", f)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("tshark", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.Bytes())
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(list) {
		t.Fatalf("tshark tells of %d frames, want %d", len(lines), len(list))
	}
	good := map[string]bool{}
	for i, line := range lines {
		values := map[string]string{}
		for j, v := range strings.Split(line, "|") {
			values[tsharkFields[j]] = v
		}
		compare(t, list[i], values)
		for _, status := range tsharkFields[2:8] {
			good[status] = good[status] || values[status] == "1"
		}
	}
	for _, status := range tsharkFields[2:8] {
		if !good[status] {
			t.Errorf("%s: tshark has checked none", status)
		}
	}
	t.Logf("%d frames", len(list))
}

func pops(frame []byte) []byte {
	frame, _ = Apply(bytes.Clone(frame), flow.PopVLAN())
	return frame
}

// compare holds what tshark says of a frame against what Parse says.
func compare(t *testing.T, f named, v map[string]string) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s\n%x", f.name, fmt.Sprintf(format, args...), f.frame)
	}
	for _, status := range tsharkFields[2:8] {
		if strings.Contains(v[status], "0") {
			fail("%s: bad", status)
		}
	}
	if v["_ws.malformed"] != "" || strings.Contains(v["_ws.expert.message"], "alformed") {
		fail("malformed: %s", v["_ws.expert.message"])
	}
	var k flow.Key
	if !Parse(f.frame, &k) {
		fail("Parse does not find it whole")
	}
	first := func(field string) string { s, _, _ := strings.Cut(v[field], ";"); return s }
	check := func(field, got string) {
		t.Helper()
		if want := first(field); want != "" && want != got {
			fail("%s is %s, Parse says %s", field, want, got)
		}
	}
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	check("eth.dst", k.EthDst.String())
	check("eth.src", k.EthSrc.String())
	if k.EthType == flow.EthTypeMPLS {
		check("mpls.label", n(uint64(k.MPLSLabel)))
		return
	}
	if k.EthType == flow.EthTypePBB {
		return
	}
	if tags := Tags(nil, f.frame); len(tags) > 0 && tags[0].TPID == flow.EthTypeQinQ {
		check("ieee8021ad.id", n(uint64(k.VLAN&0xfff)))
		check("ieee8021ad.priority", n(uint64(k.VLANPCP)))
	} else {
		if len(tags) == 0 && first("vlan.id") != "" {
			fail("a tag that Tags does not see")
		}
		check("vlan.id", n(uint64(k.VLAN&0xfff)))
		check("vlan.priority", n(uint64(k.VLANPCP)))
	}
	check("arp.opcode", n(uint64(k.ARPOp)))
	check("arp.dst.hw_mac", k.ARPTHA.String())
	check("arp.src.proto_ipv4", fmt.Sprintf("%d.%d.%d.%d", k.ARPSPA[0], k.ARPSPA[1], k.ARPSPA[2], k.ARPSPA[3]))
	check("ip.src", fmt.Sprintf("%d.%d.%d.%d", k.IPv4Src[0], k.IPv4Src[1], k.IPv4Src[2], k.IPv4Src[3]))
	check("ip.dsfield.dscp", n(uint64(k.IPDSCP)))
	if p, ok := ParseIPv6(f.frame); ok {
		check("ipv6.dst", p.Dst().String())
	}
	check("tcp.dstport", n(uint64(k.TPDst)))
	check("udp.srcport", n(uint64(k.TPSrc)))
	check("sctp.dstport", n(uint64(k.TPDst)))
	check("icmpv6.type", n(uint64(k.ICMPType)))
	if nd, ok := ParseND(f.frame); ok {
		check("icmpv6.nd.ns.target_address", nd.Target().String())
	}
	if d, ok := ParseDHCPv4(f.frame); ok {
		check("dhcp.option.dhcp", n(uint64(d.Type())))
	}
	if d, ok := ParseDHCPv6(f.frame); ok {
		m, peer, ok := d.Message()
		list := m.Addresses(nil)
		if !ok || len(list) != 2 {
			fail("DHCPv6: no message with two addresses")
			return
		}
		check("dhcpv6.iaaddr.ip", list[0].Addr.String())
		check("dhcpv6.peeraddr", peer.String())
	}
	if u, ok := ParseLLDP(f.frame); ok {
		_, id := u.ChassisID()
		check("lldp.chassis.id.mac", flow.MAC(id).String())
		check("lldp.time_to_live", n(uint64(u.TTL())))
	}
}

// rewrites returns actions of every kind that Apply knows.
func rewrites() []flow.Action {
	var list []flow.Action
	for _, s := range []string{
		"set_field:02:00:00:00:00:99->eth_src", "set_field:02:00:00:00:00:98->eth_dst", "set_field:77->vlan_vid", "set_field:6->vlan_pcp",
		"set_field:11->ip_dscp", "set_field:2->ip_ecn", "set_field:192.168.7.9->ipv4_src", "set_field:192.168.8.10->ipv4_dst",
		"set_field:fd01::99->ipv6_src", "set_field:fd01:2:3:4:5:6:7:8->ipv6_dst", "set_field:0x12345->ipv6_flabel",
		"set_field:4444->tcp_src", "set_field:5555->tcp_dst", "set_field:4445->udp_src", "set_field:5556->udp_dst",
		"set_field:4446->sctp_src", "set_field:5557->sctp_dst", "set_field:0->icmpv4_type", "set_field:1->icmpv4_code",
		"set_field:128->icmpv6_type", "set_field:1->icmpv6_code",
		"set_field:2->arp_op", "set_field:10.9.9.9->arp_spa", "set_field:10.9.9.8->arp_tpa", "set_field:02:00:00:00:00:97->arp_sha",
		"set_field:02:00:00:00:00:96->arp_tha", "set_field:fd02::1->ipv6_nd_target", "set_field:02:00:00:00:00:95->ipv6_nd_sll",
		"set_field:02:00:00:00:00:94->ipv6_nd_tll", "set_field:17->mpls_label", "set_field:5->mpls_tc", "set_field:1->mpls_bos",
		"set_field:0x123456->pbb_isid",
		"push_vlan:0x8100", "push_vlan:0x88a8", "pop_vlan", "push_mpls:0x8847", "pop_mpls:0x0800", "push_pbb:0x88e7", "pop_pbb",
		"set_ttl:9", "dec_ttl", "set_mpls_ttl:33", "dec_mpls_ttl", "copy_ttl_out", "copy_ttl_in",
	} {
		a, err := flow.ParseAction(s)
		if err != nil {
			panic(err)
		}
		list = append(list, a)
	}
	return list
}
