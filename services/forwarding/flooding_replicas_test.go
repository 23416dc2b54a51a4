package forwarding

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

// floodRig is one instance's flooding on a line of three switches whose tree is
// all links; writes go to net, told is what the others have heard of it.
func floodRig(t *testing.T) (f *flooding, net *floodNet) {
	n, a, b := line(t, 3)
	e := linkedEngine(t, n, nil, a.at, b.at)
	net = newFloodNet(t, n.links)
	net.e = e
	f = newFlooding(e, time.Millisecond)
	f.set = net.set
	f.tree = func(context.Context) (*api.Tree, error) {
		tree := &api.Tree{Version: 7}
		for at := range n.links {
			tree.Ports = append(tree.Ports, api.NewLocation(at))
		}
		return tree, nil
	}
	for sw := range flow.DPID(3) {
		f.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: (sw + 1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	}
	return f, net
}

// tell tells the standing entries that the switches have, none if tree is nil.
func (f *flooding) tell(tree map[flow.DPID][]flow.Port) {
	for sw := range flow.DPID(3) {
		f.handleReport(&api.FlowsObserved{Dpid: (sw + 1).String(), Owner: flow.OwnerForwarding.String(), Flows: entryMessages(sw+1, standingFlows(f.baseline, sw+1, tree[sw+1]))})
	}
}

var wholeLine = map[flow.DPID][]flow.Port{1: {3}, 2: {2, 3}, 3: {2}}

// A tree of paths that do not know of links yet takes nothing away, for restless.
func TestEarlyTree(t *testing.T) {
	f, net := floodRig(t)
	whole := f.tree
	f.tell(wholeLine)
	if f.noteChange(); !f.commit(t.Context()) {
		t.Fatal("a tree of all links is not committed")
	}
	writes := net.writes
	for _, ports := range [][]flow.Location{nil, {{Switch: 1, Port: 3}, {Switch: 2, Port: 2}}} {
		f.tree = func(context.Context) (*api.Tree, error) {
			tree := &api.Tree{Version: 8}
			for _, at := range ports {
				tree.Ports = append(tree.Ports, api.NewLocation(at))
			}
			return tree, nil
		}
		if f.commit(t.Context()) || net.writes != writes {
			t.Errorf("a tree with %v is committed, %d writes", ports, net.writes-writes)
		}
		if f.since.IsZero() {
			t.Error("it is not asked for again")
		}
	}
	early := f.tree
	f.tree = whole
	if !f.commit(t.Context()) || net.writes != writes {
		t.Errorf("the tree of before is not committed, or written again: %d writes", net.writes-writes)
	}
	f.tree = early
	f.commit(t.Context())
	f.early = f.early.Add(-restless)
	if !f.commit(t.Context()) || net.writes == writes {
		t.Error("a link that paths do not use is waited for longer")
	}
}

// Only the first instance writes; the others answer with what it has told.
func TestOneInstanceFloods(t *testing.T) {
	first, firstNet := floodRig(t)
	other, otherNet := floodRig(t)
	first.replicas.set(0, 2)
	other.replicas.set(1, 2)
	other.appoint(false)
	for _, f := range []*flooding{first, other} {
		f.tell(wholeLine)
		f.noteChange()
		f.commit(t.Context())
	}
	if firstNet.writes == 0 || otherNet.writes != 0 {
		t.Errorf("%d writes by the first, %d by the other, want some and none", firstNet.writes, otherNet.writes)
	}
	if other.untilDue(time.Now().Add(time.Hour)) == 0 {
		t.Error("the other has something to do")
	}
	m := first.sharing.take()
	if m == nil || m.Flooding == nil {
		t.Fatal("the first has told nothing")
	}
	other.handleShared(m.Flooding)
	if resp, _ := other.get(t.Context(), nil); resp.Committed != 7 || len(resp.Ports) != 4 {
		t.Errorf("the other answers %v", resp)
	}
}

// Who takes over has the switches tell first what they have, for it may be more
// than it knows of, and takes back what the tree has not.
func TestFloodingTakenOver(t *testing.T) {
	f, net := floodRig(t)
	f.replicas.set(1, 2)
	f.appoint(false)
	f.tell(nil) // long ago
	f.replicas.set(0, 1)
	if !f.appoint(true) {
		t.Fatal("does not take over")
	}
	if f.appoint(true) {
		t.Error("takes over what it does")
	}
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before the switches have told what they have")
	}
	f.tell(wholeLine)
	if f.untilDue(time.Now().Add(time.Second)) != 0 {
		t.Error("not due although all have told")
	}
	f.tree = func(context.Context) (*api.Tree, error) { return &api.Tree{Version: 8}, nil }
	f.early = time.Now().Add(-restless)
	if !f.commit(t.Context()) {
		t.Fatal("not committed")
	}
	if list := net.taking(); len(list) != 0 {
		t.Errorf("the link ports %v still take multicasts", list)
	}
}

