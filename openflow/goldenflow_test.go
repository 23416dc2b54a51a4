package openflow

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

func goldens() []golden {
	return append(append(goldenFlows(), goldenFlows10()...), goldenOthers()...)
}

func masked(m flow.Match, f flow.Field, value, mask []byte) flow.Match {
	var v, k [16]byte
	copy(v[:], value)
	copy(k[:], mask)
	m.PutMasked(f, v, k)
	return m
}

// goldenFlows is every match field, action and instruction of OpenFlow 1.3.
func goldenFlows() []golden {
	g := func(name string, m flow.Mod) golden {
		return golden{name: "flow-mod-" + name, codec: "flow-mod", version: V13, value: m}
	}
	l2 := add(flow.Match{}.WithInPort(1).WithEthSrc(macA).WithEthDstMasked(flow.MAC{1}, flow.MAC{1}).WithVLAN(100).WithVLANPCP(3),
		flow.PopVLAN(), flow.PushVLAN(0x88a8), flow.SetVLAN(200), setTo(flow.FieldVLANPCP, 5), flow.Output(2), flow.Output(flow.PortController))
	l2.Entry.Flags = flow.FlagSendRem | flow.FlagOverlap | flow.FlagReset
	pipeline := add(flow.Match{}.WithMetadata(0x1100, 0xff00).WithTunnelID(77), flow.Output(flow.PortFlood))
	e := &pipeline.Entry
	e.Table, e.Goto, e.Clear, e.Meter, e.Metadata, e.MetaMask = 3, 9, true, 5, 0xab00, 0xff00
	e.HasWrite, e.Write = true, []flow.Action{flow.ToGroup(6), {Kind: flow.ActionSetQueue, Arg: 8}}
	remove := add(flow.Match{}.WithEthType(flow.EthTypeIPv4))
	remove.Command, remove.OutPort, remove.OutGroup, remove.CookieMask = flow.Delete, 4, 5, 0xffffff
	remove.Entry.Table = flow.TableAll
	buffered := add(flow.Match{}, flow.Output(flow.PortTable))
	buffered.Command, buffered.BufferID = flow.ModifyStrict, 0x1234
	list := []golden{
		g("l2", l2),
		g("ipv4-tcp", add(flow.Match{}.WithIPv4Src(ip("10.1.0.0/16")).WithIPv4Dst(ip("10.2.3.4/32")).WithTCPSrc(1025).WithTCPDst(80).WithIPDSCP(46),
			setTo(flow.FieldIPv4Src, 192, 0, 2, 1), setTo(flow.FieldIPv4Dst, 192, 0, 2, 2), setTo(flow.FieldTCPSrc, 4, 2), setTo(flow.FieldTCPDst, 0x1f, 0x90),
			flow.Action{Kind: flow.ActionDecNwTTL}, flow.Action{Kind: flow.ActionSetNwTTL, Arg: 33}, setTo(flow.FieldIPDSCP, 10), setTo(flow.FieldIPECN, 1), flow.Output(flow.PortIn))),
		g("ipv4-udp", add(flow.Match{}.WithIPv4Dst(ip("10.0.0.0/8")).WithUDPSrc(53).WithUDPDst(54), setTo(flow.FieldUDPSrc, 0, 1), setTo(flow.FieldUDPDst, 0, 2))),
		g("ipv4-sctp", add(flow.Match{}.WithSCTPSrc(5).WithSCTPDst(6).WithIPv4Src(ip("10.0.0.1/32")), setTo(flow.FieldSCTPSrc, 0, 1), setTo(flow.FieldSCTPDst, 0, 2))),
		g("icmp", add(masked(flow.Match{}.WithICMPv4Type(8), flow.FieldICMPv4Code, []byte{3}, []byte{0xff}), setTo(flow.FieldICMPv4Type, 0), setTo(flow.FieldICMPv4Code, 1))),
		g("arp", add(flow.Match{}.WithARPOp(1).WithARPSPA(ip("10.0.0.1/32")).WithARPTPA(ip("10.0.0.0/24")).WithARPSHA(macA).WithARPTHA(macB),
			setTo(flow.FieldARPOp, 0, 2), setTo(flow.FieldARPSPA, 10, 0, 0, 9), setTo(flow.FieldARPTPA, 10, 0, 0, 8), setTo(flow.FieldARPSHA, macB[:]...), setTo(flow.FieldARPTHA, macA[:]...))),
		g("ipv6", add(masked(flow.Match{}.WithIPv6Src(ip("2001:db8::/32")).WithIPv6Dst(ip("2001:db8::5/128")), flow.FieldIPv6FLabel, []byte{0, 1, 2, 3}, []byte{0, 0xf, 0xff, 0xff}),
			setTo(flow.FieldIPv6Src, addr("2001:db8::1")...), setTo(flow.FieldIPv6Dst, addr("2001:db8::2")...), setTo(flow.FieldIPv6FLabel, 0, 0, 0, 7))),
		g("icmpv6-nd", add(masked(masked(flow.Match{}.WithICMPv6Type(135).WithNDTarget(netip.MustParseAddr("fe80::1")), flow.FieldNDSLL, macA[:], flow.Broadcast[:]), flow.FieldICMPv6Code, []byte{0}, []byte{0xff}),
			setTo(flow.FieldICMPv6Type, 136), setTo(flow.FieldICMPv6Code, 0), setTo(flow.FieldNDTarget, addr("fe80::2")...), setTo(flow.FieldNDSLL, macB[:]...))),
		g("icmpv6-advert", add(masked(flow.Match{}.WithICMPv6Type(136), flow.FieldNDTLL, macA[:], flow.Broadcast[:]), setTo(flow.FieldNDTLL, macB[:]...))),
		g("mpls", add(masked(masked(flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(16), flow.FieldMPLSTC, []byte{3}, []byte{7}), flow.FieldMPLSBOS, []byte{1}, []byte{1}),
			flow.Action{Kind: flow.ActionDecMPLSTTL}, flow.Action{Kind: flow.ActionSetMPLSTTL, Arg: 9}, setTo(flow.FieldMPLSLabel, 0, 0, 0, 17), setTo(flow.FieldMPLSTC, 2),
			flow.Action{Kind: flow.ActionPushMPLS, Arg: 0x8847}, flow.Action{Kind: flow.ActionPopMPLS, Arg: 0x800})),
		g("pipeline", pipeline),
		g("delete", remove),
		g("modify-buffered", buffered),
		g("any-vlan", add(flow.Match{}.WithAnyVLAN(), setTo(flow.FieldEthSrc, macA[:]...), setTo(flow.FieldEthDst, macB[:]...), setTo(flow.FieldTunnelID, 0, 0, 0, 0, 0, 0, 0, 9))),
		g("no-vlan", add(flow.Match{}.WithoutVLAN().WithEthSrcMasked(macA, flow.MAC{0xff, 0xff, 0xff}))),
	}
	rare := g("rare", add(masked(masked(flow.Match{}.WithInPort(1).WithEthType(flow.EthTypePBB), flow.FieldInPhyPort, []byte{0, 0, 0, 2}, flow.Broadcast[:4]),
		flow.FieldPBBISID, []byte{1, 2, 0}, []byte{0xff, 0xff, 0}),
		flow.Action{Kind: flow.ActionCopyTTLIn}, flow.Action{Kind: flow.ActionCopyTTLOut}, flow.Action{Kind: flow.ActionPushPBB, Arg: 0x88e7}, flow.Action{Kind: flow.ActionPopPBB},
		flow.Action{Kind: flow.ActionExperimenter, Arg: 0x5765, Data: "weft1234"}))
	rare.noOVS = "knows neither in_phy_port nor PBB nor copy-ttl"
	exthdr := g("ipv6-exthdr", add(masked(flow.Match{}.WithEthType(flow.EthTypeIPv6), flow.FieldIPv6ExtHdr, []byte{0, 5}, []byte{0, 0x7f})))
	exthdr.noOVS = "does not know ipv6_exthdr"
	nicira := []golden{
		g("eompls-push", add(flow.Match{}.WithInPort(4), flow.Encap(flow.PacketMPLS), flow.SetMPLSLabel(500), flow.Encap(flow.PacketEthernet),
			setTo(flow.FieldEthSrc, macA[:]...), setTo(flow.FieldEthDst, macB[:]...), flow.ToGroup(1))),
		g("eompls-pop", add(flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(500).WithMPLSTC(2).WithMPLSBOS(1),
			flow.Decap(flow.PacketNext), flow.Decap(flow.PacketEthernet), flow.Output(4))),
		g("resubmit", add(flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(2001).WithMPLSBOS(0), flow.DecMPLSTTL(), flow.PopMPLS(flow.EthTypeMPLS),
			flow.Resubmit{In: flow.PortIn, Table: 2}.Action(), flow.Resubmit{In: 3, Table: 254}.Action(), flow.Resubmit{In: flow.PortLocal, Table: flow.NoTable}.Action())),
	}
	for i := range nicira {
		nicira[i].noWireshark = "leaves the bodies of experimenters' actions undecoded"
	}
	return append(append(list, rare, exthdr), nicira...)
}

