package virtual

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// managed is what a schedule of the services of policies has beside the others: its plans
// run them all, every switch has ports for what they manage, and an object or more of each
// is there from the first calm on.
type managed struct {
	gates map[netip.Addr]flow.MAC // whom frames to an address are sent to
}

// What is at the ports of every switch that no host and no link takes.
const (
	circuitPort  flow.Port = 31 + iota // an end of circuits
	lanPort                            // of one of more ends
	functionPort                       // a function of a chain, which sends back what it gets
	outsidePort                        // a NAT gateway's next hop
	memberPort                         // a member of a tenant's network
	managedPorts = 35
)

// managedLayouts are layouts whose plans run the services of policies, too: in one
// process, in one beside the others, and in three.
func managedLayouts() (list []layout) {
	const policies, carrier, addresses = "tenants, qos, chain", "tunnels, l2vpn", "balancer, router, nat"
	for i, l := range layouts {
		more := strings.Join([]string{policies, carrier, addresses}, ", ")
		switch i {
		case 0:
			l.workers = strings.Replace(l.workers, "witness]", "witness, "+more+"]", 1)
		case 1:
			l.workers += "  policies: {services: [" + more + "]}\n"
		default:
			l.workers += "  policies: {services: [" + policies + "]}\n  carrier: {services: [" + carrier + "]}\n  addresses: {services: [" + addresses + "]}\n"
		}
		l.config = "  l2vpn: {probe_interval: 2s, ring_interval: 10s}\n  balancer: {idle_timeout: 1m}\n"
		list = append(list, l)
	}
	return list
}

// manage makes the world one of the services of policies.
func (w *world) manage() {
	w.managed = &managed{gates: map[netip.Addr]flow.MAC{}}
	w.plans = managedLayouts()
	w.ordinary = oftest.Config{Nicira: true, Tags: 2, Ports: managedPorts, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
}

// ring makes a ring of three or five switches, in which no two ways are as long, and hosts.
func (w *world) ring() {
	for range 3 + 2*w.chance.n(2) {
		w.addSwitch()
	}
	for i, d := range w.devices {
		w.addLink(d, w.devices[(i+1)%len(w.devices)])
	}
	for range 3 + w.chance.n(3) {
		w.addStation(pick(w.chance, w.devices))
	}
}

// apart reports whether two hosts are in networks of different tenants: so in every
// second schedule.
func (w *world) apart(a, b *station) bool {
	return w.managed != nil && w.tenanted() && a.mac[5]%2 != b.mac[5]%2
}

// tenanted reports whether hosts are tenants'. If not, they meet virtual IPs, a router and
// a NAT gateway, which are in no tenant's network.
func (w *world) tenanted() bool { return w.seed%2 == 0 }

// object is a call that makes an object, or makes it what it is.
type object struct {
	what string
	call func(context.Context, *weft.Env) error
}

func objectOf[Q, R any](m api.Method[Q, R], q *Q) object {
	return object{m.Name, func(ctx context.Context, env *weft.Env) error {
		_, err := weft.Call(ctx, env, m, q)
		return err
	}}
}

// objects returns what is managed: the same for every run of the seed.
func (w *world) objects() (list []object) {
	last, at := w.devices[len(w.devices)-1].sw, func(sw flow.DPID, p flow.Port) string { return fmt.Sprintf("%v:%d", sw, p) }
	var pairs, lan []string
	for _, d := range w.devices[:3] {
		pairs, lan = append(pairs, at(d.sw, circuitPort)), append(lan, at(d.sw, lanPort))
	}
	list = append(list, objectOf(api.SetCircuits, &api.SetCircuitsRequest{Exactly: true, Circuits: []*api.Circuit{
		{Name: "line", Ends: []string{pairs[0] + ".10", pairs[1] + ".10"}},
		{Name: "protected", Ends: []string{pairs[0] + ".20", pairs[2] + ".20"}, Protect: true, RateKbps: 500},
		{Name: "lan", Type: "vpls", Ends: lan},
	}}))
	h1, h2 := w.stations[0], w.stations[1]
	list = append(list,
		objectOf(api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "class", Class: &api.QosClass{Protocol: "udp", DstPort: 5000}, Limit: &api.QosLimit{RateKbps: 1000}}}),
		objectOf(api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "from", Order: 1, Host: h1.mac.String(), Limit: &api.QosLimit{RateKbps: 5000}}}),
		objectOf(api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "to", Order: 2, Host: h2.ip.String(), ToHost: true, MarkDscp: new(uint32(10))}}),
		objectOf(api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "port", Order: 3, Dpid: last.String(), Port: 1, Class: &api.QosClass{Protocol: "tcp"}, MarkDscp: new(uint32(20))}}),
		objectOf(api.SetChain, &api.SetChainRequest{Chain: &api.ServiceChain{
			Name: "c", Match: map[string]string{"eth_type": "0x0800", "ip_proto": "17", "ipv4_dst": h2.ip.String(), "udp_dst": "7000"},
			Functions: []*api.ChainFunction{
				{Copies: []*api.ChainCopy{{In: api.NewLocation(flow.Location{Switch: 1, Port: functionPort})}, {In: api.NewLocation(flow.Location{Switch: 2, Port: functionPort})}}},
				{Copies: []*api.ChainCopy{{In: api.NewLocation(flow.Location{Switch: 3, Port: functionPort})}}},
			}}}),
		objectOf(api.AddFirewallRules, &api.AddFirewallRulesRequest{NoWait: true, Rules: []*api.FirewallRule{{Id: "f", Action: "deny", Match: map[string]string{"tcp_dst": "23"}}}}),
		objectOf(api.BindHost, &api.BindHostRequest{Binding: &api.HostBinding{Mac: h1.mac.String(), Ips: []string{h1.ip.String()}}}))
	if w.tenanted() {
		return append(list, w.tenants()...)
	}
	return append(list,
		objectOf(api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "v", Address: "10.0.0.64", Protocol: "udp", Port: 7001, Pool: []*api.PoolMember{{Address: h1.ip.String()}, {Address: h2.ip.String()}}}}),
		objectOf(api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "each", Address: "10.0.0.65", Protocol: "udp", Port: 7001, Stateless: true, Pool: []*api.PoolMember{{Address: h1.ip.String()}, {Address: h2.ip.String()}}}}),
		objectOf(api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "over", Address: w.stations[2].ip.String(), Protocol: "udp", Port: 7002, Shadow: true, Per: "pair", Pool: []*api.PoolMember{{Address: h2.ip.String()}}}}),
		w.router(last, h2.ip),
		objectOf(api.SetNat, &api.SetNatRequest{Gateway: &api.NatGateway{Name: "out", Dpid: flow.DPID(2).String(), Port: uint32(outsidePort), Pool: "198.51.100.1-198.51.100.9", NextHop: nextHop.String(),
			Gateway: "10.0.0.98", Inside: []string{"10.0.0.0/24"}}}))
}

