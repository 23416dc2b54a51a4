package l2vpn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestEndsAreShut: frames of an end are never of the ordinary network, also while there is no
// tunnel, and before and after the circuit's time: entries drop them, for which nothing is
// counted.
func TestEndsAreShut(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	from, until := "2026-12-01T09:00:00Z", "2026-12-01T10:00:00Z"
	for _, c := range []struct {
		name string
		m    *api.Circuit
		when time.Duration
	}{
		{"no tunnel", &api.Circuit{Ends: []string{"1:1", "2:1"}}, 0},
		{"no tunnel, VLAN", &api.Circuit{Ends: []string{"1:1.7", "2:1"}}, 0},
		{"no tunnel, two tags", &api.Circuit{Ends: []string{"1:1.7.8", "2:1.7"}}, 0},
		{"no tunnel, rate", &api.Circuit{Ends: []string{"1:1", "2:1"}, RateKbps: 5000, StormKbps: 100}, 0},
		{"no tunnel, ip", &api.Circuit{Ends: []string{"1:1", "2:1"}, Payload: ip}, 0},
		{"scheduled", &api.Circuit{Ends: []string{"1:1", "1:2"}, From: from}, 0},
		{"scheduled lan", &api.Circuit{Type: vpls, Ends: []string{"1:1", "1:2.7", "2:3"}, From: from}, 0},
		{"ended", &api.Circuit{Ends: []string{"1:1", "1:2.7.8"}, Until: until}, 3 * time.Hour},
		{"ended lan", &api.Circuit{Type: vpls, Ends: []string{"1:1", "1:2"}, Until: until}, 3 * time.Hour},
	} {
		at := now
		b := newTestStoreAt(t, wefttest.NewStore(), defaults(), func() time.Time { return at })
		c.m.Name = "c"
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{c.m}}); err != nil {
			t.Fatal(c.name, err)
		}
		at = at.Add(c.when)
		b.turn()
		for _, e := range b.status["c"].circuit.ends {
			want := flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityCircuit, Match: flow.Match{}.WithInPort(e.at.Port)}
			if e.vlan != 0 {
				want.Match = want.Match.WithVLAN(e.vlan)
			}
			if e.inner != 0 {
				want.Table, want.Priority = flow.TableCircuits, flow.PriorityCircuitInner
				want.Match = flow.Match{}.WithInPort(e.at.Port).WithMetadata(uint64(flow.VLANPresent|e.vlan), ^uint64(0)).WithTunnelID(0).WithVLAN(e.inner)
			}
			if !slices.ContainsFunc(wholeOf(b, e.at.Switch).Flows, func(m *api.FlowEntry) bool {
				_, got, err := m.Entry()
				return err == nil && got.Key() == want.Key() && len(got.Apply) == 0 && got.Goto == 0 && got.Cookie.ID() == 0
			}) {
				t.Errorf("%s: nothing drops frames of %v", c.name, e)
			}
		}
		checkApart(t, b)
	}
}

// TestPortChanges: a port, or a VLAN of one, is published when it becomes a circuit's and when
// it is none's any more, once, and after a restart again.
func TestPortChanges(t *testing.T) {
	kept := wefttest.NewStore()
	b := newTestStore(t, kept, defaults())
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, e := range b.reserved.changes() {
			got = append(got, fmt.Sprintf("%v VLAN %d %v", e.At.Flow(), e.Vlan, e.Gone))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	set := func(del string, ends ...string) {
		t.Helper()
		q := &api.SetCircuitsRequest{}
		if del != "" {
			q.Delete = []string{del}
		} else {
			q.Circuits = []*api.Circuit{{Name: "c", Ends: ends}}
		}
		if err := b.try(q); err != nil {
			t.Fatal(err)
		}
	}
	set("", "1:1", "2:1.7")
	expect("new", "0000000000000001/1 VLAN 0 false", "0000000000000002/1 VLAN 7 false")
	set("", "1:1", "2:2.7.8")
	expect("another end", "0000000000000002/1 VLAN 7 true", "0000000000000002/2 VLAN 7 false")
	set("", "1:1.7", "2:2.7.9")
	expect("a VLAN", "0000000000000001/1 VLAN 0 true", "0000000000000001/1 VLAN 7 false")
	b = newTestStore(t, kept, defaults())
	expect("a restart", "0000000000000001/1 VLAN 7 false", "0000000000000002/2 VLAN 7 false")
	set("c")
	expect("deleted", "0000000000000001/1 VLAN 7 true", "0000000000000002/2 VLAN 7 true")
}
