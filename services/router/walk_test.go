package router

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

func TestWalk(t *testing.T) {
	g := newRig(t)
	g.three()
	x := g.index.Load()
	for _, c := range []struct {
		sw   flow.DPID
		to   string
		hops int
		end  end
		next string
	}{
		{1, "10.1.0.9", 1, endNeighbour, "10.1.0.9"},
		{1, "10.2.0.9", 2, endNeighbour, "10.2.0.9"},
		{1, "10.3.0.9", 3, endNeighbour, "10.3.0.9"},
		{3, "10.1.0.9", 3, endNeighbour, "10.1.0.9"},
		{1, "10.1.0.1", 1, endOwn, ""},
		{1, "10.12.0.2", 2, endOwn, ""},
		{1, "10.3.0.1", 3, endOwn, ""},
		{1, "203.0.113.1", hopsMax, endLoop, ""},
		{2, "fd00:1::9", 1, endUnreachable, ""},
		{1, "fd00:2::9", 2, endNeighbour, "fd00:2::9"},
	} {
		w := x.walk(g.routers.Get(key{c.sw, 0}.String()), one(netip.MustParseAddr(c.to)))
		if len(w.hops) != c.hops || w.end != c.end || c.next != "" && w.to.String() != c.next {
			t.Errorf("%d to %s: %d routers, end %d, to %v; want %+v", c.sw, c.to, len(w.hops), w.end, w.to, c)
		}
	}
}

// TestEntriesAreTheWalk: of random routers, the entries of a switch do with every
// address what the controller does.
func TestEntriesAreTheWalk(t *testing.T) {
	const seed = 7
	for round := range 60 {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		g := newRig(t)
		any := func(bits int) netip.Prefix {
			n := random.Uint32() & 0x00030f0f
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), bits)
		}
		for range 40 {
			dpid := fmt.Sprint(1 + random.IntN(3))
			_, _ = g.addAddress(context.Background(), &api.AddRouterAddressRequest{Dpid: dpid, Address: any(16 + random.IntN(17)).String()})
			_, _ = g.addRoute(context.Background(), &api.AddRouterRouteRequest{Dpid: dpid, Destination: any(random.IntN(33)).String(), Gateway: any(32).Addr().String()})
		}
		for n := range 40 {
			g.host(byte(n), fmt.Sprint(1+random.IntN(3)), 0, any(32).Addr().String())
		}
		x, s := g.index.Load(), g.snapshot()
		s.prepare()
		tried := 0
		for _, r := range s.routers[0] {
			entries := s.entries(r).list
			for range 400 {
				a := any(32).Addr()
				if random.IntN(3) == 0 && len(s.of) > 0 {
					for p := range s.of {
						a = p.Addr
						break
					}
				}
				w := x.walk(r, one(a))
				var mac flow.MAC // zero: to the controller
				if w.end == endNeighbour {
					mac = s.of[object.In(w.to, 0)].MAC
				}
				k := flow.Key{EthDst: r.mac, EthType: flow.EthTypeIPv4, IPv4Src: [4]byte{10, 0, 0, 99}, IPv4Dst: a.As4()}
				if got, known := looked(entries, &k); known && (got.last != mac || mac != flow.MAC{} && got.spent != len(w.hops)) {
					t.Fatalf("round %d: %v sent to %v: entry leads to %v after %d routers, the controller to %v after %d", round, a, r.key, got.last, got.spent, mac, len(w.hops))
				} else if !known && mac != (flow.MAC{}) {
					t.Fatalf("round %d: %v sent to %v has no entry, the controller sends it to %v", round, a, r.key, mac)
				}
				tried++
			}
		}
		if tried == 0 {
			t.Fatalf("round %d: no routers", round)
		}
	}
}

// outcome is where an entry leads, and how often it takes from the time to live.
type outcome struct {
	last  flow.MAC
	spent int
}

// looked returns what the entry of highest priority that matches does.
func looked(entries []flow.Entry, k *flow.Key) (o outcome, ok bool) {
	best := -1
	for i := range entries {
		if e := &entries[i]; e.Match.Matches(k) && (best < 0 || e.Priority > entries[best].Priority) {
			best = i
		}
	}
	if best < 0 {
		return o, false
	}
	for _, a := range entries[best].Apply {
		switch a.Kind {
		case flow.ActionDecNwTTL:
			o.spent++
		case flow.ActionSetField:
			o.last = flow.MAC(a.Value[:6])
		}
	}
	return o, true
}
