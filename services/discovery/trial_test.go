package discovery

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A busyWorld is a world on a machine whose load changes: probes and echoes wait
// for the controller, for the switches, and for pauses of either.
type busyWorld struct {
	*world
	rnd    *rand.Rand
	loads  []load // of which one is chosen again and again
	load   load
	until  int64                   // of the load
	paused map[flow.DPID]int64     // switches that stand still, until when
	relay  map[flow.Location]int64 // what relays add to probes that leave a port
	trip   map[flow.DPID]int64     // round trip to a switch, 200 µs if none
	echoes int64                   // the next round is due
	queue  []happening
}

type happening struct {
	at int64
	do func(now int64)
}

// A load is how long a message waits at each of the queues that it passes.
type load struct {
	name   string
	share  float64 // of messages that wait
	mean   time.Duration
	pauses float64 // pauses of a switch in a second
}

func loads() []load {
	return []load{
		{"calm", 0.01, 3 * time.Millisecond, 0}, {"busy", 0.5, 4 * time.Millisecond, 0.2},
		{"crowded", 0.9, 15 * time.Millisecond, 0.5}, {"jammed", 1, 60 * time.Millisecond, 1},
	}
}

func newBusyWorld(t testing.TB, seed uint64, change func(*Config)) *busyWorld {
	return &busyWorld{world: newWorld(t, change), rnd: rand.New(rand.NewPCG(seed, 9)), loads: loads()[:1],
		paused: map[flow.DPID]int64{}, relay: map[flow.Location]int64{}, trip: map[flow.DPID]int64{}}
}

// ring connects n switches with four ports each in a ring.
func (w *busyWorld) ring(n int) {
	for i := range flow.DPID(n) {
		w.cable(at(i+1, 1), at((i+1)%flow.DPID(n)+1, 2))
	}
	for i := range flow.DPID(n) {
		w.switches(4, i+1)
	}
}

// wait returns how long a message waits at some queues.
func (w *busyWorld) wait(queues int) (ns int64) {
	for range queues {
		ns += int64(20_000 + w.rnd.IntN(60_000))
		if w.rnd.Float64() < w.load.share {
			ns += int64(w.rnd.ExpFloat64() * float64(w.load.mean))
		}
	}
	return ns
}

func (w *busyWorld) later(at int64, do func(now int64)) {
	i, _ := slices.BinarySearchFunc(w.queue, at, func(h happening, at int64) int { return cmp.Compare(h.at, at) })
	w.queue = slices.Insert(w.queue, i, happening{at, do})
}

// half is the way to a switch, or from it.
func (w *busyWorld) half(sw flow.DPID) int64 {
	if t := w.trip[sw]; t != 0 {
		return t / 2
	}
	return 100_000
}

// checkTrials fails if a trial is not among those that it belongs to.
func (w *busyWorld) checkTrials() {
	for tr := range w.topo.trials {
		if tr.onProbation() {
			w.t.Fatalf("%v -> %v is up, but among the trials of links that are not", tr.from.at, tr.to.at)
		}
	}
	for tr := range w.topo.passing {
		if !tr.onProbation() {
			w.t.Fatalf("%v -> %v is not up, but among the trials of links that are", tr.from.at, tr.to.at)
		}
	}
}

// run lets time pass.
func (w *busyWorld) run(d time.Duration) {
	for end := w.now + int64(d); w.now < end; w.now += 5 * ms {
		for len(w.queue) > 0 && w.queue[0].at <= w.now {
			h := w.queue[0]
			w.queue = w.queue[1:]
			h.do(h.at)
		}
		w.change()
		w.topo.advance(w.now)
		jobs, _ := w.topo.probes(w.now, nil)
		for _, j := range jobs {
			w.topo.recordSent(w.now, []*port{j.port}, w.now)
			for _, far := range w.wires[j.at] {
				w.send(j.at, far)
			}
		}
		if w.now >= w.echoes {
			w.echoes = w.now + int64(echoEvery)
			w.echo()
		}
		w.take()
		w.checkTrials()
	}
}

