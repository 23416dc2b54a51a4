package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

const dpid1, dpid2, dpid3 = "0000000000000001", "0000000000000002", "0000000000000003"

func whole(dpid, loopback string, ports ...*api.NodePort) *api.NodeReport {
	return &api.NodeReport{Dpid: dpid, Name: "n" + dpid[15:], Loopback: loopback, Ports: ports}
}

func bucket(t testing.TB) weft.Bucket {
	t.Helper()
	b, err := wefttest.NewStore().Bucket(t.Context(), "ports")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func link(n uint32) *api.NodePort {
	return &api.NodePort{Port: n, Name: "eth", Role: "link", Mtu: 1500, Carrier: true}
}

func started(t *testing.T, h *wefttest.Harness) func(...*api.NodeReport) *api.ReportNodesResponse {
	t.Helper()
	h.Start()
	connect(h, dpid1, dpid2)
	return func(list ...*api.NodeReport) *api.ReportNodesResponse {
		t.Helper()
		a, err := wefttest.Call(h, api.ReportNodes, &api.ReportNodesRequest{Agent: "a", Nodes: list})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

func connect(h *wefttest.Harness, dpids ...string) {
	for _, d := range dpids {
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: d, Connected: true, Description: "hybrid name=x"}})
	}
	h.Settle()
}

func joined(h *wefttest.Harness, removed bool) {
	a, b := &api.Location{Dpid: dpid1, Port: 1}, &api.Location{Dpid: dpid2, Port: 1}
	for _, l := range []*api.Link{{Src: a, Dst: b, State: "up"}, {Src: b, Dst: a, State: "up"}} {
		wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: l, Removed: removed})
	}
	h.Settle()
}

// TestBFD: sessions are asked for where discovery finds a link between nodes, and
// stay behind a silent cut.
func TestBFD(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		report := started(t, h)
		joined(h, false)
		report(whole(dpid1, "10.255.0.1", link(1), link(2)), whole(dpid2, "10.255.0.2", link(1)))
		a := report(whole(dpid1, "10.255.0.1", link(1), link(2)), whole(dpid2, "10.255.0.2", link(1)))
		if len(a.Nodes) != 2 || len(a.Nodes[0].Bfd) != 1 || a.Nodes[0].Bfd[0].Port != 1 || a.Nodes[0].Bfd[0].IntervalMs != 50 {
			t.Fatal(a)
		}
		same := []*api.NodeReport{{Dpid: dpid1, Unchanged: true, Wanted: a.Nodes[0].Version}, {Dpid: dpid2, Unchanged: true, Wanted: a.Nodes[1].Version}}
		if a := report(same...); len(a.Nodes) != 0 {
			t.Error("told again:", a)
		}
		joined(h, true)
		down := link(1)
		down.Bfd = "down"
		if a := report(whole(dpid1, "10.255.0.1", down, link(2))); len(a.Nodes) != 1 || len(a.Nodes[0].Bfd) != 1 {
			t.Error("the session ends behind a silent cut:", a)
		}
		if a := report(whole(dpid1, "10.255.0.1", link(1), link(2))); len(a.Nodes) != 1 || len(a.Nodes[0].Bfd) != 0 || a.Nodes[0].Version == 0 {
			t.Error("a session where there never was a link:", a)
		}
		h.Restart()
		connect(h, dpid1, dpid2)
		if a := report(same...); len(a.Nodes) != 2 || !a.Nodes[0].Whole {
			t.Error("after a restart:", a)
		}
	})
}

// TestFalseAlarms: a session that goes down again and again, with carrier, is given
// more time.
func TestFalseAlarms(t *testing.T) {
	now := time.Now()
	b := newRegistry(defaults(), bucket(t), func() time.Time { return now }, nil)
	hybrid, _, join := learn(b)
	hybrid(1, 2)
	join(flow.Location{Switch: 1, Port: 1}, flow.Location{Switch: 2, Port: 1})
	var last *api.ReportNodesResponse
	say := func(flaps uint32) {
		p := link(1)
		p.Bfd, p.BfdFlaps = "up", flaps
		last, _, _ = b.report(&api.ReportNodesRequest{Agent: "a", Nodes: []*api.NodeReport{whole(dpid1, "10.255.0.1", p), whole(dpid2, "10.255.0.2", link(1))}})
		now = now.Add(time.Second)
	}
	for flaps := range uint32(3) {
		say(2 * flaps)
		now = now.Add(alarmTime) // cuts
	}
	if got := last.Nodes[0].Bfd[0].IntervalMs; got != 50 {
		t.Errorf("after cuts every %d ms, want 50", got)
	}
	for flaps := range uint32(4) {
		say(20 + 2*flaps)
	}
	if got := last.Nodes[0].Bfd[0].IntervalMs; got != 100 {
		t.Errorf("after three false alarms every %d ms, want 100", got)
	}
	now = now.Add(calm)
	say(28)
	if got := last.Nodes[0].Bfd[0].IntervalMs; got != 50 {
		t.Errorf("after a while every %d ms, want 50", got)
	}
}

