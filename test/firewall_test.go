package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// pings reports whether a ping comes back, of the next few.
func pings(t *testing.T, l *lab.Lab, from, to string, v6 bool) bool {
	t.Helper()
	r, err := l.Ping(context.Background(), from, to, traffic.PingOptions{IPv6: v6, Count: 3, Interval: 50 * time.Millisecond, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return r.Received > 0
}

// passes reports whether a ping comes back before long: a busy machine's switches
// may be late.
func passes(t *testing.T, l *lab.Lab, from, to string, v6 bool) bool {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; {
		if pings(t, l, from, to, v6) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// whileRunning has one host ping another every 20 ms until end is called.
func whileRunning(l *lab.Lab, from, to string) (result <-chan traffic.PingResult, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan traffic.PingResult, 1)
	go func() {
		r, err := l.Ping(ctx, from, to, traffic.PingOptions{Count: -1, Interval: 20 * time.Millisecond})
		if err != nil {
			r.Error = err.Error()
		}
		done <- r
	}()
	return done, cancel
}

// stopped checks that no ping passes any more. Open vSwitch confirms an entry
// before its datapath has revalidated the flows that it remembers, which takes
// it some milliseconds, more under load: the first pings may still be of those.
func stopped(t *testing.T, l *lab.Lab, from, to string, v6 bool) {
	t.Helper()
	eventually(t, from+" does not reach "+to+", for that is denied", func() bool {
		first := pings(t, l, from, to, v6) // which a busy machine may lose
		return !first && !pings(t, l, from, to, v6)
	})
}

// passing checks that all pairs reach each other, as soon as the datapaths have
// revalidated what they remember.
func passing(t *testing.T, l *lab.Lab, v6 bool) {
	t.Helper()
	eventually(t, "all pairs reach each other", func() bool {
		results, err := l.PingAll(context.Background(), l.AllPairs(v6), traffic.PingOptions{IPv6: v6, Count: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Lost() > 0 || r.Error != "" {
				return false
			}
		}
		return true
	})
}

// addRules adds rules and checks that all switches have confirmed them.
func addRules(c *controller, rules ...*api.FirewallRule) {
	c.t.Helper()
	if resp := call(c, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: rules}); len(resp.Failures) > 0 {
		c.t.Fatalf("rules not confirmed: %v", resp.Failures)
	}
}

// deleteRules deletes rules and checks that all switches have confirmed that. An
// answer may be lost and the call repeated, which then finds no rule.
func deleteRules(c *controller, ids ...string) {
	c.t.Helper()
	if resp := call(c, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{Ids: ids}); len(resp.Failures) > 0 {
		c.t.Fatalf("deletion not confirmed: %v", resp.Failures)
	}
	for _, r := range call(c, api.ListFirewallRules, &api.ListFirewallRulesRequest{}).Rules {
		if slices.Contains(ids, r.Id) {
			c.t.Fatalf("rule %s is still there", r.Id)
		}
	}
}

// fetch reports whether a TCP connection to a port of a host is answered.
func fetch(l *lab.Lab, from, address string, port int) bool {
	out, err := l.Exec(context.Background(), from, "curl", "-s", "-m", "2", "--http0.9", fmt.Sprintf("http://%s:%d/", address, port))
	return err == nil && strings.Contains(string(out), "weft")
}

// fetched checks that a TCP connection is answered or not, as soon as the
// datapaths have revalidated what they remember.
func fetched(t *testing.T, l *lab.Lab, from, address string, port int, want bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("port %d answered to %s: %v", port, from, want), func() bool { return fetch(l, from, address, port) == want })
}

// answer has a host answer TCP connections to some ports until the test ends.
func answer(t *testing.T, l *lab.Lab, host string, ports ...int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	program := `
import socket, sys, threading
def serve(port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", port)); s.listen(8)
    while True:
        c, _ = s.accept()
        c.recv(1000); c.sendall(b"HTTP/1.0 200 OK\r\n\r\nweft\n"); c.close()
for p in sys.argv[1:]: threading.Thread(target=serve, args=(int(p),)).start()
`
	args := []string{"python3", "-c", program}
	for _, p := range ports {
		args = append(args, fmt.Sprint(p))
	}
	go func() { _, _ = l.Exec(ctx, host, args...) }()
}

// TestFirewall denies and allows, under running traffic, over IPv4 and IPv6, by
// port and by VLAN, with rules in the switches and with verdicts.
func TestFirewall(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name, mode string
		set        []string
	}{{"compiled", "compiled", nil}, {"reactive", "reactive", []string{"firewall.table_limit=0", "firewall.verdict_idle=5s"}}} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, options{set: m.set})
			defer explain(c)
			l := up(t, "linear:3", c)
			settled(c, l)
			pingAll(t, l, false)
			h1, h3 := lookup(t, l, "h1"), lookup(t, l, "h3")

			// A deny under a running ping, and back.
			running, denied := whileRunning(l, "h1", "h3")
			defer denied()
			time.Sleep(300 * time.Millisecond)
			addRules(c, &api.FirewallRule{Id: "no-h1-h3", Priority: 100, Action: "deny", Match: map[string]string{
				"ipv4_src": h1.IPv4.Addr().String(), "ipv4_dst": h3.IPv4.Addr().String()}})
			stopped(t, l, "h1", "h3", false)
			enforced(c, m.mode)
			denied()
			if r := <-running; r.Lost() < 20 { // stopped has watched for longer
				t.Errorf("%d of %d lost of the ping that ran, want those after the rule", r.Lost(), r.Sent)
			}
			if !passes(t, l, "h1", "h2", false) || !passes(t, l, "h1", "h3", true) {
				t.Error("what no rule is about does not pass")
			}
			eventually(t, "one rule, that has counted", func() bool { // a switch may take a second to count
				got := call(c, api.ListFirewallRules, &api.ListFirewallRulesRequest{Counts: true}).Rules
				return len(got) == 1 && got[0].Packets > 0
			})
			deleteRules(c, "no-h1-h3")
			passing(t, l, false)

			// IPv6.
			if !passes(t, l, "h1", "h3", true) {
				t.Error("no IPv6 before the rule")
			}
			addRules(c, &api.FirewallRule{Id: "no-6", Priority: 100, Action: "deny", Match: map[string]string{"ipv6_dst": h3.IPv6.Addr().String(), "icmpv6_type": "128"}})
			stopped(t, l, "h1", "h3", true)
			if !passes(t, l, "h1", "h3", false) {
				t.Error("IPv4 denied by a rule about IPv6")
			}
			deleteRules(c, "no-6")

			// Ports: a range, and one of them allowed before it.
			answer(t, l, "h3", 8080, 8081, 9000)
			eventually(t, "TCP answered", func() bool {
				return fetch(l, "h1", h3.IPv4.Addr().String(), 8080) && fetch(l, "h1", h3.IPv4.Addr().String(), 9000)
			})
			addRules(c,
				&api.FirewallRule{Id: "range", Priority: 100, Action: "deny", Match: map[string]string{"tcp_dst": "8000-8999"}},
				&api.FirewallRule{Id: "but", Priority: 200, Action: "allow", Match: map[string]string{"tcp_dst": "8081"}})
			for port, want := range map[int]bool{8080: false, 8081: true, 9000: true} {
				fetched(t, l, "h1", h3.IPv4.Addr().String(), port, want)
			}
			if !passes(t, l, "h1", "h3", false) {
				t.Error("a rule about TCP keeps pings back")
			}
			deleteRules(c, "range", "but")

			// Nothing but what is allowed, on one switch; blocked altogether.
			s1 := dpid(t, l, "s1")
			addRules(c, &api.FirewallRule{Id: "arp", Priority: 50, Action: "allow", Match: map[string]string{"eth_type": "0x0806"}},
				&api.FirewallRule{Id: "icmp", Priority: 50, Action: "allow", Match: map[string]string{"ip_proto": "1"}})
			setDefault(c, s1, "deny")
			stopped(t, l, "h1", "h2", true)
			fetched(t, l, "h1", h3.IPv4.Addr().String(), 9000, false)
			if !passes(t, l, "h1", "h2", false) {
				t.Error("want ICMP over IPv4 from h1")
			}
			fetched(t, l, "h2", h3.IPv4.Addr().String(), 9000, true) // another switch does not deny what only s1 is to
			setDefault(c, s1, "block")
			stopped(t, l, "h1", "h2", false)
			if !passes(t, l, "h2", "h3", false) {
				t.Error("more is blocked than what passes s1")
			}
			setDefault(c, s1, "")
			deleteRules(c, "arp", "icmp")
			passing(t, l, false)
		})
	}
}

