package forwarding

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// TestNeighboursAreJudged: unicast ARP and neighbour discovery comes to the controller
// from every port but a link's, which leads it to the routes; to groups it goes as
// before. A switch with one table has all of it come.
func TestNeighboursAreJudged(t *testing.T) {
	net, a, b := line(t, 3)
	e := testEngine(t, net, func(c *Config) {
		c.Subnets = []Subnet{{Gateway: "10.0.0.254/24"}, {Gateway: "10.0.1.254/24"}}
	}, a.at, b.at)
	const edge, tree, link, unsettled = flow.Port(1), flow.Port(2), flow.Port(3), flow.Port(7)
	for port, role := range map[flow.Port]flow.PortRole{edge: flow.RoleEdge, tree: flow.RoleLink, link: flow.RoleLink, unsettled: flow.RoleUnsettled} {
		setRole(e.portTable, flow.Location{Switch: 2, Port: port}, role)
	}
	toController := []flow.Action{flow.Output(flow.PortController)}
	arp := func(spa byte) []byte {
		return packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: newHost(int(spa), 1, 1).ip, TargetMAC: b.mac, TargetIP: b.ip})
	}
	asked := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: a.ip, TargetIP: b.ip})
	ll := func(n byte) netip.Addr { return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 15: n}) }
	solicit := packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: a.mac, SrcIP: ll(1), DstMAC: b.mac, DstIP: ll(2), Target: ll(2)})
	advert := packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: a.mac, SrcIP: ll(1), DstMAC: b.mac, DstIP: ll(2), Target: ll(1)})
	for _, table := range []uint8{flow.TableForward, 0} {
		entries, _ := e.standingEntries(2, []flow.Port{tree}, false, table)
		// last returns the entry at which a frame's way ends, from the first table
		// of these on.
		last := func(in flow.Port, frame []byte) (best *flow.Entry) {
			k := flow.Key{InPort: in}
			packet.Parse(frame, &k)
			for at := flow.TableNeighbours; ; at = best.Goto {
				best = nil
				for i := range entries {
					if x := &entries[i]; x.Table == min(at, table) && x.Match.Matches(&k) && (best == nil || x.Priority > best.Priority) {
						best = x
					}
				}
				if best == nil || best.Goto == 0 {
					return best
				}
			}
		}
		for what, frame := range map[string][]byte{"ARP": arp(1), "solicitation": solicit, "advertisement": advert} {
			for _, port := range []flow.Port{edge, unsettled, tree, link} {
				want := flow.PriorityTrap
				if table != 0 && (port == tree || port == link) {
					want = flow.PriorityMiss // no route: to the controller, too
				}
				if x := last(port, frame); x == nil || int(x.Priority) != want || !slices.Equal(x.Apply, toController) {
					t.Errorf("table %d: unicast %s from port %d: %+v, want priority %d", table, what, port, x, want)
				}
			}
		}
		if x := last(edge, asked); x == nil || x.Priority != flow.PriorityTrap || x.Table != table {
			t.Errorf("table %d: ARP to all from an edge port: %+v", table, x)
		}
		if x := last(tree, asked); x == nil || x.Priority != flow.PriorityLinkFlood || len(x.Apply) == 0 {
			t.Errorf("table %d: ARP to all from a link of the tree: %+v", table, x)
		}
		for _, x := range entries {
			if table == 0 && x.Table != 0 {
				t.Errorf("an entry of table %d on a switch with one", x.Table)
			}
		}
		if x := last(edge, arp(254)); table != 0 && (x == nil || x.Priority != flow.PriorityNeighbourOwn) {
			t.Errorf("a reply with the address of a gateway: %+v", x)
		}
	}
}
