package tunnels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A repairer gives tunnels the paths that they lack: it makes the new ones before
// it breaks the old.
type repairer struct {
	b       *store
	compute func(context.Context, *api.ComputePathsRequest) (*api.ComputePathsResponse, error)
	// settle waits until switches have confirmed what was declared, and returns
	// why one has not.
	settle func(ctx context.Context, switches []flow.DPID) error
	ports  func(context.Context, *api.SetTunnelPortsRequest) (*api.SetTunnelPortsResponse, error)
	log    *slog.Logger
	turn   chan struct{} // capacity one
	kicked chan struct{} // capacity one
}

// run sees to tunnels until ctx ends.
func (r *repairer) run(ctx context.Context) {
	timer := time.NewTimer(r.b.cfg.Retry)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.kicked:
		case <-timer.C:
			r.b.converged()
		}
		r.repair(ctx)
		timer.Reset(r.next())
	}
}

// rounds bounds how often tunnels that have lost bandwidth are seen to at once.
const rounds = 16

// A change is the new paths of one tunnel on their way.
type change struct {
	name string
	new  *tunnel
}

// repair sees to all tunnels in need.
func (r *repairer) repair(ctx context.Context) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-r.turn }()
	defer r.tidy(ctx)
	r.surround(ctx)
	changes := r.improve(ctx)
	for range rounds { // each may take bandwidth from tunnels that are then in need
		list := r.needy()
		if len(list) == 0 {
			break
		}
		changes = append(changes, r.route(ctx, list)...)
	}
	r.install(ctx, changes)
}

// install has switches take new paths, which are stored, and gives up old ones. It is called
// by who has the turn.
func (r *repairer) install(ctx context.Context, changes []change) {
	if len(changes) == 0 {
		return
	}
	defer r.b.kick() // the links of new paths have no bypass yet
	// First the switches behind the heads, then the heads, then what is left of old paths.
	var behind, heads []flow.DPID
	for _, c := range changes {
		for _, p := range c.new.paths(onPrimary) {
			behind = append(behind, switchesOf(p)[1:]...)
		}
		heads = append(heads, c.new.from)
	}
	err := r.wait(ctx, behind)
	r.enter(changes, err)
	if wait := r.wait(ctx, heads); wait != nil {
		r.log.Warn("heads of tunnels not confirmed", "error", wait)
		r.postpone(changes) // what is retired stays: somebody may still use it
		return
	}
	r.retire(changes)
}

// need has a tunnel seen to, from a time on. It is called with mu held.
func (b *store) need(s *status, from time.Time) {
	b.needs[s.tunnel.name], s.again = s, from
}

// seekAgain has the paths sought at once of those tunnels in need that may have one now, and
// does not wait for their time. It is called with mu held.
func seekAgain(b *store, may func(*status) bool) {
	for _, s := range b.needs {
		if may(s) {
			s.again = time.Time{}
			b.kick()
		}
	}
}

// needy returns the tunnels to be seen to, the most important first; one that is to
// be apart from another of them is left for the next round.
func (r *repairer) needy() (list []*tunnel) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room {
		b.room = false
		seekAgain(b, func(s *status) bool { return s.lack != "" && s.tunnel.wanted.ReservedKbps > 0 })
	}
	now := b.now()
	due := map[string]bool{}
	for name, s := range b.needs {
		if !now.Before(s.again) {
			due[name] = true
		}
	}
	for name := range due {
		if t := b.status[name].tunnel; !due[t.wanted.DiverseFrom] {
			list = append(list, t)
		}
	}
	if len(list) == 0 { // they are to be apart from each other
		for name := range due {
			list = append(list, b.status[name].tunnel)
		}
	}
	for _, t := range list {
		delete(b.needs, t.name)
	}
	slices.SortFunc(list, func(a, b *tunnel) int {
		x, _ := priorities(a.wanted)
		y, _ := priorities(b.wanted)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.name, b.name))
	})
	return list
}

// lacks records that a tunnel lacks a path. It is sought again when the network
// changes, or after the time of Retry.
func (r *repairer) lacks(name, why string) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[name]; s != nil {
		s.lack = why
		b.assess(s, why)
		if b.needs[name] == nil { // nothing else has happened
			b.need(s, b.now().Add(b.cfg.Retry))
		}
	}
}

