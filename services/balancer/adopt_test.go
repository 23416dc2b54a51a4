package balancer

import (
	"context"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// entries returns what the switches have of the balancer's connections.
func (g *rig) entries() map[flow.DPID][]*api.FlowEntry {
	all := map[flow.DPID][]*api.FlowEntry{}
	for _, c := range g.b.tracker.by {
		d := &flow.Decision{}
		c.addBack(d)
		c.addThere(d)
		for _, op := range d.Ops {
			all[op.Switch] = append(all[op.Switch], api.NewFlowEntry(op.Switch, &d.Flows[op.Index].Entry))
		}
	}
	return all
}

func (g *rig) observed(sw flow.DPID, flows []*api.FlowEntry) {
	g.b.observed(&api.FlowsObserved{Dpid: sw.String(), Owner: "balancer", Flows: flows}, g.now)
}

// TestConnectionsMoveTables: entries in the table of a former version are written
// anew, for the same member.
func TestConnectionsMoveTables(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5, 6))
	was := map[uint16]int{}
	for port := uint16(4000); port < 4010; port++ {
		was[port] = g.open(1, port)
	}
	entries := g.entries()
	g.start(g.store)
	written := map[uint32]int{}
	for sw, flows := range entries {
		for _, f := range flows {
			f.Table, f.GotoTable = 3, 4
		}
		g.observed(sw, flows)
		for _, m := range g.posted().Flows {
			if m.Command == flow.Add {
				written[uint32(m.Entry.Table)]++
			} else {
				written[uint32(m.Entry.Table)]--
			}
		}
	}
	if written[uint32(flow.TableTranslate)] != 20 || written[3] != -20 {
		t.Errorf("entries written, less those removed, by table: %v", written)
	}
	for _, flows := range entries {
		for _, f := range flows {
			g.b.removed(&api.FlowRemoved{Flow: f, Reason: "delete"}, g.now)
		}
	}
	g.consistent()
	for port, n := range was {
		if now := g.open(1, port); now != n {
			t.Errorf("the connection from port %d was with %d, is with %d", port, n, now)
		}
	}
}

func TestConnectionsAreAdopted(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5, 6))
	any6 := web("", 7)
	any6.Name, any6.Address, any6.Protocol, any6.Port, any6.Pool[0].Port, any6.Pool[0].Address = "any", "fd00::100", "any", 0, 0, v6(7).String()
	g.set(any6)
	was := map[uint16]int{}
	for port := uint16(4000); port < 4010; port++ {
		was[port] = g.open(1, port)
	}
	entries := g.entries()
	store := g.store
	g.start(store)
	for sw, flows := range entries {
		g.observed(sw, flows)
	}
	g.consistent()
	if d := g.posted(); !d.Empty() || g.show("web").Connections != 10 {
		t.Errorf("%d connections; sent %v", g.show("web").Connections, d.Ops)
	}
	for port, n := range was {
		if now := g.open(1, port); now != n {
			t.Errorf("the connection from port %d was with %d, is with %d", port, n, now)
		}
	}

	g.start(store)
	if _, err := g.b.DeleteMember(context.Background(), &api.DeleteMemberRequest{Vip: "web", Address: v4(5).String(), Port: 8080}); err != nil {
		t.Fatal(err)
	}
	for sw, flows := range entries {
		g.observed(sw, flows)
	}
	g.consistent()
	if d := g.posted(); g.show("web").Connections != 5 || len(mods(d, 1, flow.DeleteStrict)) != 5 || len(mods(d, 2, flow.DeleteStrict)) != 5 {
		t.Errorf("a member is gone: %d connections, %d operations", g.show("web").Connections, len(d.Ops))
	}
}

