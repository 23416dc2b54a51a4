package nat

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

const (
	sw1 = "0000000000000001"
	sw2 = "0000000000000002"
	sw3 = "0000000000000003"
)

// network stands in for flowrules and the southbound.
type network struct {
	mu        sync.Mutex
	sets      map[string]*api.SetStandingRequest
	exhausted uint64 // what the switch counts
	lacking   string // why it does not have the first entry
	sent      int
	read      int // how often it was asked for its counts
}

func fakes(h *wefttest.Harness) *network {
	n := &network{sets: map[string]*api.SetStandingRequest{}}
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sets[r.Dpid] = r
		if n.lacking != "" && len(r.Flows) > 0 {
			return &api.SetStandingResponse{Failed: []*api.WantedFlow{{Flow: r.Flows[0], Reason: n.lacking, Refused: true}}}, nil
		}
		return &api.SetStandingResponse{}, nil
	})
	wefttest.Fake(h, api.ReadFlows, func(_ context.Context, r *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.read++
		e := flow.Entry{Table: flow.TableTracked, Cookie: flow.NewCookie(flow.OwnerNAT, 0, 1<<8|uint32(kindExhausted))}
		m := api.NewFlowEntry(3, &e)
		m.Packets = n.exhausted
		return &api.ReadFlowsResponse{Flows: []*api.FlowEntry{m}}, nil
	})
	wefttest.Fake(h, api.Send, func(context.Context, *flow.Decision) (*api.ApplyResult, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sent++
		return &api.ApplyResult{}, nil
	})
	return n
}

// text returns the entries of a switch, one to a line.
func (n *network) text(dpid string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for _, m := range n.sets[dpid].GetFlows() {
		_, e, err := m.Entry()
		if err != nil {
			return err.Error()
		}
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

func connect(h *wefttest.Harness, dpid, openflow string, tables uint32) {
	wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: true, Openflow: openflow, Tables: tables}})
}

