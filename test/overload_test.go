package test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/packet"
)

// floodRate is how many new flows a second a host floods with. With twice as many
// Open vSwitch's own slow path, beside much else on two processors, drops the
// probes of links, too.
const floodRate = 5_000

// flooding has a host send new flows, so many a second, to and from made-up
// addresses, until the function that it returns is called, which returns how many
// frames it sent. On a busy machine it catches up for as much as a tenth of a second.
func flooding(t *testing.T, l *lab.Lab, host string, perSecond int, arp bool) (stop func() int64) {
	w := attach(t, l, host)
	var ended atomic.Bool
	var sent atomic.Int64
	var running sync.WaitGroup
	running.Go(func() {
		rng, due := rand.New(rand.NewPCG(1, 7)), time.Now()
		for !ended.Load() {
			src := flow.MACFrom(0x02<<40 | rng.Uint64()&0xffffffffff)
			ip := netip.AddrFrom4([4]byte{10, 7, byte(rng.Uint32()), byte(rng.Uint32())})
			if arp {
				w.send(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: ip, TargetIP: ip.Next()}))
			} else {
				dst := flow.MACFrom(0x02<<40 | rng.Uint64()&0xffffffffff)
				w.send(packet.AppendUDP(nil, packet.Ether{Src: src, Dst: dst}, packet.IP{Src: ip, Dst: ip.Next()}, uint16(rng.Uint32()), 2, nil))
			}
			sent.Add(1)
			due = due.Add(time.Second / time.Duration(perSecond))
			if early := time.Until(due); early > time.Millisecond {
				time.Sleep(early)
			} else if early < -100*time.Millisecond {
				due = time.Now()
			}
		}
	})
	var once sync.Once
	stop = func() int64 {
		once.Do(func() { ended.Store(true); running.Wait() })
		return sent.Load()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// TestOverload has a host flood its switch with new flows, of data and of ARP,
// while another host of that switch sends some, too: the port of the first is
// limited, by a meter in the switch; all links stay up, established
// traffic of others and first packets of new pairs pass, and when it is over the
// switch is as it was.
func TestOverload(t *testing.T) {
	for _, kind := range []string{"data", "arp"} {
		for _, m := range modes {
			t.Run(kind+"/"+m, func(t *testing.T) {
				c := start(t, options{plan: m, set: []string{"southbound.flood_rate=1500", "southbound.flood_floor=300"}})
				l := up(t, "ring:4,2", c)
				settled(c, l)
				pingAll(t, l, false)
				established := stream(l, "h3", "h5", 1200, 5*time.Millisecond)
				own := stream(l, "h1", "h3", 1200, 5*time.Millisecond) // of the host that floods, established
				flooding(t, l, "h2", floodRate/100, false)
				stop := flooding(t, l, "h1", floodRate, kind == "arp")
				var limit *api.PortLimit
				eventually(t, "the port is limited by a meter in the switch", func() bool {
					list := call(c, api.ListLimits, &api.ListLimitsRequest{}).Limits
					if len(list) != 1 || list[0].Where != "switch" || list[0].Dpid != dpid(t, l, "s1") || list[0].Port != uint32(lookup(t, l, "h1").Port) {
						return false
					}
					limit = list[0]
					return true
				})
				t.Logf("limited: %v", limit)
				if want := map[string]string{"data": "unicast", "arp": "neighbours"}[kind]; limit.Class != want {
					t.Errorf("class %s, want %s", limit.Class, want)
				}
				// Hosts that have not talked yet: asking for each other, and answered.
				fresh, err := l.Ping(context.Background(), "h7", "h3", traffic.PingOptions{IPv6: true, Count: 20, Interval: 50 * time.Millisecond, Timeout: patience})
				if err != nil {
					t.Fatal(err)
				}
				ins := c.metric("weft_southbound_packet_ins_total")
				began := time.Now()
				time.Sleep(2 * time.Second)
				rate := (c.metric("weft_southbound_packet_ins_total") - ins) / time.Since(began).Seconds()
				eventually(t, "a guard in the switch", func() bool {
					out, err := l.OfCtl(context.Background(), "s1", "dump-flows", "cookie=0x57450b0000000000/0xffffff0000000000")
					return err == nil && strings.Contains(out, "meter:") && strings.Contains(out, "hard_timeout=10")
				})
				eventually(t, "what is shed is counted", func() bool { return c.metric("weft_southbound_shed_total", "reason", "port") > 0 })
				frames := stop()
				e, o := <-established, <-own
				t.Logf("%d frames sent; %.0f packet-ins per second under the meter; established lost %d of %d, that of the flooding host %d of %d; new lost %d of %d, worst %v ms",
					frames, rate, e.Lost(), e.Sent, o.Lost(), o.Sent, fresh.Lost(), fresh.Sent, fresh.Max)
				if e.Lost() > e.Sent/50 {
					t.Errorf("established traffic lost %d of %d", e.Lost(), e.Sent)
				}
				if o.Lost() > o.Sent*3/4 { // the switch itself is busy with the flood
					t.Errorf("established traffic of the flooding host lost %d of %d", o.Lost(), o.Sent)
				}
				if fresh.Lost() > fresh.Sent/10 {
					t.Errorf("new traffic lost %d of %d", fresh.Lost(), fresh.Sent)
				}
				if most := 2*limit.Limit*1.25 + 500; rate > most {
					t.Errorf("%.0f packet-ins per second come under a meter of %.0f", rate, limit.Limit*1.25)
				}
				if up, all := linksUp(c); up != 8 || all != 8 {
					t.Errorf("%d links, %d up, want 8", all, up)
				}
				for _, k := range call(c, api.ListLinks, &api.ListLinksRequest{}).Links {
					if k.Flaps > 0 {
						t.Errorf("link %v-%v went down %d times", k.Src, k.Dst, k.Flaps)
					}
				}
				eventually(t, "the limit is over", func() bool {
					return len(call(c, api.ListLimits, &api.ListLimitsRequest{}).Limits) == 0
				})
				eventually(t, "the guard is gone", func() bool {
					out, err := l.OfCtl(context.Background(), "s1", "dump-flows", "cookie=0x57450b0000000000/0xffffff0000000000")
					return err == nil && !strings.Contains(out, "meter:")
				})
				pingAll(t, l, false)
				explain(c)
			})
		}
	}
}

// TestIdenticalPackets: a burst of packets that are the same, before there is a
// route for them, is delivered whole; between processes most cross together.
func TestIdenticalPackets(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m, func(t *testing.T) {
			c := start(t, options{plan: m})
			l := up(t, "ring:4", c)
			settled(c, l)
			for _, p := range [][2]string{{"h1", "h3"}, {"h2", "h4"}} { // so that all are known
				if _, err := l.Ping(context.Background(), p[0], p[1], traffic.PingOptions{Count: 1, Timeout: patience}); err != nil {
					t.Fatal(err)
				}
			}
			h1, h2 := attach(t, l, "h1"), attach(t, l, "h2")
			from, to := lookup(t, l, "h1"), lookup(t, l, "h2")
			var got atomic.Int64
			h2.listen(func(frame []byte) {
				var k flow.Key
				if packet.Parse(frame, &k) && k.IPProto == flow.IPProtoUDP && k.TPDst == 4242 {
					got.Add(1)
				}
			})
			frame := packet.AppendUDP(nil, packet.Ether{Src: flow.MAC(from.MAC), Dst: flow.MAC(to.MAC)},
				packet.IP{Src: from.IPv4.Addr(), Dst: to.IPv4.Addr()}, 4242, 4242, []byte("the same"))
			const burst = 300
			end := time.Now().Add(20 * time.Second)
			for i := range burst {
				for i-int(got.Load()) >= 80 && time.Now().Before(end) { // Open vSwitch drops what exceeds a hundred packet-ins
					time.Sleep(time.Millisecond)
				}
				h1.send(frame)
			}
			for got.Load() < burst && time.Now().Before(end) {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond)
			if n := got.Load(); n != burst {
				t.Errorf("%d of %d arrived", n, burst)
			}
			if m == "split" {
				t.Logf("%v of the packets crossed with another", c.metric("weft_deploy_packets_merged_total"))
			}
			explain(c)
		})
	}
}
