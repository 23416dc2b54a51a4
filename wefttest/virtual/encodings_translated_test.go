package virtual

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

const translatedPlan = `name: translated
partial: true
workers:
  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, firewall, tenants, balancer, router, witness]}
`

// family is IPv4 or IPv6 in the addresses of the tests.
type family struct{ name, net, beyond, local, loopback, group string }

var families = []family{
	{"ipv4", "10.0.0.", "203.0.113.9", "169.254.0.9", "127.0.0.9", "224.0.0.251"},
	{"ipv6", "fd00::", "2001:db8::9", "fe80::9", "::1", "ff02::fb"},
}

func (f family) host(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprint(f.net, n)) }

// vip is the address of the virtual IP, router that of the router.
func (f family) vip() string    { return f.net + "64" }
func (f family) router() string { return f.net + "99" }

// A translated is a policy of a service that gives packets other addresses: what h1 sends
// to h2 before, and what it sends when the policy keeps it from there.
type translated struct {
	name   string
	open   func(ctx context.Context, s *site, f family, proto uint8) error
	shut   func(ctx context.Context, s *site, f family, proto uint8) error // nil: nothing changes
	to     func(f family, shut bool) string                                // where the traffic goes; nil: to h2
	socket func(f family) string                                           // nil: where the traffic goes
	from   func(f family, shut bool) string                                // nil: h1
	ttl    func(shut bool) uint8                                           // nil: 64
	routed bool                                                            // frames to groups are not: all hosts of the VLAN get them
}

func beyond(f family, _ bool) string { return f.beyond }

var translations = []translated{
	{name: "an allow-list", open: balance(nil, ""), shut: balance(&api.Allow{Clients: []string{}}, ""),
		to: func(f family, _ bool) string { return f.vip() }, socket: func(f family) string { return f.net + "2" }},
	{name: "an allow-list with pairs", open: balance(nil, "pair"), shut: balance(&api.Allow{Clients: []string{}}, "pair"),
		to: func(f family, _ bool) string { return f.vip() }, socket: func(f family) string { return f.net + "2" }},
	{name: "an allow-list of a host that exists", shut: shadow},
	{name: "a routed deny by port", open: route, to: beyond, shut: func(ctx context.Context, s *site, _ family, proto uint8) error {
		return s.rule(ctx, map[string]string{protoName[proto] + "_dst": "7000"})
	}},
	{name: "a routed deny by address", open: route, to: beyond, shut: func(ctx context.Context, s *site, f family, _ uint8) error {
		return s.rule(ctx, map[string]string{f.name + "_dst": f.beyond})
	}},
	{name: "a time to live of one", routed: true, open: route, to: beyond, ttl: func(shut bool) uint8 {
		if shut {
			return 1
		}
		return 0
	}},
	{name: "a router to a link-local address", routed: true, open: route, to: func(f family, shut bool) string { return when(shut, f.local, f.beyond) }},
	{name: "a router to loopback", routed: true, open: route, to: func(f family, shut bool) string { return when(shut, f.loopback, f.beyond) }},
	{name: "a router to a group", routed: true, open: route, to: func(f family, shut bool) string { return when(shut, f.group, f.beyond) }},
	{name: "a router from a link-local address", routed: true, open: route, to: beyond, from: func(f family, shut bool) string { return when(shut, f.local, f.net+"1") }},
	{name: "a router from loopback", routed: true, open: route, to: beyond, from: func(f family, shut bool) string { return when(shut, f.loopback, f.net+"1") }},
	{name: "a router from a group", routed: true, open: route, to: beyond, from: func(f family, shut bool) string { return when(shut, f.group, f.net+"1") }},
}

var protoName = map[uint8]string{flow.IPProtoUDP: "udp", flow.IPProtoTCP: "tcp"}

func when(shut bool, then, otherwise string) string {
	if shut {
		return then
	}
	return otherwise
}

// balance sets a virtual IP whose member is h2.
func balance(allow *api.Allow, per string) func(ctx context.Context, s *site, f family, proto uint8) error {
	return func(ctx context.Context, s *site, f family, proto uint8) error {
		if allow != nil {
			allow = &api.Allow{Clients: []string{f.net + "3"}}
		}
		v, err := weft.Call(ctx, s.by.env, api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "v", Address: f.vip(), Protocol: protoName[proto], Port: 7000,
			Per: per, Allow: allow, Refuse: "drop", Pool: []*api.PoolMember{{Address: f.net + "2"}}}})
		if err == nil {
			s.gate, err = flow.ParseMAC(v.Mac)
		}
		return err
	}
}

