package tunnels

import (
	"context"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// bfd tells the service of the session at a port of a switch.
func (g *rig) bfd(sw string, port uint32, state string) {
	g.feed(&api.NodeChanged{Node: &api.Node{State: "live", Report: &api.NodeReport{Dpid: sw, Ports: []*api.NodePort{{Port: port, Bfd: state}}}}})
}

// A silent cut that BFD has found moves tunnels before discovery and paths know of
// it, whichever end says so; and they stay away while paths does not know.
func TestBFD(t *testing.T) {
	for _, at := range []struct {
		name, sw string
		port     uint32
	}{{"the end it leaves by", "2", 3}, {"the end it comes in at", "3", 2}} {
		t.Run(at.name, func(t *testing.T) {
			g := newRig(t, ringOf(6)...)
			g.tell()
			g.add("a", 1, 3, true)
			g.want(&api.Tunnel{Name: "b", From: "1", To: "3", RevertAfterS: 60})
			g.arrives(g.b.get("a"), 1, 2, 3)
			for _, state := range []string{"down", "init", "", "up"} { // a session that begins
				g.bfd(at.sw, at.port, state)
				if a, b := g.b.get("a"), g.b.get("b"); a.State != "up" || b.State != "up" || a.Active != "primary" {
					t.Fatalf("session %s: %v, %v", state, a, b)
				}
			}
			g.bfd(at.sw, at.port, "down")
			_ = g.confirm(context.Background(), nil) // without a path being sought
			if a, b := g.b.get("a"), g.b.get("b"); a.State != "degraded" || a.Active != "standby" || b.State != "down" {
				t.Errorf("%v, %v", a, b)
			}
			g.arrives(g.b.get("a"), 1, 6, 5, 4, 3)
			g.bfd(at.sw, at.port, "init")
			g.repaired()
			g.arrives(g.b.get("b"), 1, 6, 5, 4, 3)
			if a := g.b.get("a"); a.State != "degraded" {
				t.Errorf("%v", a)
			}
			g.bfd(at.sw, at.port, "up")
			g.repaired()
			g.arrives(g.b.get("b"), 1, 2, 3)
			if a := g.b.get("a"); a.State != "up" {
				t.Errorf("%v", a)
			}
		})
	}
}

// A tunnel that is made while BFD leaves it no path has one as soon as the port is back, not
// only after the time of Retry.
func TestPathBackWithPort(t *testing.T) {
	g := newRig(t, [2]flow.DPID{1, 2})
	g.tell()
	g.bfd("2", 1, "up")
	g.bfd("2", 1, "down")
	if m := g.want(&api.Tunnel{Name: "a", From: "1", To: "2"}); m.State != "down" || m.Primary != nil {
		t.Fatalf("%v", m)
	}
	g.bfd("2", 1, "up")
	g.repair(context.Background())
	if m := g.b.get("a"); m.State != "up" {
		t.Errorf("%v", m)
	}
}

// A port is not dead any more when its session has ended, or nobody tells of it.
func TestBFDEnds(t *testing.T) {
	g := newRig(t, ringOf(3)...)
	g.tell()
	g.add("a", 1, 2, false)
	port := func(bfd string) []*api.NodePort { return []*api.NodePort{{Port: 2, Bfd: bfd}} }
	tell := func(e *api.NodeChanged, ports []*api.NodePort) {
		e.Node.Report = &api.NodeReport{Dpid: "1", Ports: ports}
		g.feed(e)
	}
	live := func() *api.NodeChanged { return &api.NodeChanged{Node: &api.Node{State: "live"}} }
	for name, end := range map[string]func(){
		"no session":   func() { tell(live(), port("")) },
		"switched off": func() { tell(live(), port("admin_down")) },
		"no port":      func() { tell(live(), nil) },
		"stale":        func() { tell(&api.NodeChanged{Node: &api.Node{State: "stale"}}, port("down")) },
		"gone":         func() { tell(&api.NodeChanged{Node: &api.Node{State: "live"}, Gone: true}, port("down")) },
	} {
		tell(live(), port("up"))
		tell(live(), port("down"))
		if m := g.b.get("a"); m.State != "down" {
			t.Errorf("%s: %v", name, m)
		}
		end()
		if m := g.b.get("a"); m.State != "up" || len(g.b.dead) != 0 {
			t.Errorf("%s: %v, dead %v", name, m, g.b.dead)
		}
		tell(live(), port("down")) // of a session that is not known to have been up
		if m := g.b.get("a"); m.State != "up" {
			t.Errorf("%s: %v", name, m)
		}
	}
	g.feed(&api.NodeChanged{}) // says nothing
}