// TestHalfIsMended: of a connection of an earlier run the entry of the way back
// was lost; and a switch comes back without what it had.
func TestHalfIsMended(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	g.open(1, 4000)
	entries := g.entries()
	g.start(g.store)
	g.observed(1, entries[1])
	g.observed(2, nil)
	g.now += 2 * young
	g.b.tidy(g.now)
	if d := g.posted(); len(mods(d, 2, flow.Add)) != 1 {
		t.Errorf("%v", d.Ops)
	}
	g.now += 2 * young
	g.observed(2, nil)
	if d := g.posted(); len(mods(d, 2, flow.Add)) != 1 {
		t.Errorf("the member's switch has come back empty: %v", d.Ops)
	}
	g.now += 2 * young
	g.observed(1, nil)
	if g.show("web").Connections != 1 || g.open(1, 4000) != 5 {
		t.Error("the client's switch has come back empty, and the connection is lost")
	}
	g.consistent()
}

// TestHostileEntries: what is on a switch with the balancer's cookie and is not
// like its entries is left alone or removed, and does no harm.
func TestHostileEntries(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	cookie := flow.NewCookie(flow.OwnerBalancer, 0, 7)
	flows := []*api.FlowEntry{{Dpid: "zz"}, {Dpid: "1", Table: 3, IdleTimeout: 5, Match: map[string]string{"nonsense": "1"}}}
	for _, e := range []flow.Entry{
		{Table: flow.TableTranslate, IdleTimeout: 5, Cookie: cookie},
		{Table: flow.TableTranslate, IdleTimeout: 5, Cookie: cookie, Apply: []flow.Action{flow.Output(1)}},
		{Table: flow.TableTranslate, IdleTimeout: 5, Cookie: cookie, Match: flow.Match{}.WithIPSrc(prefixOf(v4(1))).WithIPDst(prefixOf(v6(1).Unmap()))},
	} {
		flows = append(flows, api.NewFlowEntry(1, &e))
	}
	g.observed(1, flows)
	for _, f := range flows {
		g.b.removed(&api.FlowRemoved{Flow: f, Reason: "delete"}, g.now)
	}
	g.consistent()
}

// TestService runs the service as it runs, over restarts.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		s := fakes(h)
		h.Start()
		tell := func() {
			for sw := range flow.DPID(2) {
				wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: (sw + 1).String(), Connected: true, Openflow: "1.3", Tables: 254, Address: "127.0.0.1:1"}})
			}
			for _, n := range []int{1, 5, 6} {
				wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: macOfHost(n).String(), At: api.NewLocation(placeOf(n)), Ipv4: []string{v4(n).String()}}})
			}
		}
		tell()
		vip := web("", 5, 6)
		m, err := wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: vip})
		if err != nil || len(m.Pool) != 2 || m.Pool[0].Mac != macOfHost(5).String() {
			t.Fatalf("%v %v", m, err)
		}
		g := &rig{t: t, b: newBalancer(DefaultConfig(), nil, nil)}
		frame := g.frame(1, 4000)
		mac, _ := flow.ParseMAC(m.Mac)
		copy(frame, mac[:])
		verdict, d := h.Packet(1, 1, frame)
		if verdict != flow.Next || len(mods(d, 1, flow.Add)) != 1 || len(mods(d, 2, flow.Add)) != 1 {
			t.Fatalf("%v %v", verdict, d.Ops)
		}
		list, err := wefttest.Call(h, api.ListConnections, &api.ListConnectionsRequest{})
		if err != nil || list.Total != 1 || list.Connections[0].Client != "10.0.0.1" || list.Connections[0].Member != "10.0.0.5" {
			t.Errorf("%v %v", list, err)
		}
		there, back := api.NewFlowEntry(1, &mods(d, 1, flow.Add)[0]), api.NewFlowEntry(2, &mods(d, 2, flow.Add)[0])
		if _, err := wefttest.Call(h, api.DrainMember, &api.DrainMemberRequest{Vip: "web", Address: "10.0.0.6", Port: 8080}); err != nil {
			t.Error(err)
		}

		asked := func(n int) {
			t.Helper()
			testwait.Until(t, "the balancer asks for its entries", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.asks >= n })
		}
		asked(1)
		h.Restart()
		tell()
		s.mu.Lock()
		before := s.asks
		s.mu.Unlock()
		asked(before + 3) // until it has been told
		wefttest.Publish(h, api.FlowsObservedEvent, &api.FlowsObserved{Dpid: there.Dpid, Owner: "balancer", Flows: []*api.FlowEntry{there}})
		wefttest.Publish(h, api.FlowsObservedEvent, &api.FlowsObserved{Dpid: back.Dpid, Owner: "balancer", Flows: []*api.FlowEntry{back}})
		h.Settle()
		vips, err := wefttest.Call(h, api.ListVips, &api.ListVipsRequest{})
		if err != nil || len(vips.Vips) != 1 || vips.Vips[0].Pool[1].State != "draining" || vips.Vips[0].Pool[0].Connections != 1 {
			t.Errorf("after a restart: %v %v", vips, err)
		}
		wefttest.Publish(h, api.FlowRemovedEvent, &api.FlowRemoved{Flow: there, Reason: "idle_timeout"})
		wefttest.Publish(h, api.FlowRemovedEvent, &api.FlowRemoved{Flow: back, Reason: "idle_timeout"})
		h.Settle()
		if list, err = wefttest.Call(h, api.ListConnections, &api.ListConnectionsRequest{}); err != nil || list.Total != 0 {
			t.Errorf("%v %v", list, err)
		}
		if r, err := wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "web"}); err != nil {
			t.Errorf("%v %v", r, err)
		}
		if vips, err = wefttest.Call(h, api.ListVips, &api.ListVipsRequest{}); err != nil || len(vips.Vips) != 0 {
			t.Errorf("%v %v", vips, err)
		}
	})
}