// postpone has tunnels seen to again soon.
func (r *repairer) postpone(changes []change) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		if s := b.status[c.name]; s != nil {
			b.need(s, b.now().Add(time.Second))
		}
	}
}

// route finds the paths that tunnels lack, takes their labels, and stores them.
func (r *repairer) route(ctx context.Context, list []*tunnel) (changes []change) {
	b := r.b
	var quests, whole []*quest
	b.mu.Lock()
	for _, t := range list {
		s := b.status[t.name]
		if s == nil || s.tunnel != t {
			continue
		}
		if q := b.quest(s); q == nil {
			whole = append(whole, &quest{t: t, found: s.tunnel.paths(s.active)})
		} else {
			q.displaced = s.displaced
			if q.kept == nil && (s.reroute || s.late(b) != "" || b.links.drained(s.tunnel.primary) || b.links.drained(s.tunnel.standby)) {
				q.own = true
			}
			quests = append(quests, q)
		}
	}
	booked := b.booked.messages(nil)
	b.mu.Unlock()
	free := slices.DeleteFunc(slices.Clone(quests), func(q *quest) bool { return q.own })
	added, err := r.seek(ctx, free, booked)
	if err == nil {
		err = r.alone(ctx, slices.DeleteFunc(slices.Clone(quests), func(q *quest) bool {
			return !q.own && (q.kept == nil || len(q.found) > 0)
		}), added)
	}
	for _, q := range append(whole, quests...) {
		if err != nil {
			q.found, q.why = nil, err.Error()
		}
		if c := r.settled(ctx, q); c != nil {
			changes = append(changes, *c)
		}
	}
	return changes
}

// settled stores what a quest has found; nil if nothing changes.
func (r *repairer) settled(ctx context.Context, q *quest) *change {
	b, t := r.b, q.t
	if err := r.fit(q.found); err != nil {
		q.found, q.why = nil, err.Error()
	}
	b.mu.Lock()
	s := b.status[t.name]
	if s == nil || s.tunnel != t || s.displaced != q.displaced {
		b.mu.Unlock()
		return nil // it is seen to again
	}
	displaced, why := s.displaced, q.why
	if displaced != "" {
		why = displaced + "; " + why
	}
	s.lack = ""
	primary, standby := b.arrange(s, q)
	b.mu.Unlock()
	c, err := r.keep(ctx, t, placing{primary: primary, standby: standby, loses: displaced != "" && len(q.found) == 0})
	switch {
	case err != nil:
		r.lacks(t.name, err.Error())
	case len(q.found) == 0:
		if q.kept != nil {
			why = fmt.Sprintf("there is no second path from %v to %v: %s", t.from, t.to, q.why)
		}
		r.lacks(t.name, why)
	case t.protect && standby == nil:
		r.lacks(t.name, fmt.Sprintf("there is no second path from %v to %v", t.from, t.to))
	}
	return c
}

// arrange returns the paths of a tunnel, given what was found: those that there are
// where they lead the same way, those first. A path that has a link down stays if
// there is no other. It is called with mu held.
func (b *store) arrange(s *status, q *quest) (primary, standby lsp) {
	have := s.tunnel.paths(s.active)
	list := q.found
	if q.kept != nil {
		list = append([]lsp{q.kept}, list...)
	}
	if len(list) == 0 {
		if s.displaced != "" {
			return nil, nil
		}
		return s.tunnel.primary, s.tunnel.standby
	}
	var old, young []lsp
	for _, p := range list[:min(len(list), 2)] {
		if i := slices.IndexFunc(have, p.sameWay); i >= 0 {
			old = append(old, have[i])
		} else {
			young = append(young, p)
		}
	}
	list = append(old, young...)
	timelyFirst(b, s.tunnel, list)
	if len(list) == 1 || !s.tunnel.protect {
		return list[0], nil
	}
	return list[0], list[1]
}

var errNoLabel = errors.New("no label is free")

