package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// network stands in for flowrules and the southbound.
type network struct {
	mu   sync.Mutex // guards the following
	sets map[string]*api.SetStandingRequest
	sent []flow.PacketOut
}

func fakes(h *wefttest.Harness) *network {
	n := &network{sets: map[string]*api.SetStandingRequest{}}
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sets[r.Dpid] = r
		return &api.SetStandingResponse{}, nil
	})
	wefttest.Fake(h, api.Send, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sent = append(n.sent, d.Outs...)
		return &api.ApplyResult{}, nil
	})
	return n
}

// text returns the entries of a switch by which packets are routed, one to a line.
func (n *network) text(dpid string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for _, m := range n.sets[dpid].GetFlows() {
		_, e, err := m.Entry()
		if err != nil {
			return err.Error()
		}
		if e.Table == flow.TableTranslate {
			b.WriteString(e.String() + "\n")
		}
	}
	return b.String()
}

func connect(h *wefttest.Harness, dpid, openflow string, tables uint32) {
	wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: true, Openflow: openflow, Tables: tables}})
	wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: dpid, Port: 1}, Role: "edge"}})
}

func learnt(h *wefttest.Harness, mac, dpid string, vlan uint32, ipv4 string) {
	wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: mac, Vlan: vlan, At: &api.Location{Dpid: dpid, Port: 1}, Ipv4: []string{ipv4}}})
}

