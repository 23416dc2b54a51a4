package admission

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestLimiterOfNeighbours: the limiter of a port that floods ARP or neighbour discovery
// has what would come to the controller, to one or to all, in the table where it would;
// what a switch lets through of known hosts it has only where no route leads it on.
func TestLimiterOfNeighbours(t *testing.T) {
	const port = 3
	arp := func(dst flow.MAC) flow.Key { return flow.Key{InPort: port, EthDst: dst, EthType: flow.EthTypeARP} }
	solicit := func(dst flow.MAC) flow.Key {
		return flow.Key{InPort: port, EthDst: dst, EthType: flow.EthTypeIPv6, IPProto: flow.IPProtoICMPv6, ICMPType: flow.ICMPv6Solicit}
	}
	one, all := flow.MAC{2}, flow.Broadcast
	for _, c := range []struct {
		forward uint8
		table   uint8
		k       flow.Key
		want    uint16
	}{
		{flow.TableForward, flow.TableNeighbours, arp(one), flow.PriorityLimitedTrap},
		{flow.TableForward, flow.TableNeighbours, solicit(one), flow.PriorityLimitedTrap},
		{flow.TableForward, flow.TableNeighbours, arp(all), 0},
		{flow.TableForward, flow.TableNeighbours, flow.Key{InPort: port, EthDst: all, EthType: flow.EthTypeEAPOL}, flow.PriorityLimitedTrap}, // a copy
		{flow.TableForward, flow.TableForward, flow.Key{InPort: port, EthDst: all, EthType: flow.EthTypeEAPOL}, 0},
		{flow.TableForward, flow.TableForward, arp(all), flow.PriorityLimitedTrap},
		{flow.TableForward, flow.TableForward, solicit(all), flow.PriorityLimitedTrap},
		{flow.TableForward, flow.TableForward, arp(one), flow.PriorityLimitedMiss},
		{flow.TableForward, flow.TableForward, solicit(one), flow.PriorityLimitedMiss},
		{flow.TableForward, flow.TableForward, flow.Key{InPort: port, EthDst: one}, 0},
		{0, 0, arp(one), flow.PriorityLimitedTrap},
		{0, 0, arp(all), flow.PriorityLimitedTrap},
	} {
		best := uint16(0)
		for _, e := range LimiterEntries(&Limiter{Traps: true}, c.forward, port, flow.MAC{}) {
			if err := e.Match.Check(); err != nil {
				t.Fatal(err)
			}
			if e.Table == c.table && e.Match.Matches(&c.k) {
				best = max(best, e.Priority)
			}
			if c.forward == 0 && e.Table != 0 {
				t.Errorf("an entry of table %d on a switch with one", e.Table)
			}
		}
		if best != c.want {
			t.Errorf("table %d of a switch with routes in %d: %v to %v: priority %d, want %d", c.table, c.forward, c.k.EthType, c.k.EthDst, best, c.want)
		}
	}
}
