package forwarding

import "sync/atomic"

// registry takes the service's metrics; weft.Metrics is one.
type registry interface {
	CounterFunc(name, help string, read func() float64, labels ...string)
	Gauge(name, help string, read func() float64, labels ...string)
}

// counters are the service's metrics.
type counters struct {
	routes, rerouted, lost, idle, adopted, stale, refused atomic.Uint64
	proxied, floods, transit, deferred                    atomic.Uint64

	// Packets that were not delivered or not programmed, by reason.
	unsettled, unknown, stray, hairpin, full, unreachable, floodsShed, malformed, unroutable, heldShed, unapproved, pathFull, pathLate, linkLocal atomic.Uint64
}

// register registers the metrics.
func (c *counters) register(m registry, routes *routeTable) {
	count := func(name, help string, n *atomic.Uint64, labels ...string) {
		m.CounterFunc(name, help, func() float64 { return float64(n.Load()) }, labels...)
	}
	for kind, n := range map[string]*atomic.Uint64{
		"programmed": &c.routes, "rerouted": &c.rerouted, "lost": &c.lost, "idle": &c.idle,
		"adopted": &c.adopted, "stale": &c.stale, "refused": &c.refused,
	} {
		count("route_changes_total", "Routes programmed, moved and removed.", n, "kind", kind)
	}
	m.Gauge("routes", "Routes that are programmed: one direction between two hosts each.", func() float64 { return float64(routes.size()) })
	count("proxied_total", "ARP requests and neighbour solicitations that were not flooded: answered for a gateway, or passed to the owner of the address alone.", &c.proxied)
	count("floods_total", "Packets handed to all edge ports.", &c.floods)
	count("unknown_total", "Packets flooded because nobody has their destination.", &c.unknown)
	count("transit_total", "Packets that a switch in the middle did not know, delivered at their destination.", &c.transit)
	count("deferred_total", "Packets that have waited for a path from another process.", &c.deferred)
	for reason, n := range map[string]*atomic.Uint64{
		"unsettled_port": &c.unsettled, "stray": &c.stray, "same_port": &c.hairpin, "routes_full": &c.full, "unreachable": &c.unreachable,
		"flood_allowance": &c.floodsShed, "malformed": &c.malformed, "unroutable": &c.unroutable, "held_too_long": &c.heldShed, "unapproved": &c.unapproved,
		"path_queue_full": &c.pathFull, "link_local": &c.linkLocal, "path_too_late": &c.pathLate,
	} {
		count("packets_shed_total", "Packets that were not delivered, or (routes_full) not programmed.", n, "reason", reason)
	}
}