// tenants returns a tenant and its two networks. Each network has half of the hosts, and a
// port on half of the switches.
func (w *world) tenants() (list []object) {
	list = append(list, objectOf(api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "t", RateKbps: 50_000}}))
	for i, name := range []string{"even", "odd"} {
		n := &api.TenantNetwork{Tenant: "t", Name: name, Segment: uint32(100 + i)}
		for _, s := range w.stations {
			if int(s.mac[5])%2 == i {
				n.Members = append(n.Members, &api.TenantMember{Mac: s.mac.String()})
			}
		}
		for _, d := range w.devices {
			if int(d.sw)%2 == i {
				n.Members = append(n.Members, &api.TenantMember{Dpid: d.sw.String(), Port: uint32(memberPort), Vlan: 7})
			}
		}
		list = append(list, objectOf(api.SetNetwork, &api.SetNetworkRequest{Network: n}))
	}
	return list
}

// router returns the object of a router at a switch, with a way out by a host.
func (w *world) router(sw flow.DPID, by netip.Addr) object {
	return object{"router", func(ctx context.Context, env *weft.Env) error {
		list, err := weft.Call(ctx, env, api.ListRouters, &api.ListRoutersRequest{})
		if err != nil {
			return err
		}
		var is *api.VirtualRouter
		if len(list.Routers) > 0 {
			is = list.Routers[0]
		}
		if len(is.GetAddresses()) == 0 {
			if _, err := weft.Call(ctx, env, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: sw.String(), Address: "10.0.0.99/24"}); err != nil {
				return err
			}
		}
		if len(is.GetRoutes()) == 0 {
			_, err = weft.Call(ctx, env, api.AddRouterRoute, &api.AddRouterRouteRequest{Dpid: sw.String(), Gateway: by.String()})
		}
		return err
	}}
}

// nextHop is who is at the outside ports, with an Ethernet address that begins with
// outsideMACs.
var nextHop = netip.MustParseAddr("198.51.100.254")

const outsideMACs = "02:00:00:02:"

// attach puts what is managed at the ports of a switch.
func (w *world) attach(d *device) {
	outside := flow.MAC{2, 0, 0, 2, 0, byte(d.sw)}
	w.net.Host(flow.Location{Switch: d.sw, Port: outsidePort}, func(frame []byte) [][]byte {
		if arp, ok := packet.ParseARP(frame); ok && arp.Op() == packet.ARPRequest && arp.TargetIP() == nextHop {
			return [][]byte{packet.Pad(packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: outside, SenderIP: nextHop, TargetMAC: arp.SenderMAC(), TargetIP: arp.SenderIP()}))}
		}
		return nil
	})
	w.net.Host(flow.Location{Switch: d.sw, Port: functionPort}, func(frame []byte) [][]byte {
		var k flow.Key
		if packet.Parse(frame, &k); k.TPDst != 7000 {
			return nil
		}
		return [][]byte{frame}
	})
}

