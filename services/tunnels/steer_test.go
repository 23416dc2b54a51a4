package tunnels

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// The customer's port of a node in these tests, and what is added to a port's number for its internal port.
const (
	customerPort flow.Port = 100
	inside       flow.Port = 500
)

func routedMAC(sw flow.DPID, p flow.Port) flow.MAC {
	return flow.MAC{2, 0, 0, byte(sw), byte(p >> 8), byte(p)}
}

// node reports a hybrid node that routes at its cables and at customerPort.
func (g *rig) node(sw flow.DPID, internal flow.Port) {
	r := &api.NodeReport{Dpid: sw.String()}
	add := func(p flow.Port, role string) {
		r.Ports = append(r.Ports, &api.NodePort{Port: uint32(p), Role: role, Internal: uint32(p + internal), RoutedMac: routedMAC(sw, p).String()})
	}
	for at := range g.cables {
		if at.Switch == sw {
			add(at.Port, "link")
		}
	}
	add(customerPort, "access")
	g.feed(&api.NodeChanged{Node: &api.Node{Report: r, State: "live"}})
}

// admit checks a steer as a call does, without storing it.
func (g *rig) admit(m *api.Steer) error {
	s, err := readSteer(m)
	if err != nil {
		return err
	}
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	return g.b.steering.admit(s, nil)
}

// steer stores a steer.
func (g *rig) steer(m *api.Steer) {
	g.t.Helper()
	if _, _, err := g.b.steering.steers.Set(context.Background(), m); err != nil {
		g.t.Fatal(err)
	}
}

// openSteers gives the steers a bucket.
func (g *rig) openSteers() {
	bucket, err := wefttest.NewStore().Bucket(context.Background(), "tunnels.steers")
	if err != nil {
		g.t.Fatal(err)
	}
	g.b.steering.steers.Open(bucket)
	g.b.steering.declare = g.b.declare
}

// steerRing returns four hybrid nodes in a ring, with a tunnel from 1 to 3.
func steerRing(t *testing.T, protect bool) *rig {
	g := newRig(t, [2]flow.DPID{1, 2}, [2]flow.DPID{2, 3}, [2]flow.DPID{3, 4}, [2]flow.DPID{4, 1})
	g.openSteers()
	g.tell()
	for sw := flow.DPID(1); sw <= 3; sw++ {
		g.node(sw, inside)
	}
	g.add("t", 1, 3, protect)
	return g
}

// TestSteerBadInput: what is wrong, and how to mend it.
func TestSteerBadInput(t *testing.T) {
	g := steerRing(t, false)
	g.add("far", 1, 4, false)
	g.want(&api.Tunnel{Name: "kept", From: "1", To: "3", User: "l2vpn"})
	g.steer(&api.Steer{Name: "a", Tunnel: "t", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.1.0.0/16"}})
	v4 := map[string]string{"eth_type": "0x0800"}
	for _, c := range []struct {
		m    *api.Steer
		kind codes.Code
		want string
	}{
		{&api.Steer{Name: "x", Tunnel: "none", Match: v4}, codes.NotFound, "there is no tunnel none"},
		{&api.Steer{Name: "x", Match: v4}, codes.Unknown, "tunnel"},
		{&api.Steer{Name: "x", Tunnel: "t"}, codes.Unknown, "match: empty"},
		{&api.Steer{Name: "x", Tunnel: "t", At: "2", Match: v4}, codes.InvalidArgument, "begins at switch 0000000000000001, not at 0000000000000002"},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"eth_type": "0x0806"}}, codes.Unknown, "want 0x0800, IPv4"},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"vlan_vid": "5"}}, codes.Unknown, "a steer matches"},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"ipv4_dst": "10.0.0.0/8"}}, codes.Unknown, "eth_type"},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"in_port": "2", "eth_type": "0x86dd"}}, codes.InvalidArgument, "no port at which node"},
		{&api.Steer{Name: "x", Tunnel: "far", Match: v4}, codes.FailedPrecondition, "not a hybrid node"},
		{&api.Steer{Name: "x", Tunnel: "kept", Match: v4}, codes.FailedPrecondition, "kept by l2vpn"},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"eth_src": "02:00:00:00:00:07"}}, codes.FailedPrecondition, "overlaps with steer a"},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.2.0.0/16"}}, codes.OK, ""},
		{&api.Steer{Name: "x", Tunnel: "t", Match: map[string]string{"eth_type": "0x86dd", "ip_dscp": "46"}}, codes.OK, ""},
		{&api.Steer{Name: "a", Tunnel: "t", Match: map[string]string{"eth_src": "02:00:00:00:00:07"}}, codes.OK, ""},
	} {
		err := g.admit(c.m)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.m, err, c.want)
		case c.kind != codes.Unknown && api.KindOf(err) != c.kind:
			t.Errorf("%v: %v, want %v", c.m, err, c.kind)
		}
	}
	if _, err := g.b.remove(context.Background(), "t", ""); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "steer a leads packets") {
		t.Error("a tunnel with a steer is deleted:", err)
	}
}