const (
	sw1 = "0000000000000001"
	sw2 = "0000000000000002"
	sw3 = "0000000000000003"
)

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("ask_interval: 100ms\nresolve: 200ms")
		n := fakes(h)
		connect(h, sw1, "1.3", 254)
		connect(h, sw2, "1.3", 254)
		connect(h, sw3, "1.0", 254)
		learnt(h, "02:00:00:00:00:01", sw1, 0, "10.1.0.9")
		learnt(h, "02:00:00:00:00:02", sw2, 0, "10.2.0.9")
		learnt(h, "02:00:00:00:00:05", sw2, 5, "10.2.0.9")
		h.Settle()
		address := func(dpid string, vlan uint32, text string, id uint32) {
			t.Helper()
			m, err := wefttest.Call(h, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid, Vlan: vlan, Address: text})
			if err != nil || m.Address.Id != id || m.Address.Address != text {
				t.Fatalf("%v, %v", m, err)
			}
		}
		address("1", 0, "10.1.0.1/24", 1)
		address("1", 0, "10.12.0.1/24", 2)
		address("2", 0, "10.2.0.1/24", 1)
		address("2", 0, "10.12.0.2/24", 2)
		address("2", 5, "10.2.0.1/24", 1)
		route := func(dpid, to, by string, id uint32) {
			t.Helper()
			m, err := wefttest.Call(h, api.AddRouterRoute, &api.AddRouterRouteRequest{Dpid: dpid, Destination: to, Gateway: by})
			if err != nil || m.Route.Id != id {
				t.Fatalf("%v, %v", m, err)
			}
		}
		route("1", "", "10.12.0.2", 1)
		route("2", "10.1.0.0/24", "10.12.0.1", 1)
		route("2", "10.99.0.0/16", "10.2.0.254", 2)
		list := func() map[string]*api.VirtualRouter {
			t.Helper()
			m, err := wefttest.Call(h, api.ListRouters, &api.ListRoutersRequest{})
			if err != nil {
				t.Fatal(err)
			}
			of := map[string]*api.VirtualRouter{}
			for _, r := range m.Routers {
				of[fmt.Sprintf("%s.%d", r.Dpid, r.Vlan)] = r
			}
			return of
		}
		r1, r2 := list()[sw1+".0"], list()[sw2+".0"]
		if len(list()) != 3 || r1.GetNeighbours() != 1 || r1.State != "up" || r1.Routes[0].Destination != "0.0.0.0/0" || r1.Routes[0].GatewayMac != r2.Mac || r2.Routes[1].GatewayMac != "" {
			t.Fatalf("%v", list())
		}
		testwait.Until(t, "the gateway is asked for", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, o := range n.sent {
				if a, ok := packet.ParseARP(o.Data); ok && a.TargetIP().String() == "10.2.0.254" {
					return true
				}
			}
			return false
		})
		entries := []string{
			"table=30 priority=10064 eth_dst=" + r1.Mac + ",eth_type=0x0800,vlan_vid=none,ipv4_dst=10.2.0.9 owner=router id=0 actions=dec_ttl,set_field:" + r2.Mac + "->eth_dst,dec_ttl,set_field:02:00:00:00:00:02->eth_dst goto_table=50",
			"table=30 priority=10260 eth_dst=" + r1.Mac + ",eth_type=0x0800,vlan_vid=none,ipv4_dst=10.1.0.1 owner=router id=0 actions=controller",
			"table=30 priority=10048 eth_dst=" + r1.Mac + ",eth_type=0x0800,vlan_vid=none,ipv4_dst=10.2.0.0/24 owner=router id=0 actions=controller",
		}
		declared := func(what string) {
			t.Helper()
			testwait.Until(t, what, func() bool {
				for _, e := range entries {
					if !strings.Contains(n.text(sw1), e+"\n") {
						return false
					}
				}
				return true
			})
		}
		declared("entries declared")
		if s := n.text(sw2); !strings.Contains(s, "vlan_vid=5,ipv4_dst=10.2.0.9 owner=router id=0 actions=dec_ttl,set_field:02:00:00:00:00:05->eth_dst") || strings.Contains(n.text(sw1), "vlan_vid=5") || n.text(sw3) != "" {
			t.Errorf("of VLAN 5: %s", s)
		}
		learnt(h, "02:00:00:00:00:fe", sw2, 0, "10.2.0.254")
		entries = append(entries, "ipv4_dst=10.99.0.0/16 owner=router id=0 actions=dec_ttl,set_field:"+r2.Mac+"->eth_dst,dec_ttl,set_field:02:00:00:00:00:fe->eth_dst goto_table=50")
		declared("the gateway's entry declared")
		testwait.Until(t, "the neighbour learnt last is kept", func() bool {
			v, _, err := h.Bucket("neighbours").Get(t.Context(), "0a0200fe.0")
			return err == nil && len(v) > 0
		})
		h.Restart()
		n.mu.Lock()
		clear(n.sets)
		n.mu.Unlock()
		connect(h, sw1, "1.3", 254)
		testwait.Until(t, "declared after a restart", func() bool { return n.text(sw1) != "" })
		for _, e := range entries {
			if !strings.Contains(n.text(sw1), e) {
				t.Errorf("after a restart, without %s", e)
			}
		}
		wefttest.Publish(h, api.HostsSettledEvent, &api.HostsSettled{})
		testwait.Until(t, "a neighbour that is there no more is forgotten", func() bool { return !strings.Contains(n.text(sw1), "02:00:00:00:00:fe") })
		if r := list()[sw2+".0"]; r.State != "away" || len(r.Routes) != 2 || r.Mac != r2.Mac {
			t.Errorf("after a restart: %v", r)
		}
		address("1", 0, "10.12.0.1/24", 2)
		address("1", 0, "10.13.0.1/24", 3)
		if m, err := wefttest.Call(h, api.DeleteRouterAddress, &api.DeleteRouterAddressRequest{Dpid: "2", Vlan: 5, Address: "10.2.0.1/24"}); err != nil {
			t.Errorf("%v, %v", m, err)
		}
		if len(list()) != 2 {
			t.Errorf("the router of VLAN 5 is still there: %v", list())
		}
		for _, x := range []*api.DeleteRouterRouteRequest{{Dpid: "1", Destination: "0.0.0.0/0"}, {Dpid: "2", Destination: "10.1.0.0/24"}, {Dpid: "2", Destination: "10.99.0.0/16"}} {
			if _, err := wefttest.Call(h, api.DeleteRouterRoute, x); err != nil {
				t.Error(err)
			}
		}
		for _, r := range list() {
			for _, a := range r.Addresses {
				if _, err := wefttest.Call(h, api.DeleteRouterAddress, &api.DeleteRouterAddressRequest{Dpid: r.Dpid, Address: a.Address}); err != nil {
					t.Error(err)
				}
			}
		}
		if len(list()) != 0 {
			t.Errorf("left: %v", list())
		}
		testwait.Until(t, "no entries left", func() bool { return n.text(sw1) == "" })
		address("1", 0, "10.1.0.1/24", 4) // its numbers go on
	})
}