func addr(s string) []byte { return netip.MustParseAddr(s).AsSlice() }

// goldenFlows10 is every match field and action of OpenFlow 1.0.
func goldenFlows10() []golden {
	g := func(name string, m flow.Mod) golden {
		return golden{name: "flow-mod10-" + name, codec: "flow-mod", version: V10, value: m}
	}
	tcp := add(flow.Match{}.WithInPort(1).WithEthSrc(macA).WithEthDst(macB).WithVLAN(100).WithVLANPCP(3).WithIPv4Src(ip("10.1.0.0/16")).WithIPv4Dst(ip("10.2.3.4/32")).WithIPDSCP(46).WithTCPSrc(1025).WithTCPDst(80),
		flow.SetVLAN(200), setTo(flow.FieldVLANPCP, 5), flow.PopVLAN(), setTo(flow.FieldEthSrc, macB[:]...), setTo(flow.FieldEthDst, macA[:]...),
		setTo(flow.FieldIPv4Src, 192, 0, 2, 1), setTo(flow.FieldIPv4Dst, 192, 0, 2, 2), setTo(flow.FieldIPDSCP, 10), setTo(flow.FieldTCPSrc, 4, 2), setTo(flow.FieldTCPDst, 0x1f, 0x90),
		flow.Output(2), flow.Output(flow.PortController), flow.Action{Kind: flow.ActionSetQueue, Arg: 7}, flow.Action{Kind: flow.ActionOutput, Arg: 3})
	tcp.Entry.Flags = flow.FlagSendRem | flow.FlagOverlap
	remove := add(flow.Match{}.WithARPOp(1).WithARPSPA(ip("10.0.0.1/32")).WithARPTPA(ip("10.0.0.0/24")))
	remove.Command, remove.OutPort, remove.Entry.Table = flow.DeleteStrict, flow.PortLocal, flow.TableAll
	removal := g("delete-arp", remove)
	removal.noWireshark = "reads an action even where there is none"
	return []golden{
		g("tcp", tcp),
		removal,
		g("icmp", add(masked(flow.Match{}.WithICMPv4Type(8), flow.FieldICMPv4Code, []byte{3}, []byte{0xff}), flow.Output(flow.PortFlood))),
		g("udp-no-vlan", add(flow.Match{}.WithoutVLAN().WithEthType(flow.EthTypeIPv4).WithUDPSrc(53).WithUDPDst(54), setTo(flow.FieldUDPSrc, 0, 1), setTo(flow.FieldUDPDst, 0, 2), flow.Output(flow.PortIn))),
		g("any-vlan", add(flow.Match{}.WithAnyVLAN().WithVLANPCP(2), flow.Output(flow.PortNormal))),
	}
}
