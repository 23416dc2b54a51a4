package openflow

import "github.com/weft-sdn/weft/flow"

// ovsFlow is a flow as ovs-ofctl add-flows reads it and what of a flow-mod it
// says beyond the defaults.
type ovsFlow struct {
	text string
	want func(*flow.Mod)
}

func flowOf(text string, m flow.Match, actions ...flow.Action) ovsFlow {
	return ovsFlow{text, func(w *flow.Mod) { w.Entry.Match, w.Entry.Apply = m, actions }}
}

func kind(k flow.ActionKind, arg uint32) flow.Action { return flow.Action{Kind: k, Arg: arg} }

// toPort is an output as ovs-ofctl writes it: without a limit.
func toPort(p flow.Port) flow.Action { return kind(flow.ActionOutput, uint32(p)) }

var any4 = flow.Match{}.WithEthType(flow.EthTypeIPv4)

var ovsFlows = []ovsFlow{
	flowOf("in_port=1,actions=output:2", flow.Match{}.WithInPort(1), toPort(2)),
	flowOf("in_port=LOCAL,actions=IN_PORT,FLOOD,ALL,NORMAL,CONTROLLER:128,TABLE", flow.Match{}.WithInPort(flow.PortLocal),
		toPort(flow.PortIn), toPort(flow.PortFlood), toPort(flow.PortAll), toPort(flow.PortNormal),
		flow.Action{Kind: flow.ActionOutput, Arg: uint32(flow.PortController), MaxLen: 128}, toPort(flow.PortTable)),
	flowOf("dl_src=02:00:00:00:00:0a,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop",
		flow.Match{}.WithEthSrc(macA).WithEthDstMasked(flow.MAC{1}, flow.MAC{1})),
	flowOf("dl_vlan=100,dl_vlan_pcp=3,actions=pop_vlan,push_vlan:0x8100,set_field:4296->vlan_vid,set_field:5->vlan_pcp,output:1",
		flow.Match{}.WithVLAN(100).WithVLANPCP(3), flow.PopVLAN(), flow.PushVLAN(0x8100), flow.SetVLAN(200), setTo(flow.FieldVLANPCP, 5), toPort(1)),
	flowOf("vlan_tci=0x1000/0x1000,actions=drop", flow.Match{}.WithAnyVLAN()),
	flowOf("vlan_tci=0,actions=drop", flow.Match{}.WithoutVLAN()),
	flowOf("tcp,nw_src=10.1.0.0/16,nw_dst=10.2.3.4,ip_dscp=46,nw_ecn=1,tp_src=1025,tp_dst=80,actions=set_field:10.0.0.1->ip_src,set_field:10.0.0.2->ip_dst,set_field:1026->tcp_src,set_field:8080->tcp_dst,set_field:10->ip_dscp,set_field:1->ip_ecn,dec_ttl,mod_nw_ttl:33",
		masked(flow.Match{}.WithIPv4Src(ip("10.1.0.0/16")).WithIPv4Dst(ip("10.2.3.4/32")).WithTCPSrc(1025).WithTCPDst(80).WithIPDSCP(46), flow.FieldIPECN, []byte{1}, []byte{3}),
		setTo(flow.FieldIPv4Src, 10, 0, 0, 1), setTo(flow.FieldIPv4Dst, 10, 0, 0, 2), setTo(flow.FieldTCPSrc, 4, 2), setTo(flow.FieldTCPDst, 0x1f, 0x90),
		setTo(flow.FieldIPDSCP, 10), setTo(flow.FieldIPECN, 1), kind(flow.ActionDecNwTTL, 0), kind(flow.ActionSetNwTTL, 33)),
	flowOf("udp,tp_src=53,actions=set_field:9->udp_dst", any4.WithUDPSrc(53), setTo(flow.FieldUDPDst, 0, 9)),
	flowOf("sctp,tp_src=5,tp_dst=6,actions=set_field:9->sctp_src", any4.WithSCTPSrc(5).WithSCTPDst(6), setTo(flow.FieldSCTPSrc, 0, 9)),
	flowOf("icmp,icmp_type=8,icmp_code=3,actions=drop", masked(any4.WithICMPv4Type(8), flow.FieldICMPv4Code, []byte{3}, []byte{0xff})),
	flowOf("arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.0/24,arp_sha=02:00:00:00:00:0a,arp_tha=02:00:00:00:00:0b,actions=set_field:2->arp_op,set_field:10.0.0.9->arp_spa,set_field:02:00:00:00:00:0b->arp_sha",
		flow.Match{}.WithARPOp(1).WithARPSPA(ip("10.0.0.1/32")).WithARPTPA(ip("10.0.0.0/24")).WithARPSHA(macA).WithARPTHA(macB),
		setTo(flow.FieldARPOp, 0, 2), setTo(flow.FieldARPSPA, 10, 0, 0, 9), setTo(flow.FieldARPSHA, macB[:]...)),
	flowOf("ipv6,ipv6_src=2001:db8::/32,ipv6_dst=2001:db8::5,ipv6_label=0x10203,actions=set_field:2001:db8::1->ipv6_src,set_field:7->ipv6_label",
		masked(flow.Match{}.WithIPv6Src(ip("2001:db8::/32")).WithIPv6Dst(ip("2001:db8::5/128")), flow.FieldIPv6FLabel, []byte{0, 1, 2, 3}, []byte{0, 0xf, 0xff, 0xff}),
		setTo(flow.FieldIPv6Src, addr("2001:db8::1")...), setTo(flow.FieldIPv6FLabel, 0, 0, 0, 7)),
	flowOf("icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,nd_sll=02:00:00:00:00:0a,actions=set_field:02:00:00:00:00:0b->nd_sll",
		masked(masked(masked(flow.Match{}.WithICMPv6Type(135), flow.FieldICMPv6Code, []byte{0}, []byte{0xff}), flow.FieldNDTarget, addr("fe80::1"), ones(16)), flow.FieldNDSLL, macA[:], ones(6)),
		setTo(flow.FieldNDSLL, macB[:]...)),
	flowOf("icmp6,icmp_type=136,nd_tll=02:00:00:00:00:0a,actions=drop", masked(flow.Match{}.WithICMPv6Type(136), flow.FieldNDTLL, macA[:], ones(6))),
	flowOf("mpls,mpls_label=16,mpls_tc=3,mpls_bos=1,actions=dec_mpls_ttl,set_mpls_ttl(9),set_field:17->mpls_label,set_field:2->mpls_tc,pop_mpls:0x0800,push_mpls:0x8847",
		masked(masked(flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(16), flow.FieldMPLSTC, []byte{3}, []byte{7}), flow.FieldMPLSBOS, []byte{1}, []byte{1}),
		kind(flow.ActionDecMPLSTTL, 0), kind(flow.ActionSetMPLSTTL, 9), setTo(flow.FieldMPLSLabel, 0, 0, 0, 17), setTo(flow.FieldMPLSTC, 2),
		kind(flow.ActionPopMPLS, 0x800), kind(flow.ActionPushMPLS, 0x8847)),
	flowOf("tun_id=77,metadata=0x1100/0xff00,actions=set_field:0x9->tun_id,set_queue:3,group:6",
		flow.Match{}.WithTunnelID(77).WithMetadata(0x1100, 0xff00), setTo(flow.FieldTunnelID, 0, 0, 0, 0, 0, 0, 0, 9), kind(flow.ActionSetQueue, 3), flow.ToGroup(6)),
	{"table=3,priority=1000,cookie=0x574503,idle_timeout=10,hard_timeout=20,send_flow_rem,check_overlap,reset_counts,no_packet_counts,no_byte_counts,actions=meter:5,output:1,clear_actions,write_actions(output:2,group:4),write_metadata:0xab00/0xff00,goto_table:9",
		func(w *flow.Mod) {
			e := &w.Entry
			e.Table, e.Priority, e.Cookie, e.IdleTimeout, e.HardTimeout = 3, 1000, 0x574503, 10, 20
			e.Flags = flow.FlagSendRem | flow.FlagOverlap | flow.FlagReset | flow.FlagNoPackets | flow.FlagNoBytes
			e.Meter, e.Clear, e.HasWrite, e.Metadata, e.MetaMask, e.Goto = 5, true, true, 0xab00, 0xff00, 9
			e.Apply, e.Write = []flow.Action{toPort(1)}, []flow.Action{toPort(2), flow.ToGroup(4)}
		}},
	{"delete table=4,cookie=0x10/0xf0,out_port=7,out_group=8,ip", func(w *flow.Mod) {
		w.Command, w.Entry.Table, w.Entry.Cookie, w.CookieMask, w.OutPort, w.OutGroup, w.Entry.Match = flow.Delete, 4, 0x10, 0xf0, 7, 8, any4
	}},
	{"delete_strict table=4,priority=5,in_port=1", func(w *flow.Mod) {
		w.Command, w.Entry.Table, w.Entry.Priority, w.Entry.Match = flow.DeleteStrict, 4, 5, flow.Match{}.WithInPort(1)
	}},
	{"modify in_port=1,actions=output:3", func(w *flow.Mod) {
		w.Command, w.Entry.Match, w.Entry.Apply = flow.Modify, flow.Match{}.WithInPort(1), []flow.Action{toPort(3)}
	}},
	{"modify_strict priority=9,in_port=1,actions=output:3", func(w *flow.Mod) {
		w.Command, w.Entry.Priority, w.Entry.Match, w.Entry.Apply = flow.ModifyStrict, 9, flow.Match{}.WithInPort(1), []flow.Action{toPort(3)}
	}},
}

