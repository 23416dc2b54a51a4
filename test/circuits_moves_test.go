package test

import (
	"strings"
	"time"

	"github.com/weft-sdn/weft/deploy/plans"
)

// moved: l2vpn and tunnels move to a worker of their own, and back, while frames are sent
// in a circuit. None is lost.
func (f *carrierFaults) moved() {
	f.t.Helper()
	text, err := plans.Read("split")
	if err != nil {
		f.t.Fatal(err)
	}
	other := strings.NewReplacer("[l2vpn, hosts]}", "[hosts]}\n  circuits: {services: [l2vpn, tunnels]}", ", tunnels]}", "]}").Replace(string(text))
	stream := endless(f.t, f.l, "red1", "red2", 10*time.Millisecond)
	stream.flows(20)
	for _, plan := range []string{f.write("moved.yaml", other), "split"} {
		if out, err := f.command(f.t.Context(), "apply", plan, "--wait", "60s"); err != nil {
			f.t.Fatalf("apply %s: %v: %s", plan, err, out)
		}
		f.circuitsUp(standing)
		stream.flows(20)
	}
	if r := stream.end(); r.Lost() > 0 {
		f.t.Errorf("%d of %d frames were lost while the services moved; the longest outage was %v ms", r.Lost(), r.Sent, r.Outage)
	}
	f.whole()
}

// isolated: all links of an edge fail, and with them its session with the controller. Its
// circuits are down, say why, and return by themselves.
func (f *carrierFaults) isolated() {
	f.t.Helper()
	for _, core := range []string{"cr1", "cr2"} {
		if err := f.l.LinkDown(f.t.Context(), "pe1", core); err != nil {
			f.t.Fatal(err)
		}
	}
	f.eventually("circuits of an edge without links down", func() bool {
		states := f.circuits()
		for _, name := range []string{"red", "blue"} {
			if why, down := strings.CutPrefix(states[name], "down "); !down || why == "" {
				return false
			}
		}
		return strings.HasPrefix(states["lan"], "degraded ")
	})
	f.cast("lan2", "lan3") // the other part carries on
	for _, core := range []string{"cr1", "cr2"} {
		if err := f.l.LinkUp(f.t.Context(), "pe1", core); err != nil {
			f.t.Fatal(err)
		}
	}
	f.whole()
}

// secondLink returns the switches of the link by which the path of a circuit comes to its end.
func (f *carrierFaults) secondLink(circuit string) (core, edge string) {
	f.t.Helper()
	names := map[string]string{}
	for _, s := range f.l.Topology().Switches {
		names[dpid(f.t, f.l, s.Name)] = s.Name
	}
	f.eventually("the path of "+circuit, func() bool {
		var c struct{ Path []string }
		if f.json(&c, "l2vpn", "get", circuit); len(c.Path) > 2 {
			core, edge = names[c.Path[len(c.Path)-2]], names[c.Path[len(c.Path)-1]]
		}
		return core != "" && edge != ""
	})
	return core, edge
}

// bypassed: while there is no controller a link behind the first of a circuit fails; its
// bypass carries the frames of all circuits, also after it is back.
func (f *carrierFaults) bypassed(core, edge string) {
	f.t.Helper()
	if err := f.l.LinkDown(f.t.Context(), core, edge); err != nil {
		f.t.Fatal(err)
	}
	f.carried()
	if err := f.l.LinkUp(f.t.Context(), core, edge); err != nil {
		f.t.Fatal(err)
	}
	f.carried()
}
