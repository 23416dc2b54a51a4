package flow

import (
	"strings"
	"testing"
)

func TestEncapText(t *testing.T) {
	for text, data := range map[string]string{
		"encap(mpls)":                           "experimenter:0x2320:002e000000018847",
		"encap(mpls_mc)":                        "experimenter:0x2320:002e000000018848",
		"encap(ethernet)":                       "experimenter:0x2320:002e000000000000",
		"decap()":                               "experimenter:0x2320:002f00000000fffe",
		"decap(packet_type(ns=0,type=0))":       "experimenter:0x2320:002f000000000000",
		"decap(packet_type(ns=1,type=0x8847))":  "experimenter:0x2320:002f000000018847",
		"decap(packet_type(ns=65535,type=0x1))": "experimenter:0x2320:002f0000ffff0001",
		"resubmit(,2)":                          "experimenter:0x2320:000efff802000000",
		"resubmit(3,254)":                       "experimenter:0x2320:000e0003fe000000",
		"resubmit(local,0)":                     "experimenter:0x2320:000efffe00000000",
		"resubmit:3":                            "experimenter:0x2320:000e0003ff000000",
	} {
		a, err := ParseAction(text)
		if err != nil || a.String() != text {
			t.Errorf("%s: %v %v", text, a, err)
		}
		b, err := ParseAction(data)
		if err != nil || a != b || b.String() != text {
			t.Errorf("%s is %v, %s is %v (%v)", text, a, data, b, err)
		}
		if list, err := ParseActions("output:1," + text + ",output:2"); err != nil || len(list) != 3 || list[1] != a {
			t.Errorf("%s in a list: %v %v", text, list, err)
		}
	}
	for in, want := range map[string]string{
		" Encap( MPLS ) ": "encap(mpls)", "decap( packet_type( ns=0x0, type=0 ) )": "decap(packet_type(ns=0,type=0))",
		"resubmit( , 0x2)": "resubmit(,2)", "resubmit(in_port,2)": "resubmit(,2)", "resubmit(3)": "resubmit:3", "resubmit(3,)": "resubmit:3",
	} {
		if a, err := ParseAction(in); err != nil || a.String() != want {
			t.Errorf("%q: %v %v, want %s", in, a, err, want)
		}
	}
	for _, text := range []string{
		"encap", "encap()", "encap(nsh)", "encap(mpls,1)", "decap", "decap(mpls)", "decap(packet_type(ns=0))", "decap(packet_type(ns=65536,type=0))", "decap(packet_type(type=0,ns=0))",
		"resubmit", "resubmit()", "resubmit(,)", "resubmit(,255)", "resubmit(,256)", "resubmit(,2,ct)", "resubmit(0,2)", "resubmit(65280,2)", "resubmit(controller,2)", "resubmit(any,2)", "resubmit:in_port", "resubmit:",
	} {
		if a, err := ParseAction(text); err == nil {
			t.Errorf("%s is read as %v", text, a)
		}
	}
}

// FuzzEncap reads octets as an action of Open vSwitch: what is read is the same
// when it is written, as octets and as text.
func FuzzEncap(f *testing.F) {
	for _, a := range []Action{Encap(PacketMPLS), Encap(PacketEthernet), Decap(PacketNext), Decap(PacketEthernet), Resubmit{PortIn, 2}.Action(), Resubmit{3, NoTable}.Action(), Resubmit{PortLocal, 0}.Action()} {
		f.Add(a.Data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		a := Action{Kind: ActionExperimenter, Arg: Nicira, Data: data}
		if read, err := ParseAction(a.String()); err != nil || read != a {
			t.Fatalf("%v is read as %v (%v)", a, read, err)
		}
		if p, ok := ParseEncap(a); ok && Encap(p) != a {
			t.Fatalf("%x becomes encap of %v", data, p)
		}
		if p, ok := ParseDecap(a); ok && Decap(p) != a {
			t.Fatalf("%x becomes decap to %v", data, p)
		}
		if r, ok := ParseResubmit(a); ok && r.Action() != a {
			t.Fatalf("%x becomes %v", data, r)
		}
		for _, list := range [][]Action{{a}, {Encap(PacketMPLS), a, Output(1)}, {Decap(PacketNext), Decap(PacketEthernet), a}} {
			_ = (*Match)(nil).CheckActions(list)
			_ = CheckActionSet(list)
		}
	})
}

