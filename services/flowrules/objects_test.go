package flowrules

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

const testGroup = flow.BalancerGroups + 1

// selectGroup returns a group that divides what it gets among ports.
func selectGroup(sw flow.DPID, ports ...flow.Port) *api.Group {
	g := &api.Group{Dpid: sw.String(), Id: testGroup, Type: "select"}
	for _, p := range ports {
		g.Buckets = append(g.Buckets, &api.Bucket{Weight: 1, Actions: []string{"output:" + p.String()}})
	}
	return g
}

// toGroup returns an entry that leads to testGroup.
func toGroup(sw flow.DPID, priority uint32) *api.FlowEntry {
	return &api.FlowEntry{
		Dpid: sw.String(), Priority: priority, Match: map[string]string{"in_port": "1"},
		Actions: []string{flow.ToGroup(testGroup).String()},
	}
}

func policeMeter(sw flow.DPID, rate uint32) *api.Meter {
	return &api.Meter{Dpid: sw.String(), Id: 7, Flags: []string{"kbps", "stats"}, Bands: []*api.Band{{Type: "drop", Rate: rate}}}
}

func metered(sw flow.DPID, priority uint32) *api.FlowEntry {
	f := wanted(sw, priority, 1, 2)
	f.Meter = 7
	return f
}

func (g *rig) set(req *api.SetStandingRequest) *api.SetStandingResponse {
	g.t.Helper()
	resp, err := g.rules.SetStanding(g.t.Context(), req)
	if err != nil {
		g.t.Fatalf("SetStanding: %v", err)
	}
	return resp
}

// balance declares the balancer's set of switch 1.
func (g *rig) balance(group *api.Group, flows ...*api.FlowEntry) *api.SetStandingResponse {
	g.t.Helper()
	req := &api.SetStandingRequest{Dpid: "1", Owner: "balancer", Flows: flows}
	if group != nil {
		req.Groups = []*api.Group{group}
	}
	return g.set(req)
}

// history returns what a switch did with groups and meters since the last time.
func (g *rig) history(sw flow.DPID) []string {
	s := g.look(sw)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.history
	s.history = nil
	return h
}

func (g *rig) wantHistory(what string, want ...string) {
	g.t.Helper()
	if h := g.history(1); !slices.Equal(h, want) {
		g.t.Errorf("%s: the switch did %q, want %q", what, h, want)
	}
}

func TestGroupsBeforeEntriesAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		group := objectKey{groupObject, testGroup}.String()
		if r := g.balance(selectGroup(1, 2, 3), toGroup(1, 100)); r.Sent != 2 || len(r.Failed) != 0 {
			t.Errorf("%v", r)
		}
		g.wantHistory("made", "add "+group, "entry 100 uses "+group)
		if r := g.balance(selectGroup(1, 2, 3), toGroup(1, 100)); r.Sent != 0 || r.Kept != 2 {
			t.Errorf("again: %v", r)
		}
		g.wantHistory("again")
		g.balance(selectGroup(1, 2), toGroup(1, 100))
		g.wantHistory("changed in place", "modify "+group)
		g.balance(nil)
		g.wantHistory("removed", "entry 100 gone", "delete "+group)
		if s := g.sync(1); s.State != "in_sync" {
			t.Errorf("%v", s)
		}
	})
}

func TestMetersBeforeEntriesAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		limit := func(rate uint32) *api.SetStandingResponse {
			return g.set(&api.SetStandingRequest{Dpid: "1", Owner: "qos", Flows: []*api.FlowEntry{metered(1, 9)}, Meters: []*api.Meter{policeMeter(1, rate)}})
		}
		limit(1000)
		limit(2000)
		g.wantHistory("made and changed", "add meter 7", "entry 9 uses meter 7", "modify meter 7")
		g.set(&api.SetStandingRequest{Dpid: "1", Owner: "qos"})
		g.wantHistory("removed", "entry 9 gone", "delete meter 7")
	})
}

