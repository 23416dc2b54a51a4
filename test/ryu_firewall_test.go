package test

import (
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

// TestRyuFirewall makes the requests of Ryu's documentation of rest_firewall, and
// compares every answer with what Ryu has answered, as TestRyu does.
func TestRyuFirewall(t *testing.T) {
	t.Parallel()
	ryuCompare(t, "firewall", "/firewall/log/status", []string{"ryu.app.rest_firewall"}, "southbound", "flowrules", "discovery", "firewall", "ryu")
}

// ryuCompare makes the requests of a file to applications of Ryu, or takes what
// they have answered, and to Weft with some services, and compares. Ryu has its
// switches when it lists two on the path ready.
func ryuCompare(t *testing.T, name, ready string, apps []string, services ...string) {
	requests := ryuRequests(t, name+".txt")
	var want []ryuAnswer
	if *ryuDirectory != "" {
		openflow := freeAddress(t)
		address := startRyu(t, openflow, apps...)
		upFor(t, ryuSpec, openflow)
		ryuListens(t, address, ready, 2)
		for i := range requests {
			a, _ := requests[i].ask(t, address)
			want = append(want, a)
		}
		if *ryuRecord {
			ryuKeep(t, name, want)
		}
	} else {
		want = ryuRecorded(t)[name]
	}
	if len(want) != len(requests) {
		t.Fatalf("%d requests, %d answers of Ryu: run make ryu-parity RECORD=1", len(requests), len(want))
	}
	c, address := startREST(t, options{only: services})
	up(t, ryuSpec, c)
	knowsSwitches(t, address, 2)
	ryuListens(t, address, ready, 2)
	for i := range requests {
		a, _ := requests[i].ask(t, address)
		ryuJudge(t, &requests[i], a, want[i])
	}
}

// ryuSay makes a request that is to succeed.
func ryuSay(t *testing.T, address, method, path, body string) {
	t.Helper()
	if a, h := ryuCall(t, address, method, path, body); a.Status != 200 || h.Get("Weft-Refused") != "" {
		t.Fatalf("%s %s %s: status %d, %s", method, path, body, a.Status, h.Get("Weft-Refused"))
	}
}

// TestRyuFirewallTraffic: what rest_firewall is told becomes of packets what Ryu's
// documentation says: none pass where it is enabled or disabled without rules, what
// is allowed passes but for what a rule of higher priority denies.
func TestRyuFirewallTraffic(t *testing.T) {
	t.Parallel()
	c, address := startREST(t, options{})
	l := up(t, ryuSpec, c)
	settled(c, l)
	knowsSwitches(t, address, 2)
	pingAll(t, l, false)
	h1, h2 := lookup(t, l, "h1"), lookup(t, l, "h2")
	rules := func(method, body string) { t.Helper(); ryuSay(t, address, method, "/firewall/rules/all", body) }
	pair := func(from, to topology.Host, more string) string {
		return `{"nw_src": "` + from.IPv4.Addr().String() + `/32", "nw_dst": "` + to.IPv4.Addr().String() + `/32", "nw_proto": "ICMP"` + more + `}`
	}

	ryuSay(t, address, "PUT", "/firewall/module/enable/all", "")
	stopped(t, l, "h1", "h2", false)
	rules("POST", pair(h1, h2, ""))
	rules("POST", pair(h2, h1, ""))
	passing(t, l, false)
	rules("POST", pair(h1, h2, `, "actions": "DENY", "priority": 10`))
	stopped(t, l, "h1", "h2", false)
	rules("DELETE", `{"rule_id": "3"}`)
	passing(t, l, false)
	ryuSay(t, address, "PUT", "/firewall/module/disable/all", "")
	stopped(t, l, "h1", "h2", false)
	ryuSay(t, address, "PUT", "/firewall/module/enable/all", "")
	passing(t, l, false)
	stopped(t, l, "h1", "h2", true)
	rules("POST", `{"dl_type": "IPv6"}`)
	passing(t, l, true)
}
