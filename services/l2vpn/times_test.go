package l2vpn

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// give makes the tunnels that circuits want, takes away the others, and has switches
// confirm everything.
func (b *store) give() {
	k := &keeper{b: b, turn: make(chan struct{}, 1), ask: func(_ context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
		r := &api.SetTunnelsResponse{}
		for _, m := range q.Tunnels {
			m.Group, m.State, m.Path = flow.TunnelGroups+uint32(len(b.tunnels.known)), "up", []string{m.From, m.To}
			m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: m.From, OutPort: 9}, {Dpid: m.To, InPort: 9}}}
			r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: m.Name, Tunnel: m})
		}
		for _, name := range q.Delete {
			r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: name})
		}
		return r, nil
	}}
	k.keep(context.Background(), false)
	for sw := flow.DPID(1); sw <= 4; sw++ {
		wholeOf(b, sw)
		b.answered(sw, nil, nil)
	}
}

// entriesAt returns how many entries a switch has of circuits, but those that drop
// labelled frames and those for probes of both kinds.
func (b *store) entriesAt(sw flow.DPID) (n int) {
	for _, f := range wholeOf(b, sw).Flows {
		if _, e, err := f.Entry(); err == nil && len(e.Apply) > 0 && e.Priority != flow.PriorityCircuitProbe && e.Priority != flow.PriorityCircuitRing {
			n++
		}
	}
	return n
}

// TestTimes: a circuit has entries and tunnels from its beginning until its end, and
// keeps its labels, ends and history beyond; so does one of a controller that was away when
// it began, or ended; and it does again when its times are changed.
func TestTimes(t *testing.T) {
	begin := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	end := begin.Add(10 * time.Hour)
	for _, m := range []*api.Circuit{
		{Name: "a", Ends: []string{"1:1", "2:1.7"}},
		{Name: "a", Ends: []string{"1:1", "1:2"}},
		{Name: "a", Type: "vpls", Ends: []string{"1:1", "1:2", "1:3"}},
	} {
		for _, away := range []bool{false, true} {
			now := begin.Add(-time.Hour)
			kept := wefttest.NewStore()
			b := newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
			m.From, m.Until = "2026-12-01T09:00:00+01:00", end.Format(time.RFC3339)
			if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
				t.Fatal(err)
			}
			pass := func(to time.Time) {
				now = to
				if away {
					records := b.records()
					b = newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
					for name, text := range records {
						b.recall(name, text)
					}
				} else {
					b.turn()
				}
				b.give()
			}
			check := func(state, reason string, carries bool) {
				t.Helper()
				got := b.get("a")
				if got.State != state || !strings.HasPrefix(got.Reason, reason) || got.Labels[0] != flow.CircuitLabels {
					t.Errorf("%s %v, away %v: %s (%s), labels %v; want %s (%s)", m.Type, m.Ends, away, got.State, got.Reason, got.Labels, state, reason)
				}
				if is := b.entriesAt(1) > 0; is != carries || (len(b.tunnels.known) > 0) != (carries && m.Ends[1] == "2:1.7") {
					t.Errorf("%s %v, away %v, %s: entries %v, %d tunnels", m.Type, m.Ends, away, got.State, is, len(b.tunnels.known))
				}
			}
			b.give()
			check("scheduled", "begins 2026-12-01T08:00:00Z, in 1h0m0s", false)
			pass(begin.Add(-time.Second))
			check("scheduled", "begins 2026-12-01T08:00:00Z, in 1s", false)
			pass(begin)
			check("up", "", true)
			pass(end.Add(-time.Second))
			check("up", "", true)
			pass(end)
			check("down", "ended 2026-12-01T18:00:00Z", false)
			var had []string
			for _, h := range b.status["a"].history {
				if h.Changed == "" {
					had = append(had, h.State)
				}
			}
			if had = slices.DeleteFunc(had, func(s string) bool { return s == "requested" }); !slices.Equal(had, []string{"down", "up", "scheduled"}) {
				t.Errorf("away %v: history %v", away, had)
			}
			if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "b", Ends: []string{"1:1", "3:1"}}}}); api.KindOf(err) != codes.FailedPrecondition {
				t.Errorf("an end of an ended circuit: %v", err)
			}
			// As it is, as in a file; then with another end, which makes it begin again.
			if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{b.get("a")}}); err != nil {
				t.Error(err)
			}
			m.Until = end.Add(time.Hour).Format(time.RFC3339)
			if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
				t.Error(err)
			}
			b.give()
			check("up", "", true)
			pass(end.Add(time.Hour))
			check("down", "ended 2026-12-01T19:00:00Z", false)
		}
	}
}

func TestTimesRefused(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	b := newTestStoreAt(t, wefttest.NewStore(), defaults(), func() time.Time { return now })
	for _, c := range []struct{ from, until, text string }{
		{"tomorrow", "", "from"},
		{"", "+2h", "until"},
		{"2026-12-02T08:00:00Z", "2026-12-02T08:00:00Z", "would end before it begins"},
		{"2026-11-02T08:00:00Z", "2026-12-01T08:00:00Z", "has passed"},
		{"0001-01-01T00:00:00Z", "", "from"},
	} {
		err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "a", Ends: []string{"1:1", "2:1"}, From: c.from, Until: c.until}}})
		if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.text) {
			t.Errorf("from %s until %s: %v", c.from, c.until, err)
		}
	}
}

// TestBegins: the service has a circuit begin by itself.
func TestBegins(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		wefttest.Fake(h, api.SetStanding, func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.ListTunnels, func(context.Context, *api.ListTunnelsRequest) (*api.ListTunnelsResponse, error) {
			return &api.ListTunnelsResponse{}, nil
		})
		h.Start()
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: "0000000000000001", Connected: true, Openflow: "1.3", Tables: 254},
			Ports: []*api.Port{{Dpid: "0000000000000001", Port: 1, Up: true}, {Dpid: "0000000000000001", Port: 2, Up: true}}})
		h.Settle()
		begin := time.Now().Add(3 * time.Second).Format(time.RFC3339)
		if _, err := wefttest.Call(h, api.SetCircuits, &api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "a", Ends: []string{"1:1", "1:2"}, From: begin}}}); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) {
			m, err := wefttest.Call(h, api.GetCircuit, &api.GetCircuitRequest{Name: "a"})
			if err != nil || time.Now().After(until) {
				t.Fatal(m, err)
			}
			if m.State == "up" {
				break
			}
		}
	})
}