// labelled returns a tunnel with paths, which get labels where they have none, and
// which were taken. It is called with mu held.
func (b *store) labelled(t *tunnel, paths ...lsp) (now *tunnel, taken []lspHop, err error) {
	for k, p := range paths {
		p = slices.Clone(p)
		for i := 1; i < len(p)-1; i++ {
			if p[i].label != 0 {
				continue
			}
			l, ok := b.labels.take(p[i].sw, b.cfg.FirstLabel, b.cfg.LastLabel)
			if !ok {
				b.labels.release(taken)
				return nil, nil, fmt.Errorf("%w at switch %v: all of %d to %d are in use; raise tunnels.last_label", errNoLabel, p[i].sw, b.cfg.FirstLabel, b.cfg.LastLabel)
			}
			p[i].label = l
			taken = append(taken, p[i])
		}
		paths[k] = p
	}
	return t.with(paths[0], paths[1]), taken, nil
}

// A placing is the paths that a tunnel gets.
type placing struct {
	primary, standby lsp
	loses            bool // it has lost its bandwidth for want of another path
	optimised        bool // an optimisation has chosen them
}

// keep stores a tunnel with its paths. It returns nil if the switches have them already.
func (r *repairer) keep(ctx context.Context, t *tunnel, p placing) (*change, error) {
	b := r.b
	var taken []lspHop
	gone := errors.New("changed meanwhile")
	_, now, err := b.kept(t).Change(ctx, t.name, func(old *tunnel) (*tunnel, error) {
		if old != t {
			return nil, gone // it is seen to again
		}
		c, list, err := b.labelled(t, p.primary, p.standby)
		if err != nil {
			return nil, err
		}
		c.optimised = p.optimised || t.optimised && c.primary.sameWay(t.primary) && c.standby.sameWay(t.standby)
		taken = list
		s := b.status[t.name]
		if s.reroute = false; !p.loses {
			s.displaced = ""
		}
		if !c.equal(t) {
			return c, nil
		}
		b.book(s)
		return old, nil
	})
	if err != nil {
		b.mu.Lock()
		b.labels.release(taken)
		b.mu.Unlock()
		if errors.Is(err, gone) {
			return nil, nil
		}
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[t.name]
	if s != nil && s.tunnel == now {
		if delete(b.needs, t.name); s.displaced != "" && !p.loses {
			b.need(s, s.again)
		}
	}
	if s == nil || s.tunnel != now || s.entered == now && len(s.retired) == 0 {
		if s != nil {
			b.assess(s, s.lack)
		}
		return nil, nil
	}
	return &change{t.name, now}, nil
}

// wait waits until switches have confirmed what was declared.
func (r *repairer) wait(ctx context.Context, switches []flow.DPID) error {
	slices.Sort(switches)
	ctx, cancel := context.WithTimeout(ctx, r.b.cfg.Deadline)
	defer cancel()
	return r.settle(ctx, slices.Compact(switches))
}

// enter has the heads of tunnels use their new paths. A head whose old path is
// whole keeps it if the switches of the new ones have not confirmed them.
func (r *repairer) enter(changes []change, failed error) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		s := b.status[c.name]
		if s == nil || s.tunnel != c.new {
			continue // changed meanwhile; seen to again
		}
		if failed != nil && s.entered != s.tunnel && b.whole(s.path(s.active)) {
			b.need(s, b.now().Add(time.Second))
			b.assess(s, "its new path is not confirmed: "+failed.Error())
			continue
		}
		b.index(s, false)
		s.entered, s.active, s.yields = s.tunnel, onPrimary, false
		b.index(s, true)
		b.book(s)
		if !b.whole(s.entered.primary) && b.whole(s.entered.standby) {
			s.active = onStandby
		}
		b.declare(s.tunnel.from)
		b.assess(s, s.lack)
		b.differs(c.name)
		if s.state != "up" && s.again.IsZero() {
			b.need(s, b.now().Add(b.cfg.Retry))
		}
	}
}

// retire removes what is left of old paths.
func (r *repairer) retire(changes []change) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		s := b.status[c.name]
		if s == nil || s.entered != s.tunnel || len(s.retired) == 0 {
			continue
		}
		b.index(s, false)
		var touched []flow.DPID
		for _, p := range s.retired {
			b.labels.release(p)
			touched = append(touched, switchesOf(p)...)
		}
		s.retired = nil
		for _, p := range s.tunnel.paths(onPrimary) { // a label may be in an old path and in a new one
			for _, h := range p {
				if h.label != 0 {
					b.labels.mark(h.sw, h.label)
				}
			}
		}
		b.index(s, true)
		b.declare(touched...)
	}
}