func TestGroupsOfAnEarlierRunAreKeptOrMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		group := objectKey{groupObject, testGroup}.String()
		g.balance(selectGroup(1, 2, 3), toGroup(1, 100))
		g.history(1)

		g.start(defaults())
		g.connect(1)
		synctest.Wait()
		g.wantHistory("not declared yet: left alone")
		if r := g.balance(selectGroup(1, 2, 3), toGroup(1, 100)); r.Sent != 0 || r.Kept != 2 {
			t.Errorf("%v", r)
		}
		g.wantHistory("as it was")

		g.start(defaults())
		g.connect(1)
		g.balance(selectGroup(1, 3), toGroup(1, 100))
		g.wantHistory("another after the restart", "modify "+group)

		g.disconnect(1)
		g.connect(1)
		g.balance(nil)
		g.wantHistory("not wanted any more after a reconnect", "entry 100 gone", "delete "+group)
	})
}

func TestDeletedGroupsComeBack(t *testing.T) {
	for name, tells := range map[string]bool{"told by the entry's end": true, "found by verifying": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1)
				g.connect(1)
				group := objectKey{groupObject, testGroup}.String()
				g.balance(selectGroup(1, 2, 3), toGroup(1, 100))
				time.Sleep(10 * time.Second)
				g.history(1)
				g.with(1, func(s *fakeSwitch) {
					if !tells {
						s.removed = nil
					}
					s.loseObject(objectKey{groupObject, testGroup})
				})
				if tells {
					time.Sleep(2 * time.Second)
				} else {
					time.Sleep(90 * time.Second)
				}
				g.wantHistory("deleted by somebody", "entry 100 cut off", "add "+group, "entry 100 uses "+group)
				if s := g.sync(1); s.State != "in_sync" {
					t.Errorf("%v", s)
				}
			})
		})
	}
}

func TestChangedAndForeignGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.with(1, func(s *fakeSwitch) {
			s.objects[objectKey{groupObject, 5}] = body{group: flow.Group{ID: 5}}         // forwarding's
			s.objects[objectKey{meterObject, 1 << 20}] = body{meter: flow.Meter{ID: 1e6}} // nobody's
		})
		g.connect(1)
		group := objectKey{groupObject, testGroup}
		g.balance(selectGroup(1, 2, 3), toGroup(1, 100))
		time.Sleep(10 * time.Second)
		g.history(1)
		g.with(1, func(s *fakeSwitch) {
			b := s.objects[group]
			b.group.Buckets = b.group.Buckets[:1]
			s.objects[group] = b
			s.objects[objectKey{groupObject, testGroup + 1}] = body{group: flow.Group{ID: testGroup + 1}}
		})
		time.Sleep(90 * time.Second)
		g.wantHistory("meddled with", "modify "+group.String(), "delete "+objectKey{groupObject, testGroup + 1}.String())
		if s := g.look(1); len(s.objects) != 3 {
			t.Errorf("others' were not left alone: %v", s.objects)
		}
	})
}

func TestASwitchWithoutMeters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.with(1, func(s *fakeSwitch) { s.noMeters = true })
		g.connect(1)
		r := g.set(&api.SetStandingRequest{
			Dpid: "1", Owner: "qos",
			Flows: []*api.FlowEntry{metered(1, 9), wanted(1, 8, 2, 3)}, Meters: []*api.Meter{policeMeter(1, 1000)},
		})
		if len(r.Failed) != 2 || r.Failed[0].Meter != 7 || !strings.Contains(r.Failed[0].Reason, "meter 7: OFPET_BAD_REQUEST") ||
			!strings.Contains(r.Failed[1].Reason, "needs meter 7, which is not there: OFPET_BAD_REQUEST") {
			t.Errorf("%v", r.Failed)
		}
		if s := g.look(1); len(s.entries) != 1 {
			t.Errorf("%d entries, want the one that needs no meter", len(s.entries))
		}
		g.with(1, func(s *fakeSwitch) { s.noMeters = false })
		time.Sleep(10 * time.Second)
		if s := g.sync(1); s.State != "in_sync" {
			t.Errorf("after the switch has learnt meters: %v", s)
		}
	})
}

func TestNoRoomForGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.with(1, func(s *fakeSwitch) { s.fullAt = 1 })
		g.connect(1)
		g.balance(selectGroup(1, 2), toGroup(1, 100))
		other := selectGroup(1, 3)
		other.Id++
		f := toGroup(1, 101)
		f.Actions = []string{flow.ToGroup(other.Id).String()}
		if r := g.balance(other, f); len(r.Failed) == 0 || r.Failed[0].Group != other.Id {
			t.Errorf("%v", r)
		}
		time.Sleep(time.Second)
		if s := g.sync(1); s.State != "in_sync" {
			t.Errorf("the old one makes room: %v, %v", s, g.list(1))
		}
	})
}

func TestStandingRefusesOthersNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		chained, watching, timed := selectGroup(1, 2), selectGroup(1, 2), wanted(1, 1, 1, 2)
		chained.Buckets[0].Actions = []string{"group:5"}
		watching.Buckets[0].WatchGroup = 5
		timed.IdleTimeout = 5
		floodGroup, away := selectGroup(1, 2), selectGroup(2, 2)
		floodGroup.Id = flow.FloodGroups
		for name, req := range map[string]*api.SetStandingRequest{
			"forwarding's group":  {Owner: "balancer", Groups: []*api.Group{{Dpid: "1", Id: 9, Type: "select"}}},
			"another's group":     {Owner: "balancer", Groups: []*api.Group{floodGroup}},
			"another's meter":     {Owner: "balancer", Meters: []*api.Meter{policeMeter(1, 1)}},
			"group of a switch":   {Owner: "balancer", Groups: []*api.Group{away}},
			"leads to a group":    {Owner: "balancer", Groups: []*api.Group{chained}},
			"watches a group":     {Owner: "balancer", Groups: []*api.Group{watching}},
			"unknown type":        {Owner: "balancer", Groups: []*api.Group{{Dpid: "1", Id: testGroup, Type: "any"}}},
			"meter without bands": {Owner: "qos", Meters: []*api.Meter{{Dpid: "1", Id: 7, Flags: []string{"kbps"}}}},
			"meter without unit":  {Owner: "qos", Meters: []*api.Meter{{Dpid: "1", Id: 7, Bands: []*api.Band{{Rate: 1}}}}},
			"a timeout":           {Owner: "balancer", Flows: []*api.FlowEntry{timed}},
		} {
			req.Dpid = "1"
			if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%s: %v, want InvalidArgument", name, err)
			}
		}
		g.wantHistory("nothing was sent")
	})
}

// A group may lead to one with a higher number, which is made before and removed after it.
func TestStandingChainedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		far, near := selectGroup(1, 2), selectGroup(1, 2)
		far.Id++
		near.Buckets[0].Actions = []string{flow.ToGroup(far.Id).String()}
		near.Buckets[0].WatchGroup = far.Id
		set := func(groups ...*api.Group) {
			t.Helper()
			if r, err := g.rules.SetStanding(t.Context(), &api.SetStandingRequest{Dpid: "1", Owner: "balancer", Groups: groups}); err != nil || len(r.Failed) > 0 {
				t.Fatal(r, err)
			}
		}
		set(near, far)
		g.wantHistory("made", "add "+(objectKey{groupObject, far.Id}).String(), "add "+(objectKey{groupObject, near.Id}).String())
		set()
		g.wantHistory("removed", "delete "+(objectKey{groupObject, near.Id}).String(), "delete "+(objectKey{groupObject, far.Id}).String())
		near.Buckets[0].Actions, near.Buckets[0].WatchGroup = []string{flow.ToGroup(near.Id).String()}, 0
		if _, err := g.rules.SetStanding(t.Context(), &api.SetStandingRequest{Dpid: "1", Owner: "balancer", Groups: []*api.Group{near}}); api.KindOf(err) != codes.InvalidArgument {
			t.Error("leads to itself:", err)
		}
	})
}

func TestEntriesThatComeAndGoAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		passing := wanted(1, 50, 1, 2)
		passing.IdleTimeout = 600
		e := entryOf(t, flow.OwnerBalancer, passing)
		g.with(1, func(s *fakeSwitch) { s.entries[e.Key()] = &fakeEntry{e, time.Now()} })
		g.connect(1)
		g.balance(selectGroup(1, 2, 3), toGroup(1, 100))
		time.Sleep(3 * time.Minute)
		if s := g.look(1); len(s.entries) != 2 || s.deletes != 0 {
			t.Errorf("%d entries, %d deleted; want the connection's left alone", len(s.entries), s.deletes)
		}
		if !slices.ContainsFunc(g.observed, func(o *api.FlowsObserved) bool { return o.Owner == "balancer" && len(o.Flows) == 1 }) {
			t.Error("the connection's entry was not observed")
		}
	})
}