// A steered network is the rig's switches with entries of the nodes' own, and hosts at the ports of interest.
type steered struct {
	*rig
	wire *wire
	host map[flow.Location]*oftest.Host
}

// steeredNow returns the network as it is now.
func (g *rig) steeredNow() *steered {
	g.repaired()
	n := &steered{rig: g, wire: g.wired(), host: map[flow.Location]*oftest.Host{}}
	for sw, c := range n.wire.drive {
		ports := []flow.Port{customerPort}
		for at := range g.cables {
			if at.Switch == sw {
				ports = append(ports, at.Port)
			}
		}
		for _, p := range ports {
			c.Flow(flow.Add, flow.Entry{Cookie: flow.NodeCookie, Priority: flow.PriorityCoexist, Match: flow.Match{}.WithInPort(p), Apply: []flow.Action{flow.Output(p + inside)}})
			at := flow.Location{Switch: sw, Port: p + inside}
			n.host[at] = n.wire.net.Host(at, nil)
		}
		at := flow.Location{Switch: sw, Port: customerPort}
		n.host[at] = n.wire.net.Host(at, nil)
		for _, f := range g.b.steering.want(ovs(sw)).GetFlows() {
			_, e, err := f.Entry()
			if err != nil {
				g.t.Fatal(err)
			}
			if err := e.Match.CheckActions(e.Apply); err != nil {
				g.t.Fatal(err)
			}
			c.Flow(flow.Add, e)
		}
		if r := c.Refusals(); r > 0 {
			g.t.Fatalf("switch %v refuses %d messages", sw, r)
		}
	}
	return n
}

// send sends a packet from the customer at switch 1, and returns where it comes out, and as what.
func (n *steered) send(frame []byte) (at flow.Location, got []byte) {
	n.t.Helper()
	n.host[flow.Location{Switch: 1, Port: customerPort}].Send(frame)
	for where, h := range n.host {
		for _, f := range h.Received() {
			if got != nil {
				n.t.Errorf("%x comes out twice, at %v and %v", frame, at, where)
			}
			at, got = where, f
		}
	}
	return at, got
}

var customerMAC = flow.MAC{2, 9}

func ipv4To(dst string, ttl byte) []byte {
	f := packet.AppendEthernet(nil, packet.Ether{Dst: routedMAC(1, customerPort), Src: customerMAC}, flow.EthTypeIPv4)
	h := make([]byte, 28)
	h[0], h[8], h[9] = 0x45, ttl, 17
	binary.BigEndian.PutUint16(h[2:], 28)
	copy(h[12:], []byte{10, 0, 0, 1})
	to := netip.MustParseAddr(dst).As4()
	copy(h[16:], to[:])
	binary.BigEndian.PutUint16(h[24:], 8)
	return append(f, append(h, make([]byte, 18)...)...)
}

func ipv6To(dst string, next byte, body ...byte) []byte {
	f := packet.AppendEthernet(nil, packet.Ether{Dst: routedMAC(1, customerPort), Src: customerMAC}, flow.EthTypeIPv6)
	h := make([]byte, 40)
	h[0], h[6], h[7] = 0x60, next, 255
	binary.BigEndian.PutUint16(h[4:], uint16(len(body)))
	h[8], h[23] = 0xfd, 1
	to := netip.MustParseAddr(dst).As16()
	copy(h[24:], to[:])
	return append(f, append(h, body...)...)
}

