package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// connectLater schedules routes between a new host and all others, in proactive
// mode.
func (e *engine) connectLater(host knownHost) {
	e.hosts.mu.Lock()
	e.hosts.fresh = append(e.hosts.fresh, host)
	e.hosts.mu.Unlock()
	e.connectFresh(e.now())
}

// connectAgain connects all hosts that are not connected yet, in proactive
// mode: this instance now owns other pairs.
func (e *engine) connectAgain() {
	if e.cfg.Mode != modeProactive {
		return
	}
	w := e.hosts
	w.mu.Lock()
	w.fresh = w.fresh[:0]
	for host := range w.at {
		w.fresh = append(w.fresh, host)
	}
	w.mu.Unlock()
}

// connectFresh programs the missing routes between new hosts and all others of
// their VLAN, for the pairs that this instance owns. It waits until it knows
// which of them an earlier run programmed.
func (e *engine) connectFresh(now time.Time) {
	w := e.hosts
	w.mu.Lock()
	if len(w.fresh) == 0 || !e.adoption.isSettled() {
		w.mu.Unlock()
		return
	}
	fresh := w.fresh
	w.fresh = nil
	type ends struct {
		pair
		from, to flow.Location
	}
	var wanted []ends
	for _, host := range fresh {
		at, known := w.at[host]
		for other, where := range w.at {
			p := pair{src: host.mac, dst: other.mac, vlan: host.vlan}
			if !known || where == at || other.vlan != host.vlan || other.mac == host.mac || !e.replicas.owns(p) {
				continue
			}
			wanted = append(wanted, ends{p, at, where}, ends{pair{src: p.dst, dst: p.src, vlan: p.vlan}, where, at})
		}
	}
	w.mu.Unlock()
	d := &flow.Decision{}
	for _, x := range wanted {
		there := false
		e.routes.with(x.pair, func(s *routeShard) { there = s.m[x.pair] != nil })
		if there {
			continue
		}
		if r, _ := e.compute(e.findPath, x.pair, x.from, x.to, nil); r != nil {
			r.since, r.sent = now.UnixNano(), now.UnixNano()
			e.install(d, r, nil)
		}
	}
	if d.Empty() {
		return
	}
	if err := e.execute(e.send, d); err != nil {
		e.log.Error("proactive routes not programmed", "error", err)
	}
}