var ovsFlows10 = []ovsFlow{
	flowOf("in_port=1,actions=output:2", flow.Match{}.WithInPort(1), toPort(2)),
	flowOf("in_port=LOCAL,actions=IN_PORT,FLOOD,ALL,NORMAL,CONTROLLER:128", flow.Match{}.WithInPort(flow.PortLocal),
		toPort(flow.PortIn), toPort(flow.PortFlood), toPort(flow.PortAll), toPort(flow.PortNormal),
		flow.Action{Kind: flow.ActionOutput, Arg: uint32(flow.PortController), MaxLen: 128}),
	flowOf("dl_src=02:00:00:00:00:0a,dl_dst=02:00:00:00:00:0b,dl_vlan=100,dl_vlan_pcp=3,actions=mod_vlan_vid:200,mod_vlan_pcp:5,strip_vlan,mod_dl_src:02:00:00:00:00:0b,mod_dl_dst:02:00:00:00:00:0a",
		flow.Match{}.WithEthSrc(macA).WithEthDst(macB).WithVLAN(100).WithVLANPCP(3),
		flow.SetVLAN(200), setTo(flow.FieldVLANPCP, 5), flow.PopVLAN(), flow.SetEthSrc(macB), flow.SetEthDst(macA)),
	flowOf("dl_vlan=0xffff,actions=drop", flow.Match{}.WithoutVLAN()),
	flowOf("dl_vlan_pcp=2,actions=drop", flow.Match{}.WithAnyVLAN().WithVLANPCP(2)),
	flowOf("tcp,nw_src=10.1.0.0/16,nw_dst=10.2.3.4,nw_tos=184,tp_src=1025,tp_dst=80,actions=mod_nw_src:10.0.0.1,mod_nw_dst:10.0.0.2,mod_tp_src:1026,mod_tp_dst:8080,mod_nw_tos:40,enqueue:3:7,output:4",
		flow.Match{}.WithIPv4Src(ip("10.1.0.0/16")).WithIPv4Dst(ip("10.2.3.4/32")).WithTCPSrc(1025).WithTCPDst(80).WithIPDSCP(46),
		setTo(flow.FieldIPv4Src, 10, 0, 0, 1), setTo(flow.FieldIPv4Dst, 10, 0, 0, 2), setTo(flow.FieldTCPSrc, 4, 2), setTo(flow.FieldTCPDst, 0x1f, 0x90), setTo(flow.FieldIPDSCP, 10),
		kind(flow.ActionSetQueue, 7), toPort(3), kind(flow.ActionSetQueue, QueueNone), toPort(4)),
	flowOf("udp,tp_src=53,actions=mod_tp_dst:9", any4.WithUDPSrc(53), setTo(flow.FieldUDPDst, 0, 9)),
	flowOf("icmp,icmp_type=8,icmp_code=3,actions=drop", masked(any4.WithICMPv4Type(8), flow.FieldICMPv4Code, []byte{3}, []byte{0xff})),
	flowOf("arp,arp_op=1,nw_src=10.0.0.1,nw_dst=10.0.0.0/24,actions=drop", flow.Match{}.WithARPOp(1).WithARPSPA(ip("10.0.0.1/32")).WithARPTPA(ip("10.0.0.0/24"))),
	{"delete out_port=7,ip", func(w *flow.Mod) {
		w.Command, w.Entry.Table, w.OutPort, w.Entry.Match = flow.Delete, flow.TableAll, 7, any4
	}},
	{"modify priority=9,in_port=1,idle_timeout=10,hard_timeout=20,send_flow_rem,check_overlap,cookie=0x10,actions=output:3", func(w *flow.Mod) {
		e := &w.Entry
		w.Command, e.Priority, e.Match, e.Apply = flow.Modify, 9, flow.Match{}.WithInPort(1), []flow.Action{toPort(3)}
		e.IdleTimeout, e.HardTimeout, e.Flags, e.Cookie = 10, 20, flow.FlagSendRem|flow.FlagOverlap, 0x10
	}},
}

func ones(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xff
	}
	return b
}
