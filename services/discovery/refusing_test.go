package discovery

import (
	"strings"
	"testing"
	"time"
)

// TestRefusedPortIsProbedRarely: a port for which the switch refuses packets is probed
// ever more rarely and explained; when the switch takes them, the link is found and
// nothing is said any more.
func TestRefusedPortIsProbedRarely(t *testing.T) {
	w := newWorld(t, nil)
	w.switches(2, 1, 2)
	a, b := at(1, 1), at(2, 1)
	sent := func(d time.Duration, refuses bool) (n int) {
		for end := w.now + int64(d); w.now < end; {
			before := w.topo.at(a).refusing.tries
			w.run(100 * time.Millisecond)
			if w.topo.at(a).refusing.tries != before {
				n++
				if refuses && w.now-w.topo.at(a).refusing.heard > int64(time.Minute) { // southbound publishes no more
					w.topo.recordRefusal(w.now, a, "OFPBRC_BAD_PORT")
				}
			}
		}
		return n
	}
	w.run(time.Second)
	w.topo.recordRefusal(w.now, a, "OFPBRC_BAD_PORT")
	if n := sent(time.Hour, true); n < 5 || n > 15 {
		t.Errorf("%d probes in an hour", n)
	}
	p := w.topo.at(a)
	if m := w.topo.explain(w.now, p); m.Cause != causeRefuses || !strings.Contains(m.Reason, "BAD_PORT") || m.Remedy == "" {
		t.Errorf("explained: %v", m)
	}
	other := w.topo.explain(w.now, w.topo.at(at(1, 2)))
	if other.Cause == causeRefuses {
		t.Errorf("another port: %v", other)
	}
	w.cable(a, b)
	w.run(20 * time.Minute)
	w.want(a, b, "up")
	if m := w.topo.explain(w.now, p); m.Cause != "" {
		t.Errorf("a link: %v", m)
	}
	w.topo.recordRefusal(w.now, at(1, 2), "no")
	sent(20*time.Minute, false)
	if m := w.topo.explain(w.now, w.topo.at(at(1, 2))); m.Cause == causeRefuses {
		t.Errorf("refused no more: %v", m)
	}
}
