package flowrules

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// stateOf is a State that says what a test has it say.
type stateOf struct {
	mu                  sync.Mutex
	damage              string
	born, alive, opened time.Time
}

func (s *stateOf) Damage() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damage
}

func (s *stateOf) Report(_ context.Context, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damage = reason
	return nil
}

func (s *stateOf) Recorded() (born, alive, opened time.Time) { return s.born, s.alive, s.opened }

// TestKeepsWhatADamagedStoreLacks checks which entries that nobody wants stay on
// a switch, by what the store knows of itself. The switch has had them for a
// minute when it connects.
func TestKeepsWhatADamagedStoreLacks(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		name     string
		state    func(now time.Time) *stateOf
		keep     bool // the request of the service
		operator bool // want: the operator's entry stays
		firewall bool // ... that of a service of policies
		reported bool // ... and the store is marked as damaged
		says     string
	}{
		{"whole", func(now time.Time) *stateOf {
			return &stateOf{born: now.Add(-9 * minute), alive: now, opened: now}
		}, false, false, false, false, ""},
		{"former version", func(time.Time) *stateOf { return &stateOf{} }, false, false, false, false, ""},
		{"damaged", func(time.Time) *stateOf { return &stateOf{damage: "2 of 3 keys are missing"} }, false, true, true, true, "missing"},
		{"damaged service", func(time.Time) *stateOf { return &stateOf{} }, true, false, true, false, ""},
		{"emptied", func(now time.Time) *stateOf { return &stateOf{born: now.Add(-20 * time.Second), opened: now} }, false, true, true, true, "were there before this store began: it is new"},
		{"older copy", func(now time.Time) *stateOf {
			return &stateOf{born: now.Add(-9 * minute), alive: now.Add(-2 * minute), opened: now}
		}, false, true, true, true, "it is an older copy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1)
				time.Sleep(time.Hour)
				operator := entryOf(t, flow.OwnerOperator, wanted(1, 100, 1, 2))
				firewall := entryOf(t, flow.OwnerFirewall, wanted(1, 101, 1, 2))
				g.with(1, func(s *fakeSwitch) {
					for _, e := range []flow.Entry{operator, firewall} {
						s.entries[e.Key()] = &fakeEntry{e, time.Now().Add(-minute)}
					}
				})
				state := c.state(time.Now())
				g.rules.Trust(state, 0)
				g.connect(1)
				time.Sleep(time.Second)
				req := &api.SetStandingRequest{Dpid: flow.DPID(1).String(), Owner: "firewall", Keep: c.keep, Flows: []*api.FlowEntry{wanted(1, 102, 1, 2)}}
				if resp, err := g.rules.SetStanding(t.Context(), req); err != nil || len(resp.Failed) > 0 {
					t.Fatal(resp, err)
				}
				time.Sleep(10 * time.Minute) // verified, too
				entries := g.look(1).entries
				if got := entries[operator.Key()] != nil; got != c.operator {
					t.Errorf("the operator's entry stays: %v, want %v", got, c.operator)
				}
				if got := entries[firewall.Key()] != nil; got != c.firewall {
					t.Errorf("the firewall's entry stays: %v, want %v", got, c.firewall)
				}
				if got := state.Damage() != ""; got != c.reported || !strings.Contains(state.Damage(), c.says) {
					t.Errorf("damage: %q, want some: %v", state.Damage(), c.reported)
				}
				spared := 0
				for _, stays := range []bool{c.operator, c.firewall} {
					if stays {
						spared++
					}
				}
				if n := g.rules.Totals().Spared; n != spared {
					t.Errorf("%d counted, want %d", n, spared)
				}
				if len(entries) != spared+1 {
					t.Errorf("%d entries on the switch, want %d", len(entries), spared+1)
				}
			})
		})
	}
}

// TestDeleteAllOfADamagedStore checks that all entries of the operator's are not
// taken for deleted while the store may lack some of them.
func TestDeleteAllOfADamagedStore(t *testing.T) {
	g := newRig(t, defaults(), 1)
	g.rules.Trust(&stateOf{damage: "1 of 1 keys is missing"}, 0)
	r, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all"})
	if api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "weft store repair") {
		t.Errorf("%v %v, want FailedPrecondition and what to do", r, err)
	}
}