// TestSteeredPackets: what matches arrives at the tail's routing by the link's internal port, with the address of its
// interface and the time to live that it had; all else goes to the head's routing, and so does all while the tunnel is down.
func TestSteeredPackets(t *testing.T) {
	for _, protect := range []bool{false, true} {
		g := steerRing(t, protect)
		g.steer(&api.Steer{Name: "a", Tunnel: "t", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.1.0.0/16"}})
		g.steer(&api.Steer{Name: "b", Tunnel: "t", Match: map[string]string{"eth_type": "0x86dd"}})
		head := flow.Location{Switch: 1, Port: customerPort + inside}
		check := func(what string, n *steered, frame []byte, want ...flow.Location) {
			t.Helper()
			at, got := n.send(frame)
			ok := false
			for _, w := range want {
				ok = ok || at == w
			}
			mac := routedMAC(at.Switch, at.Port-inside)
			if !ok || len(got) < len(frame) || !bytes.Equal(got[:6], mac[:]) || !bytes.Equal(got[12:len(frame)], frame[12:]) {
				t.Errorf("%s: %x comes out at %v as %x, want at %v", what, frame, at, got, want)
			}
		}
		tails := []flow.Location{{Switch: 3, Port: 2 + inside}, {Switch: 3, Port: 4 + inside}}
		up := func(what string, tails ...flow.Location) {
			t.Helper()
			n := g.steeredNow()
			check(what+", IPv4", n, ipv4To("10.1.2.3", 64), tails...)
			check(what+", TTL 1", n, ipv4To("10.1.2.3", 1), tails...)
			check(what+", IPv6", n, ipv6To("fd00::7", 59), tails...)
			check(what+", another prefix", n, ipv4To("10.2.2.3", 64), head)
			check(what+", neighbour solicitation", n, ipv6To("fd00::7", 58, append([]byte{135}, make([]byte, 31)...)...), head)
			check(what+", link-local", n, ipv6To("fe80::7", 59), head)
		}
		up("all well", tails...)
		g.cut(1, 2, true)
		g.cut(2, 3, true)
		up("the other way", tails[1])
		g.cut(3, 4, true)
		n := g.steeredNow()
		check("down", n, ipv4To("10.1.2.3", 64), head)
		check("down, IPv6", n, ipv6To("fd00::7", 59), head)
		if m := g.b.steering.list(context.Background(), nil).Steers[0]; m.State != "down" || !strings.Contains(m.Reason, "tunnel t is down") || m.Packets != nil {
			t.Error(m)
		}
		g.cut(1, 2, false)
		g.cut(2, 3, false)
		up("up again", tails[0])
	}
}

// TestSteerHolds: after a restart a switch keeps its entries until its node and that at the other end are reported.
func TestSteerHolds(t *testing.T) {
	g := newRig(t, [2]flow.DPID{1, 2})
	g.openSteers()
	g.tell()
	g.node(1, inside)
	g.node(2, inside)
	g.add("t", 1, 2, false)
	g.steer(&api.Steer{Name: "a", Tunnel: "t", Match: map[string]string{"eth_src": "02:00:00:00:00:07"}})
	if d := g.b.steering.hold(ovs(1)); d != 0 {
		t.Error("holds", d, "though both nodes are reported")
	}
	g.feed(&api.NodeChanged{Node: &api.Node{Report: &api.NodeReport{Dpid: flow.DPID(2).String()}}, Gone: true})
	g.b.steering.began = g.clock.Add(-time.Second)
	for _, sw := range []flow.DPID{1, 2} {
		if d := g.b.steering.hold(ovs(sw)); d != nodesWithin-time.Second {
			t.Error(sw, "holds", d)
		}
	}
	if d := g.b.steering.hold(ovs(3)); d != 0 {
		t.Error("a switch without steers holds", d)
	}
	g.clock = g.clock.Add(nodesWithin)
	if d := g.b.steering.hold(ovs(1)); d != 0 {
		t.Error("holds for ever", d)
	}
}

// TestSteerDeclares: what changes nothing for the entries of steers has none declared, and a tunnel that has no
// steer any more is not followed.
func TestSteerDeclares(t *testing.T) {
	g := steerRing(t, false)
	g.steer(&api.Steer{Name: "a", Tunnel: "t", Match: map[string]string{"eth_type": "0x0800"}})
	var declared []flow.DPID
	g.b.steering.declare = func(list ...flow.DPID) { declared = append(declared, list...) }
	for sw := flow.DPID(1); sw <= 4; sw++ {
		g.node(sw, inside)
	}
	if len(declared) > 0 {
		t.Errorf("declared at %v, for reports that say nothing else", declared)
	}
	if g.node(3, inside+1); len(declared) == 0 {
		t.Error("nothing declared, and the tail has other internal ports")
	}
	if _, err := g.b.steering.steers.Delete(context.Background(), &api.Steer{Name: "a"}); err != nil || len(g.b.steering.entered) > 0 {
		t.Errorf("followed after the steer is gone: %v, %v", g.b.steering.entered, err)
	}
}

// TestSteerCounts: the counters of a steer's entries are summed.
func TestSteerCounts(t *testing.T) {
	entry := func(id uint32, packets, octets uint64) *api.FlowEntry {
		f := api.NewFlowEntry(1, &flow.Entry{Cookie: flow.NewCookie(flow.OwnerSteers, 0, id)})
		f.Packets, f.Bytes = packets, octets
		return f
	}
	got := countSteers([]*api.FlowEntry{entry(1, 2, 200), entry(2, 5, 500), entry(1, 3, 300), entry(0, 9, 900)})
	if len(got) != 2 || got[1] != [2]uint64{5, 500} || got[2] != [2]uint64{5, 500} {
		t.Error(got)
	}
}
