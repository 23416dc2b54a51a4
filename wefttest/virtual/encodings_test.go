package virtual

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

const policyPlan = `name: policies
partial: true
workers:
  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, firewall, chain, qos, tenants, balancer, witness]}
config:
  firewall: {table_limit: %d}
`

// site is a network in which policies are tried: h1 at one switch, h2 and h3 at another,
// and there, too, a function that sends on what it does not know for traffic to port 7000.
type site struct {
	*world
	by         *witness
	h1, h2, h3 *station
	function   flow.Location
	passed     int      // frames that the function has sent on
	frames     int      // that h2 has got of the traffic
	gate       flow.MAC // whom frames are sent to that are given other addresses
}

// An encoded is a policy, and traffic of h1 that it does not let get to h2.
type encoded struct {
	name    string
	limit   int // firewall.table_limit
	set     func(ctx context.Context, s *site) error
	spoofed bool // the traffic has the address of h3
	most    int  // how many frames may get there in all
	family  string
	proto   uint8 // of the traffic, if not all
}

func (s *site) rule(ctx context.Context, match map[string]string) error {
	_, err := weft.Call(ctx, s.by.env, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "r", Action: "deny", Match: match}}})
	return err
}

// chains makes chains that block, one for each protocol and family, for which match says more.
func (s *site) chains(ctx context.Context, match map[string]string) error {
	functions := []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: api.NewLocation(s.function)}}}}
	_, err := weft.Call(ctx, s.by.env, api.SetChain, &api.SetChainRequest{Chain: &api.ServiceChain{Name: "c", Match: match, Functions: functions, OnFailure: "block"}})
	return err
}

var policies = []encoded{
	{name: "a deny by port", limit: 2000, set: func(ctx context.Context, s *site) error {
		if err := s.rule(ctx, map[string]string{"udp_dst": "7000"}); err != nil {
			return err
		}
		_, err := weft.Call(ctx, s.by.env, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "t", Action: "deny", Match: map[string]string{"tcp_dst": "6000-7999"}}}})
		return err
	}},
	{name: "verdicts by port", limit: 0, set: func(ctx context.Context, s *site) error {
		_, err := weft.Call(ctx, s.by.env, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{
			{Id: "u", Action: "deny", Match: map[string]string{"udp_dst": "7000"}}, {Id: "t", Action: "deny", Match: map[string]string{"tcp_dst": "7000"}}}})
		return err
	}},
	{name: "a deny by address", limit: 2000, set: func(ctx context.Context, s *site) error {
		_, err := weft.Call(ctx, s.by.env, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{
			{Id: "4", Action: "deny", Match: map[string]string{"ipv4_src": "10.0.0.1"}}, {Id: "6", Action: "deny", Match: map[string]string{"ipv6_dst": "fd00::2"}}}})
		return err
	}},
	{name: "a binding", limit: 2000, spoofed: true, set: func(ctx context.Context, s *site) error {
		_, err := weft.Call(ctx, s.by.env, api.BindHost, &api.BindHostRequest{Binding: &api.HostBinding{Mac: s.h3.mac.String(), Ips: []string{"10.0.0.3", "fd00::3"}}})
		return err
	}},
	{name: "a border of tenants", limit: 2000, set: func(ctx context.Context, s *site) error {
		for i, h := range []*station{s.h1, s.h2} {
			name, at := fmt.Sprintf("t%d", i), h.Location()
			if _, err := weft.Call(ctx, s.by.env, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: name}}); err != nil {
				return err
			}
			network := &api.TenantNetwork{Tenant: name, Name: "n", Members: []*api.TenantMember{{Dpid: at.Switch.String(), Port: uint32(at.Port)}}}
			if _, err := weft.Call(ctx, s.by.env, api.SetNetwork, &api.SetNetworkRequest{Network: network}); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "a limit by port", limit: 2000, most: 20, set: func(ctx context.Context, s *site) error {
		for i, class := range []string{"udp", "tcp"} {
			p := &api.QosPolicy{Name: class, Order: uint32(i), Class: &api.QosClass{Protocol: class, DstPort: 7000}, Limit: &api.QosLimit{RateKbps: 1, Burst: 1}}
			if _, err := weft.Call(ctx, s.by.env, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: p}); err != nil {
				return err
			}
		}
		return nil
	}},
}

