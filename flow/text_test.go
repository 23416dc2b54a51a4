package flow

import (
	"slices"
	"strings"
	"testing"
)

func TestMatchTextRoundTrip(t *testing.T) {
	r := newRand(10)
	for range 10000 {
		m := randomMatch(r, r.IntN(2) == 0)
		got, err := ParseMatch(m.Text())
		if err != nil || got != m {
			t.Fatalf("%v\nread back as %v, %v", m, got, err)
		}
		got, err = ParseMatchString(m.String())
		if err != nil || got != m {
			t.Fatalf("%v\nread back as %v, %v", m, got, err)
		}
	}
}

func TestParseMatchForms(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "any",
		"any":                    "any",
		"in_port=LOCAL":          "in_port=local",
		"in_port=0x10":           "in_port=16",
		"vlan_vid=0x1005":        "vlan_vid=5",
		"vlan_vid=0":             "vlan_vid=0",
		"vlan_vid=None":          "vlan_vid=none",
		"vlan_vid=0x1000/0x1000": "vlan_vid=any",
		"vlan_vid=0x1004/0x100f": "vlan_vid=0x1004/0x100f",
		"eth_type=2048 ipv4_dst=10.1.2.3/255.0.0.0":   "eth_type=0x0800,ipv4_dst=10.0.0.0/8",
		"eth_type=2048 ipv4_dst=10.1.2.3/255.0.255.0": "eth_type=0x0800,ipv4_dst=10.0.2.0/255.0.255.0",
		"eth_type=2048 ipv4_dst=10.1.2.3/0":           "eth_type=0x0800",
		"eth_type=0x86dd,ipv6_dst=fd00::1/ffff::ffff": "eth_type=0x86dd,ipv6_dst=fd00::1/ffff::ffff",
		"eth_type=0x86dd,ipv6_dst=fd00::1/64":         "eth_type=0x86dd,ipv6_dst=fd00::/64",
		"ETH_DST=02:00:00:00:00:01/ff:ff:ff:ff:ff:ff": "eth_dst=02:00:00:00:00:01",
		"metadata=5/0xf": "metadata=0x5/0xf",
		"eth_type=0x0800, ip_proto=17 , udp_dst=53":           "eth_type=0x0800,ip_proto=17,udp_dst=53",
		"eth_type=0x8847,mpls_label=16,mpls_bos=1,mpls_tc=2":  "eth_type=0x8847,mpls_label=16,mpls_tc=2,mpls_bos=1",
		"eth_type=0x86dd,ipv6_exthdr=0x10/0x10,ip_proto=0x11": "eth_type=0x86dd,ip_proto=17,ipv6_exthdr=0x10/0x10",
	} {
		m, err := ParseMatchString(in)
		if got := m.String(); got != want || err != nil {
			t.Errorf("%q: got %s, %v\nwant %s", in, got, err, want)
		}
	}
}

func TestParseMatchErrors(t *testing.T) {
	for in, want := range map[string]string{
		"in_port":                              `match "in_port": want FIELD=VALUE`,
		"in_port=1,in_port=2":                  "field in_port is given twice",
		"in_port=1,IN_PORT=2":                  "field in_port is given twice",
		"color=red":                            `match field "color": want one of in_port, in_phy_port,`,
		"in_port=1/2":                          "match in_port=1/2: the field takes no mask",
		"in_port=fast":                         "match in_port=fast: port \"fast\": want a number or one of in_port",
		"eth_dst=1:2":                          "match eth_dst=1:2: ethernet address \"1:2\": want six hex octets",
		"vlan_vid=9000":                        "match vlan_vid=9000: want a VLAN from 0 to 4095, none (untagged) or any",
		"ipv4_dst=10.0.0.0/8":                  "match ipv4_dst: needs a prerequisite: add eth_type=0x0800",
		"eth_type=0x0800,tcp_dst=80":           "match tcp_dst: needs a prerequisite: add ip_proto=6",
		"eth_type=0x0800,ipv4_dst=10.0.0/8":    "match ipv4_dst=10.0.0/8: want an IPv4 address",
		"eth_type=0x0800,ipv4_dst=10.0.0.0/33": "want a prefix length of at most 32",
		"eth_type=0x86dd,ipv6_dst=10.0.0.1":    "want an IPv6 address",
		"eth_type=0x86dd,ipv6_dst=fe80::1%e":   "want an IPv6 address",
		"eth_type=0x10000":                     "match eth_type=0x10000: want a number from 0 to 65535 (0xffff)",
		"eth_type=0x0800,ip_dscp=64":           "match ip_dscp=64: want a number from 0 to 63 (0x3f)",
		"metadata=-1":                          "want a number from 0 to 18446744073709551615",
	} {
		_, err := ParseMatchString(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v\nwant %s", in, err, want)
		}
	}
}

