package firewall

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/classbench"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// peers are the firewall's: a flowrules that confirms, a southbound that counts.
type peers struct {
	mu       sync.Mutex
	standing map[string][]*api.FlowEntry
	keep     bool   // of the last set
	refuse   string // why flowrules refuses everything but traps
	verdicts []flow.Entry
	deleted  []flow.Match
	flushed  int
	applyErr error
}

func newPeers(h *wefttest.Harness) *peers {
	p := &peers{standing: map[string][]*api.FlowEntry{}}
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.refuse != "" && len(r.Flows) > 2 {
			return &api.SetStandingResponse{Failed: []*api.WantedFlow{{Reason: p.refuse, Refused: true}}}, nil
		}
		p.standing[r.Dpid], p.keep = r.Flows, r.Keep
		return &api.SetStandingResponse{}, nil
	})
	apply := func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.applyErr != nil {
			return nil, p.applyErr
		}
		for i := range d.Flows {
			m := &d.Flows[i]
			switch m.Command {
			case flow.Add:
				p.verdicts = append(p.verdicts, m.Entry.Clone())
			case flow.DeleteStrict:
				p.deleted = append(p.deleted, m.Entry.Match)
			case flow.Delete:
				p.flushed++
			}
		}
		return &api.ApplyResult{}, nil
	}
	wefttest.Fake(h, api.Apply, apply)
	wefttest.Fake(h, api.Send, apply)
	wefttest.Fake(h, api.ReadFlows, func(context.Context, *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
		return &api.ReadFlowsResponse{Flows: []*api.FlowEntry{{Cookie: fmt.Sprintf("%016x", uint64(flow.NewCookie(flow.OwnerFirewall, 0, 1))), Packets: 7, Bytes: 700}}}, nil
	})
	return p
}

// entries returns what a switch is to have, as text.
func (p *peers) entries(sw flow.DPID) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.standing[sw.String()] {
		_, e, err := f.Entry()
		if err != nil {
			panic(err)
		}
		what := "drop"
		if e.Goto != 0 {
			what = fmt.Sprintf("goto %d", e.Goto)
		} else if len(e.Apply) > 0 {
			what = e.Apply[0].String()
		}
		list = append(list, fmt.Sprintf("%d:%d %s %s", e.Table, e.Priority, e.Match, what))
	}
	slices.Sort(list)
	return list
}

func connect(h *wefttest.Harness, sw flow.DPID, up bool) {
	wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: up, Openflow: "1.3", Tables: 254}})
}

func tcp(src, dst string, port uint16) []byte {
	return packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC{2, 0, 0, 0, 0, 2}, Src: flow.MAC{2, 0, 0, 0, 0, 1}},
		packet.IP{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst)}, packet.TCPFields{SrcPort: 40000, DstPort: port}, nil)
}

func verdictOn(h *wefttest.Harness, sw flow.DPID, frame []byte, role flow.PortRole, table uint8) flow.Verdict {
	in := wefttest.NewPacketIn(sw, 1, frame)
	in.Role, in.Table = role, table
	v, _ := h.PacketIn(in)
	return v
}

