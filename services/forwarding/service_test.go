package forwarding

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// site is the service among fakes of its peers: three switches in a line, a
// host at each end, and a flowrules that tells what the switches have.
type site struct {
	*wefttest.Harness
	t    *testing.T
	net  *network
	a, b host

	mu       sync.Mutex // guards net's tables, and what follows
	writes   int
	asked    []*api.ObserveRequest
	standing map[string]*api.SetStandingRequest
	sets     int
}

func newServiceSite(t *testing.T, h *wefttest.Harness) *site {
	net, a, b := line(t, 3)
	s := &site{Harness: h, t: t, net: net, a: a, b: b, standing: map[string]*api.SetStandingRequest{}}
	h.Configure("settle: 20ms")
	wefttest.Fake(h, api.FindPath, func(_ context.Context, req *api.FindPathRequest) (*api.FindPathResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return net.findPath(req)
	})
	wefttest.Fake(h, api.GetTree, func(context.Context, *api.GetTreeRequest) (*api.Tree, error) {
		tree := &api.Tree{Version: 3}
		for at := range net.links {
			tree.Ports = append(tree.Ports, api.NewLocation(at))
		}
		return tree, nil
	})
	wefttest.Fake(h, api.Send, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
		s.apply(d)
		return &api.ApplyResult{}, nil
	})
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.standing[req.Dpid] = req
		s.sets++
		return &api.SetStandingResponse{}, nil
	})
	wefttest.Fake(h, api.Observe, func(_ context.Context, req *api.ObserveRequest) (*api.ObserveResponse, error) {
		s.mu.Lock()
		s.asked = append(s.asked, req)
		s.mu.Unlock()
		resp := &api.ObserveResponse{}
		for sw := range flow.DPID(3) {
			resp.Dpids = append(resp.Dpids, (sw + 1).String())
		}
		return resp, nil
	})
	return s
}

func (s *site) apply(d *flow.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes += len(d.Flows)
	s.net.apply(d)
}

// retained publishes what a subscriber that starts is told.
func (s *site) retained() {
	for sw := range flow.DPID(3) {
		ev := &api.SwitchChanged{Switch: &api.Switch{Dpid: (sw + 1).String(), Connected: true, Openflow: "1.3", Since: "2026-01-01T00:00:00Z"}}
		for _, p := range []uint32{1, 2, 3} {
			ev.Ports = append(ev.Ports, &api.Port{Dpid: (sw + 1).String(), Port: p, Up: true})
		}
		wefttest.PublishAsync(s.Harness, api.SwitchChangedEvent, ev)
	}
	role := func(at flow.Location, r flow.PortRole) {
		wefttest.PublishAsync(s.Harness, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: r.String()}})
	}
	role(s.a.at, flow.RoleEdge)
	role(s.b.at, flow.RoleEdge)
	for at, to := range s.net.links {
		role(at, flow.RoleLink)
		link := &api.Link{Src: api.NewLocation(at), Dst: api.NewLocation(to), State: "up"}
		wefttest.PublishAsync(s.Harness, api.LinkChangedEvent, &api.LinkChanged{Link: link})
	}
	wefttest.PublishAsync(s.Harness, api.PathsConvergedEvent, &api.PathsConverged{Version: 3, TreeChanged: true})
	s.Settle()
}

// observed publishes what the switches have of routes, and of what was declared.
func (s *site) observed() {
	s.mu.Lock()
	var events []*api.FlowsObserved
	for sw := range flow.DPID(3) {
		dpid := (sw + 1).String()
		routes := &api.FlowsObserved{Dpid: dpid, Owner: flow.OwnerRoutes.String()}
		for _, entry := range s.net.table[sw+1] {
			routes.Flows = append(routes.Flows, api.NewFlowEntry(sw+1, &entry))
		}
		events = append(events, routes, &api.FlowsObserved{Dpid: dpid, Owner: flow.OwnerForwarding.String(), Flows: s.standing[dpid].GetFlows()})
	}
	s.mu.Unlock()
	for _, ev := range events {
		wefttest.PublishAsync(s.Harness, api.FlowsObservedEvent, ev)
	}
	s.Settle()
}

// eventually waits until f holds.
func (s *site) eventually(what string, f func() bool) {
	s.t.Helper()
	for end := time.Now().Add(s.Timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		ok := f()
		s.mu.Unlock()
		if ok {
			return
		}
	}
	s.t.Fatalf("not within %v: %s", s.Timeout, what)
}

// The whole service: a packet is connected; started again alone, it asks for
// what the switches have, and knows it without a write; what it
// wants on the switches it declares again when flowrules has been started again.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		s := newServiceSite(t, h)
		s.retained()
		s.eventually("the switches are asked", func() bool { return len(s.asked) > 0 })
		s.observed()
		s.eventually("all switches have their standing entries", func() bool { return len(s.standing) == 3 && s.sets >= 3 })

		in := packetIn(s.a, &s.b, tcp(s.a, s.b), time.Now().UnixNano())
		verdict, d := h.PacketIn(in)
		if verdict != flow.Done {
			t.Fatalf("verdict %v", verdict)
		}
		s.apply(d)
		s.mu.Lock()
		written, out := s.writes, len(s.net.out)
		s.mu.Unlock()
		if written != 6 || out != 1 {
			t.Fatalf("%d entries and %d packets, want 6 and 1", written, out)
		}

		h.Restart()
		began := time.Now()
		s.mu.Lock()
		s.asked = nil
		s.mu.Unlock()
		s.retained()
		s.observed()
		for n := 0; n != 2; time.Sleep(5 * time.Millisecond) {
			resp, err := wefttest.Call(h, api.ListRoutes, &api.ListRoutesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if n = len(resp.Routes); time.Since(began) > s.Timeout {
				t.Fatalf("%d routes known, want 2", n)
			}
		}
		s.mu.Lock()
		if s.writes != written {
			t.Errorf("%d writes after the restart", s.writes-written)
		}
		sets := s.sets
		s.mu.Unlock()

		s.eventually("the standing entries are declared after the restart", func() bool { return s.sets >= sets+3 || s.sets >= 6 })
		time.Sleep(50 * time.Millisecond)
		s.mu.Lock()
		sets = s.sets
		s.mu.Unlock()
		s.observed() // flowrules has been started again
		s.eventually("the standing entries are declared again", func() bool { return s.sets >= sets+3 })

		wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "gone", Host: &api.Host{Mac: s.b.mac.String(), At: api.NewLocation(s.b.at)}})
		s.eventually("the routes of a host that is gone are removed", func() bool { return len(s.net.table[1])+len(s.net.table[2])+len(s.net.table[3]) == 0 })
		if ev := wefttest.Next(h, api.RouteChangedEvent); ev.Change != "removed" {
			t.Errorf("told %v", ev)
		}
		wefttest.None(h, api.RoutesSharedEvent, 10*time.Millisecond) // there is nobody to tell
	})
}
