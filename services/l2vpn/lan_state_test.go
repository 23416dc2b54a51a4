package l2vpn

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/l2vpn/oam"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLANTunnels: a vpls has the tunnels between its switches, is probed through them,
// is what they are, and gives them back.
func TestLANTunnels(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	one, two := &api.Location{Dpid: flow.DPID(1).String(), Port: 9}, &api.Location{Dpid: flow.DPID(2).String(), Port: 9}
	b.feed(&api.LinkChanged{Link: &api.Link{Src: one, Dst: two, State: "up", Weight: 1}})
	b.feed(&api.LinkChanged{Link: &api.Link{Src: two, Dst: one, State: "up", Weight: 1}})
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: "vpls", Ends: []string{"1:1", "2:1.7", "2:2"}}}}); err != nil {
		t.Fatal(err)
	}
	var list []*api.Tunnel
	for name, w := range b.tunnels.wants {
		list = append(list, &api.Tunnel{Name: name, From: w.From, To: w.To, State: "up", User: user, Group: flow.TunnelGroups + uint32(len(list)),
			Primary: &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: 9}, {Dpid: w.To, InPort: 9}}}})
	}
	if m := b.get("c"); len(list) != 2 || len(m.Tunnels) != 2 || m.State != "requested" {
		t.Fatalf("tunnels %v: %v", list, m)
	}
	b.learn(list, true)
	for sw := flow.DPID(1); sw <= 2; sw++ {
		b.net.mtus[sw] = map[flow.Port]uint32{1: 2000, 2: 2000, 9: 1600}
		wholeOf(b, sw)
		b.answered(sw, nil, nil)
	}
	if m := b.get("c"); m.State != "up" || m.Mtu != 1600-14-4 {
		t.Errorf("%v", m)
	}
	ways := 0
	newObserver(b, nil).ways(b.status["c"], func(_, _ int, l oam.Lane) {
		if ways++; l.From == l.To || l.Group < flow.TunnelGroups {
			t.Errorf("probed %+v", l)
		}
	})
	if ways != 2 {
		t.Errorf("%d ways between two switches are probed", ways)
	}
	bad := proto.CloneOf(list[1])
	bad.State, bad.Reason = "degraded", "one path"
	b.learn([]*api.Tunnel{bad}, false)
	if m := b.get("c"); m.State != "degraded" || !strings.Contains(m.Reason, "one path") {
		t.Errorf("%v", m)
	}
	if err := b.try(&api.SetCircuitsRequest{Delete: []string{"c"}}); err != nil || len(b.tunnels.wants) != 0 || len(b.tunnels.holds) != 0 {
		t.Errorf("%v: wanted %v, held %v", err, b.tunnels.wants, b.tunnels.holds)
	}
}

func TestAdjacent(t *testing.T) {
	list := []flow.DPID{1, 2, 3, 4}
	for _, c := range []struct {
		a, z flow.DPID
		want bool
	}{{1, 2, true}, {2, 1, true}, {1, 3, false}, {4, 1, true}, {1, 4, true}, {2, 4, false}} {
		if adjacent(list, c.a, c.z) != c.want {
			t.Errorf("%d and %d: want %v", c.a, c.z, c.want)
		}
	}
}

// TestLANRate: the rate of a vpls has a meter at each end, that all its frames pass, and
// keeps it until the rate is taken away; then the meters are free again.
func TestLANRate(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	set := func(kbps uint64) []*api.CircuitMember {
		t.Helper()
		err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: "vpls", Ends: []string{"1:1", "1:2.7", "1:3.7.8"}, RateKbps: kbps}}})
		if err != nil {
			t.Fatal(err)
		}
		return b.status["c"].circuit.Members
	}
	check := func(kbps uint64) {
		t.Helper()
		members, q := set(kbps), wholeOf(b, 1)
		for i, m := range members {
			if (m.Meter != 0) != (kbps > 0) || m.Meter == m.StormMeter {
				t.Errorf("%d kbit/s: end %s has meters %d and %d", kbps, m.End, m.Meter, m.StormMeter)
			}
			n := 0
			for _, f := range q.Flows {
				if _, e, _ := f.Entry(); e.Meter == m.Meter && slices.Contains(f.Actions, flow.SetTunnelID(b.status["c"].circuit.came(i)|tagsAsked).String()) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d kbit/s: %d entries take in frames of end %s through its meter", kbps, n, m.End)
			}
			rates := 0
			for _, x := range q.Meters {
				if x.Id == m.Meter && x.Bands[0].Rate == uint32(kbps) {
					rates++
				}
			}
			if rates != min(int(kbps), 1) {
				t.Errorf("%d kbit/s: end %s has %d meters of that rate: %v", kbps, m.End, rates, q.Meters)
			}
		}
	}
	check(0)
	check(10_000)
	had := set(10_000)
	check(20_000)
	for i, m := range set(20_000) {
		if m.Meter != had[i].Meter {
			t.Errorf("end %s: another rate has another meter, %d, it was %d", m.End, m.Meter, had[i].Meter)
		}
	}
	check(0)
	if n := len(b.alloc.meters.used[1]); n != 3 {
		t.Errorf("%d meters are in use, want those of storms", n)
	}
}