func wanted() *api.NatGateway {
	return &api.NatGateway{Name: "internet", Dpid: sw3, Port: 2, Pool: "198.51.100.1-198.51.100.3", NextHop: "198.51.100.9",
		Gateway: "10.0.0.254", Inside: []string{"10.0.0.0/24"}, Forwards: []*api.NatForward{{Protocol: "tcp", Port: 80, To: "10.0.0.3", ToPort: 8080}}}
}

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("ask_interval: 100ms\npoll: 100ms")
		n := fakes(h)
		connect(h, sw1, "1.0", 254)
		connect(h, sw2, "1.3", 254)
		connect(h, sw3, "1.3", 254)
		h.Settle()
		const sw4 = "0000000000000004"
		is := &api.Switch{Dpid: sw4, Connected: true, Openflow: "1.3", Tables: 254, Hardware: "some"}
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: is})
		for dpid, why := range map[string]string{sw1: "has OpenFlow 1.0", sw4: "no connection tracking"} {
			g := wanted()
			g.Dpid = dpid
			if _, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: g}); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), dpid+" ") || !strings.Contains(err.Error(), why) {
				t.Errorf("a gateway at %s: %v, want that it %s", dpid, err, why)
			}
		}
		m, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: wanted()})
		if err != nil || m.State != "down" || !strings.Contains(m.Reason, "next hop") || m.Zone != 1 || m.FirstPort != 1024 || m.Mac == "" {
			t.Fatalf("%v, %v", m, err)
		}
		testwait.Until(t, "the next hop is asked for", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.sent > 0 })
		mac, _ := flow.ParseMAC(m.Mac)
		frame := arpReply(netip.MustParseAddr("198.51.100.9"), flow.MAC{2, 0, 0, 0, 0, 9}, netip.MustParseAddr("198.51.100.1"), mac)
		in := wefttest.NewPacketIn(3, 2, frame)
		in.Role = flow.RoleEdge
		if v, _ := h.PacketIn(in); v != flow.Done {
			t.Errorf("the next hop's answer: %v", v)
		}
		host := &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: "02:00:00:00:00:03", At: &api.Location{Dpid: sw1, Port: 4}, Ipv4: []string{"10.0.0.3"}}}
		wefttest.Publish(h, api.HostChangedEvent, host)
		entries := []string{
			"table=30 priority=30050 in_port=2,eth_dst=" + m.Mac + ",eth_type=0x0800,vlan_vid=none,ip_proto=6,ipv4_dst=198.51.100.1,tcp_dst=80,ct_state=-trk owner=nat id=256 actions=ct(commit,table=30,zone=1,nat(dst=10.0.0.3:8080))",
			"actions=ct(table=30,zone=1,nat)",
			"ipv4_dst=10.0.0.3,ct_state=+trk-inv,ct_zone=1 owner=nat id=257 actions=set_field:" + m.Mac + "->eth_src,set_field:02:00:00:00:00:03->eth_dst,dec_ttl goto_table=50",
			"actions=ct(commit,table=40,zone=1,nat(src=198.51.100.1-198.51.100.3:1024-65535))",
			"table=40 priority=20", "set_field:02:00:00:00:00:09->eth_dst,dec_ttl,output:2",
		}
		testwait.Until(t, "other switches keep its address, too", func() bool {
			s := n.text(sw2)
			return strings.Count(s, "table=45 priority=43003") == 4 && strings.Contains(s, "arp_spa=10.0.0.254 owner=nat") && strings.Contains(s, "eth_dst="+m.Mac+",eth_type=0x0806") && !strings.Contains(s, "table=30")
		})
		testwait.Until(t, "all entries declared", func() bool {
			for _, e := range entries {
				if !strings.Contains(n.text(sw3), e) {
					return false
				}
			}
			return true
		})
		state := func() *api.NatGateway {
			list, err := wefttest.Call(h, api.ListNats, &api.ListNatsRequest{Name: "internet"})
			if err != nil || len(list.Gateways) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			return list.Gateways[0]
		}
		testwait.Until(t, "up", func() bool { return state().State == "up" && state().Hosts == 1 })
		for _, why := range []string{"the switch confirms it and does not have it", ""} { // as flowrules says after readings
			n.mu.Lock()
			n.lacking = why
			n.mu.Unlock()
			wefttest.Publish(h, api.FlowsObservedEvent, &api.FlowsObserved{Dpid: sw3, Owner: "nat"})
			testwait.Until(t, "what the switch does not have is not said to be up", func() bool {
				return (state().State == "down") == (why != "") && strings.Contains(state().Reason, why)
			})
		}
		// What the switch has counted before it was first read is nobody's: the call
		// before the last is over.
		testwait.Until(t, "counts are read", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.read > 1 })
		n.mu.Lock()
		n.exhausted = 7
		n.mu.Unlock()
		testwait.Until(t, "exhausted", func() bool { return state().State == "exhausted" && state().ExhaustedPackets == 7 })
		if got := h.Metric("exhausted_total", "gateway", "internet"); got != 7 {
			t.Errorf("%v exhausted by metric", got)
		}
		if h.Metric("exhausted", "gateway", "internet") != 1 {
			t.Error("that the pool is exhausted is no figure")
		}
		// A restart takes nobody's way back: what is declared first has it all.
		testwait.Until(t, "the host is kept", func() bool {
			v, _, err := h.Bucket("hosts").Get(t.Context(), "10.0.0.3")
			return err == nil && len(v) > 0
		})
		h.Restart()
		n.mu.Lock()
		clear(n.sets)
		n.mu.Unlock()
		connect(h, sw3, "1.3", 254)
		testwait.Until(t, "declared after a restart", func() bool { return n.text(sw3) != "" })
		for _, e := range entries {
			if !strings.Contains(n.text(sw3), e) {
				t.Errorf("after a restart, without %s", e)
			}
		}
		wefttest.Publish(h, api.HostsSettledEvent, &api.HostsSettled{})
		testwait.Until(t, "a host that is there no more is forgotten", func() bool { return !strings.Contains(n.text(sw3), "ipv4_dst=10.0.0.3,ct_state") && state().Hosts == 0 })
		for what, change := range map[string]func(*api.NatGateway){
			"name":    func(m *api.NatGateway) { m.Name = "in ternet" },
			"pool":    func(m *api.NatGateway) { m.Pool = "198.51.100.3-198.51.100.1" },
			"big":     func(m *api.NatGateway) { m.Pool = "198.51.0.0-198.51.100.1" },
			"v6":      func(m *api.NatGateway) { m.Pool = "2001:db8::1" },
			"port":    func(m *api.NatGateway) { m.Port = 0 },
			"ports":   func(m *api.NatGateway) { m.FirstPort, m.LastPort = 9, 8 },
			"inside":  func(m *api.NatGateway) { m.Inside = []string{"10.0.0.0/24", "10.0.0.0/8"} },
			"gateway": func(m *api.NatGateway) { m.Gateway = "10.0.1.1" },
			"hop":     func(m *api.NatGateway) { m.NextHop = "198.51.100.2" },
			"forward": func(m *api.NatGateway) { m.Forwards[0].To = "10.1.0.1" },
			"nothing": func(m *api.NatGateway) { m.Inside = nil },
		} {
			m := wanted()
			change(m)
			if _, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: m}); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("nothing at all: %v", err)
		}
		other := wanted()
		other.Name = "other"
		if _, err := wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: other}); api.KindOf(err) != codes.AlreadyExists {
			t.Errorf("the same port twice: %v", err)
		}
		other = &api.NatGateway{Name: "other", Dpid: sw1, Port: 2, Pool: "203.0.113.1", NextHop: "203.0.113.9", Gateway: "10.1.0.254", Inside: []string{"10.1.0.0/24"}}
		m, err = wefttest.Call(h, api.SetNat, &api.SetNatRequest{Gateway: other})
		if err != nil || m.State != "down" || m.Zone != 2 {
			t.Errorf("%v, %v", m, err)
		}
		for _, name := range []string{"internet", "other"} {
			if _, err := wefttest.Call(h, api.DeleteNat, &api.DeleteNatRequest{Name: name}); err != nil {
				t.Error(err)
			}
		}
		testwait.Until(t, "no entries left", func() bool { return n.text(sw3) == "" })
		testwait.Until(t, "no figures of deleted gateways", func() bool { return len(h.Metrics("exhausted_total")) == 0 })
	})
}
