package l2vpn

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/wefttest"
)

// newTestStore returns a store that knows switches 1 to 4, with ports 1 to 9 of which
// 9 is a link, and on what is stored.
func newTestStore(t testing.TB, kept *wefttest.Store, cfg *Config) *store {
	now := time.Unix(1e9, 0)
	return newTestStoreAt(t, kept, cfg, func() time.Time { return now })
}

// newTestStoreAt returns such a store with a clock.
func newTestStoreAt(t testing.TB, kept *wefttest.Store, cfg *Config, now func() time.Time) *store {
	b := loadTestStore(t, kept, cfg, now)
	for sw := flow.DPID(1); sw <= 4; sw++ {
		b.connect(sw)
		b.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: 9}, Role: "link"}})
	}
	return b
}

// connect has a switch connect, with nine ports.
func (b *store) connect(sw flow.DPID) {
	e := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3"}}
	for p := uint32(1); p <= 9; p++ {
		e.Ports = append(e.Ports, &api.Port{Dpid: sw.String(), Port: p, Up: true})
	}
	b.feed(e)
}

// loadTestStore returns a store with what is kept, to which nothing of the network is known.
func loadTestStore(t testing.TB, kept *wefttest.Store, cfg *Config, now func() time.Time) *store {
	bucket, err := kept.Bucket(context.Background(), "l2vpn.circuits")
	if err != nil {
		t.Fatal(err)
	}
	b := newStore(cfg, bucket, now, func(name string, err error) { t.Errorf("%s: %v", name, err) })
	if err := b.circuits.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return b
}

// feed has the store follow an event on top of what it knows.
func (b *store) feed(event any) {
	base := nib.New()
	base.Read(reads.Closed())
	apply := func(e any) { base.Apply(nib.Source{Epoch: 1}, e) }
	for s := range b.net.Switches() {
		e := &api.SwitchChanged{Switch: s.Is.Switch}
		for p := range b.net.Ports(s.Key) {
			e.Ports = append(e.Ports, p.Is)
		}
		apply(e)
		for r := range b.net.Roles(s.Key) {
			apply(&api.PortRoleChanged{Port: r.Is})
		}
	}
	for l := range b.net.Links() {
		apply(&api.LinkChanged{Link: l.Is})
	}
	for n := range b.net.Nodes() {
		apply(&api.NodeChanged{Node: n.Is})
	}
	was := base.Snapshot()
	apply(event)
	b.networkChanged(nib.Change{Was: was, Is: base.Snapshot()})
}

// try sets and deletes circuits.
func (b *store) try(req *api.SetCircuitsRequest) error {
	t, err := b.read(req)
	if err == nil {
		err = t.error()
	}
	if err == nil {
		err = t.commit(context.Background(), b)
	}
	return err
}

// takes returns whether an end takes a frame with tags at a port.
func takes(e end, at flow.Location, tags []uint16) bool {
	if e.list != "" {
		return e.at == at && len(tags) > 0 && e.list.has(tags[0])
	}
	want := slices.DeleteFunc([]uint16{e.vlan, e.inner}, func(v uint16) bool { return v == 0 })
	return e.at == at && len(tags) >= len(want) && slices.Equal(tags[:len(want)], want)
}

// TestEndsNeverShareFrames: whatever circuits are asked for, in whatever order, no frame
// is taken by two, no label is given twice on a switch, and no two entries of a switch are
// for the same frames; after a restart all is as before.
func TestEndsNeverShareFrames(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		kept := wefttest.NewStore()
		b := newTestStore(t, kept, defaults())
		random := func() string {
			s := fmt.Sprintf("%d:%d", 1+rng.IntN(4), 1+rng.IntN(2))
			if rng.IntN(5) == 0 {
				return s + []string{"/10", "/11-12", "/10,12"}[rng.IntN(3)]
			}
			for range rng.IntN(3) {
				s += fmt.Sprintf(".%d", 10+rng.IntN(3))
			}
			return s
		}
		accepted := 0
		for range 150 {
			m := &api.Circuit{Name: fmt.Sprintf("c%d", rng.IntN(12)), Ends: []string{random(), random()}, RateKbps: uint64(rng.IntN(2) * 1000),
				Payload: []string{"ethernet", "ip"}[rng.IntN(2)]}
			req := &api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}
			if rng.IntN(5) == 0 {
				req = &api.SetCircuitsRequest{Delete: []string{m.Name}}
			}
			if b.try(req) == nil {
				accepted++
			}
			checkApart(t, b)
			checkBooked(t, b)
			if rng.IntN(4) == 0 {
				(&keeper{b: b, turn: make(chan struct{}, 1), ask: made}).keep(context.Background(), false)
				checkBooked(t, b)
			}
		}
		if accepted < 30 {
			t.Errorf("seed %d: %d of 150 accepted", seed, accepted)
		}
		again := newTestStore(t, kept, defaults())
		for name, s := range b.status {
			if o := again.status[name]; o == nil || fmt.Sprint(o.circuit.Members, o.circuit.Id) != fmt.Sprint(s.circuit.Members, s.circuit.Id) {
				t.Errorf("seed %d: %s is another after a restart", seed, name)
			}
		}
	}
}

