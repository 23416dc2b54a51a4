package test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// TestQoSKinds has traffic limited by host, by port and by class, of IPv4 and of
// IPv6: what a policy is about is slow, all else is not.
func TestQoSKinds(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	topo, err := topology.Resolve("linear:2,2")
	if err != nil {
		t.Fatal(err)
	}
	l := bring(t, topo, c)
	settled(c, l)
	pingAll(t, l, false)
	h1, h3 := lookup(t, l, "h1"), lookup(t, l, "h3")
	const limit = 5 // Mbit/s
	rate := func(from, to string, v6, udp bool) float64 {
		t.Helper()
		for try := 0; ; try++ {
			opt := traffic.IperfOptions{Duration: time.Second, IPv6: v6}
			if udp {
				opt.UDP = 50_000_000
			}
			r, err := l.Iperf(context.Background(), from, to, opt)
			if err == nil {
				return r.Mbit
			}
			if try == 2 {
				t.Fatalf("iperf %s to %s: %v", from, to, err)
			}
		}
	}
	const both, v4, v6 = 0, 4, 6
	for _, x := range []struct {
		name    string
		policy  *api.QosPolicy
		version int    // of IP that the policy is about
		other   string // who is not limited
		udp     bool   // it is by UDP that that shows
	}{
		{"host by Ethernet address", &api.QosPolicy{Host: h1.MAC.String()}, both, "h2", false},
		{"host by IPv4 address", &api.QosPolicy{Host: h1.IPv4.Addr().String()}, v4, "", false},
		{"host by IPv6 address", &api.QosPolicy{Host: h1.IPv6.Addr().String()}, v6, "", false},
		{"to a host", &api.QosPolicy{Host: h3.MAC.String(), ToHost: true}, both, "", false},
		{"port", &api.QosPolicy{Dpid: dpid(t, l, h1.Switch), Port: uint32(h1.Port)}, both, "h2", false},
		{"class", &api.QosPolicy{Class: &api.QosClass{Protocol: "tcp", DstPort: 5201}}, both, "h1", true},
	} {
		x.policy.Name, x.policy.Limit = "p", &api.QosLimit{RateKbps: limit * 1000, Burst: limit * 200}
		call(c, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: x.policy})
		policyState(c, "p", "enforced")
		for _, ipv6 := range []bool{false, true} {
			about := x.version == both || ipv6 == (x.version == v6)
			measure := func() float64 { return rate("h1", "h3", ipv6, false) }
			got, least := 0.0, 0.0
			if about {
				got = between(limit*0.1, limit*2, measure)
			} else {
				least = limit * 3
				got = fastest(least, measure)
			}
			t.Logf("%s, IPv6 %v: %.1f Mbit/s", x.name, ipv6, got)
			if about && (got < limit*0.1 || got > limit*2) {
				t.Errorf("%s, IPv6 %v: %.1f Mbit/s through a limit of %d", x.name, ipv6, got, limit)
			}
			if got < least {
				t.Errorf("%s, IPv6 %v: %.1f Mbit/s, and the policy is not about it", x.name, ipv6, got)
			}
		}
		if x.other != "" {
			if got := fastest(limit*3, func() float64 { return rate(x.other, "h3", !x.udp, x.udp) }); got < limit*3 {
				t.Errorf("%s: %s has %.1f Mbit/s, and the policy is not about it", x.name, x.other, got)
			}
		}
		eventually(t, x.name+": packets beyond the limit counted", func() bool {
			var beyond uint64
			for _, s := range policyState(c, "p", "enforced").Switches {
				beyond += s.BeyondPackets
			}
			return beyond > 0
		})
	}
	call(c, api.QosDeletePolicy, &api.QosDeletePolicyRequest{Name: "p"})
	if got := fastest(limit*3, func() float64 { return rate("h1", "h3", true, false) }); got < limit*3 {
		t.Errorf("after deletion: %.1f Mbit/s", got)
	}
}
