package discovery

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// A linkTable has the links that are up in one direction at least, their weights, and
// which of them are dampened.
type linkTable struct {
	*registry
	*linkPolicy
	links []*link
	pairs map[pair]*flaps
	held  map[*flaps]struct{} // dampened
}

// refresh updates the state and weight of a link.
func (t *linkTable) refresh(now int64, l *link, cause string) {
	if s := l.wantedState(now); s != l.state || t.cost(now, l) != l.weight || t.capacity(l) != l.capacity {
		t.setState(now, l, s, cause)
	}
}

// cost returns the weight that a link ought to have.
func (t *linkTable) cost(now int64, l *link) uint32 {
	w := min(weight(t.cfg, l.src.speed, l.dst.speed)+l.toll, maxWeight)
	if l.flaps.until > now {
		w = min(w, maxWeight-dampenedCost) + dampenedCost
	}
	return w
}

// setState sets state and weight, which is an event.
func (t *linkTable) setState(now int64, l *link, s linkState, cause string) {
	if l.state != s {
		l.state, l.since = s, now
	}
	l.weight, l.capacity = t.cost(now, l), t.capacity(l)
	t.dirty[l.src.at.Switch] = struct{}{}
	t.events = append(t.events, event{link: &api.LinkChanged{Link: t.message(l), Cause: cause}})
}

// remove removes a link from the list.
func (t *linkTable) remove(l *link, cause string) {
	last := t.links[len(t.links)-1]
	t.links[l.index], last.index = last, l.index
	t.links = t.links[:len(t.links)-1]
	l.flaps.release(l)
	t.dirty[l.src.at.Switch] = struct{}{}
	t.events = append(t.events, event{link: &api.LinkChanged{Link: t.message(l), Removed: true, Cause: cause}})
}

// message returns the API's form of a link.
func (t *linkTable) message(l *link) *api.Link {
	return &api.Link{
		Src: l.src.location(), Dst: l.dst.location(), State: l.state.String(),
		Weight: l.weight, LatencyUs: uint64(max(l.latency, 0) / 1000),
		Since: rfc3339(l.since), Flaps: l.flaps.count(l),
		Settings: t.settings[newPair(l.src.at, l.dst.at)], CapacityKbps: t.capacity(l),
	}
}

// updateWeight computes the share of a link's weight due to latency. It ignores
// small changes, so that paths do not change with them.
func (t *linkTable) updateWeight(l *link) {
	is := float64(delay(l.lately, l.src, l.dst)) / float64(time.Millisecond) * float64(t.cfg.Latency.Weight)
	if was := float64(l.toll); is < was*3/4-1 || is > was*5/4+1 {
		l.toll = uint32(min(is, maxWeight))
	}
}

// setSettings records the operator's settings of a link, and publishes an event for
// each direction that exists. Nobody changes m afterwards.
func (t *linkTable) setSettings(now int64, p pair, m *api.LinkSettings) {
	if proto.Equal(t.settings[p], m) {
		return
	}
	if proto.Size(m) == 0 {
		delete(t.settings, p)
	} else {
		t.settings[p] = m
	}
	f := t.pairs[p]
	if f == nil {
		return
	}
	for _, l := range f.links {
		if l != nil {
			t.setState(now, l, l.state, "settings")
		}
	}
}

// pairOf returns the flap record of a pair of ports.
func (t *linkTable) pairOf(a, b *port) *flaps {
	key := newPair(a.at, b.at)
	f := t.pairs[key]
	if f == nil {
		f = &flaps{pair: key}
		t.pairs[key] = f
	}
	return f
}

// countDown counts that a direction goes down; both directions going down together
// count once.
func (t *linkTable) countDown(now int64, f *flaps, l *link) {
	f.total[f.side(l.src.at)]++
	if !f.alive {
		return
	}
	f.alive = false
	c := t.cfg.Flap
	if c.Downs == 0 {
		return
	}
	if f.until > now { // not quiet: the hold starts again
		f.until = now + f.last
		t.schedule(f.until)
		return
	}
	if len(f.downs) > c.Downs {
		f.downs = append(f.downs[:0], f.downs[1:]...)
	}
	f.downs = append(f.downs, now)
	if len(f.downs) <= c.Downs || now-f.downs[0] > int64(c.Window) {
		return
	}
	if f.last == 0 || now-f.quiet > int64(c.MaxHold) {
		f.last = int64(c.Hold)
	} else {
		f.last = min(2*f.last, int64(c.MaxHold))
	}
	f.until = now + f.last
	f.downs = f.downs[:0]
	t.held[f] = struct{}{}
	t.schedule(f.until)
	t.events = append(t.events, event{damped: &damping{pair: f.pair, hold: f.last}})
	t.refreshBoth(now, f, "dampened")
}

// refreshBoth updates both directions of a link.
func (t *linkTable) refreshBoth(now int64, f *flaps, cause string) {
	for _, l := range f.links {
		if l != nil {
			t.refresh(now, l, cause)
		}
	}
}

// releaseHeld releases the pairs whose hold has passed without a change.
func (t *linkTable) releaseHeld(now int64) {
	for f := range t.held {
		if f.until > now {
			t.schedule(f.until)
			continue
		}
		delete(t.held, f)
		f.until, f.quiet = 0, now
		t.events = append(t.events, event{damped: &damping{pair: f.pair}})
		t.refreshBoth(now, f, "released")
	}
}

// dampenedCost is added to the weight of a dampened link: no path crosses the
// link if another path costs less than that.
const dampenedCost = 50_000
