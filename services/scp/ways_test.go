package scp

import (
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// TestWays: with the entries of planWays, and nothing else, switches take the TCP, ARP and
// neighbour discovery of consumers to the NRF and its answers back, and nothing of others, nor
// anything else.
func TestWays(t *testing.T) {
	for name, v6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) { testWays(t, v6) })
	}
}

func testWays(t *testing.T, v6 bool) {
	var net nib.Snapshot
	feed := wefttest.Network(reads, func(c nib.Change) { net = c.Is })
	links := map[flow.Location]flow.Location{}
	for sw := flow.DPID(1); sw <= 3; sw++ {
		feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: 254}})
		for port := uint32(1); port <= 2; port++ {
			feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: port}, Role: "edge"}})
		}
	}
	link := func(a, b flow.Location, state string) {
		for _, l := range [][2]flow.Location{{a, b}, {b, a}} {
			feed(&api.LinkChanged{Link: &api.Link{Src: api.NewLocation(l[0]), Dst: api.NewLocation(l[1]), State: state}})
			links[l[0]] = l[1]
		}
	}
	link(flow.Location{Switch: 1, Port: 11}, flow.Location{Switch: 2, Port: 11}, "up")
	link(flow.Location{Switch: 2, Port: 12}, flow.Location{Switch: 3, Port: 12}, "up")
	link(flow.Location{Switch: 1, Port: 13}, flow.Location{Switch: 3, Port: 13}, "held")

	address := func(n int) netip.Addr {
		if v6 {
			return netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(n)})
		}
		return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
	}
	nrf := netip.AddrPortFrom(address(1), 7777)
	at := func(n int, sw flow.DPID, port flow.Port) nrfClient {
		return nrfClient{address(n), object.Station{MAC: macOf(n), At: flow.Location{Switch: sw, Port: port}}}
	}
	there, near, far, third := at(1, 1, 1), at(2, 1, 2), at(3, 3, 1), at(4, 3, 2)
	plan := planWays(net, &flow.Tagging{}, 0, nrf, there.Station, []nrfClient{near, far})
	// carry returns to which port a frame comes that a host sends.
	carry := func(from nrfClient, frame []byte) (at flow.Location) {
		for in := from.At; ; {
			var best *flow.Entry
			k := wefttest.NewPacketIn(in.Switch, in.Port, frame)
			key := packet.Headers(k)
			for i, e := range plan[in.Switch] {
				if e.Match.Matches(key) && (best == nil || e.Priority > best.Priority) {
					best = &plan[in.Switch][i]
				}
			}
			if best == nil {
				return flow.Location{}
			}
			out := flow.Location{Switch: in.Switch, Port: flow.Port(best.Apply[len(best.Apply)-1].Arg)}
			next, on := links[out]
			if !on {
				return out
			}
			in = next
		}
	}
	tcp := func(from, to nrfClient, src, dst uint16) []byte {
		return packet.AppendTCP(nil, packet.Ether{Src: from.MAC, Dst: to.MAC}, packet.IP{Src: from.addr, Dst: to.addr}, packet.TCPFields{SrcPort: src, DstPort: dst, Flags: packet.TCPSyn}, nil)
	}
	ask := func(from, to nrfClient) []byte {
		if v6 {
			return packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: from.MAC, SrcIP: from.addr, Target: to.addr})
		}
		return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: from.MAC, SenderIP: from.addr, TargetIP: to.addr})
	}
	say := func(from, to nrfClient) []byte {
		if v6 {
			return packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: from.MAC, SrcIP: from.addr, DstMAC: to.MAC, DstIP: to.addr, Target: from.addr})
		}
		return packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: from.MAC, SenderIP: from.addr, TargetMAC: to.MAC, TargetIP: to.addr})
	}
	for _, c := range []nrfClient{near, far} {
		for what, frame := range map[string][]byte{"its SYN": tcp(c, there, 4000, 7777), "its question": ask(c, there), "where it is": say(c, there)} {
			if got := carry(c, frame); got != there.At {
				t.Errorf("%v: %s comes to %v", c.addr, what, got)
			}
		}
		for what, frame := range map[string][]byte{"the answer": tcp(there, c, 7777, 4000), "the NRF's question": ask(there, c), "where the NRF is": say(there, c)} {
			if got := carry(there, frame); got != c.At {
				t.Errorf("%v: %s comes to %v", c.addr, what, got)
			}
		}
	}
	nowhere := flow.Location{}
	if got := carry(far, tcp(far, there, 4000, 80)); got != nowhere {
		t.Errorf("another port of the NRF's host: %v", got)
	}
	if got := carry(there, tcp(there, far, 80, 4000)); got != nowhere {
		t.Errorf("what the NRF's host sends besides: %v", got)
	}
	if got := carry(third, tcp(third, there, 4000, 7777)); got != nowhere {
		t.Errorf("somebody else: %v", got)
	}
	if got := carry(third, tcp(far, there, 4000, 7777)); got != nowhere {
		t.Errorf("somebody else, as a consumer: %v", got)
	}
	if got := carry(near, tcp(near, far, 7777, 4000)); got != nowhere {
		t.Errorf("between consumers: %v", got)
	}
	link(flow.Location{Switch: 2, Port: 12}, flow.Location{Switch: 3, Port: 12}, "one_way")
	if plan = planWays(net, &flow.Tagging{}, 0, nrf, there.Station, []nrfClient{near, far}); len(plan[3]) != 0 || len(plan[1]) == 0 {
		t.Errorf("switch 3 is not reached: %v", plan[3])
	}
}

// TestWaysFollow: who registers, and who asks the front, has ways; switches are
// declared their entries when these change.
func TestWaysFollow(t *testing.T) {
	n := newNetwork(t, false)
	for host := 1; host <= 3; host++ {
		n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: flow.DPID(1).String(), Port: uint32(host)}, Role: "edge"}})
		n.learn(host, n.addr(host))
	}
	ways := func() (list []*api.FlowEntry) {
		for _, e := range n.proxy.ways.want(1) {
			if e.Table == uint32(flow.TableForward) { // no doors
				list = append(list, e)
			}
		}
		return list
	}
	if n.proxy.ways.set(n.proxy.ways.inputs(n.proxy).plan(&n.proxy.tagging)); len(ways()) != 0 {
		t.Errorf("nobody talks to the NRF: %v", ways())
	}
	n.register(2, "UDM")
	if changed := n.proxy.ways.set(n.proxy.ways.inputs(n.proxy).plan(&n.proxy.tagging)); len(changed) != 1 {
		t.Errorf("a function has registered: %v", changed)
	}
	few := len(ways())
	if _, _, err := n.do(3, "GET", discoverUDM, ""); err != nil {
		t.Fatal(err)
	}
	if changed := n.proxy.ways.set(n.proxy.ways.inputs(n.proxy).plan(&n.proxy.tagging)); len(changed) != 1 || len(ways()) != 2*few {
		t.Errorf("somebody has asked: %v, %d entries and then %d", changed, few, len(ways()))
	}
	if changed := n.proxy.ways.set(n.proxy.ways.inputs(n.proxy).plan(&n.proxy.tagging)); len(changed) != 0 {
		t.Errorf("nothing has changed: %v", changed)
	}
	if req := n.proxy.ways.standing(n.proxy.wire, &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}); len(req.GetFlows()) <= 2*few {
		t.Errorf("declared are %d", len(req.GetFlows()))
	}
}
