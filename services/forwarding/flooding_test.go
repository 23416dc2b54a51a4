package forwarding

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"weft/api"
	"weft/flow"
)

// floodNet is what switches have been told about flooding, in the order in
// which they were told.
type floodNet struct {
	mu     sync.Mutex
	t      testing.TB
	links  map[flow.Location]flow.Location
	out    map[flow.DPID][]flow.Port // ports that a multicast leaves by
	in     map[flow.Location]bool    // link ports that multicasts are taken from
	refuse map[flow.DPID]bool
	writes int
}

func (n *floodNet) set(_ context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sw, _ := flow.ParseDPID(req.Dpid)
	if n.refuse[sw] {
		return nil, errors.New("refused")
	}
	n.writes++
	delete(n.out, sw)
	for at := range n.in {
		if at.Switch == sw {
			delete(n.in, at)
		}
	}
	for _, m := range req.Flows {
		_, e, err := m.Entry()
		if err != nil {
			n.t.Error(err)
		}
		switch e.Priority {
		case priorityFlood:
			for _, a := range e.Apply {
				n.out[sw] = append(n.out[sw], flow.Port(a.Arg))
			}
		case priorityLinkFlood:
			if len(e.Apply) > 0 {
				n.in[flow.Location{Switch: sw, Port: e.Match.Key.InPort}] = true
			}
		}
	}
	n.checkLoopFree()
	return &api.SetStandingResponse{Sent: uint32(len(req.Flows))}, nil
}

// checkLoopFree sends a broadcast into every switch and fails if any switch
// gets it twice.
func (n *floodNet) checkLoopFree() {
	for first := range n.out {
		got := map[flow.DPID]int{first: 1}
		type arrival struct {
			sw flow.DPID
			in flow.Port
		}
		queue := []arrival{{sw: first}}
		for len(queue) > 0 && len(queue) < 1000 {
			at := queue[0]
			queue = queue[1:]
			for _, p := range n.out[at.sw] {
				to, linked := n.links[flow.Location{Switch: at.sw, Port: p}]
				if !linked || p == at.in || !n.in[to] {
					continue
				}
				if got[to.Switch]++; got[to.Switch] > 1 {
					n.t.Fatalf("a broadcast from %v reaches %v twice", first, to.Switch)
				}
				queue = append(queue, arrival{to.Switch, to.Port})
			}
		}
	}
}

// randomTree returns the ports of a random spanning tree of the links that are up.
func randomTree(r *rand.Rand, n int, links map[flow.Location]flow.Location, up map[flow.Location]bool) []*api.Location {
	group := make([]int, n+1)
	for i := range group {
		group[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if group[i] != i {
			group[i] = find(group[i])
		}
		return group[i]
	}
	var ends []flow.Location
	for at := range links {
		ends = append(ends, at)
	}
	var tree []*api.Location
	for _, i := range r.Perm(len(ends)) {
		at, to := ends[i], links[ends[i]]
		a, b := find(int(at.Switch)), find(int(to.Switch))
		if a != b && up[at] {
			group[a] = b
			tree = append(tree, api.NewLocation(at), api.NewLocation(to))
		}
	}
	return tree
}

// Whatever tree follows whatever other, with switches that refuse, come and
// go, a broadcast never loops at any moment.
func TestFloodingNeverLoops(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 3 + r.IntN(8)
		net, a, b := randomNetwork(t, r, n, n)
		e := testEngine(t, net, nil, a.at, b.at)
		fn := &floodNet{t: t, links: net.links, out: map[flow.DPID][]flow.Port{}, in: map[flow.Location]bool{}, refuse: map[flow.DPID]bool{}}
		f := newFlooding(e, time.Millisecond)
		f.set = fn.set
		version := uint64(0)
		var tree []*api.Location
		f.tree = func(context.Context) (*api.Tree, error) { return &api.Tree{Version: version, Ports: tree}, nil }
		connect := func(sw flow.DPID) {
			f.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3"}})
			f.mu.Lock()
			f.switches[sw].seen = true
			f.mu.Unlock()
		}
		for i := 1; i <= n; i++ {
			connect(flow.DPID(i))
		}
		up := map[flow.Location]bool{}
		for at := range net.links {
			up[at] = true
		}
		for range 15 {
			version++
			tree = randomTree(r, n, net.links, up)
			fn.mu.Lock()
			clear(fn.refuse)
			for range r.IntN(3) {
				fn.refuse[flow.DPID(1+r.IntN(n))] = true
			}
			fn.mu.Unlock()
			f.commit(t.Context())
		}
		fn.mu.Lock()
		clear(fn.refuse)
		fn.mu.Unlock()
		if !f.commit(t.Context()) {
			t.Fatalf("seed %d: not committed although all switches confirm", seed)
		}
		if resp, _ := f.get(t.Context(), nil); resp.Committed != version || len(resp.Ports) != 2*(n-1) {
			t.Fatalf("seed %d: committed %d of %d, %d ports, want %d", seed, resp.Committed, version, len(resp.Ports), 2*(n-1))
		}
		before := fn.writes
		f.commit(t.Context())
		if fn.writes != before {
			t.Fatalf("seed %d: the same tree was written again", seed)
		}
	}
}

// An earlier run's tree is left alone until the links that it was made of have
// been found, so that a restart rewrites nothing.
func TestEarlierTreeIsWaitedFor(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	f := newFlooding(e, 10*time.Millisecond)
	f.set = func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		return &api.SetStandingResponse{}, nil
	}
	at := flow.Location{Switch: 1, Port: 3}
	setRole(e, at, flow.RoleUnsettled)
	had := e.standingEntries(1, nil, false, flow.TableForward)
	link := flow.Entry{Priority: priorityLinkFlood, Match: flow.Match{}.WithInPort(3), Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0), Apply: []flow.Action{flow.Output(1)}}
	f.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: "0000000000000001", Connected: true, Openflow: "1.3"}})
	if f.due(time.Now().Add(time.Second)) == 0 {
		t.Error("due before it is known what the switch had")
	}
	f.observed(&api.FlowsObserved{Dpid: "0000000000000001", Owner: "forwarding", Flows: append(had, api.NewFlowEntry(1, &link))})
	if f.due(time.Now().Add(time.Second)) == 0 {
		t.Error("due before the link of the earlier tree is found")
	}
	setRole(e, at, flow.RoleLink)
	if wait := f.due(time.Now().Add(time.Second)); wait != 0 {
		t.Errorf("not due %v although all is found and quiet", wait)
	}
	setRole(e, at, flow.RoleUnsettled)
	if wait := f.due(time.Now().Add(expectFor + time.Second)); wait != 0 {
		t.Errorf("waits %v for a link that does not come back", wait)
	}
}

func TestStandingEntriesOfOldSwitches(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	for _, m := range e.standingEntries(1, []flow.Port{3}, true, 0) {
		_, entry, err := m.Entry()
		if err != nil {
			t.Fatal(err)
		}
		if entry.Match.Masked != 0 || entry.Match.Key.EthType == flow.EthTypeIPv6 {
			t.Errorf("OpenFlow 1.0 has no masks on addresses and no IPv6: %v", &entry.Match)
		}
	}
}
