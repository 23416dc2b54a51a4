package discovery

import (
	"math"
	"slices"
	"time"
)

// advance does the work that is due by time, on silent links, ports that
// settle, and links to be released.
func (t *topology) advance(now int64) {
	defer t.settleSwitches(now)
	if now < t.deadline {
		return
	}
	t.deadline = math.MaxInt64
	t.expire(now)
	t.endSilentTrials(now)
	t.releaseHeld(now)
	t.settleDue(now)
	t.orderSwitches(now, len(t.links))
	t.clean(now)
}

// extendLinks extends the life of all links by half a timeout, because the process
// stood still and could not receive probes.
func (t *topology) extendLinks(now int64) { t.floor = now - t.cfg.linkTimeout()/2 }

// clean forgets what no longer matters: ports removed, switches gone and pairs
// quiet for longer than Forget. It looks once a minute.
func (t *topology) clean(now int64) {
	if now-t.cleaned < int64(time.Minute) {
		return
	}
	t.cleaned = now
	old := func(since int64) bool { return now-since > int64(t.cfg.Forget) }
	for key, f := range t.pairs {
		if f.links[0] == nil && f.links[1] == nil && f.until == 0 &&
			(len(f.downs) == 0 || old(f.downs[len(f.downs)-1])) && old(f.quiet) {
			delete(t.pairs, key)
		}
	}
	forgotten := false
	for id, dp := range t.switches {
		if !dp.connected && dp.since != 0 && old(dp.since) {
			delete(t.switches, id)
			t.dirty[id] = struct{}{}
			forgotten = true
			continue
		}
		t.sweep(dp, old)
	}
	if forgotten {
		t.order = slices.DeleteFunc(t.order, func(dp *datapath) bool { return t.switches[dp.id] != dp })
	}
}

// sweep forgets the ports of a switch that were removed long ago.
func (t *topology) sweep(dp *datapath, old func(int64) bool) {
	kept := dp.ports[:0]
	for _, p := range dp.ports {
		if p.removed && !p.up && old(p.changed) {
			t.forget(p)
			dp.put(p.at.Port, nil)
			continue
		}
		kept = append(kept, p)
	}
	if len(kept) < len(dp.ports) {
		clear(dp.ports[len(kept):])
		dp.ports = kept
		dp.view.set(kept)
	}
}
