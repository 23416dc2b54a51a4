package balancer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// watchMax is with how many connections at a switch its counters are not read:
// members are checked instead, which costs less.
const watchMax = 1000

// counters returns a switch's entries of the balancer, with their counters.
type counters func(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error)

// all reads several switches at once, and returns which have not answered, too.
func (read counters) all(ctx context.Context, switches []flow.DPID) (seen map[flow.DPID][]*api.FlowEntry, silent []flow.DPID) {
	var mu sync.Mutex // guards seen and silent
	seen = map[flow.DPID][]*api.FlowEntry{}
	var work sync.WaitGroup
	for _, sw := range switches {
		work.Go(func() {
			flows, err := read(ctx, sw)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, sw)
			} else {
				seen[sw] = flows
			}
		})
	}
	work.Wait()
	return seen, silent
}

// follow reads the traffic of members now and then, until ctx ends.
func (b *balancer) follow(ctx context.Context, read counters) {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.mu.Lock()
		switches := b.tracker.watched()
		b.mu.Unlock()
		began := now()
		seen, _ := read.all(ctx, switches)
		b.mu.Lock()
		b.tracker.tally(seen, began)
		b.mu.Unlock()
	}
}

// watched returns the switches that have entries of members that are checked seldom
// while they serve.
func (t *tracker) watched() []flow.DPID {
	at := map[flow.DPID]bool{}
	for _, v := range t.index.Load().all() {
		for _, m := range v.pool {
			for c := range m.conns {
				if v.check.idle != 0 && (c.there || c.back) {
					at[c.ingress.Switch], at[c.egress] = true, true
				}
			}
		}
	}
	maps.DeleteFunc(at, func(sw flow.DPID, _ bool) bool { return sw == 0 || len(t.at[sw]) > watchMax })
	return slices.Collect(maps.Keys(at))
}

// tally takes what switches have counted: a member that has sent data serves, one
// that was sent something and has not may not.
func (t *tracker) tally(seen map[flow.DPID][]*api.FlowEntry, now int64) {
	sums := map[*member]*[2]tally{}
	for sw, flows := range seen {
		for _, f := range flows {
			_, entry, err := f.Entry()
			if err != nil || entry.IdleTimeout == 0 {
				continue
			}
			o, ok := readEntry(&entry)
			c := t.by[o.key]
			if !ok || o.part == guard || o.bye || c == nil || c.id != o.id || c.at(o.part) != sw {
				continue
			}
			is := tally{f.Packets, f.Bytes}
			more := is.since(c.counted[o.part])
			c.counted[o.part] = is
			if sums[c.m] == nil {
				sums[c.m] = &[2]tally{}
			}
			sum := &sums[c.m][o.part]
			sum.packets, sum.bytes = sum.packets+more.packets, sum.bytes+more.bytes
		}
	}
	for _, v := range t.index.Load().all() {
		for _, m := range v.pool {
			if v.check.idle == 0 || !m.followed(seen) {
				continue
			}
			m.health.read = now
			switch sum := sums[m]; {
			case sum == nil:
			case sum[back].answers(m.addr.Addr.Is4()):
				m.health.good, m.health.silent = now, false
			case sum[there].packets > 0:
				m.health.silent = true
			}
		}
	}
}

// followed reports whether all entries of a member's connections have been read.
func (m *member) followed(seen map[flow.DPID][]*api.FlowEntry) bool {
	has := func(sw flow.DPID) bool {
		_, ok := seen[sw]
		return ok
	}
	for c := range m.conns {
		if c.there && !has(c.ingress.Switch) || c.back && !has(c.egress) {
			return false
		}
	}
	return true
}

// at returns the switch of one of a conn's entries.
func (c *conn) at(p part) flow.DPID {
	if p == back {
		return c.egress
	}
	return c.ingress.Switch
}
