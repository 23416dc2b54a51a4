package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// ladder connects n switches with four ports each in a ring of double links.
func ladder(w *world, n int) {
	for i := range flow.DPID(n) {
		next := (i+1)%flow.DPID(n) + 1
		w.cable(at(i+1, 1), at(next, 2))
		w.cable(at(i+1, 3), at(next, 4))
		w.switches(4, i+1)
	}
	w.run(30 * time.Second)
	if up := w.topo.countLinks(up); up != 4*n {
		w.t.Fatalf("%d links are up, want %d", up, 4*n)
	}
	w.linkEvents()
}

// TestProbesStayWithinBudget has more links than there are probes for in an
// interval: they are probed less often, none is taken for silent, and what has
// failed silently is found that much later, the next time within the usual time.
func TestProbesStayWithinBudget(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ProbesPerSecond, c.Interval = 100, 2*time.Second })
	const n = 200
	ladder(w, n) // 800 links in one direction: 200 probes in 2 s are every fourth
	if w.topo.stretch != 4 {
		t.Fatalf("links are probed every %d intervals, want 4", w.topo.stretch)
	}
	before := w.sent
	w.run(80 * time.Second)
	if rate := (w.sent - before) / 80; rate < 80 || rate > 110 {
		t.Errorf("%d probes a second, want about 100", rate)
	}
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q while nothing changes", log)
	}

	fail := func() time.Duration {
		w.cut(at(1, 1), at(2, 2))
		from := w.now
		for w.state(at(1, 1), at(2, 2)) != "" || w.state(at(2, 2), at(1, 1)) != "" {
			w.run(10 * time.Millisecond)
			if w.now-from > int64(time.Minute) {
				t.Fatal("a silent failure is not found")
			}
		}
		took := time.Duration(w.now - from)
		w.cable(at(1, 1), at(2, 2))
		w.run(20 * time.Second)
		w.want(at(1, 1), at(2, 2), "up")
		return took
	}
	if took := fail(); took > 9*time.Second {
		t.Errorf("the first silent failure was found after %v, want 8.75 s or so", took)
	}
	if took := fail(); took > 3*time.Second {
		t.Errorf("the next silent failure of the same link was found after %v, want less than 3 s", took)
	}
	w.linkEvents()
	w.port(at(5, 1), false) // with port status, as ever
	w.run(10 * time.Millisecond)
	w.want(at(5, 1), at(6, 2), "")
}

// TestProbesAreSpread looks at each tenth of the interval: none has far more
// probes than another, and neighbours send side by side.
func TestProbesAreSpread(t *testing.T) {
	w := newWorld(t, nil)
	ladder(w, 200)
	interval := time.Duration(w.topo.cfg.linkInterval())
	for range 20 {
		before := w.sent
		w.run(interval / 10)
		if sent := w.sent - before; sent < 50 || sent > 110 {
			t.Errorf("%d probes in a tenth of the interval, want 80", sent)
		}
	}
	place := map[flow.DPID]float64{}
	for _, dp := range w.topo.order {
		place[dp.id] = dp.phase
	}
	if d := place[2] - place[1]; d > 0.02 {
		t.Errorf("neighbours send %.2f of the interval apart", d)
	}
}

// TestOwnDelayIsNoFailure has all probes arrive late, for we are slow ourselves: no
// link goes down for it. One that fails then is found afterwards.
func TestOwnDelayIsNoFailure(t *testing.T) {
	w := newWorld(t, nil)
	ladder(w, 50)
	w.deaf = true
	type held struct {
		src, dst flow.Location
		sent     int64
	}
	var late []held
	w.hold = func(src, dst flow.Location, sent int64) { late = append(late, held{src, dst, sent}) }
	for i := range 300 { // what has been sent is read later and later, in the end 1.5 s
		w.run(100 * time.Millisecond)
		delay := min(int64(i)*25*ms, 1500*ms)
		for len(late) > 0 && w.now-late[0].sent >= delay {
			if h := late[0]; w.now-h.sent > int64(w.topo.cfg.MaxAge) {
				w.topo.handleStaleProbe(w.now, h.src, h.dst, h.sent)
			} else {
				w.topo.arrive(w.now, h.src, h.dst, h.sent)
			}
			late = late[1:]
		}
	}
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("%d events for our own delay, the first: %s", len(log), log[0])
	}
	w.deaf = false
	w.cut(at(7, 1), at(8, 2))
	w.run(5 * time.Second)
	w.want(at(7, 1), at(8, 2), "")
	w.want(at(9, 1), at(10, 2), "up")
}
