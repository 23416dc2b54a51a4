package tunnels

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// What a tunnel is stays the same over a restart, and nothing moves because links
// are not known yet; a link that is gone for good is noticed.
func TestRestart(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	store := wefttest.NewStore()
	g.start(store)
	g.tell()
	was := g.add("b", 1, 4, false)
	before := g.add("a", 1, 4, true)
	entries := fmt.Sprint(g.has)
	g.start(store)
	g.repair(context.Background())
	g.tell()
	g.repair(context.Background())
	for sw := range g.has {
		g.dirty[sw] = true
	}
	_ = g.confirm(context.Background(), nil)
	if after := g.b.get("a"); after.Group != before.Group || after.Primary.String() != before.Primary.String() || after.Standby.String() != before.Standby.String() || after.State != "up" {
		t.Errorf("%v, before %v", after, before)
	}
	if now := fmt.Sprint(g.has); now != entries {
		t.Errorf("entries %s, before %s", now, entries)
	}
	for at := range g.cables {
		if at.Switch == 2 || at.Port == 2 {
			g.down[at] = true
		}
	}
	g.start(store) // switch 2 does not come back
	for at, far := range g.cables {
		if !g.down[at] {
			g.feed(&api.SwitchChanged{Switch: ovs(at.Switch)})
			g.link(at, far)
		}
	}
	stays := func(why string) {
		t.Helper()
		g.clock = g.clock.Add(time.Hour)
		g.b.converged()
		if now := g.b.get("b"); now.State != "up" || !slices.Equal(now.Path, was.Path) {
			t.Errorf("%s: %v, was %v", why, now, was)
		}
	}
	stays("nothing is said of a link that is missing")
	for _, at := range []flow.Location{{Switch: 1, Port: 2}, {Switch: 3, Port: 2}} {
		g.feed(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: "link"}})
	}
	for _, sw := range []flow.DPID{1, 3, 4, 5, 6} {
		g.feed(&api.RolesSettled{Dpid: sw.String()})
	}
	stays("discovery waits for a link of a port")
	g.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: flow.DPID(1).String(), Port: 2}, Role: "edge"}})
	if now := g.b.get("b"); now.State != "down" {
		t.Errorf("discovery has said that there is no link: %v", now)
	}
	g.repaired()
	g.arrives(g.b.get("b"), 1, 6, 5, 4)
}

// TestAbsent: a link of an earlier run that is not back counts as down when both of its
// switches have settled, and a path over it is left at once.
func TestAbsent(t *testing.T) {
	g := newRig(t, ringOf(4)...)
	store := wefttest.NewStore()
	g.start(store)
	g.tell()
	g.add("a", 1, 3, false)
	g.start(store)
	for at, far := range g.cables {
		g.feed(&api.SwitchChanged{Switch: ovs(at.Switch)}, &api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: "link"}})
		if g.down[at] = at.Switch == 2 || far.Switch == 2; !g.down[at] {
			g.link(at, far)
		}
	}
	for i, sw := range []flow.DPID{1, 4, 3, 2} {
		if now := g.b.get("a"); now.State != "up" {
			t.Errorf("when %d switches have settled: %v", i, now)
		}
		g.feed(&api.RolesSettled{Dpid: sw.String()})
	}
	if now := g.b.get("a"); now.State != "down" {
		t.Errorf("when all switches have settled: %v", now)
	}
	g.repaired()
	g.arrives(g.b.get("a"), 1, 4, 3)
}
