package forwarding

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// floodNet is what switches have been told about flooding, in the order in
// which they were told.
type floodNet struct {
	mu     sync.Mutex
	t      testing.TB
	e      *engine // whose flooding it carries out
	r      *rand.Rand
	links  map[flow.Location]flow.Location
	tables map[flow.DPID]map[flow.EntryKey]flow.Entry
	refuse map[flow.DPID]bool
	firm   bool                   // a refusal is the switch's own, not a failure to ask it
	asked  int                    // of switches that refuse
	shut   map[flow.Location]bool // link ports that no tree ever has
	writes int
}

func newFloodNet(t testing.TB, links map[flow.Location]flow.Location) *floodNet {
	return &floodNet{t: t, r: rand.New(rand.NewPCG(1, 2)), links: links, tables: map[flow.DPID]map[flow.EntryKey]flow.Entry{}, refuse: map[flow.DPID]bool{}}
}

// set does what flowrules does: it adds what is missing or otherwise, the most
// important first, and then removes what is too much, in any order. Between any
// two of these a broadcast may come.
func (n *floodNet) set(_ context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sw, _ := flow.ParseDPID(req.Dpid)
	if n.refuse[sw] {
		if n.asked++; n.firm {
			return &api.SetStandingResponse{Failed: []*api.WantedFlow{{State: "failed", Reason: "no room in the table", Refused: true}}}, nil
		}
		return nil, errors.New("refused")
	}
	n.writes++
	table := n.tables[sw]
	if table == nil {
		table = map[flow.EntryKey]flow.Entry{}
		n.tables[sw] = table
	}
	var entries []flow.Entry
	wanted := map[flow.EntryKey]bool{}
	for _, m := range req.Flows {
		_, e, err := m.Entry()
		if err != nil {
			n.t.Error(err)
		}
		if wanted[e.Key()] {
			n.t.Errorf("%v has the entry %v twice", sw, &e.Match)
		}
		wanted[e.Key()] = true
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b flow.Entry) int { return int(b.Priority) - int(a.Priority) })
	for _, e := range entries {
		if old, have := table[e.Key()]; !have || !old.Same(&e) {
			table[e.Key()] = e
			n.checkLoopFree()
		}
	}
	keys := slices.Collect(maps.Keys(table))
	n.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, k := range keys {
		if !wanted[k] {
			delete(table, k)
			n.checkLoopFree()
		}
	}
	return &api.SetStandingResponse{Sent: uint32(len(req.Flows))}, nil
}

// flooded returns the ports to which a switch sends a broadcast.
func (n *floodNet) flooded(sw flow.DPID, in flow.Port) (out []flow.Port) {
	k := flow.Key{InPort: in, EthDst: flow.Broadcast, EthType: flow.EthTypeIPv4}
	var best flow.Entry
	for _, e := range n.tables[sw] {
		if e.Match.Matches(&k) && e.Table == flow.TableForward && e.Priority > best.Priority {
			best = e
		}
	}
	for _, a := range best.Apply {
		out = append(out, flow.Port(a.Arg))
	}
	return out
}

// taking returns the link ports by which switches take broadcasts.
func (n *floodNet) taking() (list []flow.Location) {
	for at := range n.links {
		if len(n.flooded(at.Switch, at.Port)) > 0 {
			list = append(list, at)
		}
	}
	return list
}

// checkLoopFree sends a broadcast into every switch and fails if any switch
// gets it twice, or takes what comes in by a port that is shut.
func (n *floodNet) checkLoopFree() {
	for at := range n.shut {
		if out := n.flooded(at.Switch, at.Port); len(out) > 0 {
			n.t.Fatalf("a broadcast that comes in by %v, which is in no tree, goes to %v", at, out)
		}
	}
	for first := range n.tables {
		got := map[flow.DPID]int{first: 1}
		queue := []flow.Location{{Switch: first, Port: 1}}
		for len(queue) > 0 && len(queue) < 1000 {
			at := queue[0]
			queue = queue[1:]
			for _, p := range n.flooded(at.Switch, at.Port) {
				to, linked := n.links[flow.Location{Switch: at.Switch, Port: p}]
				if !linked || p == at.Port || len(n.flooded(to.Switch, to.Port)) == 0 {
					continue
				}
				if got[to.Switch]++; got[to.Switch] > 1 {
					n.t.Fatalf("a broadcast from %v reaches %v twice", first, to.Switch)
				}
				queue = append(queue, to)
			}
		}
	}
}

