package test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/packet"
)

// TestHostMoves has a host unplugged, or fall silent, and appear on another
// switch, with the same addresses.
func TestHostMoves(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name  string
		leave func(*lab.Lab, context.Context, string, string) error
	}{{"unplugged", (*lab.Lab).LinkDown}, {"silent", (*lab.Lab).LinkSilent}} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, options{})
			l := up(t, "ring:4", c)
			settled(c, l)
			h2 := lookup(t, l, "h2")
			// h4 has not spoken yet: it lends its place.
			r, err := l.Ping(context.Background(), "h1", "h2", traffic.PingOptions{Count: 2, Timeout: patience})
			if err != nil || r.Lost() > 0 {
				t.Fatalf("%v %v", r, err)
			}
			s := endless(t, l, "h1", "h2", 5*time.Millisecond)
			s.flows(50)
			if err := v.leave(l, context.Background(), "h2", "s2"); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"ip", "link", "set", "eth0", "down"},
				{"ip", "addr", "flush", "dev", "eth0"},
				{"ip", "link", "set", "eth0", "address", h2.MAC.String()},
				{"ip", "addr", "add", h2.IPv4.String(), "dev", "eth0"},
				{"ip", "link", "set", "eth0", "up"},
			} {
				if _, err := l.Exec(context.Background(), "h4", args...); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			s4 := dpid(t, l, "s4")
			speaker := attach(t, l, "h4")
			eventually(t, "the host known at its new place", func() bool {
				// It speaks, as a host does that has come up.
				speaker.send(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: flow.MAC(h2.MAC), SenderIP: h2.IPv4.Addr(), TargetIP: h2.IPv4.Addr()}))
				time.Sleep(20 * time.Millisecond)
				return call(c, api.FindHost, &api.FindHostRequest{Address: h2.MAC.String(), Vlan: -1}).At.Dpid == s4
			})
			t.Logf("known at its new place %v after it came up there", time.Since(began))
			// The routes follow when forwarding has heard of it.
			eventually(t, "no ping lost at the new place", func() bool {
				again, err := l.Ping(context.Background(), "h1", "h2", traffic.PingOptions{Count: 20, Interval: 20 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				return again.Lost() == 0
			})
			s.flows(50)
			before := s.end()
			t.Logf("stream over the move: %d of %d lost, outage %.0f ms", before.Lost(), before.Sent, before.Outage)
			if h := call(c, api.FindHost, &api.FindHostRequest{Address: h2.IPv4.Addr().String(), Vlan: -1}); h.Mac != h2.MAC.String() || h.Moves != 1 {
				t.Errorf("the host after the move: %v; want 1 move", h)
			}
			if names, _ := path(c, l, "h1", "h2"); !slices.Contains(names, "s4") || names[len(names)-1] != "s4" {
				t.Errorf("the route leads over %v, want to s4", names)
			}
			explain(c)
		})
	}
}

var packetsOf = regexp.MustCompile(`n_packets=(\d+)`)

// misses returns how many packets have found no entry in all switches.
func misses(t *testing.T, l *lab.Lab) (n int) {
	t.Helper()
	for _, s := range l.Topology().Switches {
		lines, err := l.OfctlDumpFlows(context.Background(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if m := canonical(t, line); regexp.MustCompile(` priority=0  actions=CONTROLLER`).MatchString(m) {
				p, _ := strconv.Atoi(packetsOf.FindStringSubmatch(line)[1])
				n += p
			}
		}
	}
	return n
}

// TestProactive has all pairs talk without a packet-in once every host is known.
func TestProactive(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"forwarding.mode=proactive"}})
	l := up(t, "ring:6", c)
	settled(c, l)
	var speak []topology.Pair // every host speaks once
	for _, h := range l.Topology().Hosts[1:] {
		speak = append(speak, topology.Pair{From: h.Name, To: "h1"})
	}
	for _, v6 := range []bool{false, true} {
		if _, err := l.PingAll(context.Background(), speak, traffic.PingOptions{IPv6: v6, Count: 1, Timeout: patience}); err != nil {
			t.Fatal(err)
		}
	}
	n := len(l.Topology().Hosts)
	eventually(t, "routes between all hosts", func() bool {
		return len(call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes) == n*(n-1)
	})
	programmed(c, l)
	before := misses(t, l)
	pingAll(t, l, false)
	pingAll(t, l, true)
	if more := misses(t, l) - before; more != 0 {
		t.Errorf("%d packets found no entry, want none", more)
	}
	// A failure is mended, as ever.
	if err := l.LinkDown(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	mended(t, l)
	explain(c)
}

