package l2vpn

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestMacs: what a vpls has learnt is listed with its age, its moves and the ends that are blocked.
func TestMacs(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := newTestStoreAt(t, wefttest.NewStore(), defaults(), func() time.Time { return now })
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: vpls, Ends: []string{"1:1", "2:1.7", "2:2"}},
		{Name: "line", Ends: []string{"1:3", "2:3"}}}}); err != nil {
		t.Fatal(err)
	}
	c, l := b.status["c"].circuit, b.status["c"].lan
	check := func(when string, want *api.ListCircuitMacsResponse) {
		t.Helper()
		if got, err := b.macsOf("c"); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	check("at first", &api.ListCircuitMacsResponse{})
	x, y := flow.MAC{2, 1}, flow.MAC{2, 2}
	l.learn(y, c.ends[0], now)
	l.learn(x, c.ends[0], now)
	now = now.Add(20 * time.Second)
	l.learn(x, c.ends[1], now)
	at, far := c.ends[0].String(), c.ends[1].String()
	check("one has moved", &api.ListCircuitMacsResponse{Macs: []*api.CircuitMac{
		{Mac: x.String(), End: far, Moves: 1}, {Mac: y.String(), End: at, AgeS: 20}}})
	now = now.Add(b.cfg.MACAge)
	l.known[x].heard = now
	l.pass(now)
	check("one is asked for", &api.ListCircuitMacsResponse{Macs: []*api.CircuitMac{
		{Mac: x.String(), End: far, Moves: 1}, {Mac: y.String(), End: at, AgeS: uint32(b.cfg.MACAge/time.Second) + 20, Asked: true}}})
	for i := 0; len(l.blocked) == 0 && i < 100; i++ {
		l.learn(x, c.ends[i%2], now)
	}
	got, err := b.macsOf("c")
	if err != nil || len(got.Macs) != 1 {
		t.Fatal(got, err)
	}
	if m := got.Macs[0]; m.HeldUntil != now.Add(holdTime).UTC().Format(time.RFC3339) || m.Moves < flapMoves {
		t.Errorf("flapped: %v", m)
	}
	if len(got.Blocked) != 1 || !strings.Contains(got.Blocked[0].Reason, x.String()) || got.Blocked[0].Until != now.Add(blockTime).UTC().Format(time.RFC3339) {
		t.Errorf("blocked: %v", got.Blocked)
	}
	for name, kind := range map[string]codes.Code{"line": codes.FailedPrecondition, "none": codes.NotFound} {
		if _, err := b.macsOf(name); api.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
	}
}

// TestPingEnds: probes go between the two ends that are named, also where others of the same
// switches are probed; lanes are gone afterwards.
func TestPingEnds(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: vpls, Ends: []string{"1:1", "1:2", "2:1.7", "2:2"}}}}); err != nil {
		t.Fatal(err)
	}
	o := newObserver(b, nil)
	s := b.status["c"]
	var got []lane
	ask := func(ends ...string) error {
		got = nil
		b.mu.Lock()
		defer b.mu.Unlock()
		return o.between(s, ends, func(_, _ int, l lane) { got = append(got, l) })
	}
	if err := ask("1:2", "2:2"); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), s.state) {
		t.Errorf("without tunnels: %v", err)
	}
	var list []*api.Tunnel
	for name, w := range b.tunnels.wants {
		list = append(list, &api.Tunnel{Name: name, From: w.From, To: w.To, State: "up", User: user, Group: flow.TunnelGroups + uint32(len(list)),
			Primary: &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: 9}, {Dpid: w.To, InPort: 9}}}})
	}
	b.learn(list, true)
	for sw := flow.DPID(1); sw <= 2; sw++ {
		wholeOf(b, sw)
		b.answered(sw, nil, nil)
	}
	if err := ask("1:2", "2:2"); err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	for i, far := range []int{3, 1} {
		if l := got[i]; l.Label != s.circuit.Members[far].Label || l.To != s.circuit.ends[far].at.Switch || l.Out != 9 || l.Group == 0 {
			t.Errorf("to end %s: %+v", s.circuit.Ends[far], l)
		}
	}
	for text, ends := range map[string][]string{"on one switch": {"1:1", "1:2"}, "no end": {"1:1", "2:3"}, "want SWITCH:PORT": {"1:1", "x"}} {
		if err := ask(ends...); err == nil || !strings.Contains(err.Error(), text) || len(got) != 0 {
			t.Errorf("%v: %v, %v; want %q", ends, got, err, text)
		}
	}
}