// reached returns how many switches a broadcast from the edge port of one reaches.
func (n *floodNet) reached(first flow.DPID) int {
	got := map[flow.DPID]bool{first: true}
	for queue := []flow.Location{{Switch: first, Port: 1}}; len(queue) > 0; queue = queue[1:] {
		for _, p := range n.flooded(queue[0].Switch, queue[0].Port) {
			if to, linked := n.links[flow.Location{Switch: queue[0].Switch, Port: p}]; linked && p != queue[0].Port && !got[to.Switch] {
				got[to.Switch] = true
				queue = append(queue, to)
			}
		}
	}
	return len(got)
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

// Whatever tree follows whatever other, with switches that refuse, and whichever
// of both ways each takes to drop what comes in beside the tree, a broadcast
// never loops at any moment.
func TestFloodingNeverLoops(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 3 + r.IntN(8)
		net, a, b := randomNetwork(t, r, n, n)
		e := testEngine(t, net, nil, a.at, b.at)
		for i := 1; i <= n; i++ {
			setRole(e.portTable, flow.Location{Switch: flow.DPID(i), Port: 1}, flow.RoleEdge)
		}
		fn := newFloodNet(t, net.links)
		fn.firm = seed%2 == 1
		f := newFlooding(e, time.Millisecond)
		f.set, f.rest = fn.set, func(context.Context, time.Duration) {}
		version := uint64(0)
		var tree []*api.Location
		f.tree = func(context.Context) (*api.Tree, error) { return &api.Tree{Version: version, Ports: tree}, nil }
		connect := func(sw flow.DPID) {
			f.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: 254}})
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
		fn.shut = maps.Clone(up)
		for range 2 {
			for _, at := range randomTree(r, n, net.links, up) {
				delete(fn.shut, at.Flow())
			}
		}
		up = maps.Clone(up)
		maps.DeleteFunc(up, func(at flow.Location, _ bool) bool { return fn.shut[at] })
		for range 15 {
			version++
			tree = randomTree(r, n, net.links, up)
			fn.mu.Lock()
			clear(fn.refuse)
			for range r.IntN(3) {
				fn.refuse[flow.DPID(1+r.IntN(n))] = true
			}
			fn.mu.Unlock()
			e.manyOthers = r.IntN(6) - 3
			for at := range net.links { // so that it is looked at again
				setRole(e.portTable, at, flow.RoleLink)
			}
			f.commit(t.Context())
		}
		fn.mu.Lock()
		clear(fn.refuse)
		fn.mu.Unlock()
		for _, s := range f.switches {
			s.until = time.Time{} // it is asked again
		}
		if !f.commit(t.Context()) {
			t.Fatalf("seed %d: not committed although all switches confirm", seed)
		}
		if resp, _ := f.get(t.Context(), nil); resp.Committed != version || len(resp.Ports) != 2*(n-1) {
			t.Fatalf("seed %d: committed %d of %d, %d ports, want %d", seed, resp.Committed, version, len(resp.Ports), 2*(n-1))
		}
		for i := 1; i <= n; i++ {
			if got := fn.reached(flow.DPID(i)); got != n {
				t.Fatalf("seed %d: a broadcast from %d reaches %d of %d switches", seed, i, got, n)
			}
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
	setRole(e.portTable, at, flow.RoleUnsettled)
	had := entryMessages(1, standingFlows(e.baseline, 1, nil))
	link := flow.Entry{Priority: flow.PriorityLinkFlood, Match: flow.Match{}.WithInPort(3), Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0), Apply: []flow.Action{flow.Output(1)}}
	f.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: "0000000000000001", Connected: true, Openflow: "1.3", Tables: 254}})
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before it is known what the switch had")
	}
	f.handleReport(&api.FlowsObserved{Dpid: "0000000000000001", Owner: "forwarding", Flows: append(had, api.NewFlowEntry(1, &link))})
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before the link of the earlier tree is found")
	}
	setRole(e.portTable, at, flow.RoleLink)
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before the switch at the other end has connected")
	}
	e.linkChanged(&api.LinkChanged{Link: &api.Link{Src: api.NewLocation(at), Dst: api.NewLocation(flow.Location{Switch: 2, Port: 3}), State: "up"}})
	if wait := f.untilDue(time.Now().Add(time.Second)); wait != 0 {
		t.Errorf("not due %v although all is found and quiet", wait)
	}
	// Multicasts went to port 1, where hosts are.
	host := flow.Location{Switch: 1, Port: 1}
	setRole(e.portTable, host, flow.RoleUnsettled)
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before it is known that hosts are where multicasts went to")
	}
	setRole(e.portTable, host, flow.RoleEdge)
	if wait := f.untilDue(time.Now().Add(time.Second)); wait != 0 {
		t.Errorf("not due %v although all is found and quiet", wait)
	}
	setRole(e.portTable, at, flow.RoleUnsettled)
	if wait := f.untilDue(time.Now().Add(expectFor + time.Second)); wait != 0 {
		t.Errorf("waits %v for a link that does not come back", wait)
	}
}