// A commit of one that is no longer the first is broken off.
func TestFloodingHandedOver(t *testing.T) {
	f, _ := floodRig(t)
	f.tell(nil)
	began, ended := make(chan struct{}), make(chan bool, 1)
	f.set = func(ctx context.Context, _ *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		select {
		case began <- struct{}{}:
		case <-ctx.Done():
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	go func() { ended <- f.commit(context.Background()) }()
	<-began
	f.appoint(false)
	select {
	case ok := <-ended:
		if ok {
			t.Error("committed")
		}
	case <-time.After(testwait.Limit):
		t.Fatal("the commit goes on")
	}
	if f.untilDue(time.Now().Add(time.Hour)) == 0 {
		t.Error("something is still due")
	}
}

// Who keeps the standing entries has been started again: it tells what the
// switches have, and is told again what they are to have.
func TestStandingIsDeclaredAgain(t *testing.T) {
	f, net := floodRig(t)
	f.tell(wholeLine)
	if !f.commit(t.Context()) {
		t.Fatal("not committed")
	}
	declared := net.writes
	f.commit(t.Context())
	if net.writes != declared {
		t.Errorf("%d declarations for nothing", net.writes-declared)
	}
	f.tell(wholeLine)
	if wait := f.untilDue(time.Now().Add(time.Second)); wait != 0 {
		t.Errorf("due in %v", wait)
	}
	f.commit(t.Context())
	if net.writes != declared+3 {
		t.Errorf("%d declarations, want one for each of 3 switches", net.writes-declared)
	}
}

// A tree that changes while another is being asked for is not forgotten.
func TestTreeThatChangesMeanwhile(t *testing.T) {
	f, _ := floodRig(t)
	f.tell(wholeLine)
	whole := f.tree
	f.tree = func(ctx context.Context) (*api.Tree, error) {
		f.treeChanged(&api.PathsConverged{Version: 8})
		return whole(ctx) // the one before
	}
	f.commit(t.Context())
	if wait := f.untilDue(time.Now().Add(time.Second)); wait != 0 {
		t.Errorf("due in %v", wait)
	}
	if m := f.stateLocked(); m.Committed != 7 || m.Wanted != 8 {
		t.Errorf("version %d is in force and %d wanted, want 7 and 8", m.Committed, m.Wanted)
	}
}

// In learning mode the first instance gives switches their table miss; the next
// one takes over.
func TestTableMissByTheFirst(t *testing.T) {
	sent := map[flow.DPID]int{}
	m := &missing{switches: map[flow.DPID]bool{}, send: func(d *flow.Decision) error { sent[d.Ops[0].Switch]++; return nil }}
	m.replicas.set(1, 2)
	connect := func(sw flow.DPID, connected bool) {
		m.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: connected}})
	}
	connect(1, true)
	connect(2, true)
	connect(2, false)
	if len(sent) != 0 {
		t.Errorf("the second of two has sent %v", sent)
	}
	m.regroup(0, 1)
	if len(sent) != 1 || sent[1] != 1 {
		t.Errorf("taking over, sent %v", sent)
	}
	m.regroup(0, 2)
	connect(3, true)
	if sent[1] != 1 || sent[3] != 1 {
		t.Errorf("sent %v", sent)
	}
}

func TestRecords(t *testing.T) {
	r := &route{
		pair:    pair{src: flow.MACFrom(1), dst: flow.MACFrom(2), vlan: 5 | flow.VLANPresent, ip: ip("10.0.0.1")},
		hops:    []hop{{1, 2, 3}, {4, 5, 6}},
		rewrite: []flow.Action{flow.PopVLAN(), flow.SetEthDst(flow.MACFrom(7)), {Kind: flow.ActionDecNwTTL}},
		detours: []detour{{out: 9, hops: []hop{{7, 1, 2}}}, {}},
		since:   1, sent: 2, moved: 3,
	}
	got := routeOf(shared{r: r}.record())
	if got.pair != r.pair || !got.sameWay(r) || got.since != 1 || got.sent != 2 || got.moved != 3 {
		t.Errorf("got %+v, want %+v", got, r)
	}
	if gone := routeOf(shared{r, 8}.record()); gone.pair != r.pair || len(gone.hops) != 0 || gone.sent != 8 {
		t.Errorf("removed: got %+v", gone)
	}
	if to := receiver(r.pair, r.rewrite); to != (knownHost{mac: flow.MACFrom(7)}) {
		t.Errorf("leads to %v", to)
	}
	if to := receiver(pair{dst: flow.MACFrom(2), vlan: 3, ip: r.ip}, []flow.Action{flow.SetVLAN(9)}); to != (knownHost{flow.MACFrom(2), 9 | flow.VLANPresent}) {
		t.Errorf("a routed pair leads to %v", to)
	}
	if to := receiver(pair{dst: flow.MACFrom(2), vlan: 3}, []flow.Action{flow.PopVLAN()}); to != (knownHost{flow.MACFrom(2), 3}) {
		t.Errorf("a pair that leaves without its tag leads to %v", to)
	}
}
