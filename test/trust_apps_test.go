package test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// trustApps runs the captive portal of the Python package, over each transport,
// under a plan of one worker and one of several: whoever it has not approved
// reaches the portal's server and nobody else, and is reached by nobody else,
// whoever speaks first, and whatever dies.
func trustApps(t *testing.T, f *faults) {
	for _, c := range []struct{ name, scheme, attach, workers string }{
		{"rest", "http", "north", "  switches: {services: [southbound, discovery, hosts]}\n  routing: {services: [paths, forwarding]}\n  north: {services: [flowrules, stats, gateway], listen: %q}\n"},
		{"grpc", "grpc", "switches", "  switches: {services: [southbound, discovery, hosts], listen: %q}\n  routing: {services: [paths, forwarding], replicas: 2}\n  north: {services: [flowrules, stats, gateway]}\n"},
		{"ws", "ws", "all", "  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway], listen: %q}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := "name: portal\npipeline: [discovery, hosts, portal, forwarding]\n" +
				"apps:\n  portal: {absent: skip, may: [hosts.SetHold, hosts.ApproveHost]}\nworkers:\n" + fmt.Sprintf(c.workers, freeAddress(t))
			a := &appsTest{t: t, deployment: f.deploy(t, plan)}
			l := a.quiet("ring:4", a.openflow)
			p := &portalTest{appsTest: a, l: l}
			server := lookup(t, l, "h3")
			start := func() *script {
				return a.python(filepath.Join(sdk, "examples/portal.py"), c.scheme+"://"+a.address(c.attach), server.MAC.String())
			}

			watch := a.python(filepath.Join(sdk, "examples/watch.py"), c.scheme+"://"+a.address(c.attach))
			told := func(what string, n int) { // null comes before the state
				t.Helper()
				eventually(t, fmt.Sprintf("%s is told %d times", what, n), func() bool { return strings.Count("\n"+watch.String(), what) >= n })
			}
			told("\nnull\n", 1)
			told(`"state": true`, 4) // the switches

			// h1 and h4 have talked before the portal is there: that is over.
			p.reach("h1", "h4", true)
			app := start()
			eventually(t, "hosts held", func() bool {
				m, err := api.NewHostsClient(a.conn).ListHolds(context.Background(), &api.ListHoldsRequest{})
				return err == nil && len(m.Holds) == 1 && m.Holds[0].Stage == "portal"
			})
			p.without("h1")
			p.approve("h3", "h4")
			p.reach("h4", "h3", true)
			p.reach("h1", "h4", false)
			p.reach("h4", "h1", false) // somebody else's first packet opens nothing
			p.reach("h1", "h3", true)  // the server
			p.without("h1")

			// The word opens both directions, and lasts.
			p.say("h1", server)
			eventually(t, "h1 approved", func() bool { return len(p.heldBy("h1")) == 0 })
			told(`"change": "held"`, 4) // h1 and h4 were held, and approved
			p.reach("h1", "h4", true)
			p.reach("h4", "h1", true)
			p.reach("h2", "h4", false)
			p.reach("h4", "h2", false)

			// While the app is away, packets skip it, and held hosts stay held.
			app.kill()
			a.absent("portal")
			p.reach("h1", "h4", true)
			p.reach("h2", "h4", false)
			p.reach("h4", "h2", false)
			p.reach("h2", "h3", false)
			for process, pid := range a.pids() {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatalf("%s: %v", process, err)
				}
			}
			a.allUp()
			a.whole(l)
			told("\nnull\n", 2) // the controller has been started again
			p.reach("h4", "h2", false)
			p.without("h2")
			p.reach("h1", "h4", true)
			start()
			a.attached("portal", "stage", c.name, c.attach)
			p.reach("h2", "h3", true)

			// What was approved can be taken back.
			if out, err := a.command(context.Background(), "host", "revoke", lookup(t, l, "h1").MAC.String(), "--stage", "portal"); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			p.without("h1")
			p.reach("h1", "h4", false)
			p.reach("h4", "h1", false)
			p.reach("h4", "h3", true)
		})
	}
}

// portalTest is a network with a captive portal.
type portalTest struct {
	*appsTest
	l *lab.Lab
}

// reach pings, and fails if that is not answered, or is, as it should be.
func (p *portalTest) reach(from, to string, want bool) {
	p.t.Helper()
	within := patience
	if !want {
		within = 1500 * time.Millisecond
	}
	r, err := p.l.Ping(context.Background(), from, to, traffic.PingOptions{Count: 2, Interval: 50 * time.Millisecond, Timeout: within})
	if err != nil {
		p.t.Fatal(err)
	}
	if got := r.Lost() < r.Sent; got != want || want && r.Lost() > 0 {
		p.t.Errorf("%s -> %s: %d of %d lost, want answers: %v", from, to, r.Lost(), r.Sent, want)
	}
}

// approve has the operator approve hosts in the portal's name.
func (p *portalTest) approve(hosts ...string) {
	p.t.Helper()
	for _, h := range hosts {
		if out, err := p.command(context.Background(), "host", "approve", lookup(p.t, p.l, h).MAC.String(), "--stage", "portal"); err != nil {
			p.t.Fatalf("%v %s", err, out)
		}
	}
}

// say has a host send the portal's word to its server.
func (p *portalTest) say(from string, server topology.Host) {
	p.t.Helper()
	if out, err := p.l.Exec(context.Background(), from, "bash", "-c", fmt.Sprintf("echo word=sesame > /dev/udp/%s/80", server.IPv4.Addr())); err != nil {
		p.t.Fatalf("%v %s", err, out)
	}
}

func (p *portalTest) heldBy(host string) []string {
	p.t.Helper()
	h, err := api.NewHostsClient(p.conn).FindHost(context.Background(), &api.FindHostRequest{Address: lookup(p.t, p.l, host).MAC.String(), Vlan: -1})
	if err != nil {
		return []string{err.Error()}
	}
	return h.HeldBy
}

// without waits until no switch has a route from or to a host.
func (p *portalTest) without(host string) {
	p.t.Helper()
	mac := strings.ToLower(lookup(p.t, p.l, host).MAC.String())
	eventually(p.t, "no entries of "+host, func() bool {
		n := 0
		for _, sw := range p.l.Topology().Switches {
			n += present(p.t, p.l, sw.Name, "dl_src="+mac) + present(p.t, p.l, sw.Name, "dl_dst="+mac)
		}
		return n == 0
	})
}