func TestStandingEntriesOfOldSwitches(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	entries, _ := e.standingEntries(1, []flow.Port{3}, true, 0)
	for _, entry := range entries {
		if entry.Match.Masked != 0 || entry.Match.Key.EthType == flow.EthTypeIPv6 {
			t.Errorf("OpenFlow 1.0 has no masks on addresses and no IPv6: %v", &entry.Match)
		}
	}
}

// What bridges keep to themselves reaches no host, whether the switch or the
// controller decides; other groups beside do (IEEE 802.1Q §8.6.3).
func TestLinkLocalFramesAreNotFlooded(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	entries, _ := e.standingEntries(1, []flow.Port{3}, false, flow.TableForward)
	for last := range 0x12 {
		to := flow.MAC{1, 0x80, 0xc2, 0, 0, byte(last)}
		k := flow.Key{InPort: a.at.Port, EthSrc: a.mac, EthDst: to, EthType: 0x8809}
		best := &flow.Entry{}
		for i := range entries {
			if x := &entries[i]; x.Table == flow.TableForward && x.Priority >= best.Priority && x.Match.Matches(&k) {
				best = x
			}
		}
		frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: a.mac, Dst: to}, 0x8809))
		_, d, _ := punt(e, a, nil, frame)
		if passes := last > 0xf; len(best.Apply) > 0 != passes || len(d.Outs) > 0 != passes {
			t.Errorf("to %v: the switch does %v, the controller sends %d", to, best.Apply, len(d.Outs))
		}
	}
}

// What says where a host is now comes to the controller.
func TestAnnouncementsAreTrapped(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	entries, _ := e.standingEntries(1, []flow.Port{3}, false, flow.TableForward)
	for name, k := range map[string]flow.Key{
		"ARP":                  {EthDst: flow.Broadcast, EthType: flow.EthTypeARP},
		"RARP of a hypervisor": {EthDst: flow.Broadcast, EthType: flow.EthTypeRARP},
		"router solicitation":  {EthDst: flow.MAC{0x33, 0x33, 0, 0, 0, 2}, EthType: flow.EthTypeIPv6, IPProto: flow.IPProtoICMPv6, ICMPType: flow.ICMPv6Router},
		"advertisement":        {EthDst: flow.MAC{0x33, 0x33, 0, 0, 0, 1}, EthType: flow.EthTypeIPv6, IPProto: flow.IPProtoICMPv6, ICMPType: flow.ICMPv6Advert},
		"DHCP request":         {EthDst: flow.Broadcast, EthType: flow.EthTypeIPv4, IPProto: flow.IPProtoUDP, TPSrc: 68, TPDst: 67},
	} {
		k.InPort, k.EthSrc = a.at.Port, a.mac
		best := &flow.Entry{}
		for i := range entries {
			if x := &entries[i]; x.Table == flow.TableForward && x.Priority >= best.Priority && x.Match.Matches(&k) {
				best = x
			}
		}
		if len(best.Apply) != 1 || flow.Port(best.Apply[0].Arg) != flow.PortController {
			t.Errorf("%s: %v", name, best.Apply)
		}
	}
}

