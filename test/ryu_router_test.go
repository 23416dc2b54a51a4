package test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// ryuRouterHosts are the hosts of Ryu's documentation of rest_router: h1, h4 and h7
// of its network with one tenant, the others of that with tenants by VLAN.
var ryuRouterHosts = map[string]struct {
	address, router string
	vlan            uint16
}{
	"h1": {"172.16.20.10/24", "172.16.20.1", 0}, "h4": {"172.16.10.10/24", "172.16.10.1", 0}, "h7": {"192.168.30.10/24", "192.168.30.1", 0},
	"h2": {"172.16.10.10/24", "172.16.10.1", 2}, "h5": {"192.168.30.10/24", "192.168.30.1", 2}, "h8": {"172.16.20.10/24", "172.16.20.1", 2},
	"h3": {"172.16.10.11/24", "172.16.10.1", 110}, "h6": {"192.168.30.11/24", "192.168.30.1", 110}, "h9": {"172.16.20.11/24", "172.16.20.1", 110},
}

// ryuRouterLab is three switches in a row with those hosts.
func ryuRouterLab(t *testing.T, address string) *lab.Lab {
	t.Helper()
	topo, err := topology.Resolve("linear:3,3")
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Hosts {
		h := &topo.Hosts[i]
		as := ryuRouterHosts[h.Name]
		h.IPv4, h.GW4, h.VLAN = netip.MustParsePrefix(as.address), netip.MustParseAddr(as.router), as.vlan
		h.IPv6 = topology.NoIPv6()
	}
	return bring(t, topo, &controller{t: t, address: address})
}

// ryuPing answers a request of pings: with the time to live if one comes back.
func ryuPing(t *testing.T, l *lab.Lab, r *ryuRequest) ryuAnswer {
	t.Helper()
	a := ryuAnswer{Request: r.String(), Status: 200, Text: "no answer"}
	host, to, _ := strings.Cut(r.path, " ")
	out, _ := l.Exec(context.Background(), host, "ping", "-c", "1", "-W", "1", to)
	if _, rest, ok := strings.Cut(out, "ttl="); ok {
		ttl, _, _ := strings.Cut(rest, " ")
		a.Text = "ttl=" + ttl
	} else if strings.Contains(out, "Unreachable") {
		a.Text = "unreachable"
	}
	return a
}

// TestRyuRouter makes the requests of Ryu's documentation of rest_router, with its
// pings between them, and compares every answer with what Ryu has answered, as
// TestRyu does.
func TestRyuRouter(t *testing.T) {
	t.Parallel()
	requests := ryuRequests(t, "router.txt")
	var want []ryuAnswer
	if *ryuDirectory != "" {
		openflow := freeAddress(t)
		address := startRyu(t, openflow, "ryu.app.rest_router")
		l := ryuRouterLab(t, openflow)
		ryuListens(t, address, "/router/all", 3)
		for i := range requests {
			want = append(want, ryuRouterAnswer(t, &requests[i], address, l))
		}
		if *ryuRecord {
			ryuKeep(t, "router", want)
		}
	} else {
		want = ryuRecorded(t)["router"]
	}
	if len(want) != len(requests) {
		t.Fatalf("%d requests, %d answers of Ryu: run make ryu-parity RECORD=1", len(requests), len(want))
	}
	c, address := startREST(t, options{})
	l := ryuRouterLab(t, c.address)
	settled(c, l)
	knowsSwitches(t, address, 3)
	for i := range requests {
		r := &requests[i]
		if r.method != "PING" && r.method != "GET" {
			a, _ := r.ask(t, address)
			ryuJudge(t, r, a, want[i])
			continue
		}
		var a ryuAnswer
		for end := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) {
			if r.method == "PING" {
				a = ryuPing(t, l, r)
			} else {
				a, _ = r.ask(t, address)
			}
			if r.differs != 0 || a.Text == want[i].Text && jsonText(a.Body) == jsonText(want[i].Body) || time.Now().After(end) {
				break
			}
		}
		ryuJudge(t, r, a, want[i])
	}
}

// ryuRouterAnswer asks Ryu. It has a while for what follows from a request: the
// questions for gateways and hosts, and their answers.
func ryuRouterAnswer(t *testing.T, r *ryuRequest, address string, l *lab.Lab) (a ryuAnswer) {
	t.Helper()
	switch r.method {
	case "PING":
		for range 4 {
			if a = ryuPing(t, l, r); strings.HasPrefix(a.Text, "ttl") {
				break
			}
		}
	case "GET":
		time.Sleep(300 * time.Millisecond)
		a, _ = r.ask(t, address)
	default:
		a, _ = r.ask(t, address)
	}
	return a
}
