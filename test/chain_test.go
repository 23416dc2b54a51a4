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
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// chained is a network in which packets between h1 and h3 pass two functions, bridges of
// the kernel between two ports: f1 at the second switch and f2 at the third.
type chained struct {
	t *testing.T
	c *controller
	l *lab.Lab
}

// passed returns how many packets a function has had.
func (n *chained) passed(function string) int {
	n.t.Helper()
	sum := 0
	for _, dev := range []string{"eth0", "eth1"} {
		out, err := n.l.Exec(context.Background(), function, "awk", "$1 == \""+dev+":\" {print $3}", "/proc/net/dev")
		if err != nil {
			n.t.Fatal(err)
		}
		x, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil {
			n.t.Fatal(err)
		}
		sum += x
	}
	return sum
}

// through sends pings and has those counted that come to functions: each twice, there
// and back. It begins when pings go so: a switch's cache may outlive its entries by a moment.
func (n *chained) through(when, from, to string, functions ...string) {
	n.t.Helper()
	why := ""
	eventually(n.t, when+": pings go as the chain says", func() bool {
		was := why
		if why = n.astray(3, time.Second, from, to, functions); why != "" && why != was {
			n.t.Logf("%s, at first: %s", when, why)
		}
		return why == ""
	})
	if why := n.astray(20, patience, from, to, functions); why != "" {
		n.t.Errorf("%s: %s", when, why)
	}
}

// astray sends pings and returns what is wrong with their way; empty if nothing is.
func (n *chained) astray(sent int, wait time.Duration, from, to string, functions []string) (why string) {
	n.t.Helper()
	before := map[string]int{"f1": n.passed("f1"), "f2": n.passed("f2")}
	r, err := n.l.Ping(context.Background(), from, to, traffic.PingOptions{Count: sent, Interval: 10 * time.Millisecond, Timeout: wait})
	if err != nil {
		n.t.Fatal(err)
	}
	if r.Lost() > 0 {
		return fmt.Sprintf("%s to %s: %d of %d pings are lost; %s", from, to, r.Lost(), r.Sent, n.state())
	}
	for f, was := range before {
		switch got := n.passed(f) - was; {
		case slices.Contains(functions, f) && got < 2*sent:
			return fmt.Sprintf("%s has had %d packets of %d pings; %s", f, got, sent, n.state())
		case !slices.Contains(functions, f) && got >= sent:
			return fmt.Sprintf("%s has had %d packets, and is to have none; %s", f, got, n.state())
		}
	}
	return ""
}

// state returns what the chains are, and where the bridge of each function has hosts.
func (n *chained) state() string {
	var list []string
	for _, c := range call(n.c, api.ListChains, &api.ListChainsRequest{}).Chains {
		list = append(list, strings.TrimSpace(c.Name+" is "+c.State+" "+c.Reason))
	}
	for _, f := range []string{"f1", "f2"} {
		out, _ := n.l.Exec(context.Background(), f, "bridge", "fdb", "show", "dynamic") // empty without a bridge
		list = append(list, f+" has "+strings.ReplaceAll(strings.TrimSpace(out), "\n", "; "))
	}
	return strings.Join(list, ", ")
}

// flooded reports whether frames to groups go to a function.
func (n *chained) flooded(function string) bool {
	n.t.Helper()
	h := lookup(n.t, n.l, function)
	lines, err := n.l.OfctlDumpFlows(context.Background(), h.Switch)
	if err != nil {
		n.t.Fatal(err)
	}
	to := regexp.MustCompile(fmt.Sprintf(`dl_dst=01:.*output:(%d|%d)\b`, h.Port, h.Eth1.Port))
	return slices.ContainsFunc(lines, to.MatchString)
}

// cast has a host send a frame to all, which nobody answers.
func (n *chained) cast(from string) {
	n.t.Helper()
	if _, err := n.l.Exec(context.Background(), from, "sh", "-ec", "! ping -b -c 1 -W 1 255.255.255.255"); err != nil {
		n.t.Fatal(err)
	}
}

// link sets the second interface of a function up or down, and waits until the chain
// says so.
func (n *chained) link(function, dev, to, state string) {
	n.t.Helper()
	if _, err := n.l.Exec(context.Background(), function, "ip", "link", "set", dev, to); err != nil {
		n.t.Fatal(err)
	}
	var last *api.ServiceChain
	eventually(n.t, "the chain "+state, func() bool {
		last = call(n.c, api.ListChains, &api.ListChainsRequest{}).Chains[0]
		return last.State == state
	})
}