// A switch with many links has few entries, and one with many edge ports, too.
func TestFewStandingEntries(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	const fixed = 6 + 3 + 9 + 1 // table misses, traps in two tables, link-local frames
	for _, test := range []struct{ edges, links, most int }{{1, 60, fixed + 4}, {60, 2, fixed + 4}, {12, 12, fixed + 13}} {
		for i := range test.edges + test.links {
			role := flow.RoleEdge
			if i >= test.edges {
				role = flow.RoleLink
			}
			setRole(e.portTable, flow.Location{Switch: 9, Port: flow.Port(i + 1)}, role)
		}
		tree := []flow.Port{flow.Port(test.edges + 1), flow.Port(test.edges + 2)}
		entries, _ := e.standingEntries(9, tree, false, flow.TableForward)
		if n := len(entries) - test.links; n > test.most { // and one for each link, by which neighbours are let through
			t.Errorf("%d edge ports, %d links: %d entries, want at most %d", test.edges, test.links, n, test.most)
		}
		e.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(9).String()}})
	}
}

// Between the steps of a tree that leaves a link which carries frames there is
// time for these, and for switches that remember what they do with flows; one
// that only leaves a link that is down does without.
func TestTreeIsDrained(t *testing.T) {
	f, net := floodRig(t)
	f.tell(nil)
	f.early = time.Now().Add(-restless) // no tree has all links
	var rested []int                    // writes until then
	f.rest = func(_ context.Context, d time.Duration) {
		if d != drainFor {
			t.Errorf("rests for %v", d)
		}
		rested = append(rested, net.writes)
	}
	change := func(version uint64, ports ...flow.Location) (writes int) {
		t.Helper()
		f.tree = func(context.Context) (*api.Tree, error) {
			tree := &api.Tree{Version: version}
			for _, at := range ports {
				tree.Ports = append(tree.Ports, api.NewLocation(at))
			}
			return tree, nil
		}
		before := net.writes
		rested = rested[:0]
		if !f.commit(t.Context()) {
			t.Fatalf("tree %d not committed", version)
		}
		return net.writes - before
	}
	first := []flow.Location{{Switch: 1, Port: 3}, {Switch: 2, Port: 2}}
	second := []flow.Location{{Switch: 2, Port: 3}, {Switch: 3, Port: 2}}
	if change(1, first...); len(rested) > 0 {
		t.Error("rests although nothing was taken out")
	}
	before := net.writes
	if n := change(2, second...); len(rested) != 1 || rested[0] != before+2 || n != 4 {
		t.Errorf("%d writes, rests after %v, want between those that take out, 2, and those that put in, 2", n, rested)
	}
	for _, at := range second {
		f.portChanged(&api.PortChanged{Port: &api.Port{Dpid: at.Switch.String(), Port: uint32(at.Port)}})
	}
	if change(3, first...); len(rested) > 0 {
		t.Error("rests although what was taken out was down")
	}
}

// standingFlows returns the standing entries of a switch with all tables.
func standingFlows(b *baseline, sw flow.DPID, tree []flow.Port) []flow.Entry {
	list, _ := b.standingEntries(sw, tree, false, flow.TableForward)
	return list
}

// A hybrid node has no entry of forwarding's, whether it says that it is one or
// discovery does.
func TestNoBaselineOnHybridNodes(t *testing.T) {
	net, _, edges := ring(t, 1)
	c := newCluster(t, net, 1, nil, edges...)
	e := c.run[0].engine
	if list, _ := e.standingEntries(1, nil, false, flow.TableForward); len(list) == 0 {
		t.Error("no entries on a switch that is of no hybrid node")
	}
	e.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: "1", Connected: true, Tables: 254, Description: "hybrid access=3"}})
	e.roleChanged(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(flow.Location{Switch: 2, Port: 3}), Role: "internal"}})
	for _, sw := range []flow.DPID{1, 2} {
		if list, groups := e.standingEntries(sw, nil, false, flow.TableForward); len(list)+len(groups) != 0 {
			t.Errorf("hybrid switch %v: %v, %v", sw, list, groups)
		}
	}
}
