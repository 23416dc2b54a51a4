package tunnels

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A tunnel's group is at its head as long as the tunnel: without a path, too.
func TestGroupStays(t *testing.T) {
	g := newRig(t, ringOf(3)...)
	g.tell()
	has := func(m *api.Tunnel, buckets int) {
		t.Helper()
		for _, gm := range g.has[1].GetGroups() {
			if _, group, err := gm.Group(); err == nil && group.ID == m.Group && len(group.Buckets) == buckets && group.Check() == nil {
				return
			}
		}
		t.Errorf("group %#x with %d buckets is not in %v", m.Group, buckets, g.has[1].GetGroups())
	}
	early := g.add("early", 1, 9, false)
	_ = g.confirm(context.Background(), nil)
	has(early, 0)
	m := g.want(&api.Tunnel{Name: "a", From: "1", To: "2", ReservedKbps: 900})
	has(m, 1)
	g.setLink(1, 2, &api.LinkSettings{CapacityKbps: 100})
	g.setLink(1, 3, &api.LinkSettings{CapacityKbps: 100})
	g.repaired()
	if m := g.b.get("a"); m.State != "down" || m.Primary != nil {
		t.Fatalf("%v", m)
	}
	has(m, 0)
	if _, err := g.b.remove(context.Background(), "a", ""); err != nil {
		t.Fatal(err)
	}
	_ = g.confirm(context.Background(), nil)
	if n := len(g.has[1].GetGroups()); n != 1 {
		t.Errorf("%d groups are left; want that of early", n)
	}
}

// fresh checks that what was just confirmed by a switch is what it should have when
// nothing kept is used.
func (g *rig) fresh(sw flow.DPID) {
	if _, bench := g.t.(*testing.B); bench {
		return
	}
	kept := map[*status]map[flow.DPID]*piece{}
	for _, s := range g.b.status {
		kept[s], s.pieces = s.pieces, nil
	}
	if want := g.b.want(ovs(sw)); !proto.Equal(g.has[sw], want) {
		g.t.Errorf("switch %v has %v; want %v", sw, g.has[sw], want)
	}
	for s, pieces := range kept {
		s.pieces = pieces
	}
}
