package l2vpn

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestPayloadChanges: a circuit keeps its number and what it has counted, and has other
// labels; all are given back.
func TestPayloadChanges(t *testing.T) {
	cfg, kept := defaults(), wefttest.NewStore()
	cfg.LastLabel = cfg.FirstLabel + 3 // four on each switch: those of one payload and the other
	b := newTestStore(t, kept, cfg)
	var id uint32
	lost := uint64(0)
	for i, payload := range []string{"ethernet", ip, "ethernet", ip, ip} {
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, Payload: payload}}}); err != nil {
			t.Fatal(err)
		}
		b.over("c")
		s := b.status["c"]
		if id = max(id, s.circuit.Id); s.circuit.Id != id || (s.devices != nil) != (payload == ip) {
			t.Errorf("%+v", s)
		}
		if s.before != nil && (s.before.Members[0].Label == s.circuit.Members[0].Label) != (s.before.Payload == payload) {
			t.Errorf("from %s to %s: label %d was %d", s.before.Payload, payload, s.circuit.Members[0].Label, s.before.Members[0].Label)
		}
		checkApart(t, b)
		want := s.base[received].packets + 7
		for _, f := range wholeOf(b, 1).Flows {
			_, e, _ := f.Entry()
			if e.Priority == flow.PriorityLANKnown && e.Match.Key.EthType == flow.EthTypeIPv6 || e.Priority == flow.PriorityCircuit && payload != ip {
				f.Packets = 7
			}
			if e.Priority == flow.PriorityLANFlood {
				f.Packets = 2
				lost += 2
			}
			b.counters.count([]*api.FlowEntry{f})
			b.counters.flowRemoved(&api.FlowRemoved{Flow: f})
		}
		if m := b.get("c"); m.RxPackets != want || m.DroppedPackets != lost {
			t.Errorf("%d: %d packets, want %d; %d dropped, want %d", i, m.RxPackets, want, m.DroppedPackets, lost)
		}
	}
	err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "v", Type: vpls, Ends: []string{"1:3", "2:3"}, Payload: ip}}})
	if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "want a vpws") {
		t.Errorf("a vpls of payload ip: %v", err)
	}
	_, err = readCircuit(&api.Circuit{Name: "v", Ends: []string{"1:3", "2:3"}, Payload: ip, Loops: []string{"1:3"}, LoopsUntil: "2026-12-01T08:00:00Z"})
	if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "want payload ethernet") {
		t.Errorf("a loop of payload ip: %v", err)
	}
}

// TestDeviceAtPort: a device is heard by the stage, shows in the circuit and its record,
// survives a restart, and is forgotten when its port goes down.
func TestDeviceAtPort(t *testing.T) {
	kept := wefttest.NewStore()
	b := newTestStore(t, kept, defaults())
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1.5", "2:1"}, Payload: ip}}}); err != nil {
		t.Fatal(err)
	}
	b.over("c")
	x, y, z := flow.MAC{2, 1}, flow.MAC{2, 2}, flow.MAC{2, 3}
	hear := func(i int, src, dst flow.MAC) {
		c := b.status["c"].circuit
		in := wefttest.NewPacketIn(c.ends[i].at.Switch, 1, ipFrame(end{}, 0, src, dst))
		in.Table, in.Cookie, in.Key.TunnelID = flow.TableCircuits, flow.NewCookie(flow.OwnerCircuits, 0, 0), c.came(i)
		if v := b.packet(in); v != flow.Done {
			t.Errorf("the stage says %v", v)
		}
	}
	is := func(a, z string) {
		t.Helper()
		if m := b.get("c").Members; m[0].Mac != a || m[1].Mac != z {
			t.Errorf("devices %s and %s; want %s and %s", m[0].Mac, m[1].Mac, a, z)
		}
	}
	b.records()
	hear(0, x, flow.Broadcast)
	is(x.String(), "")
	hear(0, z, y) // whom it sends to is behind the other end
	is(z.String(), y.String())
	hear(1, x, flow.Broadcast) // unless another is heard there
	is(z.String(), x.String())
	text := b.records()["c"]
	b = newTestStore(t, kept, defaults())
	b.recall("c", text)
	is(z.String(), x.String())
	b.over("c")
	to := func(sw flow.DPID) string {
		for _, g := range wholeOf(b, sw).Groups {
			if _, g, err := g.Group(); err == nil && g.ID == flow.CircuitGroups+b.status["c"].circuit.Members[0].Label {
				return flow.FormatActions(g.Buckets[0].Actions)
			}
		}
		return ""
	}
	if text := to(1); !strings.Contains(text, z.String()) || !strings.Contains(text, x.String()) {
		t.Errorf("group %s", text)
	}
	b.feed(&api.PortChanged{Port: &api.Port{Dpid: flow.DPID(1).String(), Port: 1}})
	is("", x.String())
	for i := range flapMoves + 2 {
		hear(1, []flow.MAC{y, x}[i%2], flow.Broadcast)
	}
	b.feed(&api.PortChanged{Port: &api.Port{Dpid: flow.DPID(1).String(), Port: 1, Up: true}})
	b.spread(false)
	if m := b.get("c"); m.State != "degraded" || !strings.Contains(m.Reason, "end 0000000000000002:1 has more than one device") {
		t.Errorf("%s, %s", m.State, m.Reason)
	}
}

// TestNeeds: an end is refused whose switch cannot carry the circuit's frames, with the reason.
func TestNeeds(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	set := func(name string, ends ...string) error {
		return b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: name, Ends: ends, Payload: ip}}})
	}
	for _, x := range []struct {
		is   *api.Switch
		want string // why a circuit to another switch is refused
		same bool   // one within the switch is not
	}{
		{&api.Switch{Openflow: "1.0", Tables: 254}, "has OpenFlow 1.0", false},
		{&api.Switch{Openflow: "1.3", Tables: 50}, "has 50 flow tables; it takes 51", false},
		{&api.Switch{Openflow: "1.3", Tables: 254, Hardware: "some"}, "no conversion of frames to labelled packets", true},
		{&api.Switch{Openflow: "1.3", Tables: 254, Hardware: api.OpenVSwitch}, "", true},
	} {
		x.is.Dpid, x.is.Connected = flow.DPID(4).String(), true
		b.feed(&api.SwitchChanged{Switch: x.is, Ports: []*api.Port{{Dpid: x.is.Dpid, Port: 1, Up: true}, {Dpid: x.is.Dpid, Port: 2, Up: true}}})
		_ = b.try(&api.SetCircuitsRequest{Delete: []string{"c", "d"}})
		err := set("c", "1:1", "4:1")
		if x.want == "" && err != nil || x.want != "" && (api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%v: %v", x.is, err)
		}
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "d", Ends: []string{"4:1.7", "4:2.7"}}}, Delete: []string{"c"}}); (err == nil) != x.same {
			t.Errorf("%v: a circuit within the switch: %v", x.is, err)
		}
	}
}