// checkBooked checks that tunnels are asked for with what their circuits book, and that
// those which are not as they should be are known without a look at all.
func checkBooked(t *testing.T, b *store) {
	t.Helper()
	for name, w := range b.tunnels.wants {
		var kbps uint64
		for user := range w.users {
			kbps += b.status[user].circuit.RateKbps
		}
		if w.booked() != kbps {
			t.Fatalf("tunnel %s: %d kbit/s are booked, want %d", name, w.booked(), kbps)
		}
		if !w.met(b.tunnels.known[name]) && !b.tunnels.due[name] {
			t.Fatalf("tunnel %s is not as it should be, and nobody looks at it", name)
		}
	}
	for name := range b.tunnels.known {
		if b.tunnels.wants[name] == nil && !b.tunnels.due[name] {
			t.Fatalf("no circuit wants tunnel %s, and nobody gives it back", name)
		}
	}
}

func checkApart(t *testing.T, b *store) {
	t.Helper()
	labels := map[flow.DPID]map[uint32]bool{}
	for sw := flow.DPID(1); sw <= 4; sw++ {
		labels[sw] = map[uint32]bool{}
		for port := flow.Port(1); port <= 2; port++ {
			for _, tags := range [][]uint16{nil, {10}, {11}, {12}, {10, 10}, {10, 11}, {11, 12}, {12, 10}} {
				users := map[string]bool{}
				for name, s := range b.status {
					for _, e := range s.circuit.ends {
						if at := (flow.Location{Switch: sw, Port: port}); takes(e, at, tags) && (!e.whole() || len(tags) == 0 || !b.taken.vlans(at).has(tags[0])) {
							users[name+e.String()] = true
						}
					}
				}
				if len(users) > 1 {
					t.Fatalf("frames with tags %v at %v/%v: %v", tags, sw, port, slices.Collect(maps.Keys(users)))
				}
			}
		}
		keys := map[flow.EntryKey]string{}
		for _, f := range wholeOf(b, sw).Flows {
			_, e, err := f.Entry()
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Match.CheckActions(e.Apply); err != nil {
				t.Fatalf("%v: %v", f, err)
			}
			if e.IdleTimeout|e.HardTimeout != 0 {
				t.Fatalf("an entry ends by itself while the controller is away: %v", f)
			}
			if was, twice := keys[e.Key()]; twice && was != fmt.Sprint(f.Actions) {
				t.Fatalf("two entries for the same frames: %v", f)
			}
			keys[e.Key()] = fmt.Sprint(f.Actions)
		}
	}
	for _, s := range b.status {
		for i, m := range s.circuit.Members {
			at := s.circuit.ends[i].at.Switch
			for _, l := range s.circuit.labelsOf(m) {
				if labels[at][*l] {
					t.Fatalf("label %d is given twice at %v", *l, at)
				}
				labels[at][*l] = true
			}
		}
	}
}

