package test

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

var countedPackets = regexp.MustCompile(`n_packets=(\d+)`)

// asked returns how many packets of a kind, as ovs-ofctl names it, have passed the
// entries that let the hosts of a switch ask others whether they are still there.
func asked(t *testing.T, l *lab.Lab, sw, kind string) (n int) {
	t.Helper()
	lines, err := l.OfctlDumpFlows(context.Background(), sw)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(line, "priority=42000,"+kind) {
			continue
		}
		if m := countedPackets.FindStringSubmatch(line); m != nil {
			k, _ := strconv.Atoi(m[1])
			n += k
		}
	}
	return n
}

// TestNeighboursAlone: hosts that know each other do not lose each other while no
// controller runs. They ask more often than hosts do by themselves: many times in
// the seconds for which the test can wait.
func TestNeighboursAlone(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "linear:3", c)
	settled(c, l)
	for _, h := range l.Topology().Hosts {
		for _, family := range []string{"ipv4", "ipv6"} {
			for key, value := range map[string]string{"base_reachable_time_ms": "500", "delay_first_probe_time": "1", "retrans_time_ms": "1000"} {
				setting := fmt.Sprintf("net.%s.neigh.eth0.%s=%s", family, key, value)
				if out, err := l.Exec(context.Background(), h.Name, "sysctl", "-w", setting); err != nil {
					t.Fatalf("%s: %v %s", h.Name, err, out)
				}
			}
		}
	}
	pingAll(t, l, false)
	pingAll(t, l, true)
	ping := func(v6 bool) *streaming {
		return unending(t, l, "h1", "h3", traffic.PingOptions{IPv6: v6, Interval: 20 * time.Millisecond, Timeout: patience})
	}
	v4, v6 := ping(false), ping(true)
	eventually(t, "the addresses from which hosts ask are known", func() bool {
		n := 0
		for _, h := range call(c, api.ListHosts, &api.ListHostsRequest{}).Hosts {
			for _, a := range h.Ipv6 {
				if netip.MustParseAddr(a).IsLinkLocalUnicast() {
					n++
				}
			}
		}
		return n == len(l.Topology().Hosts)
	})
	kinds := []string{"arp", "icmp6"}
	rounds := func(more int) {
		t.Helper()
		for _, sw := range []string{"s1", "s3"} {
			for _, kind := range kinds {
				before := asked(t, l, sw, kind)
				eventually(t, fmt.Sprintf("%d more of %s at %s", more, kind, sw), func() bool { return asked(t, l, sw, kind) >= before+more })
			}
		}
	}
	rounds(2)
	c.stop()
	rounds(10)
	v4.flows(100)
	v6.flows(100)
	for family, s := range map[string]*streaming{"IPv4": v4, "IPv6": v6} {
		if r := s.end(); r.Lost() > 0 || r.Error != "" || r.Sent < 300 {
			t.Errorf("%s: %d of %d lost %s", family, r.Lost(), r.Sent, r.Error)
		}
	}
}
