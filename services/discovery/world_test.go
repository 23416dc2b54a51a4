package discovery

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

const ms = int64(time.Millisecond)

// A world is a topology with wires for the probes, and its own time.
type world struct {
	t      testing.TB
	topo   *topology
	now    int64
	wires  map[flow.Location][]flow.Location // where what leaves a port arrives
	delay  int64
	sent   int
	probed map[flow.Location]int // probes sent by port; nil: not counted
	refuse map[refusal]int
	deaf   bool                                     // probes do not arrive, but are handed to hold
	hold   func(src, dst flow.Location, sent int64) // where deaf
	away   map[flow.DPID]bool                       // not connected to the southbound: sends nothing, hears nothing
	// The control channel is held up: what the switch is sent, and says, comes later, which the
	// world leaves out.
	stalled map[flow.DPID]bool
	events  []event
	log     []string
}

func at(sw flow.DPID, p flow.Port) flow.Location { return flow.Location{Switch: sw, Port: p} }

func newWorld(t testing.TB, change func(*Config)) *world {
	cfg := DefaultConfig()
	if change != nil {
		change(cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, topo: newTopology(cfg, 1), now: int64(1e18), delay: ms / 10,
		wires: map[flow.Location][]flow.Location{}, refuse: map[refusal]int{}}
}

// switches connects switches with ports 1 to n, all up, and traps in place.
func (w *world) switches(n int, ids ...flow.DPID) {
	for _, id := range ids {
		var ports []*api.Port
		for p := range n {
			ports = append(ports, portMsg(id, flow.Port(p+1), true))
		}
		w.topo.connect(w.now, id, nil, ports)
		w.topo.confirmTrap(w.now, id)
	}
}

func portMsg(sw flow.DPID, p flow.Port, up bool) *api.Port {
	return &api.Port{Dpid: sw.String(), Port: uint32(p), Mac: flow.MACFrom(uint64(sw)<<8 | uint64(p)).String(), Up: up, SpeedKbps: 10_000_000}
}

// cable joins two ports in both directions.
func (w *world) cable(a, b flow.Location) {
	w.wires[a], w.wires[b] = []flow.Location{b}, []flow.Location{a}
}

func (w *world) cut(a, b flow.Location) { delete(w.wires, a); delete(w.wires, b) }

// port sets a port up or down.
func (w *world) port(l flow.Location, up bool) {
	w.topo.changePort(w.now, l.Switch, portMsg(l.Switch, l.Port, up), false)
}

// run lets time pass in steps of 5 ms.
func (w *world) run(d time.Duration) {
	for end := w.now + int64(d); w.now < end; w.now += 5 * ms {
		w.topo.advance(w.now)
		w.echo()
		jobs, _ := w.topo.probes(w.now, nil)
		for _, j := range jobs {
			if w.away[j.at.Switch] {
				continue
			}
			if w.sent++; w.probed != nil {
				w.probed[j.at]++
			}
			w.topo.recordSent(w.now, []*port{j.port}, w.now)
			for _, far := range w.wires[j.at] {
				if w.away[far.Switch] || w.stalled[j.at.Switch] || w.stalled[far.Switch] {
					continue
				}
				if w.deaf {
					w.hold(j.at, far, w.now)
					continue
				}
				w.refuse[w.topo.arrive(w.now+w.delay, j.at, far, w.now)]++
			}
		}
		w.take()
	}
}

// echo answers for the switches that are asked because their silence is to count.
func (w *world) echo() {
	trips := map[flow.DPID]int64{}
	for sw := range w.topo.doubted {
		if !w.away[sw] && !w.stalled[sw] {
			trips[sw] = 2 * w.delay
		}
	}
	w.topo.recordEchoes(w.now, w.now, trips, 0)
}

// take collects the events.
func (w *world) take() {
	for _, e := range w.topo.events {
		if l := e.link; l != nil {
			w.log = append(w.log, fmt.Sprintf("%s->%s %s removed=%v %s", short(l.Link.Src), short(l.Link.Dst), l.Link.State, l.Removed, l.Cause))
		}
	}
	w.events = append(w.events, w.topo.events...)
	w.topo.events = w.topo.events[:0]
}

func short(l *api.Location) string { return fmt.Sprintf("%x/%d", uint64(l.Flow().Switch), l.Port) }

// state returns the state of the link from a to b, "" if there is none.
func (w *world) state(a, b flow.Location) string {
	for _, l := range w.topo.listLinks(w.now) {
		if l.Src.Flow() == a && l.Dst.Flow() == b {
			return l.State
		}
	}
	return ""
}

func (w *world) role(l flow.Location) flow.PortRole { return w.topo.at(l).role }

// linkEvents returns and forgets the link events so far.
func (w *world) linkEvents() []string {
	w.take()
	log := w.log
	w.log = nil
	return log
}

func (w *world) want(a, b flow.Location, state string) {
	w.t.Helper()
	if got := w.state(a, b); got != state {
		w.t.Fatalf("link %v -> %v is %q, want %q", a, b, got, state)
	}
}

func (w *world) wantRole(l flow.Location, r flow.PortRole) {
	w.t.Helper()
	if got := w.role(l); got != r {
		w.t.Fatalf("port %v is %v, want %v", l, got, r)
	}
}

func TestLinkComesUpAndEdgesSettle(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(2, 1, 2)
	w.run(20 * time.Millisecond)
	w.want(at(1, 1), at(2, 1), "up")
	w.want(at(2, 1), at(1, 1), "up")
	w.wantRole(at(1, 1), flow.RoleLink)
	w.wantRole(at(1, 2), flow.RoleUnsettled)
	w.run(600 * time.Millisecond)
	w.wantRole(at(1, 2), flow.RoleUnsettled)
	w.run(200 * time.Millisecond)
	w.wantRole(at(1, 2), flow.RoleEdge)
	if log := w.linkEvents(); len(log) != 3 {
		t.Errorf("events %q, want one_way and two times up", log)
	}
	w.run(time.Minute)
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q while nothing changes", log)
	}
	if l := w.topo.listLinks(w.now)[0]; l.Weight != 10 || l.LatencyUs != 100 {
		t.Errorf("weight %d, latency %d µs; want 10 and 100", l.Weight, l.LatencyUs)
	}
}

