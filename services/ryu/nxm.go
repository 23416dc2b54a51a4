package ryu

// Ryu's names of Open vSwitch's own match fields (nicira-ext.h): nxm0 those of
// class 0, nxm1 those of class 1.
var (
	nxm0 = [...]string{
		"in_port_nxm", "eth_dst_nxm", "eth_src_nxm", "eth_type_nxm", "vlan_tci", "nw_tos", "ip_proto_nxm", "ipv4_src_nxm", "ipv4_dst_nxm",
		"tcp_src_nxm", "tcp_dst_nxm", "udp_src_nxm", "udp_dst_nxm", "icmpv4_type_nxm", "icmpv4_code_nxm", "arp_op_nxm", "arp_spa_nxm", "arp_tpa_nxm",
	}
	nxm1 = [128]string{
		0: "reg0", 1: "reg1", 2: "reg2", 3: "reg3", 4: "reg4", 5: "reg5", 6: "reg6", 7: "reg7",
		8: "reg8", 9: "reg9", 10: "reg10", 11: "reg11", 12: "reg12", 13: "reg13", 14: "reg14", 15: "reg15",
		16: "tunnel_id_nxm", 17: "arp_sha_nxm", 18: "arp_tha_nxm", 19: "ipv6_src_nxm", 20: "ipv6_dst_nxm", 21: "icmpv6_type_nxm",
		22: "icmpv6_code_nxm", 23: "nd_target", 24: "nd_sll", 25: "nd_tll", 26: "ip_frag", 27: "ipv6_label", 28: "ip_ecn_nxm",
		29: "nw_ttl", 30: "mpls_ttl", 31: "tun_ipv4_src", 32: "tun_ipv4_dst", 33: "pkt_mark", 34: "tcp_flags_nxm",
		36: "_recirc_id", 37: "conj_id", 38: "tun_gbp_id", 39: "tun_gbp_flags", 104: "tun_flags", 105: "ct_state", 106: "ct_zone",
		107: "ct_mark", 108: "ct_label", 109: "tun_ipv6_src", 110: "tun_ipv6_dst",
		111: "xxreg0", 112: "xxreg1", 113: "xxreg2", 114: "xxreg3",
	}
)