// change changes the load, and pauses switches.
func (w *busyWorld) change() {
	if w.now >= w.until {
		w.load = w.loads[w.rnd.IntN(len(w.loads))]
		w.until = w.now + int64(w.rnd.ExpFloat64()*float64(2*time.Second))
	}
	if w.rnd.Float64() < w.load.pauses*0.005 {
		for id := range w.topo.switches {
			w.paused[id] = w.now + w.rnd.Int64N(int64(900*time.Millisecond))
			break
		}
	}
}

func (w *busyWorld) send(from, to flow.Location) {
	sent := w.now
	at := max(sent+w.half(from.Switch)+w.wait(2), w.paused[from.Switch]) + w.relay[from]
	at = max(at, w.paused[to.Switch]) + w.half(to.Switch) + w.wait(2)
	w.later(at, func(now int64) {
		if now-sent > int64(w.topo.cfg.MaxAge) {
			w.topo.handleStaleProbe(now, from, to, sent)
			return
		}
		w.refuse[w.topo.arrive(now, from, to, sent)]++
	})
}

func (w *busyWorld) echo() {
	trips, longest := map[flow.DPID]int64{}, int64(0)
	for sw := range w.topo.toEcho() {
		if trip := max(2*w.half(sw)+w.wait(2), w.paused[sw]-w.now); trip < int64(echoPatience) {
			trips[sw] = trip
			longest = max(longest, trip)
		}
	}
	if len(trips) > 0 {
		more, began := w.wait(1), w.now
		w.later(w.now+longest+more, func(now int64) { w.topo.recordEchoes(now, began, trips, more) })
	}
}

// heldEvents returns the events of held links.
func (w *busyWorld) heldEvents() (list []string) {
	for _, e := range w.linkEvents() {
		if strings.Contains(e, " held ") {
			list = append(list, e)
		}
	}
	return list
}

// TestGenuineLinksAreNotHeld starts networks on loaded machines: all links come
// up, and none is held.
func TestGenuineLinksAreNotHeld(t *testing.T) {
	starts := 1000
	if testing.Short() {
		starts = 100
	}
	var longest time.Duration
	for seed := range uint64(starts) {
		w := newBusyWorld(t, seed, nil)
		w.loads = slices.Clone(loads())
		if seed%2 == 0 { // the same all the time
			w.loads = w.loads[seed/2%4:][:1]
		}
		w.ring(4)
		began := w.now
		for w.topo.countLinks(up) < 8 && w.now-began < int64(2*time.Minute) {
			w.run(100 * time.Millisecond)
		}
		took := time.Duration(w.now - began)
		longest = max(longest, took)
		if n := w.topo.countLinks(up); n != 8 {
			t.Fatalf("start %d, %v: %d links up after %v, want 8: %v", seed, w.loads, n, took, w.topo.listLinks(w.now))
		}
		w.run(20 * time.Second)
		if held := w.heldEvents(); len(held) > 0 {
			t.Fatalf("start %d, %v: %q", seed, w.loads, held)
		}
	}
	t.Logf("all links up within %v", longest)
}

// relayed adds a relay between two ports.
func (w *busyWorld) relayed(a, b flow.Location, adds time.Duration) {
	w.cable(a, b)
	w.relay[a], w.relay[b] = int64(adds), int64(adds)
}