// keepNeighbours has all hosts keep the neighbours that they know: without a
// controller there is nobody to tell them again, however long the test takes.
func keepNeighbours(t *testing.T, l *lab.Lab) {
	t.Helper()
	const permanent = `ip -4 neigh show dev eth0 | while read ip what mac rest; do [ "$what" != lladdr ] || ip neigh replace "$ip" lladdr "$mac" dev eth0 nud permanent; done`
	for _, h := range l.Topology().Hosts {
		if out, err := l.Exec(context.Background(), h.Name, "sh", "-c", permanent); err != nil {
			t.Fatalf("%s: %v %s", h.Name, err, out)
		}
	}
}

// TestFailoverAlone cuts every link in turn, with the controller gone: all
// pairs go on over their detours.
func TestFailoverAlone(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"forwarding.fast_failover=true"}})
	l := up(t, "demo", c)
	settled(c, l)
	pingAll(t, l, false)
	for _, r := range call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes {
		if len(r.Hops) > 1 && !r.Protected {
			t.Errorf("route %s -> %s is not protected", r.Src, r.Dst)
		}
	}
	time.Sleep(300 * time.Millisecond) // what was sent last is on the switches
	keepNeighbours(t, l)
	c.stop()
	reached := func(when string) {
		t.Helper()
		var lost []string
		for end := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) { // a busy machine's switches take a while to notice
			results, err := l.PingAll(context.Background(), l.AllPairs(false), traffic.PingOptions{Count: 3, Interval: 10 * time.Millisecond, Timeout: 500 * time.Millisecond, Parallel: 8})
			if err != nil {
				t.Fatal(err)
			}
			lost = lost[:0]
			for _, r := range results {
				if r.Lost() > 0 {
					lost = append(lost, fmt.Sprintf("%s -> %s lost %d of %d %s", r.From, r.To, r.Lost(), r.Sent, r.Error))
				}
			}
			if len(lost) == 0 {
				return
			}
			if time.Now().After(end) {
				break
			}
		}
		t.Errorf("%s: %s", when, strings.Join(lost, "; "))
	}
	for _, k := range l.Topology().Links {
		if err := l.LinkDown(context.Background(), k.A, k.B); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		reached(k.String() + " cut")
		if err := l.LinkUp(context.Background(), k.A, k.B); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	reached("all mended")
}

// TestFortySwitches has a network of 40 switches, 60 links and 40 hosts.
func TestFortySwitches(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	began := time.Now()
	l := up(t, "random:40,3,7", c)
	upAfter := time.Since(began)
	settled(c, l)
	t.Logf("%d switches, %d links, %d loops: up after %v, settled %v later", len(l.Topology().Switches), len(l.Topology().Links), l.Topology().Loops(), upAfter, time.Since(began)-upAfter)
	var pairs []topology.Pair
	for i, n := 0, len(l.Topology().Hosts); i < n; i++ {
		for _, j := range []int{7, 19} {
			pairs = append(pairs, topology.Pair{From: fmt.Sprintf("h%d", i+1), To: fmt.Sprintf("h%d", (i+j)%n+1)})
		}
	}
	for _, v6 := range []bool{false, true} {
		began := time.Now()
		results, err := l.PingAll(context.Background(), pairs, traffic.PingOptions{IPv6: v6, Count: 2, Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		lost := 0
		for _, r := range results {
			if lost += r.Lost(); r.Lost() > 0 {
				t.Errorf("%s -> %s (IPv6 %v): %d of %d lost %s", r.From, r.To, v6, r.Lost(), r.Sent, r.Error)
			}
		}
		t.Logf("%d pairs (IPv6 %v) pinged in %v, %d lost", len(pairs), v6, time.Since(began), lost)
	}
	explain(c)
}
