package test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab/topology"
)

// TestBroadcastsOverManyLinks has three switches with twelve links between every
// two. Each then drops what comes in beside the tree by one entry, and, when half
// of its links are cut, by an entry for each; in between, and while the controller
// restarts, broadcasts come to every host once at most.
func TestBroadcastsOverManyLinks(t *testing.T) {
	t.Parallel()
	topo := &topology.Topology{Name: "many-links"}
	for _, n := range []string{"1", "2", "3"} {
		topo.Switches = append(topo.Switches, topology.Switch{Name: "s" + n})
		topo.Hosts = append(topo.Hosts, topology.Host{Name: "h" + n, Switch: "s" + n})
	}
	pairs := [][2]string{{"s1", "s2"}, {"s2", "s3"}, {"s3", "s1"}}
	for _, ends := range pairs {
		for range 12 {
			topo.Links = append(topo.Links, topology.Link{A: ends[0], B: ends[1]})
		}
	}
	topo.Complete()
	c := start(t, options{})
	l := bring(t, topo, c)
	settled(c, l)
	loops := detectLoops(t, l)
	b := newBroadcaster(t, l, "h1")
	send := func(when string, n uint32, p phase) {
		t.Helper()
		b.send(when, n, 5*time.Millisecond, p)
	}
	// shaped waits until a switch drops multicasts by one entry for all, or not.
	shaped := func(sw string, one bool) {
		t.Helper()
		eventually(t, sw+" has few standing entries", func() bool {
			closed, entries := present(t, l, sw, "priority=20000,"), present(t, l, sw, "priority=45000,")
			return one && closed == 1 && entries <= 2 || !one && closed == 0 && entries == 12
		})
	}
	for _, sw := range topo.Switches {
		shaped(sw.Name, true)
	}
	send("with all links", 60, resting)

	// flooded waits until the tree in force spans all switches over none of the
	// links between s1 and s2, which are cut.
	flooded := func() {
		t.Helper()
		between := map[string]bool{}
		for _, k := range topo.Links {
			if k.A == "s1" && k.B == "s2" {
				between[fmt.Sprint(dpid(t, l, k.A), k.APort)], between[fmt.Sprint(dpid(t, l, k.B), k.BPort)] = true, true
			}
		}
		eventually(t, "the tree without the links that are cut", func() bool {
			f := call(c, api.GetFlooding, &api.GetFloodingRequest{})
			cut := slices.ContainsFunc(f.Ports, func(at *api.Location) bool { return between[fmt.Sprint(at.Dpid, at.Port)] })
			return f.Committed == f.Wanted && len(f.Ports) == 2*(len(topo.Switches)-1) && !cut
		})
	}

	cut := func(change func(context.Context, string, string) error) {
		t.Helper()
		for i := range topo.Links {
			link := &topo.Links[i]
			if link.A == "s1" && link.B == "s2" {
				if err := change(context.Background(), fmt.Sprintf("%s:%d", link.A, link.APort), fmt.Sprintf("%s:%d", link.B, link.BPort)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cut(l.LinkDown)
	send("just after half of the links of s1 were cut", 100, changing)
	shaped("s1", false)
	flooded()
	send("when half of the links of s1 are cut", 60, resting)
	cut(l.LinkUp)
	send("just after they were mended", 200, changing)
	shaped("s1", true)
	settled(c, l)
	send("when they are mended", 60, resting)

	c.stop()
	c = start(t, options{store: c.store, address: c.address})
	send("while the controller restarts", 100, kept)
	settled(c, l)
	shaped("s1", true)
	send("after the restart", 60, resting)
	loops.check(t, "all the time")
	explain(c)
}