// TestRelaysAreHeld has a relay pass on genuine probes between two fresh ports.
func TestRelaysAreHeld(t *testing.T) {
	a, b := at(1, 3), at(3, 3)
	for _, adds := range []time.Duration{5, 50, 300, 800} {
		for _, first := range []bool{false, true} { // there is nothing to compare it with
			t.Run(fmt.Sprintf("%dms/%v", adds, first), func(t *testing.T) {
				for seed := range uint64(20) {
					w := newBusyWorld(t, seed, nil)
					w.relayed(a, b, adds*time.Millisecond)
					if first {
						w.switches(4, 1, 3)
					} else {
						w.ring(4)
					}
					for range 400 {
						w.run(100 * time.Millisecond)
						if s := w.state(a, b); s == "up" || s == "one_way" {
							t.Fatalf("the relay is a link: %s", s)
						}
					}
					w.want(a, b, "held")
					w.want(b, a, "held")
					w.wantRole(a, flow.RoleBlocked)
					if held := w.heldEvents(); len(held) != 2 {
						t.Errorf("events %q, want one for each direction", held)
					}
					w.topo.allowLink(w.now, newPair(a, b))
					w.run(5 * time.Second)
					w.want(a, b, "up")
					w.wantRole(a, flow.RoleLink)
					w.topo.disallow(w.now, newPair(a, b))
					w.want(a, b, "up") // on probation
					w.run(time.Minute)
					w.want(a, b, "held")
				}
			})
		}
	}
}

// TestRelaysUnderLoad: whatever is accepted while the machine is busy is judged
// again, and held when it is not.
func TestRelaysUnderLoad(t *testing.T) {
	a, b := at(1, 3), at(3, 3)
	for _, adds := range []time.Duration{5, 50, 300} { // ms
		for seed := range uint64(20) {
			w := newBusyWorld(t, seed, nil)
			w.loads = loads()[seed%4:][:1]
			w.relayed(a, b, adds*time.Millisecond)
			w.ring(4)
			w.run(20 * time.Second)
			w.loads, w.until = loads()[:1], 0
			w.run(time.Minute)
			if s := w.state(a, b); s != "held" {
				tr := w.topo.at(a).trial
				t.Errorf("%d ms under %v: the relay is %q, want held: %+v", adds, loads()[seed%4].name, s, tr)
			}
			if n := w.topo.countLinks(up); n != 8 {
				t.Errorf("%d ms under %v: %d links up, want 8", adds, loads()[seed%4].name, n)
			}
		}
	}
}

// TestFarSwitches has the switches far from the controller, and near each other:
// echoes explain what probes take.
func TestFarSwitches(t *testing.T) {
	for seed := range uint64(50) {
		w := newBusyWorld(t, seed, nil)
		for id := range flow.DPID(4) {
			w.trip[id+1] = int64(id+1) * 40 * ms
		}
		w.ring(4)
		w.relayed(at(1, 3), at(3, 3), 10*time.Millisecond)
		w.run(40 * time.Second)
		if n := w.topo.countLinks(up); n != 8 {
			t.Fatalf("start %d: %d links up, want 8: %v", seed, n, w.topo.listLinks(w.now))
		}
		w.want(at(1, 3), at(3, 3), "held")
	}
}

// TestLongLinks has links of 50 ms: they are held, unless the operator says that
// links are long, or allows them.
func TestLongLinks(t *testing.T) {
	a, b := at(1, 1), at(2, 2)
	w := newBusyWorld(t, 1, nil)
	w.relayed(a, b, 50*time.Millisecond)
	w.switches(4, 1, 2)
	w.run(20 * time.Second)
	w.want(a, b, "held")
	for _, change := range []func(*Config){
		func(c *Config) { c.Latency.Max = 100 * time.Millisecond },
		func(c *Config) { c.Latency.Max = 0 },
		func(c *Config) { c.Allow = []string{"2:2 1/1"} },
	} {
		w := newBusyWorld(t, 1, change)
		w.relayed(a, b, 50*time.Millisecond)
		w.switches(4, 1, 2)
		w.run(time.Second)
		w.want(a, b, "up")
		w.want(b, a, "up")
	}
}