// enforced waits until all switches have confirmed what they are to enforce,
// and checks how.
func enforced(c *controller, mode string) {
	c.t.Helper()
	var odd string
	defer func() {
		if c.t.Failed() && odd != "" {
			c.t.Logf("%s, want %s, in_sync", odd, mode)
		}
	}()
	eventually(c.t, "rules enforced as "+mode, func() bool {
		odd = ""
		for _, s := range call(c, api.GetFirewallStatus, &api.GetFirewallStatusRequest{}).Switches {
			if s.Mode != mode || s.Sync != "in_sync" {
				odd = fmt.Sprintf("switch %s: %s, %s (%s)", s.Dpid, s.Mode, s.Sync, s.Reason)
			}
		}
		return odd == ""
	})
}

func setDefault(c *controller, sw, action string) {
	c.t.Helper()
	if resp := call(c, api.SetFirewallDefault, &api.SetFirewallDefaultRequest{Dpid: sw, Action: action}); len(resp.Failures) > 0 {
		c.t.Fatalf("default not confirmed: %v", resp.Failures)
	}
}

// TestFirewallVLAN denies in one VLAN what passes in another, on hosts with the
// same addresses.
func TestFirewallVLAN(t *testing.T) {
	t.Parallel()
	topo, err := topology.Linear(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, vlan := range []uint16{10, 20} {
		for i := range 2 {
			topo.Hosts = append(topo.Hosts, topology.Host{
				Name: fmt.Sprintf("v%d-%d", vlan, i+1), Switch: fmt.Sprintf("s%d", i+1), VLAN: vlan,
				IPv4: prefix(fmt.Sprintf("10.0.0.%d/24", i+1)), IPv6: prefix(fmt.Sprintf("fd00::%d/64", i+1)),
			})
		}
	}
	for i := range topo.Links {
		topo.Links[i].APort, topo.Links[i].BPort = 0, 0 // after those of the hosts
	}
	topo.Complete()
	c := start(t, options{})
	defer explain(c)
	l := bring(t, topo, c)
	settled(c, l)
	pingAll(t, l, false)
	addRules(c, &api.FirewallRule{Id: "guests", Priority: 7, Action: "deny", Tenant: "guests", Vlan: 20, Match: map[string]string{"ip_proto": "1"}})
	stopped(t, l, "v20-1", "v20-2", false)
	if !passes(t, l, "v10-1", "v10-2", false) || !passes(t, l, "v20-1", "v20-2", true) {
		t.Error("a rule of VLAN 20 about ICMP keeps others back")
	}
	deleteRules(c, "guests")
	passing(t, l, false)
}

// TestFirewallRestart has rules outlast the controller, which finds the entries
// as they are.
func TestFirewallRestart(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"2000", "0"} {
		t.Run("limit "+limit, func(t *testing.T) {
			t.Parallel()
			set := []string{"firewall.table_limit=" + limit}
			c := start(t, options{set: set})
			l := up(t, "linear:2", c)
			settled(c, l)
			h2 := lookup(t, l, "h2")
			addRules(c, &api.FirewallRule{Id: "keep", Priority: 100, Action: "deny", Match: map[string]string{"ipv4_dst": h2.IPv4.Addr().String()}})
			stopped(t, l, "h1", "h2", false)
			c.stop()
			if pings(t, l, "h1", "h2", false) {
				t.Error("h1 reaches h2 without a controller")
			}
			c = start(t, options{store: c.store, address: c.address, set: set})
			defer explain(c)
			settled(c, l)
			if got := call(c, api.ListFirewallRules, &api.ListFirewallRulesRequest{}).Rules; len(got) != 1 || got[0].Id != "keep" || got[0].Number == 0 {
				t.Fatalf("rules after the restart: %v", got)
			}
			stopped(t, l, "h1", "h2", false)
			if !passes(t, l, "h1", "h2", true) {
				t.Error("IPv6 does not pass after the restart")
			}
			deleteRules(c, "keep")
			passing(t, l, false)
		})
	}
}

