package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

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

// seek gives tags to what has none, and asks for the ways between switches. Where they cannot be asked for, as
// when paths has just started, the ways to a switch stay as they were, and the error says to seek again.
func (b *store) seek(ctx context.Context) error {
	err := b.number(ctx)
	b.mu.Lock()
	former := b.next
	b.mu.Unlock()
	next := map[flow.DPID]map[flow.DPID]flow.Port{}
	whole := true
	for dst, from := range b.legs() {
		to, all, failed := b.tree(ctx, dst, from)
		if whole = whole && all; failed != nil {
			err, to = failed, map[flow.DPID]flow.Port{}
			for src, ports := range former {
				if out := ports[dst]; out != 0 {
					to[src] = out
				}
			}
		}
		for src, out := range to {
			if next[src] == nil {
				next[src] = map[flow.DPID]flow.Port{}
			}
			next[src][dst] = out
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

// tree returns by which port each switch on the way sends packets to a switch, and whether there is a way from
// all that want one. All are shortest ones, and those to one switch a tree, so no packet comes back to a switch on
// its way.
func (b *store) tree(ctx context.Context, dst flow.DPID, from map[flow.DPID]bool) (out map[flow.DPID]flow.Port, all bool, err error) {
	out, all = map[flow.DPID]flow.Port{}, true
	for src := range from {
		if out[src] != 0 {
			continue // on the way of another
		}
		resp, err := b.find(ctx, &api.FindPathRequest{Src: src.String(), Dst: dst.String()})
		switch {
		case err != nil && api.KindOf(err) != codes.NotFound:
			return nil, false, fmt.Errorf("the way from %v to %v: %w", src, dst, err)
		case err != nil || len(resp.Paths) == 0:
			all = false // there is none now
			continue
		}
		for _, hop := range resp.Paths[0].Hops {
			at, err := flow.ParseDPID(hop.Dpid)
			if err != nil || at == dst || out[at] != 0 {
				break // from here on the way is known
			}
			out[at] = flow.Port(hop.OutPort)
		}
	}
	return out, all, nil
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