// actionChecks are lists of actions for packets, and what is wrong with them.
var actionChecks = []struct{ match, actions, want string }{
	{"", "output:1", ""},
	{"in_port=4", "encap(mpls),set_field:500->mpls_label,encap(ethernet),group:1", ""},
	{"in_port=4", "encap(mpls),set_field:32->mpls_label,encap(mpls),set_field:500->mpls_label,encap(ethernet),set_field:02:00:00:00:00:01->eth_dst,output:2", ""},
	{"in_port=4,vlan_vid=100", "pop_vlan,encap(mpls),set_field:5->mpls_label,set_field:1->mpls_tc,set_mpls_ttl:64,encap(ethernet),output:2", ""},
	{"eth_type=0x8847,mpls_label=500,mpls_bos=1", "decap(),decap(packet_type(ns=0,type=0)),output:4", ""},
	{"eth_type=0x8847,mpls_label=500,mpls_bos=1", "decap(),decap(packet_type(ns=0,type=0)),group:4", ""},
	{"eth_type=0x8847,mpls_label=500,mpls_bos=1", "decap(),decap(packet_type(ns=0,type=0)),resubmit(,3)", ""},
	{"eth_type=0x8847,mpls_label=2001,mpls_bos=0", "pop_mpls:0x8847,resubmit(,2)", ""},
	{"eth_type=0x8847,mpls_label=2001,mpls_bos=0", "pop_mpls:0x8847,set_field:5->mpls_label,output:1", ""},
	{"eth_type=0x0800", "push_mpls:0x8847,set_field:16->mpls_label,dec_mpls_ttl,output:2", ""},
	{"eth_type=0x8848", "pop_mpls:0x0806,output:2", ""},
	{"", "resubmit(,1),dec_mpls_ttl,output:1", ""},
	{"eth_type=0x8847", "decap(),encap(ethernet),output:1", ""},
	{"", "experimenter:0x2320:0011223344556677,dec_mpls_ttl", ""},

	{"", "dec_mpls_ttl,output:1", "action dec_mpls_ttl: needs a packet with a label: match eth_type=0x8847"},
	{"eth_type=0x0800", "set_field:16->mpls_label", "needs a packet with a label"},
	{"eth_type=0x8847", "pop_mpls:0x0800,set_field:16->mpls_label", "needs a packet with a label"},
	{"", "pop_mpls:0x0800", "needs a packet with a label"},
	{"", "encap(mpls),encap(ethernet),output:1", "action encap(ethernet): the label under it is not set: put set_field:LABEL->mpls_label behind its encap"},
	{"", "encap(mpls),set_field:5->mpls_label,encap(mpls),set_mpls_ttl:9,encap(ethernet),output:1", "is not set"},
	{"eth_type=0x8847", "encap(mpls),set_field:5->mpls_label,encap(ethernet),output:1", "cannot cover such a frame"},
	{"", "encap(mpls),set_field:5->mpls_label,encap(ethernet),encap(mpls),set_field:5->mpls_label,encap(ethernet),output:1", "cannot cover such a frame"},
	{"", "encap(ethernet),output:1", "action encap(ethernet): the packet has an Ethernet header already"},
	{"", "encap(mpls),set_field:5->mpls_label,encap(ethernet),encap(ethernet),output:1", "has an Ethernet header already"},
	{"", "encap(mpls),output:1", "action output:1: the packet has no Ethernet header here"},
	{"", "encap(mpls),controller", "action controller: the packet has no Ethernet header here"},
	{"", "encap(mpls),group:1", "action group:1: the packet has no Ethernet header here"},
	{"", "encap(mpls),resubmit(,2)", "action resubmit(,2): the packet has no Ethernet header here"},
	{"", "encap(mpls),set_field:02:00:00:00:00:01->eth_dst", "->eth_dst: the packet has no Ethernet header here"},
	{"", "encap(mpls),push_mpls:0x8847", "action push_mpls:0x8847: the packet has no Ethernet header here"},
	{"", "encap(mpls),push_vlan:0x8100", "no Ethernet header"},
	{"", "encap(mpls),pop_mpls:0x0800", "decap(packet_type(ns=N,type=N)) removes its label"},
	{"", "encap(mpls),ct(commit)", "no Ethernet header"},
	{"eth_type=0x8847", "decap(),output:1", "no Ethernet header"},
	{"eth_type=0x8847", "decap(),decap(),output:1", "action decap(): a label does not name what it covers"},
	{"eth_type=0x8847", "decap(packet_type(ns=0,type=0)),output:1", "want decap()"},
	{"eth_type=0x8847", "decap(),decap(packet_type(ns=0,type=0)),set_field:200->vlan_vid", "what decap has uncovered is not known in the same list"},
	{"eth_type=0x8847", "decap(),decap(packet_type(ns=0,type=0)),pop_vlan", "what decap has uncovered"},
	{"eth_type=0x8847", "decap(),decap(packet_type(ns=0,type=0)),dec_mpls_ttl", "what decap has uncovered"},
	{"eth_type=0x8847", "decap(),decap(packet_type(ns=0,type=0)),push_mpls:0x8847", "what decap has uncovered"},
}