// TestSlowSwitches has switches that take 8 ms for each packet-in: what is usual
// is plausible.
func TestSlowSwitches(t *testing.T) {
	for seed := range uint64(20) {
		w := newBusyWorld(t, seed, nil)
		w.ring(6)
		for a := range w.wires {
			w.relay[a] = 8*ms + int64(a.Switch)*ms/2
		}
		w.relayed(at(1, 3), at(3, 3), 50*time.Millisecond)
		w.run(time.Minute)
		if n := w.topo.countLinks(up); n != 12 {
			t.Fatalf("start %d: %d links up, want 12", seed, n)
		}
		w.want(at(1, 3), at(3, 3), "held")
	}
}

func TestNewLinksHeld(t *testing.T) {
	w := newBusyWorld(t, 1, func(c *Config) { c.NewLinks = "hold" })
	a, b := at(1, 1), at(2, 2)
	w.cable(a, b)
	w.switches(4, 1, 2)
	w.run(10 * time.Second)
	w.want(a, b, "held")
	w.topo.allowLink(w.now, newPair(a, b))
	w.run(3 * time.Second)
	w.want(a, b, "up")
	w.topo.disallow(w.now, newPair(a, b)) // it is known now
	w.port(a, false)
	w.run(time.Second)
	w.port(a, true)
	w.run(3 * time.Second)
	w.want(a, b, "up")
	w.cut(a, b)
	w.port(a, false)
	w.run(10 * time.Second)
	w.port(a, true)
	w.cable(a, at(2, 3)) // elsewhere
	w.run(10 * time.Second)
	w.want(a, at(2, 3), "held")
}

func TestLinkPorts(t *testing.T) {
	w := newBusyWorld(t, 1, func(c *Config) { c.LinkPorts = []string{"*:[12]", "000000000000000a:*"} })
	w.ring(2)
	w.switches(4, 0xa)
	w.cable(at(1, 3), at(0xa, 4))
	w.cable(at(2, 3), at(1, 4))
	w.run(5 * time.Second)
	w.want(at(1, 1), at(2, 2), "up")
	w.want(at(1, 3), at(0xa, 4), "")
	w.want(at(2, 3), at(1, 4), "")
	w.wantRole(at(2, 3), flow.RoleBlocked)
	if w.refuse[noLinkPort] == 0 {
		t.Errorf("refusals %v", w.refuse)
	}
}

// TestHostMemory: ports of hosts stay such while they are down for long.
func TestHostMemory(t *testing.T) {
	for _, memory := range []time.Duration{0, time.Hour} {
		w := newBusyWorld(t, 1, func(c *Config) { c.HostMemory = memory })
		a, b := at(1, 1), at(2, 1)
		w.switches(2, 1, 2)
		w.run(2 * time.Second)
		for _, l := range []flow.Location{a, b} {
			w.topo.at(l).view.host.Store(true)
		}
		w.run(2 * time.Minute)
		for _, up := range []bool{false, true} {
			w.port(a, up)
			w.port(b, up)
			w.run(time.Minute)
		}
		w.cable(a, b)
		w.run(5 * time.Second)
		if up := w.state(a, b) == "up"; up == (memory > 0) {
			t.Errorf("with a memory of %v a link up: %v", memory, up)
		}
	}
}

// TestWeightByLatency has links of 0, 20 and 21 ms.
func TestWeightByLatency(t *testing.T) {
	w := newBusyWorld(t, 1, func(c *Config) { c.Latency = Latency{Max: 100 * time.Millisecond, Weight: 10} })
	a, b := at(1, 1), at(2, 2)
	w.ring(2)
	w.run(20 * time.Second)
	if got := w.weight(a, b); got < 10 || got > 20 {
		t.Errorf("weight of a cable %d, want 10 or a little more", got)
	}
	w.relayed(a, b, 20*time.Millisecond)
	w.run(time.Minute)
	if got := w.weight(a, b); got < 200 || got > 220 {
		t.Errorf("weight at 20 ms %d, want about 210", got)
	}
	w.linkEvents()
	w.relayed(a, b, 21*time.Millisecond)
	w.run(time.Minute)
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q for a small change", log)
	}
}