// TestTunnelPorts: numbers at once, the same after a restart and with the ends the
// other way round; up when both nodes have made their ends and hear each other.
func TestTunnelPorts(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		report := started(t, h)
		set := func(from, to, kind string) (*api.TunnelPort, error) {
			a, err := wefttest.Call(h, api.SetTunnelPorts, &api.SetTunnelPortsRequest{User: "tunnels", Ports: []*api.TunnelPort{
				{Kind: kind, A: &api.Location{Dpid: from}, B: &api.Location{Dpid: to}}}})
			if err != nil {
				return nil, err
			}
			return a.Ports[0], nil
		}
		one, err := set("1", "2", "vxlan")
		if err != nil || one.State != "waiting" || one.A.Dpid != dpid1 || !flow.IsTunnelPort(flow.Port(one.A.Port)) || one.Key == 0 {
			t.Fatal(one, err)
		}
		report(whole(dpid1, "10.255.0.1", link(1)), whole(dpid2, "10.255.0.2", link(1)))
		a := report(whole(dpid1, "10.255.0.1", link(1)), whole(dpid2, "10.255.0.2", link(1)))
		if len(a.Nodes) != 2 || len(a.Nodes[0].Tunnels) != 1 || a.Nodes[0].Tunnels[0].Remote != "10.255.0.2" || a.Nodes[1].Tunnels[0].Key != one.Key {
			t.Fatal(a)
		}
		made := func(loc *api.Location, bfd string) *api.NodePort {
			return &api.NodePort{Port: loc.Port, Name: "t", Role: "tunnel", Mtu: 1900, Carrier: true, Bfd: bfd}
		}
		h.Restart()
		connect(h, dpid1, dpid2)
		report(whole(dpid1, "10.255.0.1", link(1), made(one.A, "up")), whole(dpid2, "10.255.0.2", link(1), made(one.B, "down")))
		two, err := set("2", "1", "vxlan")
		if err != nil || two.State != "down" || two.A.Dpid != dpid2 || two.A.Port != one.B.Port || two.Key != one.Key {
			t.Error(two, err)
		}
		report(whole(dpid2, "10.255.0.2", link(1), made(one.B, "up")))
		if up, err := set("1", "2", "vxlan"); err != nil || up.State != "up" || up.Mtu != 1900-36 {
			t.Error(up, err)
		}
		for _, wrong := range [][3]string{{"1", "2", "ipip"}, {"1", "1", "gre"}, {"1", "x", "gre"}} {
			if m, err := set(wrong[0], wrong[1], wrong[2]); err == nil {
				t.Error(wrong, "taken:", m)
			}
		}
		if _, err := wefttest.Call(h, api.SetTunnelPorts, &api.SetTunnelPortsRequest{User: "tunnels"}); err != nil {
			t.Error(err)
		}
		if a := report(whole(dpid1, "10.255.0.1", link(1))); len(a.Nodes) != 1 || len(a.Nodes[0].Tunnels) != 0 {
			t.Error("a tunnel port that nobody wants:", a)
		}
	})
}

// TestHostileReports: what is wrong is refused and says why, and what is said of
// switches that are not hybrid nodes has no effect.
func TestHostileReports(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		report := started(t, h)
		port := func(change func(*api.NodePort)) *api.NodeReport {
			p := link(1)
			change(p)
			return whole(dpid1, "10.255.0.1", p)
		}
		for want, r := range map[string]*api.NodeReport{
			"port 0":         port(func(p *api.NodePort) { p.Port = 0 }),
			"port 429496729": port(func(p *api.NodePort) { p.Port = 0xfffffffe }),
			"each once":      whole(dpid1, "", link(2), link(2)),
			"role":           port(func(p *api.NodePort) { p.Role = "edge" }),
			"bfd":            port(func(p *api.NodePort) { p.Bfd = "sideways" }),
			"mtu":            port(func(p *api.NodePort) { p.Mtu = 1 << 20 }),
			"name of a port": port(func(p *api.NodePort) { p.Name = "a\x1b[2J" }),
			"error":          port(func(p *api.NodePort) { p.Error = strings.Repeat("x", 256) }),
			"name":           {Dpid: dpid1, Name: strings.Repeat("n", 64)},
			"loopback":       whole(dpid1, "224.0.0.5"),
			"loopback6":      {Dpid: dpid1, Loopback6: "10.0.0.1"},
			"at most 4096":   whole(dpid1, "", slices.Repeat([]*api.NodePort{link(1)}, 4097)...),
		} {
			a := report(r)
			if len(a.Nodes) != 1 || !strings.Contains(a.Nodes[0].Refused, want) {
				t.Errorf("%s: %v", want, a)
			}
		}
		many := make([]*api.NodeReport, 1001)
		for i := range many {
			many[i] = &api.NodeReport{Dpid: fmt.Sprintf("%016x", i+1)}
		}
		for _, list := range [][]*api.NodeReport{many, {{Dpid: "x"}}, {{Dpid: dpid1}, {Dpid: "1"}}} {
			if _, err := wefttest.Call(h, api.ReportNodes, &api.ReportNodesRequest{Agent: "a", Nodes: list}); err == nil {
				t.Errorf("a report of %d nodes is taken", len(list))
			}
		}
		report(whole(dpid1, "10.255.0.1", link(1)))
		if a, err := wefttest.Call(h, api.ReportNodes, &api.ReportNodesRequest{Agent: "b", Nodes: []*api.NodeReport{whole(dpid1, "10.0.0.9")}}); err != nil || !strings.Contains(a.Nodes[0].Refused, "a reports it") {
			t.Error("another agent takes a node over:", a, err)
		}
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid3, Connected: true}})
		h.Settle()
		if a := report(whole(dpid3, "10.255.0.3", link(1))); len(a.Nodes) != 0 {
			t.Error("of a switch that is no node something is wanted:", a)
		}
		list, err := wefttest.Call(h, api.ListNodes, &api.ListNodesRequest{})
		if err != nil || len(list.Nodes) != 2 || list.Nodes[0].State != stateLive || list.Nodes[1].State != stateUnknown {
			t.Error(list, err)
		}
	})
}

