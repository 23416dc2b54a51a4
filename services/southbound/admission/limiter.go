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
	LLC    bool // the switch can match frames with LLC
}

// LimiterTimeout is after how many seconds the switch removes the entries.
const LimiterTimeout = 10

// LimiterEntries returns the entries of a flood limiter. Those without a table to
// continue in are without their instructions: what they match goes through the meter to
// the controller. What the others match goes on without a copy for the controller.
func LimiterEntries(g *Limiter, table uint8, port flow.Port, from flow.MAC) (list []flow.Entry) {
	add := func(table uint8, priority uint16, m flow.Match) {
		if from != (flow.MAC{}) {
			m = m.WithEthSrc(from)
		}
		list = append(list, flow.Entry{
			Table: table, Priority: priority, HardTimeout: LimiterTimeout, Match: m.WithInPort(port),
			Cookie: flow.NewCookie(flow.OwnerGuard, 0, uint32(port)),
		})
	}
	if g.Misses {
		add(table, flow.PriorityLimitedMiss, flow.Match{})
	}
	if table != 0 {
		for _, m := range flow.Announcements(g.LLC) {
			add(flow.TableNeighbours, flow.PriorityLimitedTrap, m)
			list[len(list)-1].Goto = table
		}
	}
	if !g.Traps {
		return list
	}
	trap := func(m flow.Match) { add(table, flow.PriorityLimitedTrap, m) }
	neighbourly := flow.Match{}
	if table != 0 {
		for _, m := range neighbourly.Unicast().ARPOrND() {
			add(flow.TableNeighbours, flow.PriorityLimitedTrap, m)
			add(table, flow.PriorityLimitedMiss, m) // what was let through, and has no route
		}
		neighbourly = neighbourly.Multicast()
	}
	for _, m := range neighbourly.ARPOrND() {
		trap(m)
	}
	trap(flow.Match{}.WithEthType(flow.EthTypeRARP))
	trap(flow.Match{}.WithICMPv6Type(flow.ICMPv6Router))
	for _, dhcp := range []struct {
		ethType, port uint16
	}{{flow.EthTypeIPv4, 67}, {flow.EthTypeIPv4, 68}, {flow.EthTypeIPv6, 546}, {flow.EthTypeIPv6, 547}} {
		trap(flow.Match{}.WithEthType(dhcp.ethType).WithUDPDst(dhcp.port))
	}
	return list
}
