package flowrules

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func TestStandingSendsOnlyTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		a, b, c, b2 := wanted(1, 100, 1, 2), wanted(1, 101, 1, 2), wanted(1, 102, 1, 2), wanted(1, 101, 1, 3)
		if r := g.standing(1, "forwarding", a, b); r.Sent != 2 || r.Kept != 0 {
			t.Errorf("%v", r)
		}
		if r := g.standing(1, "forwarding", b, a); r.Sent != 0 || r.Kept != 2 {
			t.Errorf("the same again: %v", r)
		}
		if r := g.standing(1, "forwarding", b2, c); r.Sent != 3 || r.Kept != 0 {
			t.Errorf("one changed, one new, one too much: %v", r)
		}
		s := g.look(1)
		if len(s.adds) != 4 || s.deletes != 1 || s.rewrites != 0 || len(s.entries) != 2 {
			t.Errorf("%d sent, %d deleted, %d entries", len(s.adds), s.deletes, len(s.entries))
		}
	})
}

func TestStandingOfASwitchThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		req := &api.SetStandingRequest{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{wanted(1, 100, 1, 2)}}
		if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.Unavailable {
			t.Errorf("never connected: %v, want Unavailable", err)
		}
		time.AfterFunc(100*time.Millisecond, func() { g.connect(1) })
		if _, err := g.rules.SetStanding(t.Context(), req); err != nil { // heard of the connection first
			t.Errorf("connecting: %v", err)
		}
		g.with(1, func(s *fakeSwitch) { s.late = 3 })
		time.AfterFunc(50*time.Millisecond, func() { g.disconnect(1) })
		req.Flows = append(req.Flows, wanted(1, 101, 1, 2))
		if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.Unavailable {
			t.Errorf("lost meanwhile: %v, want Unavailable", err)
		}
		if s := g.sync(1); s.State != "away" || s.Wanted != 0 {
			t.Errorf("%v: a service's set ends with the session", s)
		}
	})
}

func TestStandingIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		other := wanted(1, 100, 1, 2)
		other.Cookie = "5745030000000001"
		for _, req := range []*api.SetStandingRequest{
			{Dpid: "x", Owner: "hosts"}, {Dpid: "1", Owner: "routes"}, {Dpid: "1", Owner: "operator"}, {Dpid: "1", Owner: ""},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{wanted(2, 1, 1, 1)}},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{other}},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{wanted(1, 70000, 1, 1)}},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{{Dpid: "1", Match: map[string]string{"tcp_dst": "1"}}}},
		} {
			if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%v: %v, want InvalidArgument", req, err)
			}
		}
	})
}

// Two writers of the same key: the services come before the operator, and the
// one that was first among services; nobody is overwritten in silence.
func TestSameKeyTwoOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		mine := wanted(1, 100, 1, 9)
		g.add(mine)
		g.connect(1)
		g.standing(1, "forwarding", wanted(1, 100, 1, 2))
		if s := g.sync(1); s.State != "failing" || s.Failed != 1 {
			t.Errorf("%v", s)
		}
		if _, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{mine}}); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "forwarding") {
			t.Errorf("%v: want FailedPrecondition that names forwarding", err)
		}
		if r := g.standing(1, "hosts", wanted(1, 100, 1, 3)); len(r.Failed) != 1 {
			t.Errorf("hosts: %v", r)
		}
		if n := len(g.look(1).entries); n != 1 {
			t.Errorf("%d entries", n)
		}
		g.standing(1, "forwarding")
		time.Sleep(time.Second)
		if l := g.list(1); l[100] != "confirmed" || g.sync(1).State != "in_sync" {
			t.Errorf("the operator's has not come back: %v", l)
		}
		if s := g.look(1); s.deletes != 0 || s.adds[len(s.adds)-1].Cookie.Owner() != flow.OwnerOperator {
			t.Errorf("%d deletes", s.deletes)
		}
	})
}