func add(t *testing.T, h *wefttest.Harness, rules ...*api.FirewallRule) *api.AddFirewallRulesResponse {
	t.Helper()
	resp, err := wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func deny(id string, priority uint32, match ...string) *api.FirewallRule {
	m := &api.FirewallRule{Id: id, Priority: priority, Action: actionDeny, Match: map[string]string{}}
	for _, s := range match {
		name, value, _ := strings.Cut(s, "=")
		m.Match[name] = value
	}
	return m
}

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(h)
		connect(h, 1, true)
		frame := tcp("10.0.0.1", "10.0.0.2", 80)
		if v := verdictOn(h, 1, frame, flow.RoleEdge, 0); v != flow.Next {
			t.Fatalf("without rules: %v", v)
		}
		resp := add(t, h, deny("web", 100, "tcp_dst=80"), deny("", 50, "ipv6_dst=fd00::/8"))
		if len(resp.Ids) != 2 || resp.Ids[0] != "web" || resp.Ids[1] == "" || len(resp.Failures) > 0 {
			t.Fatalf("added: %v", resp)
		}
		again := add(t, h, deny("web", 100, "tcp_dst=80"), deny("", 50, "ipv6_dst=fd00::/8"))
		if again.Unchanged != 2 || again.Ids[1] != resp.Ids[1] {
			t.Fatalf("added again: %v, want all unchanged", again)
		}
		want := []string{
			"10:100 eth_type=0x0800,ip_proto=6,tcp_dst=80 drop",
			"10:100 eth_type=0x8100 drop",
			"10:100 eth_type=0x86dd,ip_proto=6,tcp_dst=80 drop",
			"10:100 eth_type=0x88a8 drop",
			"10:50 eth_type=0x86dd,ipv6_dst=fd00::/8 drop",
		}
		if got := p.entries(1); !slices.Equal(got, want) {
			t.Fatalf("entries %q, want %q", got, want)
		}
		if v := verdictOn(h, 1, frame, flow.RoleEdge, 0); v != flow.Drop {
			t.Errorf("denied packet: %v", v)
		}
		if v := verdictOn(h, 1, tcp("10.0.0.1", "10.0.0.2", 81), flow.RoleEdge, 0); v != flow.Next {
			t.Errorf("other port: %v", v)
		}
		if v := verdictOn(h, 1, frame, flow.RoleLink, 0); v != flow.Next {
			t.Errorf("packet from a link, judged where it came in: %v", v)
		}
		testwait.Until(t, "a packet that has passed the table is let on", func() bool {
			return verdictOn(h, 1, frame, flow.RoleEdge, flow.TableForward) == flow.Next
		})
		list, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{Counts: true})
		if err != nil || len(list.Rules) != 2 || list.Rules[0].Id != "web" || list.Rules[0].Packets < 7 {
			t.Fatalf("listed %v, %v", list, err)
		}

		// Links, and a switch with rules of its own.
		role := func(port uint32, role string) {
			wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: flow.DPID(1).String(), Port: port}, Role: role}})
		}
		role(3, "link")
		testwait.Until(t, "the link passes", func() bool { return slices.Contains(p.entries(1), "10:65535 in_port=3 goto 20") })
		own := deny("own", 10, "eth_type=0x0806")
		own.Dpid = "1"
		add(t, h, own)
		if got := p.entries(1); slices.Contains(got, "10:65535 in_port=3 goto 20") || !slices.Contains(got, "10:10 eth_type=0x0806 drop") {
			t.Errorf("with a rule of its own: %q, want links judged", got)
		}
		if v := verdictOn(h, 1, frame, flow.RoleLink, 0); v != flow.Drop {
			t.Errorf("packet from a link at a switch with rules of its own: %v", v)
		}

		// A restart.
		h.Restart()
		connect(h, 1, true)
		if v := verdictOn(h, 1, frame, flow.RoleEdge, 0); v != flow.Drop {
			t.Errorf("after a restart: %v", v)
		}
		if list, err = wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{}); err != nil || len(list.Rules) != 3 {
			t.Fatalf("after a restart: %v %v", list, err)
		}
		check, err := wefttest.Call(h, api.CheckFirewall, &api.CheckFirewallRequest{Packet: map[string]string{"eth_type": "0x0800", "tcp_dst": "80"}})
		if err != nil || check.Action != actionDeny || check.Rule.GetId() != "web" {
			t.Errorf("check: %v %v", check, err)
		}

		// Defaults.
		if _, err := wefttest.Call(h, api.SetFirewallDefault, &api.SetFirewallDefaultRequest{Action: "deny"}); err != nil {
			t.Fatal(err)
		}
		if v := verdictOn(h, 2, tcp("10.0.0.1", "10.0.0.2", 99), flow.RoleEdge, 0); v != flow.Drop {
			t.Errorf("by default: %v", v)
		}
		if got := p.entries(1); !slices.Contains(got, "10:1 any drop") {
			t.Errorf("with deny by default: %q", got)
		}
		if _, err := wefttest.Call(h, api.SetFirewallDefault, &api.SetFirewallDefaultRequest{Action: "allow", Dpid: "2"}); err != nil {
			t.Fatal(err)
		}
		if v := verdictOn(h, 2, tcp("10.0.0.1", "10.0.0.2", 99), flow.RoleEdge, 0); v != flow.Next {
			t.Errorf("by the switch's default: %v", v)
		}
		gone, err := wefttest.Call(h, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{AllOf: "all"})
		if err != nil || gone.Deleted != 3 && gone.Deleted != 0 { // made twice, the second finds none
			t.Errorf("deleted: %v %v", gone, err)
		}
		if status, err := wefttest.Call(h, api.GetFirewallStatus, &api.GetFirewallStatusRequest{}); err != nil || status.DefaultAction != "deny" || status.Rules != 0 || len(status.Switches) != 2 {
			t.Errorf("status: %v %v", status, err)
		}
	})
}