func TestSettleWaitsForTrap(t *testing.T) {
	w := newWorld(t, nil)
	w.topo.connect(w.now, 1, nil, []*api.Port{portMsg(1, 1, true)})
	w.run(2 * time.Second)
	w.wantRole(at(1, 1), flow.RoleUnsettled)
	w.run(2 * time.Second)
	w.wantRole(at(1, 1), flow.RoleEdge)
}

func TestSilentFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		within time.Duration
	}{
		{"default", nil, 3 * time.Second},
		{"liveness", func(c *Config) { c.Liveness.Interval = 80 * time.Millisecond }, 300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.change)
			w.cable(at(1, 1), at(2, 1))
			w.switches(1, 1, 2)
			w.run(4 * time.Second)
			for range 20 {
				w.want(at(1, 1), at(2, 1), "up")
				w.topo.pairs = map[pair]*flaps{} // so that it is not dampened
				for _, dp := range w.topo.switches {
					for _, p := range dp.ports {
						p.out.flaps.downs = nil
					}
				}
				w.cut(at(1, 1), at(2, 1))
				from := w.now
				for w.state(at(1, 1), at(2, 1)) != "" || w.state(at(2, 1), at(1, 1)) != "" {
					w.run(5 * time.Millisecond)
				}
				if took := time.Duration(w.now - from); took > c.within {
					t.Fatalf("found after %v, want %v", took, c.within)
				}
				w.wantRole(at(1, 1), flow.RoleUnsettled) // not edge: a switch is there
				w.cable(at(1, 1), at(2, 1))
				w.run(time.Duration(2e9 + w.topo.rand.Int64N(1e9)))
			}
		})
	}
}

func TestOneProbeMayBeLost(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(time.Second)
	w.linkEvents()
	for range 30 { // cut for less than an interval, so that one probe each way is lost at most
		w.cut(at(1, 1), at(2, 1))
		w.run(1150 * time.Millisecond)
		w.cable(at(1, 1), at(2, 1))
		w.run(1400 * time.Millisecond)
	}
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q", log)
	}
}

func TestStalledProcessLosesNoLink(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(5 * time.Second)
	w.linkEvents()
	w.now += int64(20 * time.Second)
	w.topo.extendLinks(w.now)
	w.run(5 * time.Second)
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q after the process stood still", log)
	}
}

func TestOneWayLink(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(time.Second)
	delete(w.wires, at(1, 1))
	w.run(3 * time.Second)
	w.want(at(1, 1), at(2, 1), "")
	w.want(at(2, 1), at(1, 1), "one_way")
	w.wantRole(at(1, 1), flow.RoleLink)
	w.wantRole(at(2, 1), flow.RoleLink)
	w.cable(at(1, 1), at(2, 1))
	w.run(2 * time.Second)
	w.want(at(2, 1), at(1, 1), "up")
}

func TestPortDownAndSwitchGone(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.cable(at(1, 2), at(3, 1))
	w.switches(2, 1, 2, 3)
	w.run(time.Second)
	w.linkEvents()
	w.port(at(1, 1), false)
	w.want(at(1, 1), at(2, 1), "")
	w.want(at(2, 1), at(1, 1), "")
	if log := w.linkEvents(); !slices.Equal(log, []string{"1/1->2/1 up removed=true port_status", "2/1->1/1 up removed=true port_status"}) {
		t.Errorf("events %q", log)
	}
	w.topo.disconnect(w.now, 3)
	w.want(at(1, 2), at(3, 1), "")
	for _, r := range w.topo.listPorts(w.now) {
		if r.At.Flow().Switch == 3 {
			t.Errorf("port %v of a switch that is gone is listed", r)
		}
	}
	w.switches(2, 3)
	w.run(50 * time.Millisecond)
	w.want(at(1, 2), at(3, 1), "up")
}

