package discovery

// dampenedCost is added to the weight of a dampened link: no path crosses the
// link if another path costs less than that.
const dampenedCost = 50_000

// pairOf returns the flap record of a pair of ports.
func (t *topology) pairOf(a, b *port) *flaps {
	key := newPair(a.at, b.at)
	f := t.pairs[key]
	if f == nil {
		f = &flaps{pair: key}
		t.pairs[key] = f
	}
	return f
}

// down counts that a direction goes down; both directions going down together
// count once.
func (f *flaps) down(t *topology, now int64, l *link) {
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
	f.refresh(t, now, "dampened")
}

// refresh updates both directions.
func (f *flaps) refresh(t *topology, now int64, cause string) {
	for _, l := range f.links {
		if l != nil {
			l.refresh(t, now, cause)
		}
	}
}

// releaseHeld releases the pairs whose hold has passed without a change.
func (t *topology) releaseHeld(now int64) {
	for f := range t.held {
		if f.until > now {
			t.schedule(f.until)
			continue
		}
		delete(t.held, f)
		f.until, f.quiet = 0, now
		t.events = append(t.events, event{damped: &damping{pair: f.pair}})
		f.refresh(t, now, "released")
	}
}
