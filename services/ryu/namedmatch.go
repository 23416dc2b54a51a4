package ryu

import (
	"maps"
	"math/big"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// The names by which rest_firewall and rest_qos have ethertypes and protocols.
var (
	typeNames     = []named{{"ARP", uint32(flow.EthTypeARP)}, {"IPv4", uint32(flow.EthTypeIPv4)}, {"IPv6", uint32(flow.EthTypeIPv6)}}
	protocolNames = []named{{"TCP", uint32(flow.IPProtoTCP)}, {"UDP", uint32(flow.IPProtoUDP)}, {"ICMP", uint32(flow.IPProtoICMP)}, {"ICMPv6", uint32(flow.IPProtoICMPv6)}}
)

// namedKeys are the fields that rules may use.
var namedKeys = []string{
	"in_port", "dl_src", "dl_dst", "dl_type", "dl_vlan", "nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "nw_proto", "tp_src", "tp_dst",
}

// readNamedMatch reads the match of a rule: which fields go together, and what
// they imply, is as in Ryu. An unknown field is an error, because without it the
// rule would match more than was meant.
func readNamedMatch(in dict, more ...string) (flow.Match, error) {
	var none flow.Match
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(namedKeys, key) && !slices.Contains(more, key) {
			return none, bad("Invalid rule parameter. : key=%.40s is unknown", key)
		}
	}
	name, err := impliedType(in)
	if err != nil {
		return none, err
	}
	out := maps.Clone(in)
	if name != "" {
		out["dl_type"] = name
	}
	for key, names := range map[string][]named{"dl_type": typeNames, "nw_proto": protocolNames} {
		v, ok := out[key]
		if !ok {
			continue
		}
		i := slices.IndexFunc(names, func(x named) bool { return v == x.name })
		if i < 0 {
			return none, bad("Invalid rule parameter. : key=%s", key)
		}
		out[key] = big.NewInt(int64(names[i].number))
	}
	m, err := readMatch(out)
	if err != nil {
		return none, bad("Invalid rule parameter. : %v", err)
	}
	m.Normalize()
	if err := m.Check(); err != nil {
		return none, bad("Invalid rule parameter. : %v", err)
	}
	return m, nil
}

// impliedType checks which fields go together; it returns the name of the
// ethertype that they mean.
func impliedType(in dict) (string, error) {
	has := func(keys ...string) string {
		for _, k := range keys {
			if _, ok := in[k]; ok {
				return k
			}
		}
		return ""
	}
	proto := in["nw_proto"]
	_, protoKnown := proto.(string)
	pair := func(what, key string) error { return bad("Invalid combination: [%s and %s]", what, key) }
	name, given := in["dl_type"]
	if given && name != nil {
		switch name {
		case "ARP":
			if key := has("ipv6_src", "ipv6_dst"); key != "" {
				return "", pair("dl_type=ARP", key)
			}
			if has("ip_dscp") != "" {
				return "", pair("dl_type=ARP", "ip_dscp")
			}
			if protoKnown && proto != "" {
				return "", pair("dl_type=ARP", "nw_proto")
			}
		case "IPv4":
			if key := has("ipv6_src", "ipv6_dst"); key != "" {
				return "", pair("dl_type=IPv4", key)
			}
			if proto == "ICMPv6" {
				return "", pair("dl_type=IPv4", "nw_proto=ICMPv6")
			}
		case "IPv6":
			if key := has("nw_src", "nw_dst"); key != "" {
				return "", pair("dl_type=IPv6", key)
			}
			if proto == "ICMP" {
				return "", pair("dl_type=IPv6", "nw_proto=ICMP")
			}
		default:
			return "", bad("Unknown dl_type : %.40v", name)
		}
		return name.(string), nil
	}
	if key := has("nw_src", "nw_dst"); key != "" {
		if other := has("ipv6_src", "ipv6_dst"); other != "" {
			return "", pair(key, other)
		}
		if proto == "ICMPv6" {
			return "", pair(key, "nw_proto=ICMPv6")
		}
		return "IPv4", nil
	}
	if key := has("ipv6_src", "ipv6_dst"); key != "" {
		if proto == "ICMP" {
			return "", pair(key, "nw_proto=ICMP")
		}
		return "IPv6", nil
	}
	if has("ip_dscp") != "" {
		return "IPv4", nil
	}
	switch proto {
	case "ICMP":
		return "IPv4", nil
	case "ICMPv6":
		return "IPv6", nil
	case "TCP", "UDP":
		return "", bad("no dl_type was specified")
	case nil:
		return "", bad("Unknown nw_proto: None")
	}
	return "", bad("Unknown nw_proto: %.40v", proto)
}

// showNamedMatch adds the fields of a match to the object of a rule.
func showNamedMatch(m *flow.Match, out map[string]any) {
	for key, v := range showMatch(m) {
		n, isNumber := v.(uint64)
		if isNumber && n == 0 {
			continue // Ryu takes it for a wildcard of OpenFlow 1.0
		}
		for of, names := range map[string][]named{"dl_type": typeNames, "nw_proto": protocolNames} {
			for _, x := range names {
				if key == of && isNumber && n == uint64(x.number) {
					v = x.name
				}
			}
		}
		out[key] = v
	}
}
