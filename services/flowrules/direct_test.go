package flowrules

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// trapping returns an entry that sends to the controller.
func trapping(sw flow.DPID, priority uint32, match map[string]string) *api.FlowEntry {
	return &api.FlowEntry{Dpid: sw.String(), Priority: priority, Match: match, Actions: []string{"controller"}}
}

// direct asks for packets of switches to be directed.
func (g *rig) direct(req *api.DirectPacketsRequest) *api.DirectPacketsResponse {
	g.t.Helper()
	if req.Milliseconds == 0 {
		req.Milliseconds = 500
	}
	resp, err := g.rules.DirectPackets(g.t.Context(), req)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp
}

// actions returns what a switch does, by priority.
func (g *rig) actions(sw flow.DPID) map[uint16]string {
	time.Sleep(20 * time.Millisecond) // the fake takes a millisecond for each call
	list := map[uint16]string{}
	g.with(sw, func(s *fakeSwitch) {
		for _, e := range s.entries {
			list[e.Priority] = flow.FormatActions(e.Apply)
		}
	})
	return list
}

func (g *rig) wantActions(sw flow.DPID, when string, want map[uint16]string) {
	g.t.Helper()
	got := g.actions(sw)
	for p, a := range want {
		if got[p] != a {
			g.t.Errorf("%s: priority %d of switch %v does %q, want %q", when, p, sw, got[p], a)
		}
	}
	if len(got) != len(want) {
		g.t.Errorf("%s: %v, want %v", when, got, want)
	}
}

// TestDirection: what services send to the controller goes to who has asked for
// it, as long as it asks again; LLDP and the operator's entries do not follow.
func TestDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1, 2)
		g.connect(1)
		arp := map[string]string{"eth_type": "0x0806"}
		lldp := map[string]string{"eth_type": "0x88cc"}
		declare := func(sw flow.DPID) {
			t.Helper()
			g.standing(sw, "discovery", trapping(sw, 65535, lldp))
			if r := g.standing(sw, "forwarding", trapping(sw, 0, nil), trapping(sw, 400, arp), wanted(sw, 300, 1, 2)); len(r.Failed) > 0 {
				t.Errorf("%v", r)
			}
		}
		declare(1)
		g.add(trapping(1, 200, map[string]string{"in_port": "9"}))
		plain := map[uint16]string{65535: "controller", 0: "controller", 400: "controller", 300: "output:2", 200: "controller"}
		there := map[uint16]string{65535: "controller", 0: "controller(reason=no_match,id=7)", 400: "controller(id=7)", 300: "output:2", 200: "controller"}
		g.wantActions(1, "before", plain)

		if r := g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 1, Revision: 1, Same: true}); !r.Unknown {
			t.Error("a list that nobody has given is taken for known")
		}
		g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 1, Revision: 1, Dpids: []string{"1", "2"}})
		g.wantActions(1, "directed", there)
		g.connect(2) // it comes, and declares, later
		declare(2)
		there2 := map[uint16]string{65535: "controller", 0: "controller(reason=no_match,id=7)", 400: "controller(id=7)", 300: "output:2"}
		g.wantActions(2, "a switch that comes later", there2)
		declare(1)
		if s := g.look(1); s.rewrites != 0 {
			t.Errorf("%d entries were written that were there already", s.rewrites)
		}
		for range 10 { // for two seconds
			time.Sleep(200 * time.Millisecond)
			if r := g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 1, Revision: 1, Same: true}); r.Unknown {
				t.Fatal("the list is not known any more")
			}
		}
		g.wantActions(1, "asked for again", there)
		time.Sleep(500 * time.Millisecond)
		g.wantActions(1, "silent", plain)
		if n := g.tallies.get("directions_lapsed"); n != 2 {
			t.Errorf("%d switches counted, want 2", n)
		}
		if r := g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 1, Revision: 1, Same: true}); !r.Unknown {
			t.Error("a list that has lapsed is taken for known")
		}
		g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 2, Revision: 1, Dpids: []string{"1", "2"}, Milliseconds: 60_000})
		g.wantActions(1, "back", there)
		g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 2, Revision: 3, Dpids: []string{"2"}, Milliseconds: 60_000})
		g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 2, Revision: 2, Dpids: []string{"1"}, Milliseconds: 60_000}) // overtaken
		g.wantActions(1, "given back", plain)
		g.wantActions(2, "kept", there2)
		for _, sw := range []flow.DPID{1, 2} {
			if s := g.sync(sw); s.State != "in_sync" {
				t.Errorf("%v", s)
			}
		}
	})
}

// TestDirectionRefused: a switch that does not take such entries gets those
// that it takes.
func TestDirectionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.net.switches[1].numberless = true
		g.connect(1)
		g.standing(1, "forwarding", trapping(1, 0, nil), wanted(1, 300, 1, 2))
		g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 1, Revision: 1, Dpids: []string{"1"}, Milliseconds: 60_000})
		g.wantActions(1, "directed", map[uint16]string{0: "controller", 300: "output:2"})
		if r := g.direct(&api.DirectPacketsRequest{Controller: 7, Run: 1, Revision: 2, Dpids: []string{"1"}, Milliseconds: 60_000}); len(r.Refused) != 1 {
			t.Errorf("%v", r)
		}
		if r := g.standing(1, "firewall", trapping(1, 5, map[string]string{"in_port": "3"})); len(r.Failed) > 0 {
			t.Errorf("%v", r)
		}
		g.wantActions(1, "another entry", map[uint16]string{0: "controller", 300: "output:2", 5: "controller"})
		if s := g.sync(1); s.State != "in_sync" {
			t.Errorf("%v", s)
		}
	})
}

func TestDirectionIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults())
		for _, req := range []*api.DirectPacketsRequest{
			{Controller: 0, Milliseconds: 500}, {Controller: 65536, Milliseconds: 500}, {Controller: 1, Milliseconds: 49}, {Controller: 1, Milliseconds: 60_001},
			{Controller: 1, Milliseconds: 500, Dpids: []string{"x"}}, {Controller: 1, Milliseconds: 500, Dpids: make([]string, directedMost+1)},
		} {
			if _, err := g.rules.DirectPackets(t.Context(), req); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("number %d for %d ms: %v, want InvalidArgument", req.Controller, req.Milliseconds, err)
			}
		}
	})
}
