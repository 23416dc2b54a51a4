package chain

import (
	"context"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestTagsLast: a restart changes no tag, a tag that was given back is the last to be
// given out again, and where none is free the chain says so.
func TestTagsLast(t *testing.T) {
	n := newNetwork(t, rand.New(rand.NewPCG(3, 4)), 4)
	port := func(sw int, p uint32) *api.Location {
		l := &api.Location{Dpid: dpid(sw).String(), Port: p}
		n.feed(&api.PortChanged{Port: &api.Port{Dpid: l.Dpid, Port: p, Up: true}})
		return l
	}
	priority := uint32(0)
	add := func(name, dst string, at ...*api.Location) {
		priority++
		m := &api.ServiceChain{Name: name, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": dst}, Priority: priority}
		for _, l := range at {
			m.Functions = append(m.Functions, &api.ChainFunction{Copies: []*api.ChainCopy{{In: l}}})
		}
		n.set(m)
		n.settle()
	}
	tags := func() map[flow.Location]uint16 {
		m := map[flow.Location]uint16{}
		for _, g := range n.b.tags.list() {
			m[g.at] = g.tag
		}
		return m
	}
	same := func(was map[flow.Location]uint16) {
		t.Helper()
		now := tags()
		for at, tag := range was {
			if now[at] != tag {
				t.Errorf("%v had tag %d, and has %d", at, tag, now[at])
			}
		}
	}
	add("a", "10.0.0.1", port(0, 200), port(1, 200))
	add("b", "10.0.0.2", port(2, 200))
	first := tags()
	if len(first) != 3+4 {
		t.Fatalf("%d tags of 3 ports and 4 switches", len(first))
	}
	n = reborn(n)
	same(first)
	if _, err := n.b.chains.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	n.settle()
	gone := first[flow.Location{Switch: dpid(2), Port: 200}]
	add("c", "10.0.0.3", port(3, 200))
	if got := tags()[flow.Location{Switch: dpid(3), Port: 200}]; got == gone || got == 0 {
		t.Errorf("the next port has tag %d; %d was given back just now", got, gone)
	}
	n.b.cfg.LastTag = n.b.cfg.FirstTag + 8
	add("d", "10.0.0.4", port(0, 201), port(1, 201), port(2, 201))
	if m := n.b.message(n.b.chains.Get("d")); m.State != "degraded" {
		t.Errorf("without free tags: %v", m)
	}
	for c := range n.b.chains.All() {
		if _, err := n.b.chains.Remove(t.Context(), c.said.Name); err != nil {
			t.Fatal(err)
		}
	}
	n.settle()
	if left := tags(); len(left) != 0 {
		t.Errorf("without chains there are tags: %v", left)
	}
}

// TestTagsOfSwitches: a switch keeps its tag while it has no hosts, for it may be back with
// those that it had, until a place has none and no other tag is free.
func TestTagsOfSwitches(t *testing.T) {
	n := newNetwork(t, rand.New(rand.NewPCG(3, 4)), 4)
	function := func(sw int) *api.Location {
		l := &api.Location{Dpid: dpid(sw).String(), Port: 200}
		n.feed(&api.PortChanged{Port: &api.Port{Dpid: l.Dpid, Port: l.Port, Up: true}})
		return l
	}
	add := func(name string, sw int) {
		n.set(&api.ServiceChain{Name: name, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.1"}, Priority: uint32(sw) + 1,
			Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: function(sw)}}}}})
		n.settle()
	}
	tag := func(sw int, port flow.Port) uint16 {
		tag, _ := n.b.tags.of(flow.Location{Switch: dpid(sw), Port: port})
		return tag
	}
	add("a", 0)
	n.b.settled = true
	was := tag(3, 0)
	n.feed(&api.HostChanged{Change: "gone", Host: &api.Host{Mac: hostMAC(3).String(), At: api.NewLocation(n.hosts[3])}})
	n.settle()
	if got := tag(3, 0); got != was || got == 0 {
		t.Fatalf("without hosts a switch has tag %d; it was %d", got, was)
	}
	n.b.cfg.LastTag = n.b.cfg.FirstTag + uint16(len(n.b.tags.list())) - 1
	add("b", 1)
	if got := tag(1, 200); got != was || tag(3, 0) != 0 {
		t.Errorf("a port has tag %d; free is that of a switch without hosts, %d", got, was)
	}
}