// shadow sets a virtual IP at the address of h2 that serves h3 alone.
func shadow(ctx context.Context, s *site, f family, proto uint8) error {
	_, err := weft.Call(ctx, s.by.env, api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "v", Address: f.net + "2", Protocol: protoName[proto], Port: 7000,
		Shadow: true, Takeover: true, Allow: &api.Allow{Clients: []string{f.net + "3"}}, Refuse: "drop", Pool: []*api.PoolMember{{Address: f.net + "3"}}}})
	return err
}

// route makes a router whose way out is h2.
func route(ctx context.Context, s *site, f family, _ uint8) error {
	bits := map[string]string{"ipv4": "/24", "ipv6": "/64"}[f.name]
	dpid := s.h1.Location().Switch.String()
	if _, err := weft.Call(ctx, s.by.env, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid, Address: f.router() + bits}); err != nil {
		return err
	}
	if _, err := weft.Call(ctx, s.by.env, api.AddRouterRoute, &api.AddRouterRouteRequest{Dpid: dpid, Gateway: f.net + "2"}); err != nil {
		return err
	}
	list, err := weft.Call(ctx, s.by.env, api.ListRouters, &api.ListRoutersRequest{})
	if err == nil {
		s.gate, err = flow.ParseMAC(list.Routers[0].Mac)
	}
	return err
}

// TestTranslatedEncodings is TestEncodings for what gives packets other addresses.
func TestTranslatedEncodings(t *testing.T) {
	for _, p := range translations {
		for _, f := range families {
			for _, proto := range []uint8{flow.IPProtoUDP, flow.IPProtoTCP} {
				t.Run(fmt.Sprintf("%s, %s %s", p.name, f.name, protoName[proto]), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { translate(t, p, f, proto) })
				})
			}
		}
	}
}

// translate tries one policy.
func translate(t *testing.T, p translated, f family, proto uint8) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b := w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	s := &site{world: w, h1: w.addStation(a), h2: w.addStation(b), h3: w.addStation(b)}
	if err := w.cluster.apply(ctx, translatedPlan); err != nil {
		t.Fatal(err)
	}
	w.work.Go(func() { w.cluster.supervise(ctx) })
	defer func() {
		cancel()
		w.cluster.stop()
		w.work.Wait()
	}()
	w.powerOn(ctx, a)
	w.powerOn(ctx, b)
	for _, h := range []*station{s.h2, s.h3} {
		if !s.h1.ping(ctx, h, w.number(), 20*time.Second) {
			t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
		}
	}
	time.Sleep(5 * time.Second) // until floods have their tree
	for i, h := range []*station{s.h1, s.h2, s.h3} {
		h.Send(packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: h.mac, SrcIP: families[1].host(i + 1), Target: families[1].host(i + 1), TargetMAC: h.mac, Override: true}))
	}
	s.by = w.cluster.present()
	s.gate = s.h2.mac
	if p.open != nil {
		if err := p.open(ctx, s, f, proto); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second)
	got := s.through(p, f, proto, false)
	if got["plain"] != 1 {
		t.Fatalf("without the policy: the plain packet got there %d times", got["plain"])
	}
	for name, n := range got {
		if n > 1 {
			t.Errorf("without the policy: %s: %d got there", name, n)
		}
	}
	if p.shut != nil {
		if err := p.shut(ctx, s, f, proto); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(15 * time.Second)
	for name, n := range s.through(p, f, proto, true) {
		if n > 0 {
			t.Errorf("%s: %d got there", name, n)
		}
	}
}

// through sends all encodings of some traffic, and returns how many datagrams h2's
// socket got of each.
func (s *site) through(p translated, f family, proto uint8, shut bool) map[string]int {
	tr := oftest.Traffic{SrcMAC: s.h1.mac, DstMAC: s.gate, Proto: proto, Src: netip.AddrPortFrom(f.host(1), 40000), Dst: netip.AddrPortFrom(f.host(2), 7000)}
	if p.to != nil {
		tr.Dst = netip.AddrPortFrom(netip.MustParseAddr(p.to(f, shut)), 7000)
	}
	if p.from != nil {
		tr.Src = netip.AddrPortFrom(netip.MustParseAddr(p.from(f, shut)), 40000)
	}
	if p.ttl != nil {
		tr.TTL = p.ttl(shut)
	}
	at := tr.Dst
	if p.socket != nil {
		at = netip.AddrPortFrom(netip.MustParseAddr(p.socket(f)), 7000)
	}
	got := map[string]int{}
	for _, e := range tr.Encodings() {
		if p.routed && flow.MAC(e.Frames[0][:6]).Multicast() {
			continue
		}
		socket := &oftest.Socket{MAC: s.h2.mac, At: at, Proto: proto}
		s.h2.Received()
		for _, frame := range e.Frames {
			s.h1.Send(frame)
			time.Sleep(50 * time.Millisecond) // for what the controller hands on
		}
		for _, frame := range s.h2.Received() {
			socket.Take(frame)
		}
		got[e.Name] = socket.Got
	}
	return got
}
