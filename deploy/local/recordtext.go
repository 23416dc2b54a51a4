package local

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// Bounds of what is said of a stage's operations.
const (
	operationsMost = 16
	operationText  = 300
)

// Operations returns, for people, the operations of a decision from one on.
func Operations(d *flow.Decision, from int) (list []string) {
	for i := min(from, len(d.Ops)); i < len(d.Ops); i++ {
		if len(list) == operationsMost {
			return append(list, fmt.Sprintf("and %d more", len(d.Ops)-i))
		}
		list = append(list, short(operation(d, d.Ops[i])))
	}
	return list
}

func short(text string) string {
	if len(text) > operationText {
		return strings.ToValidUTF8(text[:operationText], "") + "…"
	}
	return text
}

// programs returns the numbers of the switches that operations of a decision, from
// one on, change.
func programs(d *flow.Decision, from int) (list []uint64) {
	for _, sw := range d.Programs(from) {
		if len(list) < operationsMost {
			list = append(list, uint64(sw))
		}
	}
	return list
}

func operation(d *flow.Decision, op flow.Op) string {
	switch op.Kind {
	case flow.OpFlow:
		m := &d.Flows[op.Index]
		return fmt.Sprintf("%s flow at %v: %v", command(m.Command), op.Switch, m.Entry)
	case flow.OpGroup:
		m := &d.Groups[op.Index]
		return fmt.Sprintf("%s group %d at %v", command(m.Command), m.Group.ID, op.Switch)
	case flow.OpMeter:
		m := &d.Meters[op.Index]
		return fmt.Sprintf("%s meter %d at %v", command(m.Command), m.Meter.ID, op.Switch)
	case flow.OpPacketOut:
		o := &d.Outs[op.Index]
		return fmt.Sprintf("send a packet at %v: %s", op.Switch, flow.FormatActions(o.Actions))
	}
	return "wait until the switches have confirmed"
}

func command(c flow.Command) string {
	switch c {
	case flow.Add:
		return "add"
	case flow.Modify, flow.ModifyStrict:
		return "modify"
	case flow.Delete, flow.DeleteStrict:
		return "delete"
	}
	return "change"
}

// protocols are the names of some IP protocols.
var protocols = map[uint8]string{1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP"}

// summary describes a packet in a line.
func summary(k *flow.Key, octets int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v > %v", k.EthSrc, k.EthDst)
	if k.VLAN != 0 {
		fmt.Fprintf(&b, " VLAN %d", k.VLAN&0xfff)
	}
	var src, dst netip.Addr
	switch k.EthType {
	case flow.EthTypeARP:
		word := "request"
		if k.ARPOp == 2 {
			word = "reply"
		}
		fmt.Fprintf(&b, ", ARP %s %v > %v", word, netip.AddrFrom4(k.ARPSPA), netip.AddrFrom4(k.ARPTPA))
	case flow.EthTypeLLDP:
		b.WriteString(", LLDP")
	case flow.EthTypeIPv4:
		src, dst = netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst)
	case flow.EthTypeIPv6:
		src, dst = netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
	default:
		fmt.Fprintf(&b, ", type %#04x", k.EthType)
	}
	if src.IsValid() {
		name := protocols[k.IPProto]
		if name == "" {
			name = fmt.Sprintf("IP protocol %d", k.IPProto)
		}
		switch {
		case k.TPSrc|k.TPDst != 0:
			fmt.Fprintf(&b, ", %s %v > %v", name, netip.AddrPortFrom(src, k.TPSrc), netip.AddrPortFrom(dst, k.TPDst))
		case k.IPProto == 1 || k.IPProto == 58:
			fmt.Fprintf(&b, ", %s type %d %v > %v", name, k.ICMPType, src, dst)
		default:
			fmt.Fprintf(&b, ", %s %v > %v", name, src, dst)
		}
	}
	fmt.Fprintf(&b, ", %d octets", octets)
	return b.String()
}