// reborn has a network tell a new store what it is.
func reborn(n *network) *network {
	old := n.b.net
	n.begin()
	for s := range old.Switches() {
		n.feed(s.Is)
		for p := range old.Ports(s.Key) {
			n.feed(&api.PortChanged{Port: p.Is})
		}
		for r := range old.Roles(s.Key) {
			n.feed(&api.PortRoleChanged{Port: r.Is})
		}
	}
	for l := range old.Links() {
		n.feed(&api.LinkChanged{Link: l.Is})
	}
	for h := range old.Hosts() {
		n.feed(&api.HostChanged{Host: h.Is})
	}
	n.settle()
	return n
}

// TestHeld: what a switch has holds until the roles of its ports and the ways are known,
// and not for ever.
func TestHeld(t *testing.T) {
	synctest.Test(t, held)
}

func held(t *testing.T) {
	n := newNetwork(t, rand.New(rand.NewPCG(5, 6)), 3)
	at := &api.Location{Dpid: dpid(2).String(), Port: 200}
	n.feed(&api.PortChanged{Port: &api.Port{Dpid: at.Dpid, Port: at.Port, Up: true}})
	n.set(&api.ServiceChain{Name: "a", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.1"},
		Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: at}}}}})
	n.begin()
	sw := dpid(0)
	info := &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: 254}
	holds := func(want time.Duration, why string) {
		t.Helper()
		if got := n.b.hold(info); got != want {
			t.Errorf("%s: the entries are held for %v, want %v", why, got, want)
		}
	}
	host := func(i int) {
		n.feed(&api.HostChanged{Host: &api.Host{Mac: hostMAC(i).String(), At: &api.Location{Dpid: sw.String(), Port: 100}}})
	}
	observed := func(macs ...int) {
		e := &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerChains.String()}
		for _, i := range macs {
			e.Flows = append(e.Flows, api.NewFlowEntry(sw, &flow.Entry{Table: flow.TableDeliver, Priority: flow.PriorityChain, Match: flow.Match{}.WithEthDst(hostMAC(i))}))
		}
		n.b.flowsObserved(e)
	}
	connect := func(connected bool) {
		info.Connected = connected
		n.feed(&api.SwitchChanged{Switch: proto.CloneOf(info)})
	}
	connect(true)
	holds(holdMost, "nothing is known of the switch")
	time.Sleep(time.Second)
	n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: 100}, Role: "edge"}})
	holds(holdMost-time.Second, "no way is known")
	n.b.whole = true
	host(1)
	holds(quiet, "news still comes")
	time.Sleep(quiet)
	observed(1, 2)
	holds(holdMost-time.Second-quiet, "a host is missing that the switch has an entry for")
	host(2)
	holds(0, "all is known")
	observed(1, 2, 3)
	holds(0, "the switch has been given its entries")
	connect(false)
	connect(true)
	host(1)
	n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: 100}, Role: "edge"}})
	holds(holdMost, "it is back with an entry for a host that is not known")
	time.Sleep(holdMost)
	holds(0, "the host does not come back")
}

// TestWaysNotKnown: paths that has just started answers that it does not know yet. No way goes by that, the error
// says to ask again, and until all are known nothing counts as whole.
func TestWaysNotKnown(t *testing.T) {
	n := newNetwork(t, rand.New(rand.NewPCG(5, 6)), 4)
	at := &api.Location{Dpid: dpid(2).String(), Port: 200}
	n.feed(&api.PortChanged{Port: &api.Port{Dpid: at.Dpid, Port: at.Port, Up: true}})
	n.set(&api.ServiceChain{Name: "c", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.1"},
		Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: at}}}}})
	n.b.find = func(context.Context, *api.FindPathRequest) (*api.FindPathResponse, error) {
		return nil, api.Errorf(codes.Unavailable, "paths has just started")
	}
	if err := n.b.seek(t.Context()); api.KindOf(err) != codes.Unavailable || n.b.whole {
		t.Fatalf("whole: %v, %v", n.b.whole, err)
	}
	answer := n.b.find
	n.b.find = n.path
	n.settle()
	was := n.b.next
	if !n.b.whole || len(was) == 0 {
		t.Fatalf("ways %v", was)
	}
	n.b.find = answer
	if err := n.b.seek(t.Context()); err == nil || !maps.EqualFunc(was, n.b.next, maps.Equal[map[flow.DPID]flow.Port, map[flow.DPID]flow.Port]) {
		t.Errorf("%v, ways %v, want %v as before", err, n.b.next, was)
	}
}