func TestMovedEndGoesDownFirst(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2, 3)
	w.run(2 * time.Second)
	w.linkEvents()
	w.cut(at(1, 1), at(2, 1))
	w.cable(at(1, 1), at(3, 1)) // through a patch panel: no port goes down
	w.run(5 * time.Second)
	w.want(at(1, 1), at(3, 1), "up")
	gone := false
	for _, e := range w.linkEvents() {
		gone = gone || e == "1/1->2/1 one_way removed=true silent" || e == "1/1->2/1 up removed=true silent"
		if e[:8] == "1/1->3/1" && !gone {
			t.Fatalf("%q before the old link went down", e)
		}
	}
}

// flap takes a port down and up n times.
func (w *world) flap(l flow.Location, n int) {
	for range n {
		w.port(l, false)
		w.run(20 * time.Millisecond)
		w.port(l, true)
		w.run(20 * time.Millisecond)
	}
}

func (w *world) weight(a, b flow.Location) uint32 {
	for _, l := range w.topo.listLinks(w.now) {
		if l.Src.Flow() == a && l.Dst.Flow() == b {
			return l.Weight
		}
	}
	return 0
}

// TestFlappingLinkIsDampened: a link that flaps costs more and stays usable.
func TestFlappingLinkIsDampened(t *testing.T) {
	w := newWorld(t, nil)
	a, b := at(1, 1), at(2, 1)
	w.cable(a, b)
	w.switches(1, 1, 2)
	w.run(time.Second)
	w.flap(a, 5)
	w.want(a, b, "up")
	w.linkEvents()
	w.events = nil
	w.flap(a, 1)
	for _, d := range [][2]flow.Location{{a, b}, {b, a}} {
		w.want(d[0], d[1], "dampened")
		if got := w.weight(d[0], d[1]); got != 10+dampenedCost {
			t.Errorf("weight of a dampened link %d, want %d", got, 10+dampenedCost)
		}
	}
	w.wantRole(a, flow.RoleLink)
	told := 0
	for _, e := range w.events {
		if e.damped != nil && e.damped.hold == int64(10*time.Second) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times of the damping, want 1", told)
	}
	w.flap(a, 500)
	w.want(a, b, "dampened") // 20 ms after it has come up
	w.run(9 * time.Second)
	w.want(a, b, "dampened")
	w.linkEvents()
	w.run(2 * time.Second)
	w.want(a, b, "up")
	if got := w.weight(a, b); got != 10 {
		t.Errorf("weight of a released link %d, want 10", got)
	}
	if log := w.linkEvents(); len(log) != 2 || log[0][len(log[0])-8:] != "released" {
		t.Errorf("events %q", log)
	}
	w.flap(a, 6) // again: twice as long
	w.run(15 * time.Second)
	w.want(a, b, "dampened")
	w.run(6 * time.Second)
	w.want(a, b, "up")
	w.flap(a, 6) // and it is down when the hold is over
	w.port(a, false)
	w.want(a, b, "")
	w.run(41 * time.Second)
	w.port(a, true)
	w.run(20 * time.Millisecond)
	w.want(a, b, "up")
}

func TestDampingTurnedOff(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Flap.Downs = 0 })
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(time.Second)
	w.flap(at(1, 1), 50)
	w.want(at(1, 1), at(2, 1), "up")
	if got := w.weight(at(1, 1), at(2, 1)); got != 10 {
		t.Errorf("weight %d, want 10", got)
	}
}

func TestRestartKnowsLinkPorts(t *testing.T) {
	w := newWorld(t, nil)
	w.topo.remember(at(1, 1), memory{role: flow.RoleLink, far: at(2, 1), out: true}) // not fresh
	w.switches(2, 1)
	w.run(8 * time.Second) // switch 2 is late
	w.wantRole(at(1, 1), flow.RoleUnsettled)
	w.wantRole(at(1, 2), flow.RoleEdge)
	w.run(22 * time.Second)
	w.wantRole(at(1, 1), flow.RoleEdge)
}

func TestDeadlineIsKept(t *testing.T) {
	w := newWorld(t, nil)
	w.switches(1, 1)
	w.run(time.Second)
	if w.topo.deadline != math.MaxInt64 {
		t.Errorf("a switch with an edge port has a deadline, %v from now", time.Duration(w.topo.deadline-w.now))
	}
}

func TestSpeedChangesWeight(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(time.Second)
	w.linkEvents()
	m := portMsg(1, 1, true)
	m.SpeedKbps = 1_000_000
	w.topo.changePort(w.now, 1, m, false)
	w.topo.changePort(w.now, 1, m, false)
	if log := w.linkEvents(); len(log) != 2 {
		t.Errorf("events %q, want one for each direction", log)
	}
	if l := w.topo.listLinks(w.now); l[0].Weight != 100 || l[1].Weight != 100 || l[0].State != "up" {
		t.Errorf("links %v", l)
	}
}
