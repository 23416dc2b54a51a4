package virtual

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/services/firewall"
	"github.com/weft-sdn/weft/services/hosts"
	"github.com/weft-sdn/weft/services/nat"
	"github.com/weft-sdn/weft/services/nodes"
	"github.com/weft-sdn/weft/services/qos"
	"github.com/weft-sdn/weft/services/router"
	"github.com/weft-sdn/weft/wefttest"
)

// A reachedLimit is a limit of the configuration, and what reaches it.
type reachedLimit struct {
	key, who string
	spec     weft.Spec
	config   string
	reach    func(h *wefttest.Harness) error
}

const reachedAt = "0000000000000001"

// say has a host say that it is there, at a port.
func say(h *wefttest.Harness, n byte, port flow.Port) {
	in := wefttest.NewPacketIn(1, port, packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: flow.MAC{2, 0, 0, 0, 0, n},
		SenderIP: netip.AddrFrom4([4]byte{10, 0, 0, n}), TargetIP: netip.AddrFrom4([4]byte{10, 0, 0, 200})}))
	in.Role = flow.RoleEdge
	h.PacketIn(in)
}

func many(h *wefttest.Harness) error {
	for n := range byte(3) {
		say(h, n+1, 1)
	}
	return nil
}

// TestLimitsReached: what drops traffic, or turns somebody away, because a limit of the
// configuration is reached is told to health, with the key, the limit and whom it has met.
func TestLimitsReached(t *testing.T) {
	for _, x := range []reachedLimit{
		{"hosts.limit", "", hosts.Spec(), "limit: 2", many},
		{"hosts.port_limit", "port 1/1", hosts.Spec(), "port_limit: 2", many},
		{"hosts.ports.max_hosts", "port 1/1", hosts.Spec(), "ports: [{port: 1/1, max_hosts: 2}]", many},
		{"hosts.address_limit", "host 02:00:00:00:00:01 at 1/1", hosts.Spec(), "address_limit: 2", func(h *wefttest.Harness) error {
			for n := range byte(3) {
				in := wefttest.NewPacketIn(1, 1, packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: flow.MAC{2, 0, 0, 0, 0, 1},
					SenderIP: netip.AddrFrom4([4]byte{10, 0, 0, n + 1}), TargetIP: netip.AddrFrom4([4]byte{10, 0, 0, 200})}))
				in.Role = flow.RoleEdge
				h.PacketIn(in)
			}
			return nil
		}},
		{"firewall.verdict_limit", "switch " + reachedAt, firewall.Spec(), "{table_limit: 0, verdict_limit: 1}", func(h *wefttest.Harness) error {
			rule := &api.FirewallRule{Id: "r", Action: "deny", Match: map[string]string{"tcp_dst": "80"}}
			if _, err := wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{rule}}); err != nil {
				return err
			}
			for n := range byte(3) {
				in := wefttest.NewPacketIn(1, 1, packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 0, 0, 0, 0, 9}, Src: flow.MAC{2, 0, 0, 0, 0, 1}},
					packet.IP{Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 9})}, packet.TCPFields{SrcPort: 4000, DstPort: 80 + uint16(n)}, nil))
				in.Role, in.Table = flow.RoleEdge, flow.TableFirewall
				h.PacketIn(in)
			}
			return nil
		}},
		{"qos.entries", "switch " + reachedAt, qos.Spec(), "entries: 1", func(h *wefttest.Harness) error {
			p := &api.QosPolicy{Name: "p", Class: &api.QosClass{Protocol: "tcp"}, Limit: &api.QosLimit{RateKbps: 1}} // of IPv4 and of IPv6
			if _, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: p}); err == nil {
				return fmt.Errorf("two entries are taken")
			}
			return nil
		}},
		{"router.waiting", "port 1/1", router.Spec(), "waiting: 1", func(h *wefttest.Harness) error {
			for _, a := range []string{"10.1.0.1/24", "10.2.0.1/24"} {
				if _, err := wefttest.Call(h, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: "1", Address: a}); err != nil {
					return err
				}
			}
			list, err := wefttest.Call(h, api.ListRouters, &api.ListRoutersRequest{})
			if err != nil {
				return err
			}
			mac, err := flow.ParseMAC(list.Routers[0].Mac)
			for n := range byte(3) { // to hosts that nobody knows
				in := wefttest.NewPacketIn(1, 1, packet.AppendUDP(nil, packet.Ether{Dst: mac, Src: flow.MAC{2, 0, 0, 0, 0, 1}},
					packet.IP{Src: netip.AddrFrom4([4]byte{10, 1, 0, 9}), Dst: netip.AddrFrom4([4]byte{10, 2, 0, 10 + n})}, 4000, 5000, nil))
				in.Role = flow.RoleEdge
				h.PacketIn(in)
			}
			return err
		}},
		{"nodes.nodes", "node of switch 0000000000000002", nodes.Spec(), "nodes: 1", func(h *wefttest.Harness) error {
			for n := range 2 {
				r := &api.NodeReport{Dpid: fmt.Sprintf("%016x", n+1), Loopback: fmt.Sprintf("10.255.0.%d", n+1)}
				if _, err := wefttest.Call(h, api.ReportNodes, &api.ReportNodesRequest{Agent: "a", Nodes: []*api.NodeReport{r}}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"nat.hosts", "gateway g", nat.Spec(), "hosts: 1", func(h *wefttest.Harness) error {
			for n := range byte(2) {
				host := &api.Host{Mac: flow.MAC{2, 0, 0, 0, 0, n + 1}.String(), At: &api.Location{Dpid: reachedAt, Port: 4}, Ipv4: []string{fmt.Sprintf("10.0.0.%d", n+1)}}
				wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: host})
			}
			g := &api.NatGateway{Name: "g", Dpid: reachedAt, Port: 2, Pool: "198.51.100.1", NextHop: "198.51.100.9", Gateway: "10.0.0.254", Inside: []string{"10.0.0.0/24"}}
			_, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: g})
			return err
		}},
	} {
		t.Run(x.key, func(t *testing.T) {
			wefttest.Run(t, x.spec, func(t *testing.T, h *wefttest.Harness) {
				standIn(h, x.spec)
				h.Configure(x.config)
				wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: reachedAt, Connected: true, Openflow: "1.3", Tables: 254}})
				h.Settle()
				if err := x.reach(h); err != nil {
					t.Fatal(err)
				}
				testwait.Until(t, "health is told of "+x.key, func() bool {
					list := h.Limits()
					if x.spec.Name == "hosts" {
						r, err := wefttest.Call(h, api.ListHosts, &api.ListHostsRequest{})
						if err != nil {
							t.Fatal(err)
						}
						list = r.Limits
					}
					return slices.ContainsFunc(list, func(l *api.LimitReached) bool {
						return l.Key == x.key && l.Who == x.who && l.Limit > 0 && l.Times > 0
					})
				})
			})
		})
	}
}

// standIn answers what a service calls.
func standIn(h *wefttest.Harness, spec weft.Spec) {
	for _, m := range spec.Calls {
		wefttest.FakeAny(h, m, func(context.Context, any) (any, error) {
			_, resp := m.NewMessages()
			return resp, nil
		})
	}
}