func TestRefused(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Addresses, c.Routes, c.Routers = 8, 5, 4 })
	g.three()
	for what, c := range map[string]struct {
		dpid        string
		vlan        uint32
		address     string
		destination string
		gateway     string
		want        codes.Code
	}{
		"no switch":                 {"x", 0, "10.0.0.1/24", "", "", codes.InvalidArgument},
		"no VLAN":                   {"1", 4095, "10.0.0.1/24", "", "", codes.InvalidArgument},
		"no length":                 {"1", 0, "10.0.0.1", "", "", codes.InvalidArgument},
		"everything":                {"1", 0, "10.0.0.1/0", "", "", codes.InvalidArgument},
		"multicast":                 {"1", 0, "224.0.0.1/24", "", "", codes.InvalidArgument},
		"loopback":                  {"1", 0, "127.0.0.1/8", "", "", codes.InvalidArgument},
		"mapped":                    {"1", 0, "::ffff:10.0.0.1/120", "", "", codes.InvalidArgument},
		"overlap":                   {"1", 0, "10.1.0.2/25", "", "", codes.AlreadyExists},
		"around":                    {"1", 0, "10.0.0.1/8", "", "", codes.AlreadyExists},
		"a gateway's":               {"3", 0, "10.23.0.2/32", "", "", codes.AlreadyExists},
		"too many routers":          {"9", 9, "10.0.0.1/24", "", "", codes.OK},
		"no gateway":                {"1", 0, "", "10.0.0.0/8", "x", codes.InvalidArgument},
		"two families":              {"1", 0, "", "fd00::/64", "10.1.0.9", codes.InvalidArgument},
		"its own":                   {"1", 0, "", "10.9.0.0/16", "10.1.0.1", codes.InvalidArgument},
		"gateway elsewhere":         {"1", 0, "", "10.9.0.0/16", "10.2.0.9", codes.FailedPrecondition},
		"another default":           {"1", 0, "", "", "10.1.0.9", codes.AlreadyExists},
		"no such router":            {"7", 0, "", "10.9.0.0/16", "10.1.0.9", codes.FailedPrecondition},
		"destination of no network": {"1", 0, "", "10.9.0.0/99", "10.1.0.9", codes.InvalidArgument},
	} {
		var err error
		if c.address != "" {
			_, err = g.addAddress(t.Context(), &api.AddRouterAddressRequest{Dpid: c.dpid, Vlan: c.vlan, Address: c.address})
		} else {
			_, err = g.addRoute(t.Context(), &api.AddRouterRouteRequest{Dpid: c.dpid, Vlan: c.vlan, Destination: c.destination, Gateway: c.gateway})
		}
		if api.KindOf(err) != c.want && (err != nil || c.want != codes.OK) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	if _, err := g.deleteAddress(t.Context(), &api.DeleteRouterAddressRequest{Dpid: "1", Address: "10.12.0.1/24"}); api.KindOf(err) != codes.FailedPrecondition {
		t.Errorf("an address that a route needs: %v", err)
	}
	if _, err := g.addAddress(t.Context(), &api.AddRouterAddressRequest{Dpid: "8", Address: "10.0.0.1/24"}); api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("a fifth router: %v", err)
	}
	g.address("3", 0, "10.40.0.1/24")
	for i := range 6 {
		_, err := g.addRoute(t.Context(), &api.AddRouterRouteRequest{Dpid: "3", Destination: fmt.Sprintf("10.9.%d.0/24", i), Gateway: "10.40.0.9"})
		if want := map[bool]codes.Code{true: codes.ResourceExhausted}[i >= 4]; err != nil && api.KindOf(err) != want || (err == nil) != (i < 4) {
			t.Errorf("route %d: %v", i, err)
		}
	}
}