func TestActionTextRoundTrip(t *testing.T) {
	r := newRand(11)
	for range 10000 {
		list := randomActions(r)
		got, err := ParseActions(FormatActions(list))
		if err != nil || !slices.Equal(got, list) {
			t.Fatalf("%v\nread back as %v, %v", FormatActions(list), FormatActions(got), err)
		}
	}
}

func TestActionForms(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "drop",
		"drop":                            "drop",
		"output:2,flood":                  "output:2,flood",
		"output:flood":                    "flood",
		"output:controller":               "controller",
		"CONTROLLER:0x80":                 "controller:128",
		"push_vlan:33024":                 "push_vlan:0x8100",
		"set_field:5->vlan_vid":           "set_field:5->vlan_vid",
		"set_field:0x2->tcp_dst, dec_ttl": "set_field:2->tcp_dst,dec_ttl",
		"experimenter:8992:00FF":          "experimenter:0x2320:00ff",
		"set_field:fd00::1->ipv6_dst":     "set_field:fd00::1->ipv6_dst",
		"group:5,set_queue:1,pop_vlan":    "group:5,set_queue:1,pop_vlan",
	} {
		list, err := ParseActions(in)
		if got := FormatActions(list); got != want || err != nil {
			t.Errorf("%q: got %s, %v\nwant %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"fly":                            `action "fly": want output:PORT, controller,`,
		"output:any":                     "packets cannot be sent there",
		"output:0":                       "packets cannot be sent there",
		"output":                         `port "": want a number`,
		"flood:1":                        "flood takes no argument",
		"pop_vlan:1":                     "takes no argument",
		"group:x":                        "want a number from 0 to 4294967295",
		"set_ttl:300":                    "want a time to live from 0 to 255",
		"push_vlan":                      "want an ethertype, such as 0x8100",
		"controller:x":                   "want controller:OCTETS",
		"set_field:1":                    "want set_field:VALUE->FIELD",
		"set_field:1->in_port":           "in_port cannot be set by an action",
		"set_field:none->vlan_vid":       "pop_vlan removes the tag",
		"set_field:1->color":             "match field \"color\": want one of",
		"set_field:10.0.0.0/8->ipv4_dst": "want an IPv4 address",
		"experimenter:1:0":               "want experimenter:ID:HEX",
	} {
		if _, err := ParseActions(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v\nwant %s", in, err, want)
		}
	}
}

func TestEntryString(t *testing.T) {
	e := Entry{Priority: 100, Match: Match{}.WithInPort(1), Apply: []Action{Output(2)}}
	if got, want := e.String(), "table=0 priority=100 in_port=1 actions=output:2"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e = Entry{Table: 1, Priority: 5, Cookie: NewCookie(OwnerRoutes, 1, 7), IdleTimeout: 10, HardTimeout: 20, Flags: FlagSendRem,
		Meter: 3, Clear: true, HasWrite: true, Write: []Action{ToGroup(1)}, Metadata: 1, MetaMask: 3, Goto: 2}
	want := "table=1 priority=5 any owner=routes id=7 idle_timeout=10s hard_timeout=20s send_flow_rem meter=3 " +
		"clear_actions write_actions=group:1 write_metadata=0x1/0x3 goto_table=2"
	if got := e.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e = Entry{Cookie: 0x2a}
	if got, want := e.String(), "table=0 priority=0 any cookie=0x2a actions=drop"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzParseMatchString(f *testing.F) {
	r := newRand(12)
	for range 20 {
		f.Add(randomMatch(r, false).String())
	}
	f.Add("vlan_vid=any/none,ipv4_dst=//")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMatchString(s)
		if err != nil {
			return
		}
		if back, err := ParseMatchString(m.String()); err != nil || back != m {
			t.Fatalf("%q is %v, read back as %v, %v", s, m, back, err)
		}
	})
}

func FuzzParseActions(f *testing.F) {
	r := newRand(13)
	for range 20 {
		f.Add(FormatActions(randomActions(r)))
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := ParseActions(s)
		if err != nil {
			return
		}
		if back, err := ParseActions(FormatActions(list)); err != nil || !slices.Equal(back, list) {
			t.Fatalf("%q is %v, read back as %v, %v", s, list, back, err)
		}
	})
}
