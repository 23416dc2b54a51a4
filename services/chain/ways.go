package chain

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// legs returns from which switches packets of chains go to which: from edges and
// functions to functions, and from functions to hosts.
func (b *store) legs() (to map[flow.DPID]map[flow.DPID]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to = map[flow.DPID]map[flow.DPID]bool{}
	functions := b.functional()
	for _, dst := range functions {
		to[dst] = map[flow.DPID]bool{}
		for f := range b.net.Switches() {
			if len(b.net.PortsWith(f.Key, flow.RoleEdge)) > 0 {
				to[dst][f.Key] = true
			}
		}
	}
	if len(functions) > 0 {
		for dst := range b.at {
			if to[dst] == nil {
				to[dst] = map[flow.DPID]bool{}
			}
		}
	}
	for dst := range to {
		for _, src := range functions {
			to[dst][src] = true
		}
		delete(to[dst], dst)
	}
	return to
}

// seek gives tags to what has none, and asks for the ways between switches. All are
// shortest ones, and those to one switch a tree, so no packet comes back to a switch on its way.
func (b *store) seek(ctx context.Context) error {
	err := b.number(ctx)
	next := map[flow.DPID]map[flow.DPID]flow.Port{}
	put := func(src, dst flow.DPID, out flow.Port) {
		if next[src] == nil {
			next[src] = map[flow.DPID]flow.Port{}
		}
		next[src][dst] = out
	}
	whole := true
	for dst, from := range b.legs() {
		for src := range from {
			if next[src][dst] != 0 {
				continue // on the way of another
			}
			resp, err := b.find(ctx, &api.FindPathRequest{Src: src.String(), Dst: dst.String()})
			if err != nil || len(resp.Paths) == 0 {
				whole = false // there is none now
				continue
			}
			for _, hop := range resp.Paths[0].Hops {
				at, err := flow.ParseDPID(hop.Dpid)
				if err != nil || at == dst || next[at][dst] != 0 {
					break // from here on the way is known
				}
				put(at, dst, flow.Port(hop.OutPort))
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := whole && !b.whole
	b.whole = b.whole || whole
	if found || !maps.EqualFunc(next, b.next, maps.Equal[map[flow.DPID]flow.Port, map[flow.DPID]flow.Port]) || b.tags.changed {
		b.next, b.tags.changed = next, false
		b.chains.Recompute()
	}
	return err
}

// number gives tags to ports of functions and switches that packets go to, and takes
// those of ports that are no more a function's. Those of switches without hosts stay until
// others want them: a switch that is away has hosts when it is back, and with another tag
// all switches would get other entries.
func (b *store) number(ctx context.Context) error {
	b.mu.Lock()
	needed := map[flow.Location]bool{}
	for at := range b.taken {
		needed[at] = true
	}
	if len(b.taken) > 0 {
		for sw := range b.at {
			needed[flow.Location{Switch: sw}] = true
		}
	}
	missing, idle := b.tags.compare(needed)
	if len(b.taken) > 0 && (len(missing) <= b.tags.rest() || !b.knows(time.Now())) {
		idle = slices.DeleteFunc(idle, func(at flow.Location) bool { return at.Port == 0 })
	}
	b.mu.Unlock()
	var failed []error
	for _, at := range idle {
		failed = append(failed, b.tags.take(ctx, at))
	}
	for _, at := range missing {
		failed = append(failed, b.tags.give(ctx, at))
	}
	return errors.Join(failed...)
}