// TestEncodings: what a policy says of some traffic holds for every encoding of its
// packets (oftest.Traffic.Encodings), by a host's count of what its socket gets; however
// many tags the switches look behind.
func TestEncodings(t *testing.T) {
	list := slices.Clone(policies)
	for _, family := range []string{"ipv4", "ipv6"} {
		address := map[string]string{"ipv4": "10.0.0.2", "ipv6": "fd00::2"}[family]
		for _, proto := range []string{"udp", "tcp"} {
			for _, by := range []string{"address", "port"} {
				for _, dead := range []bool{false, true} {
					match := map[string]string{family + "_dst": address, "eth_type": map[string]string{"ipv4": "0x0800", "ipv6": "0x86dd"}[family]}
					if by == "port" {
						match["ip_proto"], match[proto+"_dst"] = map[string]string{"udp": "17", "tcp": "6"}[proto], "7000"
					}
					name := fmt.Sprintf("a chain by %s, %s, %s, dead %v", by, family, proto, dead)
					list = append(list, encoded{name: name, limit: 2000, family: family, proto: map[string]uint8{"udp": flow.IPProtoUDP, "tcp": flow.IPProtoTCP}[proto], set: func(ctx context.Context, s *site) error {
						err := s.chains(ctx, match)
						if dead {
							s.device(s.function.Switch).SetLink(s.function.Port, false)
						}
						return err
					}})
				}
			}
		}
	}
	for _, tags := range []int{1, 2} {
		for _, p := range list {
			t.Run(fmt.Sprintf("%s, tags %d", p.name, tags), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { holds(t, p, tags) })
			})
		}
	}
}

// holds tries one policy.
func holds(t *testing.T, p encoded, tags int) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := oftest.Config{Nicira: true, Tags: tags, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b := w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	s := &site{world: w, h1: w.addStation(a), h2: w.addStation(b), h3: w.addStation(b), function: b.port()}
	w.net.Host(s.function, func(frame []byte) [][]byte {
		var k flow.Key
		if packet.Parse(frame, &k); k.VLAN != 0 || k.TPDst == 7000 {
			return nil
		}
		s.passed++
		return [][]byte{frame}
	})
	b.SetLink(s.function.Port, true)
	if err := w.cluster.apply(ctx, fmt.Sprintf(policyPlan, p.limit)); err != nil {
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
	s.by = w.cluster.present()

	for name, got := range s.send(p) {
		if out := hides(name, tags, p); got != 1 && !out || got > 1 {
			t.Errorf("without the policy: %s: %d got there", name, got)
		}
	}
	if err := p.set(ctx, s); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	s.frames = 0
	for name, got := range s.send(p) {
		if got > 0 && p.most == 0 {
			t.Errorf("%s: %d got there", name, got)
		}
	}
	if p.most > 0 && s.frames > p.most {
		t.Errorf("%d frames got there, want at most %d", s.frames, p.most)
	}
}

// hides reports whether an encoding is dropped without any policy, because switches cannot
// find what it carries (services/forwarding/obscured.go).
func hides(name string, tags int, p encoded) bool {
	for _, part := range []string{"header chain", "no payload length", "small fragments tcp", "small first fragment tcp", "header in fragments"} {
		if contains(name, part) {
			return true
		}
	}
	return tags == 1 && (contains(name, "81000000 ") || contains(name, "88a80000 ")) || contains(name, "[81000000 81000000 81000000]")
}

func contains(s, part string) bool { return strings.Contains(s, part) }

// send sends all encodings of all traffic of a policy, and returns how many datagrams h2's
// socket got of each.
func (s *site) send(p encoded) map[string]int {
	got := map[string]int{}
	for _, proto := range []uint8{flow.IPProtoUDP, flow.IPProtoTCP} {
		for _, family := range []string{"ipv4", "ipv6"} {
			if p.family != "" && (p.family != family || p.proto != proto) {
				continue
			}
			from, net := "1", map[string]string{"ipv4": "10.0.0.", "ipv6": "fd00::"}[family]
			if p.spoofed {
				from = "3"
			}
			tr := oftest.Traffic{SrcMAC: s.h1.mac, DstMAC: s.h2.mac, Proto: proto,
				Src: netip.AddrPortFrom(netip.MustParseAddr(net+from), 40000), Dst: netip.AddrPortFrom(netip.MustParseAddr(net+"2"), 7000)}
			for _, e := range tr.Encodings() {
				name := fmt.Sprintf("%s %s %s", e.Name, map[uint8]string{flow.IPProtoUDP: "udp", flow.IPProtoTCP: "tcp"}[proto], family)
				socket := &oftest.Socket{MAC: tr.DstMAC, At: tr.Dst, Proto: proto}
				s.h2.Received()
				for _, f := range e.Frames {
					s.h1.Send(f)
					time.Sleep(50 * time.Millisecond) // for what the controller hands on
				}
				for _, f := range s.h2.Received() {
					socket.Take(f)
					s.frames++
				}
				got[name] = socket.Got
			}
		}
	}
	return got
}