// TestRefusals has requests refused as a whole, every mistake named.
func TestRefusals(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		newPeers(h)
		bad := []*api.FirewallRule{
			deny("ok", 1, "tcp_dst=80"), deny("bad id", 1), deny("a", 70000), deny("b", 1, "tcp_dst=90-80"), deny("ok", 1),
			deny("c", 1, "nonsense=1"), {Id: "d", Action: "perhaps"}, {Id: "e", Action: "deny", Tenant: "x", Match: map[string]string{"vlan_vid": "9"}}, {Id: "f", Action: "deny", Vlan: 5000},
			deny("g", 1, "tcp_dst=1-2", "ip_proto=17"), deny("h", 1, "ipv4_src=10.0.0.0/40"), {Id: "i", Action: "deny", Dpid: "zz"},
			{Id: "j", Action: "deny", Vlan: 5, Match: map[string]string{"vlan_vid": "6"}}, {Id: "k", Action: "allow", Comment: strings.Repeat("x", 300)},
			deny("l", 1, "metadata=5"), deny("m", 1, "in_port=1", "in_phy_port=1"),
		}
		_, err := wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: bad})
		if api.KindOf(err) != codes.InvalidArgument {
			t.Fatalf("got %v", err)
		}
		for i := 1; i < len(bad); i++ {
			if !strings.Contains(err.Error(), fmt.Sprintf("rules[%d]:", i)) {
				t.Errorf("the mistake of rules[%d] is not told: %v", i, err)
			}
		}
		if list, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{}); err != nil || list.Total != 0 {
			t.Errorf("rules taken of a bad request: %v %v", list, err)
		}
	})
}

// TestReactive has verdicts installed, and removed before a change is answered.
func TestReactive(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("table_limit: 0")
		p := newPeers(h)
		connect(h, 1, true)
		add(t, h, deny("web", 100, "tcp_dst=80", "ipv4_dst=10.0.0.2/31"))
		if got := p.entries(1); !slices.Equal(got, []string{"10:1 any output:controller"}) && !slices.Equal(got, []string{"10:1 any controller"}) {
			t.Fatalf("entries %q", got)
		}
		testwait.Until(t, "the switch is cleared of what it may have", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.flushed > 0 })
		at := func(port uint16) (list []flow.Entry) {
			testwait.Until(t, "verdicts", func() bool {
				verdictOn(h, 1, tcp("10.0.0.1", "10.0.0.2", port), flow.RoleEdge, 1)
				p.mu.Lock()
				defer p.mu.Unlock()
				list = slices.Clone(p.verdicts)
				return slices.ContainsFunc(list, func(e flow.Entry) bool { return e.Match.Key.TPDst == port })
			})
			return list
		}
		var denied, allowed flow.Entry
		at(80)
		for _, e := range at(81) {
			if e.Match.Key.TPDst == 80 {
				denied = e
			} else {
				allowed = e
			}
		}
		if denied.Goto != 0 || allowed.Goto != flow.TableQoS || denied.IdleTimeout != 30 || denied.Cookie.Owner() != flow.OwnerVerdicts || denied.Cookie.ID() == 0 {
			t.Errorf("verdicts %v and %v", denied, allowed)
		}
		if got := allowed.Match.String(); got != "eth_type=0x0800,ip_proto=6,ipv4_dst=10.0.0.2/31,tcp_dst=81" {
			t.Errorf("verdict on %s: want just what the rules look at", got)
		}
		add(t, h, deny("other", 100, "tcp_dst=81"))
		p.mu.Lock()
		if !slices.Contains(p.deleted, allowed.Match) || slices.Contains(p.deleted, denied.Match) {
			t.Errorf("removed %v: want the verdict on port 81 only", p.deleted)
		}
		p.applyErr = api.Errorf(codes.Unavailable, "southbound is away")
		p.mu.Unlock()
		resp := add(t, h, deny("another", 100, "tcp_dst=80"))
		if len(resp.Failures) == 0 && resp.Unchanged == 0 {
			t.Errorf("a switch whose verdicts are not removed is not told: %v", resp)
		}
		p.mu.Lock()
		p.applyErr = nil
		p.mu.Unlock()
	})
}

