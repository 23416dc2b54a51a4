package flow

import "testing"

// TestLaterFragments: what matches the later fragments of packets, which have no ports and, over
// IPv6, another protocol.
func TestLaterFragments(t *testing.T) {
	for _, c := range []struct{ match, want string }{
		{"eth_type=0x0800,ip_proto=17,udp_dst=7000,ipv4_dst=10.0.0.2", "eth_type=0x0800,ip_proto=17,ipv4_dst=10.0.0.2,ip_frag=3"},
		{"eth_type=0x86dd,ip_proto=6,tcp_src=1,tcp_dst=2", "eth_type=0x86dd,ip_frag=3"},
		{"eth_type=0x86dd,ip_proto=6", "eth_type=0x86dd,ip_frag=3"},
		{"eth_type=0x0800,ip_proto=1,icmpv4_type=8", "eth_type=0x0800,ip_proto=1,ip_frag=3"},
		{"eth_type=0x0800,ip_proto=17", ""},
		{"eth_type=0x86dd,ipv6_dst=fd00::2", ""},
		{"in_port=1", ""},
	} {
		m, err := ParseMatchString(c.match)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := m.LaterFragments()
		if text := got.String(); ok != (c.want != "") || ok && text != c.want {
			t.Errorf("%s: %s, %v; want %s", c.match, text, ok, c.want)
		}
		if err := got.Check(); err != nil {
			t.Errorf("%s: %v", c.match, err)
		}
	}
	none := Match{}.WithNoVLAN()
	for vlan, want := range map[uint16]bool{0: true, VLANPresent: true, VLANPresent | 5: false} {
		if got := none.Matches(&Key{VLAN: vlan}); got != want {
			t.Errorf("a frame with VLAN %#x is in none: %v", vlan, got)
		}
	}
}
