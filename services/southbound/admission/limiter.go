package admission

import "github.com/weft-sdn/weft/flow"

// Limiter is a flood limiter: a meter in the switch of a limited port, and
// entries that send through it what would come to the controller. The entries
// time out, and are rewritten as long as the flood lasts.
type Limiter struct {
	Pushed int64 // when they were last written, in ns; 0 if they are not in the switch
	Rate   uint32
	Traps  bool // it has entries for ARP, neighbour discovery and DHCP
	Misses bool // it has entries for packets that match no other entry
}

// LimiterTimeout is after how many seconds the switch removes the entries.
const LimiterTimeout = 10

// LimiterEntries returns the entries of a flood limiter, without their
// instructions.
func LimiterEntries(g *Limiter, table uint8, port flow.Port, from flow.MAC) (list []flow.Entry) {
	add := func(priority uint16, m flow.Match) {
		if from != (flow.MAC{}) {
			m = m.WithEthSrc(from)
		}
		list = append(list, flow.Entry{
			Table: table, Priority: priority, HardTimeout: LimiterTimeout, Match: m.WithInPort(port),
			Cookie: flow.NewCookie(flow.OwnerGuard, 0, uint32(port)),
		})
	}
	if g.Misses {
		add(flow.PriorityLimitedMiss, flow.Match{})
	}
	if g.Traps {
		add(flow.PriorityLimitedTrap, flow.Match{}.WithEthType(flow.EthTypeARP))
		add(flow.PriorityLimitedTrap, flow.Match{}.WithEthType(flow.EthTypeRARP))
		add(flow.PriorityLimitedTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Router))
		add(flow.PriorityLimitedTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Solicit))
		add(flow.PriorityLimitedTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Advert))
		for _, dhcp := range []struct {
			ethType, port uint16
		}{{flow.EthTypeIPv4, 67}, {flow.EthTypeIPv4, 68}, {flow.EthTypeIPv6, 546}, {flow.EthTypeIPv6, 547}} {
			add(flow.PriorityLimitedTrap, flow.Match{}.WithEthType(dhcp.ethType).WithUDPDst(dhcp.port))
		}
	}
	return list
}