// TestStale: a node that is not heard of is stale, keeps what was wanted, and may
// be taken over by another agent, if it may report it at all.
func TestStale(t *testing.T) {
	now := time.Now()
	cfg := defaults()
	cfg.Agents = []string{"a 000000000000000?", "b 0000000000000001"}
	b := newRegistry(cfg, bucket(t), func() time.Time { return now }, nil)
	var told []string
	b.tellNode = func(e *api.NodeChanged) { told = append(told, e.Node.State) }
	hybrid, _, _ := learn(b)
	hybrid(1)
	say := func(agent, dpid string) string {
		a, _, err := b.report(&api.ReportNodesRequest{Agent: agent, Nodes: []*api.NodeReport{whole(dpid, "10.255.0.1", link(1))}})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Nodes) == 0 {
			return ""
		}
		return a.Nodes[0].Refused
	}
	say("a", dpid1)
	b.look()
	now = now.Add(cfg.Stale)
	b.look()
	if want := []string{stateLive, stateStale}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if why := say("b", dpid1); why != "" {
		t.Error("b may not take over:", why)
	}
	for _, x := range [][2]string{{"b", dpid2}, {"c", dpid1}} {
		if why := say(x[0], x[1]); !strings.Contains(why, "nodes.agents") {
			t.Errorf("%v: %q", x, why)
		}
	}
}

// BenchmarkReport is a second of a machine with 250 nodes of six ports.
func BenchmarkReport(b *testing.B) {
	for _, unchanged := range []bool{false, true} {
		b.Run(fmt.Sprintf("unchanged=%v", unchanged), func(b *testing.B) {
			k := newRegistry(defaults(), bucket(b), time.Now, nil)
			hybrid, _, _ := learn(k)
			q := &api.ReportNodesRequest{Agent: "a"}
			for i := range 250 {
				hybrid(flow.DPID(i + 1))
				q.Nodes = append(q.Nodes, whole(fmt.Sprintf("%016x", i+1), fmt.Sprintf("10.255.0.%d", i+1), link(1), link(2), link(3), link(4), link(5), link(6)))
			}
			for i := 0; b.Loop(); i++ {
				if _, _, err := k.report(q); err != nil {
					b.Fatal(err)
				}
				for _, n := range q.Nodes {
					n.Unchanged = unchanged
				}
			}
		})
	}
}

// TestWhoReports: the agent with the node's name has it before whoever was first, and keeps
// it when it is stale; nobody takes another node's loopback.
func TestWhoReports(t *testing.T) {
	now := time.Now()
	b := newRegistry(defaults(), bucket(t), func() time.Time { return now }, nil)
	feed := wefttest.Network(reads, b.networkChanged)
	for dpid, name := range map[string]string{dpid1: "pe1", dpid2: "pe2"} {
		feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: true, Description: "hybrid name=" + name}})
	}
	say := func(agent, dpid, loopback, refused string) {
		t.Helper()
		a, _, err := b.report(&api.ReportNodesRequest{Agent: agent, Nodes: []*api.NodeReport{whole(dpid, loopback, link(1))}})
		if err != nil {
			t.Fatal(err)
		}
		why := ""
		if len(a.Nodes) > 0 {
			why = a.Nodes[0].Refused
		}
		if (why == "") != (refused == "") || !strings.Contains(why, refused) {
			t.Errorf("%s reports %s: %q; want %q", agent, dpid, why, refused)
		}
	}
	say("evil", dpid1, "10.0.0.66", "")
	say("pe1", dpid1, "10.255.0.1", "")
	say("evil", dpid1, "10.0.0.66", "pe1 reports it")
	say("evil", dpid2, "10.255.0.1", "loopback")
	say("evil", dpid2, "10.0.0.66", "")
	now = now.Add(b.cfg.Stale)
	b.look()
	say("evil", dpid1, "10.0.0.67", "pe1 reports it")
	say("other", dpid2, "10.0.0.68", "")
	say(dpid2, dpid2, "10.255.0.2", "")
	if got := b.nodes[2].agent; got != dpid2 {
		t.Errorf("node 2 is reported by %s", got)
	}
}