// TestOwnAddresses: unicast ARP and neighbour discovery that is sent to a router, or
// claims its address, comes to the controller on every switch, from whomever.
func TestOwnAddresses(t *testing.T) {
	g := newRig(t, func(*Config) {})
	g.three()
	thief, victim := flow.MAC{2, 0, 0, 0, 9, 9}, flow.MAC{2, 0, 0, 0, 9, 8}
	arp := func(dst flow.MAC, ip string) flow.Key {
		return flow.Key{EthDst: dst, EthSrc: thief, EthType: flow.EthTypeARP, ARPOp: 2, ARPSHA: thief, ARPSPA: addr(ip).As4()}
	}
	nd := func(dst flow.MAC, kind uint8, src, target string) flow.Key {
		return flow.Key{EthDst: dst, EthSrc: thief, EthType: flow.EthTypeIPv6, IPProto: flow.IPProtoICMPv6, ICMPType: kind, IPv6Src: addr(src).As16(), NDTarget: addr(target).As16()}
	}
	var list []flow.Entry
	for _, e := range g.rules(&api.Switch{Dpid: "7", Openflow: "1.3", Tables: 254}).Flows {
		if e.Table != flow.TableNeighbours || e.Priority != flow.PriorityNeighbourVia || len(e.Apply) != 1 || e.Apply[0] != flow.Output(flow.PortController) {
			t.Fatal(e)
		}
		list = append(list, e)
	}
	for _, c := range []struct {
		what  string
		k     flow.Key
		comes bool
	}{
		{"a reply with a router's address", arp(victim, "10.2.0.1"), true},
		{"an advertisement of it", nd(victim, flow.ICMPv6Advert, "fd00:1::9", "fd00:1::1"), true},
		{"a solicitation from it", nd(victim, flow.ICMPv6Solicit, "fd00:1::1", "fd00:1::8"), true},
		{"a question to a router", arp(g.mac(2), "10.2.0.9"), true},
		{"a solicitation to it", nd(g.mac(2), flow.ICMPv6Solicit, "fd00:2::9", "fd00:2::1"), true},
		{"a host's own address", arp(victim, "10.2.0.9"), false},
		{"a solicitation of a router's address by a host", nd(victim, flow.ICMPv6Solicit, "fd00:1::9", "fd00:1::1"), false},
	} {
		if comes := slices.ContainsFunc(list, func(e flow.Entry) bool { return e.Match.Matches(&c.k) }); comes != c.comes {
			t.Errorf("%s: comes to the controller %v, want %v", c.what, comes, c.comes)
		}
	}
}

// TestRoom: what a switch has no room for is told, and routed by the controller.
func TestRoom(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Entries = 10 })
	g.three()
	for n := range byte(20) {
		g.host(n, "1", 0, fmt.Sprintf("10.1.0.%d", n+10))
	}
	rules := g.rules(&api.Switch{Dpid: "1", Openflow: "1.3", Tables: 254})
	routed := slices.DeleteFunc(rules.Flows, func(f flow.Entry) bool { return f.Table != flow.TableTranslate })
	if len(routed) != 10 || g.over[1] == 0 {
		t.Errorf("%d entries, %d left out", len(routed), g.over[1])
	}
	g.status = func(flow.DPID) (string, error) { return "in_sync", nil }
	resp, err := g.list(t.Context(), &api.ListRoutersRequest{Dpid: "1"})
	if list := resp.GetRouters(); err != nil || len(list) != 1 || list[0].State != "up" || !strings.Contains(list[0].Reason, "router.entries") {
		t.Errorf("%v, %v", list, err)
	}
	if len(g.rules(&api.Switch{Dpid: "1", Openflow: "1.0"}).Flows) > 0 {
		t.Error("entries for a switch of OpenFlow 1.0")
	}
}

// TestKept: what is kept is read again, and what is no router is told of.
func TestKept(t *testing.T) {
	g := newRig(t)
	g.three()
	for _, r := range g.routers.List() {
		value, _ := r.marshal()
		again, err := parseRouter(r.String(), value)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := again.marshal(); again.key != r.key || string(text) != string(value) || again.mac != r.mac {
			t.Errorf("%v: %v", r.key, again)
		}
	}
	for name, value := range map[string]string{
		"x": "{}", "1.0": "{}", "1.5000": `{"mac":"02:00:00:00:00:01"}`, "2.0": `{"mac":"01:00:00:00:00:01"}`, "3.0": "[",
		"4.0": `{"mac":"02:00:00:00:00:01","addresses":[{"id":1,"address":"224.0.0.1/4"}]}`, "5.0": `{"mac":"02:00:00:00:00:01","routes":[{"id":1,"destination":"10.0.0.0/8"}]}`,
	} {
		if r, err := parseRouter(name, []byte(value)); err == nil {
			t.Errorf("%s %s is read as %v", name, value, r)
		}
	}
	for _, p := range []place{object.In(addr("10.0.0.1"), 0), object.In(addr("fd00::1"), 5|flow.VLANPresent)} {
		if again, err := parsePlace(keyOf(p)); err != nil || again != p {
			t.Errorf("%v: %v, %v", p, again, err)
		}
	}
	for _, s := range []string{"", "x.0", "0a000001", "0a000001.5000", "0a00.1", "7f000001.1"} {
		if p, err := parsePlace(s); err == nil {
			t.Errorf("%q is read as %v", s, p)
		}
	}
	st := station{MAC: flow.MAC{2, 1}, At: flow.Location{Switch: 3, Port: 4}}
	if again, err := parseStation(textOf(st)); err != nil || again != st {
		t.Errorf("%v, %v", again, err)
	}
}
