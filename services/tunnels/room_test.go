package tunnels

import (
	"context"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestRoomComes: a tunnel that has no path for want of room is up as soon as there is room, with no
// time passing: where another is deleted, books less, or has moved, and where a link gets more
// capacity or is drained no more.
func TestRoomComes(t *testing.T) {
	link := &api.DrainLinkRequest{A: &api.Location{Dpid: flow.DPID(1).String(), Port: 4}, B: &api.Location{Dpid: flow.DPID(4).String(), Port: 1}}
	for _, c := range []struct {
		name        string
		before, now func(g *rig)
	}{
		{"deleted", nil, func(g *rig) {
			if _, err := g.b.remove(context.Background(), "b", ""); err != nil {
				t.Fatal(err)
			}
		}},
		{"books less", nil, func(g *rig) { g.want(&api.Tunnel{Name: "b", From: "1", To: "3", ReservedKbps: 100}) }},
		{"drained no more", func(g *rig) {
			if _, err := g.b.remove(context.Background(), "b", ""); err != nil {
				t.Fatal(err)
			}
			g.setLink(1, 4, &api.LinkSettings{Drained: true})
			g.drainLink(context.Background(), link)
		}, func(g *rig) {
			g.setLink(1, 4, nil)
			link.Undo = true
			g.drainLink(context.Background(), link)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, ringOf(4)...)
			g.tell()
			g.want(&api.Tunnel{Name: "a", From: "1", To: "3", ReservedKbps: 600})
			g.want(&api.Tunnel{Name: "b", From: "1", To: "3", ReservedKbps: 600})
			if c.before != nil {
				c.before(g)
			}
			if m := g.want(&api.Tunnel{Name: "c", From: "1", To: "3", ReservedKbps: 500}); m.State != "down" {
				t.Fatal(m)
			}
			at := g.clock
			c.now(g)
			g.repair(context.Background())
			if m := g.b.get("c"); m.State != "up" || g.clock != at {
				t.Errorf("%s: %v", c.name, m)
			}
		})
	}
}