// set makes all objects, or makes them what they are, in one minute.
func (w *world) set(ctx context.Context) error {
	for _, o := range w.objects() {
		if err := until(ctx, time.Minute, func(ctx context.Context) error {
			by := w.cluster.present()
			if by == nil {
				return errAbsent
			}
			return o.call(ctx, by.env)
		}); err != nil {
			return fmt.Errorf("%s: %w", o.what, err)
		}
	}
	if w.tenanted() {
		return nil
	}
	return until(ctx, time.Minute, w.meet)
}

// remake makes what is chosen for good when it is made: the ways of circuits.
func (w *world) remake(ctx context.Context) error {
	if err := until(ctx, time.Minute, func(ctx context.Context) error {
		by := w.cluster.present()
		if by == nil {
			return errAbsent
		}
		return setCircuits(ctx, by.env, nil)
	}); err != nil {
		return fmt.Errorf("delete circuits: %w", err)
	}
	rest(ctx, 20*time.Second)
	return w.set(ctx)
}

// meet finds out to whom frames for the addresses of services go.
func (w *world) meet(ctx context.Context) error {
	by := w.cluster.present()
	if by == nil {
		return errAbsent
	}
	vips, err := weft.Call(ctx, by.env, api.ListVips, &api.ListVipsRequest{})
	if err != nil {
		return err
	}
	routers, err := weft.Call(ctx, by.env, api.ListRouters, &api.ListRoutersRequest{})
	if err != nil {
		return err
	}
	nats, err := weft.Call(ctx, by.env, api.ListNats, &api.ListNatsRequest{})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	gate := func(address, mac string) {
		if m, err := flow.ParseMAC(mac); err == nil {
			w.managed.gates[netip.MustParseAddr(address)] = m
		}
	}
	for _, v := range vips.Vips {
		gate(v.Address, v.Mac)
	}
	for _, r := range routers.Routers {
		gate("203.0.113.9", r.Mac)
	}
	for _, g := range nats.Gateways {
		gate("203.0.113.10", g.Mac)
	}
	return nil
}

// unsure reports whether a host may be known, or not: a next hop that has answered, or a
// tenant's host where it was before it was that.
func (w *world) unsure(h *api.Host) bool {
	return strings.HasPrefix(h.Mac, outsideMACs) || w.managed != nil && w.tenanted() && h.Vlan == 0
}

// given is what an answer or an entry says that depends on what came first: numbers that
// services give to things in the order in which they come to need them, which are MPLS
// labels, tunnel identifiers and the VLANs of chains, and counts.
var given = regexp.MustCompile(strings.Join([]string{
	`("mpls_label":"|set_field:)[0-9]+("|(?:->|-\\u003e)mpls_label)`,
	`("vlan_vid":"|set_field:)(?:3[0-9]{3}|40[0-9]{2})("|(?:->|-\\u003e)vlan_vid)`,
	`("tunnel_id":"|set_field:)0x[0-9a-f]+("|(?:->|-\\u003e)tunnel_id)`,
	`"[a-z]*_?labels":\[[^]]*\],?`, `"[a-z]*_?label":[0-9]+,?`, `"(?:loss_ratio|confirmed|wanted|entries|active)":[0-9.e-]+,?`, `"total":"[0-9]+",?`,
	`"reason":"the last [^"]*lost",?`,
}, "|"))

// probed is what a circuit's list says of its last probes.
var probed = regexp.MustCompile(`"(state|reason)":"[^"]*",?`)

// ungiven returns the lines of a final state without that, and without those of
// which a schedule does not decide whether they are there.
func (w *world) ungiven(text string) string {
	lines := strings.SplitAfter(given.ReplaceAllString(text, "$1$2$3$4$5$6"), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "\tcircuits {") {
			lines[i] = probed.ReplaceAllString(l, "") // up or degraded
		}
	}
	lines = slices.DeleteFunc(lines, func(l string) bool {
		switch {
		case strings.HasPrefix(l, "\tallowed "), strings.HasPrefix(l, "\tdenied "), strings.Contains(l, outsideMACs):
			return true
		case strings.HasPrefix(l, "\thosts {") && w.tenanted():
			return !strings.Contains(l, `"vlan"`) // where they were before they were a tenant's
		}
		return strings.Contains(l, `"owner":"chains"`) && strings.Contains(l, `"vlan_vid":""`) // of who has ever been the next
	})
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// use has a host send a datagram that policies meet: to an address of theirs, or to
// another host by way of the functions.
func (w *world) use(c *chance, s, to *station) {
	dst, ip, port := to.mac, to.ip, uint16(7000)
	w.mu.Lock()
	if all := sortedBy(w.managed.gates, netip.Addr.Compare); len(all) > 0 && c.n(4) > 0 {
		ip, port = pick(c, all), 7001
		dst = w.managed.gates[ip]
	}
	w.mu.Unlock()
	s.Send(packet.Pad(packet.AppendUDP(nil, packet.Ether{Dst: dst, Src: s.mac}, packet.IP{Src: s.ip, Dst: ip, TTL: 64}, uint16(40000+c.n(4)), port, nil)))
}