// TestYoungEntries: entries that a report lacks are given up although they are too young
// for that report, as after a master has gone with what a switch said of their end: the
// switch is asked once more, and later if there are young ones again.
func TestYoungEntries(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	g.open(1, 4000)
	report := func() {
		t.Helper()
		for _, sw := range []flow.DPID{1, 2} { // the client's, the member's
			g.b.net.datapath(sw).connected = true
			g.observed(sw, nil)
		}
		if again := g.b.net.unread(g.now); len(again) != 0 {
			t.Errorf("asked again at once: %v", again)
		}
	}
	due := func(after int64) {
		t.Helper()
		g.now += after
		if again := g.b.net.unread(g.now); len(again) != 2 {
			t.Errorf("asked again: %v", again)
		}
	}
	report()
	if n := g.show("web").Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	due(young)
	g.open(1, 4001) // whose entries may not be in the next report
	report()
	if n := g.show("web").Connections; n != 1 {
		t.Errorf("%d connections, when the switches have nothing of the first", n)
	}
	due(2 * young)
	report()
	if n := g.show("web").Connections; n != 0 {
		t.Errorf("%d connections, when the switches have none", n)
	}
}

// TestMissedFlowMods: a switch that did not take a flow-mod, because nobody was its master for
// a moment, is read anew although it stays connected. One that has refused it, or missed a
// packet only, is not.
func TestMissedFlowMods(t *testing.T) {
	d := &flow.Decision{}
	d.PacketOut(1, flow.PacketOut{Data: []byte{0}})
	removeEntry(d, 2, flow.TableTranslate, 1, flow.Match{}, 0)
	for _, c := range []struct {
		what   string
		failed *api.ApplyFailure
		err    error
		want   []string
	}{
		{"nothing", nil, nil, nil},
		{"flow-mod", &api.ApplyFailure{Op: 1, Transient: true}, nil, []string{flow.DPID(2).String()}},
		{"flow-mod that is refused", &api.ApplyFailure{Op: 1}, nil, nil},
		{"packet", &api.ApplyFailure{Op: 0, Transient: true}, nil, nil},
		{"number that is not there", &api.ApplyFailure{Op: 7, Transient: true}, nil, nil},
		{"all, the southbound is away", nil, context.DeadlineExceeded, []string{flow.DPID(2).String()}},
	} {
		b := newBalancer(DefaultConfig(), nil, nil)
		for _, sw := range []flow.DPID{1, 2} {
			at := b.net.datapath(sw)
			at.connected, at.told = true, true
		}
		var failures []*api.ApplyFailure
		if c.failed != nil {
			failures = append(failures, c.failed)
		}
		b.missed(d, failures, c.err)
		if got := b.net.unread(1); !slices.Equal(got, c.want) {
			t.Errorf("%s: unread %q, want %q", c.what, got, c.want)
		}
	}
}
