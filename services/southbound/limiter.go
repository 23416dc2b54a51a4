package southbound

import "github.com/weft-sdn/weft/flow"

// guard is a flood limiter: a meter in the switch of a limited port, and
// entries that send through it what would come to the controller. The entries
// time out, and are rewritten as long as the flood lasts.
type guard struct {
	pushed int64 // when they were last written, in ns; 0 if they are not in the switch
	rate   uint32
	traps  bool // it has entries for ARP, neighbour discovery and DHCP
	misses bool // it has entries for packets that match no other entry
}

// guardTimeout is after how many seconds the switch removes the entries.
const guardTimeout = 10

// guardEntries returns the entries of a flood limiter, without their
// instructions.
func guardEntries(g *guard, table uint8, port flow.Port, from flow.MAC) (list []flow.Entry) {
	add := func(priority uint16, m flow.Match) {
		if from != (flow.MAC{}) {
			m = m.WithEthSrc(from)
		}
		list = append(list, flow.Entry{
			Table: table, Priority: priority, HardTimeout: guardTimeout, Match: m.WithInPort(port),
			Cookie: flow.NewCookie(flow.OwnerGuard, 0, uint32(port)),
		})
	}
	if g.misses {
		add(flow.PriorityLimitedMiss, flow.Match{})
	}
	if g.traps {
		add(flow.PriorityLimitedTrap, flow.Match{}.WithEthType(flow.EthTypeARP))
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