// TestRefusedEntries has a switch that refuses the entries of rules judged by
// the controller.
func TestRefusedEntries(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(h)
		p.refuse = "OFPBMC_BAD_MASK"
		connect(h, 1, true)
		resp := add(t, h, deny("a", 3, "tcp_dst=1000-2000"), deny("b", 2, "tcp_dst=80"))
		if len(resp.Failures) > 0 {
			t.Errorf("failures %v", resp.Failures)
		}
		status, err := wefttest.Call(h, api.GetFirewallStatus, &api.GetFirewallStatusRequest{Dpid: "1"})
		if err != nil || len(status.Switches) != 1 || status.Switches[0].Mode != modeReactive || !strings.Contains(status.Switches[0].Reason, "BAD_MASK") {
			t.Errorf("status %v %v", status, err)
		}
	})
}

// TestNeeds: a rule that a connected switch cannot hold, nor the controller for it, is refused;
// one that is there when such a switch connects is not in force.
func TestNeeds(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		newPeers(h)
		connect(h, 1, true)
		add(t, h, deny("before", 3, "tunnel_id=5"))
		old := &api.Switch{Dpid: flow.DPID(2).String(), Connected: true, Openflow: "1.0", Tables: 1}
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: old})
		h.Settle()
		why := "switch " + old.Dpid + " has OpenFlow 1.0"
		for _, r := range []*api.FirewallRule{deny("everywhere", 3, "tunnel_id=6"), {Id: "there", Action: actionDeny, Dpid: old.Dpid, Match: map[string]string{"tunnel_id": "6"}}} {
			_, err := wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{r}})
			if api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "rule "+r.Id+" cannot be held: "+why) {
				t.Errorf("%v: %v", r, err)
			}
		}
		add(t, h, deny("before", 3, "tunnel_id=5"), deny("judged", 2, "ipv6_src=fd00::/64"),
			&api.FirewallRule{Id: "elsewhere", Action: actionDeny, Dpid: flow.DPID(1).String(), Match: map[string]string{"tunnel_id": "6"}})
		list, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{})
		if err != nil || list.Rules[0].Id != "before" || list.Rules[0].State != notInForce || !strings.Contains(list.Rules[0].Reason, "it has OpenFlow 1.0") {
			t.Errorf("%v, %v", list, err)
		}
	})
}

// TestManyRules keeps and loads 50,000 rules, or 5,000 with -short.
func TestManyRules(t *testing.T) {
	size := 50_000
	if testing.Short() {
		size = 5000
	}
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		newPeers(h)
		connect(h, 1, true)
		began := time.Now()
		rules := classbenchRules(classbench.ACL, size)
		for some := range slices.Chunk(rules, 5000) {
			if _, err := wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: some, NoWait: true}); err != nil {
				t.Fatal(err)
			}
		}
		loaded := time.Now()
		one := deny("one more", 65001, "tcp_dst=4")
		one.Id = "one-more"
		add(t, h, one)
		changed := time.Now()
		h.Restart()
		list, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{Limit: 1})
		if err != nil || list.Total != uint32(size)+1 || list.Rules[0].Id != "one-more" {
			t.Fatalf("%v %v", list, err)
		}
		t.Logf("%d rules added in %v, one more in %v, there after a restart in %v", len(rules), loaded.Sub(began), changed.Sub(loaded), time.Since(changed))
	})
}
