package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// TestManyPortsAtOnce connects far more ports than there are probes for in an
// interval: they are sent no faster than wanted, every port has its turn, and in
// the end all links are found and nothing else.
func TestManyPortsAtOnce(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ProbesPerSecond = 500 })
	const n, ports = 100, 40
	for i := range flow.DPID(n) {
		w.cable(at(i+1, 1), at((i+1)%n+1, 2))
		w.switches(ports, i+1)
	}
	last := 0
	for range 10 {
		w.run(time.Second)
		if sent := w.sent - last; sent > 1000+250+2*n {
			t.Errorf("%d probes in a second, want at most about 1000", sent)
		}
		last = w.sent
	}
	w.run(20 * time.Second)
	if up := w.topo.countLinks(up); up != 2*n {
		t.Errorf("%d links are up, want %d", up, 2*n)
	}
	if edge := w.topo.countPorts(flow.RoleEdge); edge != n*(ports-2) {
		t.Errorf("%d edge ports, want %d", edge, n*(ports-2))
	}
	w.linkEvents()
	w.cut(at(1, 1), at(2, 2)) // what is in doubt does not wait for them
	w.run(5 * time.Second)
	w.want(at(1, 1), at(2, 2), "")
}

// TestPace sends fewer probes the later they arrive, but never none.
func TestPace(t *testing.T) {
	seeking, known := &port{}, &port{out: &link{}}
	count := func(p *pace, of *port) (n int) {
		for p.take(of) {
			n++
		}
		return n
	}
	for _, test := range []struct {
		strain          ownDelay
		seeking, doubts int
	}{
		{0, 2000, 500}, {paceStrain, 2000, 500}, {4 * paceStrain, 500, 125}, {ownDelay(ownDelayMost), 100, 100},
	} {
		p := &pace{}
		now := int64(1e18)
		p.fill(now, 10_000, test.strain)
		count(p, seeking)
		count(p, known)
		p.fill(now+100*ms, 10_000, test.strain)
		if s, d := count(p, seeking), count(p, known); s < test.seeking-1 || s > test.seeking || d < test.doubts-1 || d > test.doubts {
			t.Errorf("with probes that take %v: %d and %d in 100 ms, want %d and %d", time.Duration(test.strain), s, d, test.seeking, test.doubts)
		}
	}
}