func TestRefused(t *testing.T) {
	cfg := defaults()
	cfg.LastLabel = cfg.FirstLabel + 1
	b := newTestStore(t, wefttest.NewStore(), cfg)
	set := func(name string, ends ...string) error {
		return b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: name, Ends: ends}}})
	}
	if err := set("a", "1:1.10", "2:1"); err != nil {
		t.Fatal(err)
	}
	b.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: "0000000000000001", Port: 10007}, Role: "internal"}})
	for _, c := range []struct {
		ends string
		kind codes.Code
		text string
	}{
		{"1:1.10 3:1", codes.FailedPrecondition, "circuit a has 0000000000000001:1.10"},
		{"1:1/9-11 3:1", codes.FailedPrecondition, "circuit a has 0000000000000001:1.10"},
		{"2:1 3:1", codes.FailedPrecondition, "circuit a has 0000000000000002:1"},
		{"1:1.10.5 3:1", codes.FailedPrecondition, "circuit a has"},
		{"1:7 3:1", codes.FailedPrecondition, "by its internal port 10007"},
		{"1:9 3:1", codes.FailedPrecondition, "link between switches"},
		{"7:1 3:1", codes.FailedPrecondition, "there is no switch"},
		{"1:8000 3:1", codes.FailedPrecondition, "no such port"},
		{"3:1 3:1", codes.InvalidArgument, "take the same frames"},
		{"3:1", codes.InvalidArgument, "a vpws has two"},
		{"3:1.4095 4:1", codes.InvalidArgument, "1 to 4094"},
		{"3:0 4:1", codes.InvalidArgument, "port"},
		{"3 4:1", codes.InvalidArgument, "want SWITCH:PORT"},
		{"3:1.1.2.3 4:1", codes.InvalidArgument, "two tags"},
		{"3:1 3:1.5", codes.InvalidArgument, "take the same frames"},
		{"3:1/5 3:1.5", codes.InvalidArgument, "take the same frames"},
		{"3:1.5/6 4:1", codes.InvalidArgument, "want a VLAN, whose tag is taken off, or a list"},
		{"3:1/6-5 4:1", codes.InvalidArgument, "the lower number first"},
		{"3:1/ 4:1", codes.InvalidArgument, "1 to 4094"},
		{"3:1/1-3 4:1/4-6", codes.InvalidArgument, "no VLAN in common"},
		{"3:1/1-3 4:1.4.5", codes.InvalidArgument, "more than 2 tags"},
		{"3:1@0x88a8 4:1", codes.InvalidArgument, "no tag is put on"},
		{"3:1.5@0x9100 4:1", codes.InvalidArgument, "Open vSwitch takes no frame of this type for tagged"},
		{"3:1.5@0x800 4:1", codes.InvalidArgument, "want 0x8100 or 0x88a8"},
	} {
		if err := set("b", strings.Fields(c.ends)...); api.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v; want %v, %q", c.ends, err, c.kind, c.text)
		}
	}
	// Who is routed at a port may have a circuit of one VLAN beside it.
	if err := set("b", "1:7.10", "3:7"); err != nil {
		t.Error(err)
	}
	if err := b.try(&api.SetCircuitsRequest{Delete: []string{"b"}}); err != nil {
		t.Error(err)
	}
	// Ends change places in one request; labels end, and are given back.
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "a", Ends: []string{"3:1", "2:1"}}, {Name: "b", Ends: []string{"1:1.10", "4:1"}}}}); err != nil {
		t.Error(err)
	}
	if err := set("c", "1:2", "4:2"); err != nil {
		t.Error(err)
	}
	if err := set("d", "1:3", "3:3"); api.KindOf(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "l2vpn.last_label") {
		t.Errorf("%v; want ResourceExhausted", err)
	}
	if err := b.try(&api.SetCircuitsRequest{Delete: []string{"c"}}); err != nil {
		t.Error(err)
	}
	if err := set("d", "1:3", "3:3"); err != nil {
		t.Error(err)
	}
}

// TestService: a circuit through the calls and events that the Spec declares, its
// counters, and the same after a restart.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		made := map[string]*api.Tunnel{}
		wefttest.Fake(h, api.SetStanding, func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.ListTunnels, func(context.Context, *api.ListTunnelsRequest) (*api.ListTunnelsResponse, error) {
			return &api.ListTunnelsResponse{Tunnels: slices.Collect(maps.Values(made))}, nil
		})
		wefttest.Fake(h, api.SetTunnels, func(_ context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
			r := &api.SetTunnelsResponse{}
			for _, asked := range q.Tunnels {
				m := proto.CloneOf(asked)
				m.Group, m.State, m.Path = flow.TunnelGroups+uint32(len(m.Name)), "up", []string{m.From, m.To}
				m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: m.From, OutPort: 9}, {Dpid: m.To, InPort: 9}}}
				if !q.DryRun {
					made[m.Name] = m
				}
				r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: m.Name, Tunnel: m})
			}
			for _, name := range q.Delete {
				delete(made, name)
				r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: name})
			}
			return r, nil
		})
		wefttest.Fake(h, api.ReadMultipart, func(_ context.Context, q *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
			in := flow.Entry{Priority: flow.PriorityCircuit, Match: flow.Match{}.WithInPort(1), Cookie: flow.NewCookie(flow.OwnerCircuits, 3, 1)}
			sw, err := flow.ParseDPID(q.Dpid)
			f := api.NewFlowEntry(sw, &in)
			f.Packets = 7
			return &api.ReadMultipartResponse{Flows: []*api.FlowRecord{{Flow: f}}}, err
		})
		h.Start()
		tell := func() {
			for sw := flow.DPID(1); sw <= 2; sw++ {
				wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: 254},
					Ports: []*api.Port{{Dpid: sw.String(), Port: 1, Up: true}}})
			}
			h.Settle()
		}
		tell()
		r, err := wefttest.Call(h, api.SetCircuits, &api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "a", Ends: []string{"1:1", "2:1"}}}})
		if err != nil || len(r.Added) != 1 || r.Outcomes[0].Circuit.GetState() != "up" || r.EntriesChanged != 10 {
			t.Fatal(r, err)
		}
		h.Restart()
		tell()
		m, err := wefttest.Call(h, api.GetCircuit, &api.GetCircuitRequest{Name: "a"})
		if err != nil || m.State != "up" || !slices.Equal(m.Labels, r.Outcomes[0].Circuit.Labels) || m.RxPackets != 14 {
			t.Error(m, err)
		}
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: "0000000000000002"}})
		h.Settle()
		p, err := wefttest.Call(h, api.PreviewCircuit, &api.PreviewCircuitRequest{Circuit: &api.Circuit{Name: "b", Ends: []string{"1:1", "2:1"}}})
		if err != nil || p.Feasible || !strings.Contains(p.Reason, "circuit a has") {
			t.Error(p, err)
		}
		gone, err := wefttest.Call(h, api.DeleteCircuit, &api.DeleteCircuitRequest{Name: "a"})
		if err != nil || !gone.Deleted {
			t.Error(gone, err)
		}
		if _, err := wefttest.Call(h, api.GetCircuit, &api.GetCircuitRequest{Name: "a"}); api.KindOf(err) != codes.NotFound {
			t.Error(err)
		}
	})
}

