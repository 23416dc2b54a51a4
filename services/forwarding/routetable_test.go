package forwarding

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestRoutesAreFound: routes are found by their hosts, networks and ports,
// whatever was stored, replaced and removed before.
func TestRoutesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := newRouteTable()
	mac := func() flow.MAC { return flow.MACFrom(0x020000000000 | uint64(rng.IntN(5))) }
	for range 20_000 {
		p := pair{src: mac(), dst: mac()}
		if rng.IntN(2) == 0 {
			p.vlan = flow.VLANPresent | uint16(rng.IntN(3))
		}
		r := &route{pair: p, hops: []hop{{sw: 1, in: 1, out: flow.Port(rng.IntN(4))}}}
		if rng.IntN(3) == 0 {
			r.ip = netip.AddrFrom4([4]byte{10, 0, 0, byte(rng.IntN(3))})
			r.rewrite = []flow.Action{flow.SetEthDst(mac()), flow.SetVLAN(flow.VLANPresent | uint16(rng.IntN(3)))}
		}
		table.with(r.pair, func(s *routeShard) {
			if rng.IntN(3) == 0 {
				s.drop(r.pair)
			} else {
				s.put(r)
			}
		})
		if rng.IntN(100) > 0 {
			continue
		}
		keys := []routeKey{keyOfHost(mac()), keyOfVLAN(flow.VLANPresent | uint16(rng.IntN(3))), keyOfPort(flow.Location{Switch: 1, Port: flow.Port(rng.IntN(4))})}
		want := map[*route]bool{}
		table.each(func(r *route) {
			has := r.lookupKeys()
			for _, k := range keys {
				for _, h := range has {
					if h == k {
						want[r] = true
					}
				}
			}
		})
		table.find(keys, func(r *route) {
			if !want[r] {
				t.Fatalf("%v is found, and has none of the keys, or was found before", r.pair)
			}
			delete(want, r)
		})
		if len(want) > 0 {
			t.Fatalf("%d routes not found", len(want))
		}
	}
}

// TestHostsRoutesOnly: a host's event looks at that host's routes, however many
// others there are.
func TestHostsRoutesOnly(t *testing.T) {
	table := newRouteTable()
	for i := range uint64(50_000) {
		r := &route{pair: pair{src: flow.MACFrom(2<<40 | i), dst: flow.MACFrom(2<<40 | i + 1)}, hops: []hop{{sw: 1, in: 1, out: flow.Port(i)}}}
		table.with(r.pair, func(s *routeShard) { s.put(r) })
	}
	looked := 0
	table.find([]routeKey{keyOfHost(flow.MACFrom(2<<40 | 77))}, func(*route) { looked++ })
	table.find([]routeKey{keyOfPort(flow.Location{Switch: 1, Port: 77})}, func(*route) { looked++ })
	if looked != 3 {
		t.Errorf("%d routes looked at, want the 2 of the host and the 1 of the port", looked)
	}
}