// TestChain: packets pass the functions in both directions, a dead one is bypassed within
// a moment or blocks, though its ports are up or because they are not, also while there is no controller and after it is back; nothing is left of a
// chain that is deleted.
func TestChain(t *testing.T) {
	t.Parallel()
	topo, err := topology.Linear(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	none := func(name, sw string) topology.Host {
		return topology.Host{Name: name, Switch: sw, Eth1: &topology.Attachment{Switch: sw}, IPv4: topology.NoIPv4(), IPv6: topology.NoIPv6()}
	}
	topo.Hosts = append(topo.Hosts, none("f1", "s2"), none("f2", "s3"))
	set := []string{patientLinks}
	c := start(t, options{set: set})
	n := &chained{t: t, c: c, l: bring(t, topo, c)}
	settled(c, n.l)
	h3 := lookup(t, n.l, "h3")
	m := &api.ServiceChain{Name: "both", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": h3.IPv4.Addr().String()}}
	for _, f := range []string{"f1", "f2"} {
		h := lookup(t, n.l, f)
		at := func(port uint16) *api.Location {
			return &api.Location{Dpid: dpid(t, n.l, h.Switch), Port: uint32(port)}
		}
		m.Functions = append(m.Functions, &api.ChainFunction{Copies: []*api.ChainCopy{{In: at(h.Port), Out: at(h.Eth1.Port)}}})
	}
	n.through("without a chain", "h1", "h3")
	n.through("without a chain", "h3", "h1")
	call(c, api.SetChain, &api.SetChainRequest{Chain: m})
	eventually(t, "nothing is flooded to functions", func() bool { return !n.flooded("f1") && !n.flooded("f2") })
	for _, f := range []string{"f1", "f2"} {
		if _, err := n.l.Exec(context.Background(), f, "sh", "-ec", "ip link add br0 type bridge; ip link set eth0 master br0; ip link set eth1 master br0; ip link set br0 up"); err != nil {
			t.Fatal(err)
		}
	}
	n.through("at first", "h1", "h3", "f1", "f2")
	n.through("the other way", "h3", "h1", "f1", "f2")
	n.through("other hosts", "h1", "h2")

	stream := endless(t, n.l, "h1", "h3", 5*time.Millisecond)
	stream.flows(20)
	n.link("f1", "eth1", "down", "degraded")
	stream.flows(20)
	r := stream.end()
	t.Logf("a function died: %d of %d lost, the longest outage was %v ms", r.Lost(), r.Sent, r.Outage)
	n.through("with f1 bypassed", "h1", "h3", "f2")
	n.cast("h3") // which must not teach f1 that h3 is on the side of h1
	n.link("f1", "eth1", "up", "up")
	n.through("with f1 back", "h1", "h3", "f1", "f2")

	eventually(t, "probes come through the functions", func() bool {
		for _, f := range call(n.c, api.ListChains, &api.ListChainsRequest{}).Chains[0].Functions {
			if f.Copies[0].By != "probe" {
				return false
			}
		}
		return true
	})
	stream = endless(t, n.l, "h1", "h3", 5*time.Millisecond)
	stream.flows(20)
	n.link("f1", "br0", "down", "degraded") // its ports are up
	stream.flows(20)
	r = stream.end()
	t.Logf("a function died behind ports that are up: %d of %d lost, the longest outage was %v ms", r.Lost(), r.Sent, r.Outage)
	n.through("with f1 bypassed again", "h1", "h3", "f2")
	n.link("f1", "br0", "up", "up")
	n.through("with f1 back again", "h1", "h3", "f1", "f2")

	standing := entries(t, n.l)
	stream = lossless(t, n.l, "h1", "h3", 5*time.Millisecond)
	stream.flows(20)
	was := n.passed("f2")
	c.stop()
	stream.flows(20)
	n.c = start(t, options{set: set, store: c.store, address: c.address})
	settled(n.c, n.l)
	stream.flows(100)
	had := n.passed("f2") - was
	if r = stream.end(); r.Lost() > 0 {
		t.Errorf("%d of %d pings are lost over a restart", r.Lost(), r.Sent)
	}
	now := entries(t, n.l)
	for entry, age := range standing {
		if strings.Contains(entry, " 0x574513") && now[entry] < age {
			t.Errorf("over a restart, an entry of chains is gone or rewritten: %s", entry)
		}
	}
	if had < 2*100 {
		t.Errorf("over a restart f2 has had %d packets of more than 120 pings", had)
	}
	n.through("after a restart", "h1", "h3", "f1", "f2")

	m.OnFailure = "block"
	call(n.c, api.SetChain, &api.SetChainRequest{Chain: m})
	n.link("f2", "eth1", "down", "blocked")
	if r, err := n.l.Ping(context.Background(), "h1", "h3", traffic.PingOptions{Count: 5, Interval: 10 * time.Millisecond, Timeout: time.Second}); err != nil || r.Lost() < r.Sent {
		t.Errorf("a dead function blocks: %d of %d lost (%v)", r.Lost(), r.Sent, err)
	}
	n.link("f2", "eth1", "up", "up")
	n.through("with f2 back", "h1", "h3", "f1", "f2")

	for _, f := range []string{"f1", "f2"} {
		if _, err := n.l.Exec(context.Background(), f, "ip", "link", "del", "br0"); err != nil {
			t.Fatal(err)
		}
	}
	call(n.c, api.DeleteChain, &api.DeleteChainRequest{Name: m.Name})
	n.through("without the chain", "h1", "h3")
	for _, sw := range topo.Switches {
		if x := present(t, n.l, sw.Name, "table=54") + present(t, n.l, sw.Name, "table=56"); x > 2 { // the tables' misses
			t.Errorf("%s has %d entries of chains", sw.Name, x)
		}
	}
}
