package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// connectLater schedules routes between a new host and all others, in proactive
// mode.
func (g *routing) connectLater(host knownHost) {
	g.hosts.mu.Lock()
	g.hosts.fresh = append(g.hosts.fresh, host)
	g.hosts.mu.Unlock()
	g.connectFresh(g.now())
}

// connectAgain connects all hosts that are not connected yet, in proactive
// mode: this instance now owns other pairs.
func (g *routing) connectAgain() {
	if g.cfg.Mode != modeProactive {
		return
	}
	w := g.hosts
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
func (g *routing) connectFresh(now time.Time) {
	w := g.hosts
	w.mu.Lock()
	if len(w.fresh) == 0 || !g.adoption.isSettled() {
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
			if !known || where == at || other.vlan != host.vlan || other.mac == host.mac || !g.replicas.owns(p) {
				continue
			}
			wanted = append(wanted, ends{p, at, where}, ends{pair{src: p.dst, dst: p.src, vlan: p.vlan}, where, at})
		}
	}
	w.mu.Unlock()
	d := &flow.Decision{}
	for _, x := range wanted {
		there := false
		g.routes.with(x.pair, func(s *routeShard) { there = s.m[x.pair] != nil })
		if there {
			continue
		}
		if r, _ := g.compute(g.findPath, x.pair, x.from, x.to, nil); r != nil {
			r.since, r.sent = now.UnixNano(), now.UnixNano()
			g.install(d, r, nil)
		}
	}
	if d.Empty() {
		return
	}
	if err := g.execute(g.send, d); err != nil {
		g.log.Error("proactive routes not programmed", "error", err)
	}
}