func TestCheckActions(t *testing.T) {
	for _, c := range actionChecks {
		m, err := ParseMatchString(c.match)
		list, err2 := ParseActions(c.actions)
		if err != nil || err2 != nil {
			t.Fatal(c, err, err2)
		}
		wants(t, c.match+" "+c.actions, m.CheckActions(list), c.want)
	}
}

// wants checks that an error contains a text, or that there is none for "".
func wants(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\n got %v\nwant %s", what, err, want)
	}
}

func TestCheckGroup(t *testing.T) {
	for _, c := range []struct {
		kind    GroupKind
		watch   Port
		weight  uint16
		buckets string // between |
		want    string
	}{
		{GroupKindFastFailover, 2, 0, "push_mpls:0x8847,set_field:1001->mpls_label,set_field:02:00:00:00:00:01->eth_src,set_field:02:00:00:00:00:02->eth_dst,output:2|set_field:2001->mpls_label,output:in_port", ""},
		{GroupKindFastFailover, 2, 0, "pop_mpls:0x8847,output:2", ""},
		{GroupKindAll, PortAny, 0, "output:1|output:2|pop_vlan,output:3", ""},
		{GroupKindAll, PortAny, 0, "", ""},
		{GroupKindIndirect, PortAny, 0, "push_vlan:0x8100,set_field:200->vlan_vid,output:4", ""},
		{GroupKindSelect, PortAny, 5, "ct(commit,zone=5,table=4,nat(dst=10.0.0.1))", ""},
		{GroupKindAll, PortAny, 0, "resubmit(,5)", ""},
		{GroupKindAll, PortAny, 0, "output:1,decap(),encap(ethernet)", ""}, // in the order of a set

		{GroupKindIndirect, PortAny, 0, "output:1|output:2", "group 7: 2 buckets: a group of type indirect has one"},
		{GroupKindFastFailover, PortAny, 0, "output:1", "give watch_port"},
		{GroupKindFastFailover, PortController, 0, "output:1", "watch_port controller: want a port of the switch"},
		{GroupKindAll, PortAny, 3, "output:1", "weight 3: buckets of select groups only have one"},
		{GroupKindAll, PortAny, 0, "output:1|encap(mpls),encap(mpls),output:1", "group 7: bucket 1: actions encap(mpls) and encap(mpls): an action set has one encap only, so the first would be lost"},
		{GroupKindAll, PortAny, 0, "encap(mpls),set_field:5->mpls_label,encap(ethernet),output:1", "one encap only"},
		{GroupKindAll, PortAny, 0, "ct(commit),output:1", "actions ct(commit) and output:1: an action set sends packets in one way only"},
		{GroupKindAll, PortAny, 0, "resubmit(,2),output:1", "in one way only"},
		{GroupKindAll, PortAny, 0, "output:1,output:2", "one output only"},
		{GroupKindAll, PortAny, 0, "decap(),decap(packet_type(ns=0,type=0)),output:1", "one decap only"},
		{GroupKindAll, PortAny, 0, "push_mpls:0x8847,push_mpls:0x8847,output:1", "one push_mpls only"},
		{GroupKindAll, PortAny, 0, "set_field:5->mpls_label,set_field:6->mpls_label,output:1", "one set_field only"},
		{GroupKindAll, PortAny, 0, "controller(id=1)", "an action set does not carry it out"},
		{GroupKindAll, PortAny, 0, "experimenter:0x2320:0011223344556677", "an action set does not carry it out"},
		{GroupKindAll, PortAny, 0, "encap(mpls),push_mpls:0x8847,output:1", "in the order of an action set (encap(mpls),push_mpls:0x8847,output:1): action push_mpls:0x8847: the packet has no Ethernet header"},
	} {
		g := Group{Kind: c.kind, ID: 7}
		for i, text := range strings.Split(c.buckets, "|") {
			list, err := ParseActions(text)
			if err != nil {
				t.Fatal(err)
			}
			if text != "" {
				g.Buckets = append(g.Buckets, Bucket{Weight: c.weight, WatchPort: c.watch + Port(i), WatchGroup: GroupAny, Actions: list})
			}
			if c.watch == PortAny && text != "" {
				g.Buckets[i].WatchPort = PortAny
			}
		}
		wants(t, c.buckets, g.Check(), c.want)
	}
}
