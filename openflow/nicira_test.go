package openflow

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// niciraFlows are flows with Open vSwitch's own actions and fields.
func niciraFlows() []ovsFlow {
	addr := netip.MustParseAddr
	mpls := flow.Match{}.WithEthType(flow.EthTypeMPLS)
	return []ovsFlow{
		flowOf("in_port=4,actions=encap(mpls),set_field:500->mpls_label,encap(ethernet),group:1",
			flow.Match{}.WithInPort(4), flow.Encap(flow.PacketMPLS), flow.SetMPLSLabel(500), flow.Encap(flow.PacketEthernet), flow.ToGroup(1)),
		flowOf("in_port=4,actions=encap(mpls_mc),encap(mpls),encap(ethernet),output:1",
			flow.Match{}.WithInPort(4), flow.Encap(flow.PacketMPLSMC), flow.Encap(flow.PacketMPLS), flow.Encap(flow.PacketEthernet), flow.Output(1)),
		flowOf("mpls,mpls_label=500,actions=decap(),decap(packet_type(ns=0,type=0)),output:4",
			mpls.WithMPLSLabel(500), flow.Decap(flow.PacketNext), flow.Decap(flow.PacketEthernet), flow.Output(4)),
		flowOf("mpls,mpls_bos=1,mpls_ttl=1,actions=CONTROLLER:65535",
			mpls.WithMPLSBOS(1).WithMPLSTTL(1), flow.Output(flow.PortController)),
		flowOf("ip,ip_frag=first,actions=drop", any4.WithFirstFragment()),
		flowOf("ipv6,ip_frag=later,actions=drop", flow.Match{}.WithEthType(flow.EthTypeIPv6).WithLaterFragment()),
		flowOf("mpls,mpls_bos=0,actions=dec_mpls_ttl,pop_mpls:0x8847,resubmit(,2)",
			mpls.WithMPLSBOS(0), flow.DecMPLSTTL(), flow.PopMPLS(flow.EthTypeMPLS), flow.Resubmit{In: flow.PortIn, Table: 2}.Action()),
		flowOf("ip,actions=push_mpls:0x8847,set_field:16->mpls_label,resubmit(3,2),resubmit:3,resubmit(LOCAL,254)",
			any4, flow.PushMPLS(), flow.SetMPLSLabel(16), flow.Resubmit{In: 3, Table: 2}.Action(), flow.Resubmit{In: 3, Table: flow.NoTable}.Action(),
			flow.Resubmit{In: flow.PortLocal, Table: 254}.Action()),
		flowOf("ct_state=+trk+new-snat,ct_zone=5,ct_mark=0x7,ip,actions=ct(commit,zone=7,table=5,nat(src=198.51.100.1-198.51.100.2:1024-65535,random))",
			masked(any4.WithCTState(flow.CTTracked|flow.CTNew, flow.CTTracked|flow.CTNew|flow.CTSrcNAT).WithCTZone(5), flow.FieldCTMark, []byte{0, 0, 0, 7}, ones(4)),
			flow.CT{Commit: true, Zone: 7, Table: 5, HasNAT: true, NAT: flow.NAT{Src: true, Min: addr("198.51.100.1"), Max: addr("198.51.100.2"), MinPort: 1024, MaxPort: 65535, Random: true}}.Action()),
		flowOf("ct_state=-trk,ip,actions=ct(table=3,zone=9,nat),ct(commit)", any4.WithCTState(0, flow.CTTracked),
			flow.CT{Table: 3, Zone: 9, HasNAT: true}.Action(), flow.CT{Commit: true, Table: flow.NoTable}.Action()),
		flowOf("ct_mark=0x10/0xf0,ip,actions=ct(commit,table=3,nat(dst=10.0.0.5:80))",
			masked(any4, flow.FieldCTMark, []byte{0, 0, 0, 0x10}, []byte{0, 0, 0, 0xf0}),
			flow.CT{Commit: true, Table: 3, HasNAT: true, NAT: flow.NAT{Dst: true, Min: addr("10.0.0.5"), MinPort: 80}}.Action()),
		flowOf("ipv6,actions=ct(commit,force,table=3,nat(src=fd00::1-fd00::9,persistent,hash)),ct(commit,nat(dst=[fd00::5]:80-81))",
			flow.Match{}.WithEthType(flow.EthTypeIPv6),
			flow.CT{Commit: true, Force: true, Table: 3, HasNAT: true, NAT: flow.NAT{Src: true, Min: addr("fd00::1"), Max: addr("fd00::9"), Persistent: true, Hash: true}}.Action(),
			flow.CT{Commit: true, Table: flow.NoTable, HasNAT: true, NAT: flow.NAT{Dst: true, Min: addr("fd00::5"), MinPort: 80, MaxPort: 81}}.Action()),
	}
}