// TestFirewallOneTable has switches of OpenFlow 1.0, with one table: what is
// denied for certain is an entry, the rest is judged by the controller.
func TestFirewallOneTable(t *testing.T) {
	t.Parallel()
	topo, err := topology.Resolve("linear:2")
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Switches {
		topo.Switches[i].Protocols = []string{"OpenFlow10"}
	}
	c := start(t, options{})
	defer explain(c)
	l := bring(t, topo, c)
	settled(c, l)
	pingAll(t, l, false)
	h2 := lookup(t, l, "h2")
	addRules(c, &api.FirewallRule{Id: "deny", Priority: 100, Action: "deny", Match: map[string]string{"ipv4_dst": h2.IPv4.Addr().String()}})
	enforced(c, "compiled")
	stopped(t, l, "h1", "h2", false)
	answer(t, l, "h2", 8080, 8081)
	addRules(c, &api.FirewallRule{Id: "but", Priority: 200, Action: "allow", Match: map[string]string{"ipv4_dst": h2.IPv4.Addr().String(), "tcp_dst": "8081"}})
	enforced(c, "controller")
	eventually(t, "port 8081 answered", func() bool { return fetch(l, "h1", h2.IPv4.Addr().String(), 8081) })
	if fetch(l, "h1", h2.IPv4.Addr().String(), 8080) {
		t.Error("port 8080 answered although only 8081 is allowed")
	}
	stopped(t, l, "h1", "h2", false)
	addRules(c, &api.FirewallRule{Id: "six", Priority: 100, Action: "deny", Match: map[string]string{"ipv6_dst": h2.IPv6.Addr().String()}})
	stopped(t, l, "h1", "h2", true)
	deleteRules(c, "deny", "but", "six")
	enforced(c, "off")
	passing(t, l, false)
	passing(t, l, true)
}