// TestRefusedBySwitch: circuits of which a switch refuses an entry or a meter are not up, and
// say why; the others are, and all are when the switch has taken them.
func TestRefusedBySwitch(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	const sw flow.DPID = 1
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{
		{Name: "a", Ends: []string{"1:1", "1:2"}},
		{Name: "b", Ends: []string{"1:3", "1:4"}, RateKbps: 1000},
		{Name: "c", Type: "vpls", Ends: []string{"1:5", "1:6"}},
		{Name: "d", Ends: []string{"1:7", "1:8"}},
	}}); err != nil {
		t.Fatal(err)
	}
	declare := func() *api.SetStandingRequest { return wholeOf(b, sw) }
	check := func(want map[string]string) {
		t.Helper()
		for name, s := range b.status {
			state := want[name]
			if state == "" {
				state = "up"
			}
			if s.state != state || state != "up" && !strings.Contains(s.reason, "switch 0000000000000001 does not have all of its entries: bad") {
				t.Errorf("%s is %s (%s); want %s", name, s.state, s.reason, state)
			}
		}
	}
	var failed []*api.WantedFlow
	for _, f := range declare().Flows {
		_, e, err := f.Entry()
		if err != nil {
			t.Fatal(err)
		}
		if m := e.Match.Text(); m["in_port"] == "5" || m["in_port"] == "1" && m["eth_type"] != "" {
			failed = append(failed, &api.WantedFlow{Flow: f, Reason: "bad entry"})
		}
	}
	if len(failed) < 2 {
		t.Fatal(failed)
	}
	b.answered(sw, nil, failed)
	check(map[string]string{"a": "down", "c": "degraded"})
	b.answered(sw, nil, nil)
	check(nil)
	b.answered(sw, nil, []*api.WantedFlow{{Flow: &api.FlowEntry{Dpid: sw.String()}, Meter: b.status["b"].circuit.Members[1].Meter, Reason: "bad meter"}})
	check(map[string]string{"b": "down"})
	b.answered(sw, nil, nil)
	check(nil)
	// A change of a circuit that is up, which the switch refuses.
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: "vpls", Ends: []string{"1:5", "1:6", "1:9.7"}}}}); err == nil {
		t.Fatal("a link is an end")
	}
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: "vpls", Ends: []string{"1:5", "1:6.7"}}}}); err != nil {
		t.Fatal(err)
	}
	declare()
	b.answered(sw, nil, failed[len(failed)-1:])
	b.answered(sw, nil, failed)
	check(map[string]string{"a": "down", "c": "degraded"})
}

// wholeOf returns all that a switch should have.
func wholeOf(b *store, dpid flow.DPID) *api.SetStandingRequest {
	all, sw := &api.SetStandingRequest{}, &api.Switch{Dpid: dpid.String(), Openflow: "1.3"}
	for _, name := range b.pieces(sw) {
		p := b.piece(sw, name)
		all.Flows, all.Groups, all.Meters = append(all.Flows, p.Flows...), append(all.Groups, p.Groups...), append(all.Meters, p.Meters...)
	}
	return all
}