// TestNiciraAsOpenVSwitch compares, octet for octet, what ovs-ofctl sends for
// flows with its own actions and fields with what is decoded from it, encoded again,
// and with what their texts stand for.
func TestNiciraAsOpenVSwitch(t *testing.T) {
	flows := niciraFlows()
	var lines []string
	for _, f := range flows {
		lines = append(lines, f.text)
	}
	got, _ := ofctl(t, V13, plainAnswer, "add-flows", "SWITCH", flowFile(t, lines))
	if len(got) != len(flows) {
		t.Fatalf("%d messages of %d", len(got), len(flows))
	}
	for i, msg := range got {
		var m, want flow.Mod
		if err := V13.DecodeFlowMod(msg, &m); err != nil {
			t.Fatalf("%s: %v\n%x", lines[i], err, msg)
		}
		want = m
		flows[i].want(&want)
		if m.Entry.Match != want.Entry.Match || flow.FormatActions(m.Entry.Apply) != flow.FormatActions(want.Entry.Apply) {
			t.Errorf("%s:\n got %v\nwant %v", lines[i], m.Entry, want.Entry)
		}
		again, err := V13.AppendFlowMod(nil, be.Uint32(msg[4:]), &want)
		if err != nil || !bytes.Equal(again, msg) {
			t.Errorf("%s:\nencoded %x\novs-ofctl %x (%v)", lines[i], again, msg, err)
		}
		read, err := flow.ParseActions(flow.FormatActions(m.Entry.Apply))
		if err != nil || len(read) != len(m.Entry.Apply) {
			t.Fatalf("%s: %v %v", lines[i], read, err)
		}
		for j := range read {
			if read[j] != m.Entry.Apply[j] {
				t.Errorf("%v is read as %v", m.Entry.Apply[j], read[j])
			}
		}
		if strings.Contains(flow.FormatActions(read), "experimenter") {
			t.Errorf("%s: shown as %s", lines[i], flow.FormatActions(read))
		}
		match, err := flow.ParseMatch(m.Entry.Match.Text())
		if err != nil || match != m.Entry.Match {
			t.Errorf("%v is read as %v (%v)", m.Entry.Match, match, err)
		}
	}
}

// conntrackOctets is what ovs-ofctl 3.1 sends for
// "ct(commit,table=5,zone=7,nat(src=198.51.100.1-198.51.100.2:1024-65535,random))".
const conntrackOctets = "ffff0038000023200023000100000000000705000000000" + "0ffff0020000023200024000000110033c6336401c63364020400ffff00000000"

// TestConntrackMalformed cuts and bends a ct action: what is not whole is kept
// as an experimenter's action, as it came.
func TestConntrackMalformed(t *testing.T) {
	whole, err := hex.DecodeString(conntrackOctets)
	if err != nil {
		t.Fatal(err)
	}
	list, err := decodeActions(TypeFlowMod, whole, 0, len(whole), nil, nil)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	const text = "ct(commit,table=5,zone=7,nat(src=198.51.100.1-198.51.100.2:1024-65535,random))"
	if got := list[0].String(); got != text {
		t.Errorf("got %s", got)
	}
	for n := range len(list[0].Data) {
		cut := list[0]
		cut.Data = cut.Data[:n]
		if ct, ok := flow.ParseCT(cut); ok && n != 16 {
			t.Errorf("%d octets: %v", n, ct)
		}
	}
	for i := range whole {
		for _, x := range []byte{1, 0x80, 0xff} {
			bent := bytes.Clone(whole)
			bent[i] ^= x
			list, err := decodeActions(TypeFlowMod, bent, 0, len(bent), nil, nil)
			if err != nil {
				continue
			}
			again, err := appendActions(nil, "test", list)
			if err != nil || !bytes.Equal(again, bent) {
				t.Fatalf("octet %d: %x encoded as %x (%v)", i, bent, again, err)
			}
			read, err := flow.ParseActions(flow.FormatActions(list))
			if err != nil || len(read) != 1 || read[0] != list[0] {
				t.Fatalf("octet %d: %v is read as %v (%v)", i, list, read, err)
			}
		}
	}
}
