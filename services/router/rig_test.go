package router

import (
	"context"
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// rig is a book without the service around it.
type rig struct {
	*store
	t    testing.TB
	sent *flow.Decision // what has been posted
	feed func(events ...any)
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	bucket, err := wefttest.NewStore().Bucket(context.Background(), "router.routers")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	for _, f := range change {
		f(cfg)
	}
	g := &rig{store: newStore(cfg), t: t, sent: &flow.Decision{}}
	g.routers.Open(bucket)
	g.post = func(d *flow.Decision) { g.sent = d }
	g.feed = wefttest.Network(g.kind().Reads, g.networkChanged)
	for sw := range flow.DPID(3) {
		g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: (sw + 1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
		g.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: (sw + 1).String(), Port: 1}, Role: "edge"}})
	}
	return g
}

func (g *rig) address(dpid string, vlan uint32, text string) {
	g.t.Helper()
	if _, err := g.addAddress(context.Background(), &api.AddRouterAddressRequest{Dpid: dpid, Vlan: vlan, Address: text}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) route(dpid string, vlan uint32, to, by string) {
	g.t.Helper()
	if _, err := g.addRoute(context.Background(), &api.AddRouterRouteRequest{Dpid: dpid, Vlan: vlan, Destination: to, Gateway: by}); err != nil {
		g.t.Fatal(err)
	}
}

// host tells of a host at port 1 of a switch; its Ethernet address ends in n.
func (g *rig) host(n byte, dpid string, vlan uint32, addresses ...string) flow.MAC {
	g.t.Helper()
	mac := flow.MAC{2, 0, 0, 0, 0, n}
	h := &api.Host{Mac: mac.String(), Vlan: vlan, At: &api.Location{Dpid: dpid, Port: 1}}
	for _, a := range addresses {
		if netip.MustParseAddr(a).Is4() {
			h.Ipv4 = append(h.Ipv4, a)
		} else {
			h.Ipv6 = append(h.Ipv6, a)
		}
	}
	g.feed(&api.HostChanged{Host: h, Change: "learnt"})
	return mac
}

// mac returns the Ethernet address of the router of a switch.
func (g *rig) mac(sw flow.DPID) flow.MAC { return g.routers.Get(key{sw, 0}.String()).mac }

// packet gives a frame from an edge port to the stage.
func (g *rig) in(sw flow.DPID, frame []byte) (flow.Verdict, *flow.PacketIn, *flow.Decision) {
	in, d := wefttest.NewPacketIn(sw, 1, frame), &flow.Decision{}
	return g.packet(in, d), in, d
}

// ping returns an echo request.
func ping(src, dst flow.MAC, from, to string, ttl uint8) []byte {
	return packet.AppendICMPEcho(nil, packet.Ether{Src: src, Dst: dst}, packet.IP{Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr(to), TTL: ttl},
		packet.Echo{ID: 7, Seq: 1, Data: []byte("abc")})
}

// three sets up the routers of three switches, each with a subnet of hosts and
// one that it shares with the next.
func (g *rig) three() {
	for _, a := range [][2]string{{"1", "10.1.0.1/24"}, {"1", "10.12.0.1/24"}, {"2", "10.2.0.1/24"}, {"2", "10.12.0.2/24"}, {"2", "10.23.0.2/24"}, {"3", "10.3.0.1/24"}, {"3", "10.23.0.3/24"},
		{"1", "fd00:1::1/64"}, {"1", "fd00:12::1/64"}, {"2", "fd00:2::1/64"}, {"2", "fd00:12::2/64"}} {
		g.address(a[0], 0, a[1])
	}
	for _, r := range [][3]string{{"1", "", "10.12.0.2"}, {"2", "", "10.12.0.1"}, {"2", "10.3.0.0/24", "10.23.0.3"}, {"3", "", "10.23.0.2"}, {"1", "", "fd00:12::2"}} {
		g.route(r[0], 0, r[1], r[2])
	}
}

func addr(a string) netip.Addr { return netip.MustParseAddr(a) }
