package tunnels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A repairer gives tunnels the paths that they lack: it makes the new ones before
// it breaks the old.
type repairer struct {
	b    *store
	find func(ctx context.Context, from, to flow.DPID, protect bool) ([]lsp, error)
	// settle waits until switches have confirmed what was declared, and returns
	// why one has not.
	settle func(ctx context.Context, switches []flow.DPID) error
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
		timer.Reset(r.b.cfg.Retry)
	}
}

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
	var changes []change
	for _, t := range r.needy() {
		if c, err := r.route(ctx, t); err != nil {
			r.lacks(t.name, err.Error())
		} else if c != nil {
			changes = append(changes, *c)
		}
	}
	if len(changes) == 0 {
		return
	}
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

// needy returns the tunnels to be seen to.
func (r *repairer) needy() (list []*tunnel) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, s := range b.status {
		if s.needs && !now.Before(s.again) {
			s.needs = false
			list = append(list, s.tunnel)
		}
	}
	slices.SortFunc(list, func(a, b *tunnel) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	return list
}

// lacks records that a tunnel lacks a path. It is sought again when the network
// changes, or after the time of Retry.
func (r *repairer) lacks(name, why string) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[name]; s != nil {
		b.assess(s, why)
		s.needs, s.again = true, b.now().Add(b.cfg.Retry)
	}
}

// postpone has tunnels seen to again soon.
func (r *repairer) postpone(changes []change) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		if s := b.status[c.name]; s != nil {
			s.needs, s.again = true, b.now().Add(time.Second)
		}
	}
}

// route finds the paths that a tunnel lacks, takes their labels, and stores
// them. It returns nil if the tunnel is gone meanwhile.
func (r *repairer) route(ctx context.Context, t *tunnel) (*change, error) {
	primary, standby, lacking := r.choose(ctx, t)
	if primary == nil {
		return nil, lacking
	}
	c, err := r.keep(ctx, t, primary, standby)
	if err == nil && lacking != nil {
		r.lacks(t.name, lacking.Error())
	}
	return c, err
}

// choose returns the paths that a tunnel should have, those that it has where
// they do, and what it lacks.
func (r *repairer) choose(ctx context.Context, t *tunnel) (primary, standby lsp, lacking error) {
	b := r.b
	b.mu.Lock()
	have := map[bool]lsp{}
	for _, p := range t.paths(onPrimary) {
		if b.whole(p) {
			if _, one := have[true]; one {
				have[false] = p
			} else {
				have[true] = p
			}
		}
	}
	shared := false
	if len(have) == 2 {
		_, shared = share(have[true], have[false])
	}
	b.mu.Unlock()
	primary, standby = have[true], have[false]
	if !t.protect {
		standby = nil
	}
	if primary != nil && (!t.protect || standby != nil && !shared) {
		return primary, standby, nil
	}
	found, err := r.find(ctx, t.from, t.to, t.protect)
	if err == nil {
		err = r.fit(found)
	}
	switch {
	case err != nil:
		return primary, standby, err
	case len(found) == 0 && primary == nil:
		return nil, nil, fmt.Errorf("there is no path from %v to %v", t.from, t.to)
	}
	primary, standby = r.pair(found, have)
	if !t.protect {
		standby = nil
	} else if standby == nil {
		lacking = fmt.Errorf("there is no second path from %v to %v", t.from, t.to)
	}
	return primary, standby, lacking
}

// text returns the text of an error; empty if there is none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// pair returns the paths that were found, as those that there are where they
// lead the same way, those first.
func (r *repairer) pair(found []lsp, have map[bool]lsp) (primary, standby lsp) {
	var old, young []lsp
	for _, p := range found {
		switch {
		case p.sameWay(have[true]):
			old = append(old, have[true])
		case p.sameWay(have[false]):
			old = append(old, have[false])
		default:
			young = append(young, p)
		}
	}
	list := append(old, young...)
	if len(list) == 0 {
		return have[true], have[false]
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return list[0], list[1]
}

// fit returns why paths cannot be used.
func (r *repairer) fit(paths []lsp) error {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range paths {
		if !b.whole(p) {
			return errors.New("paths does not know yet that a link is down")
		}
		for _, h := range p {
			if sw := b.switches[h.sw]; sw.GetOpenflow() == "1.0" {
				return fmt.Errorf("switch %v on the path speaks OpenFlow 1.0, which has no labels", h.sw)
			}
		}
	}
	return nil
}

var errNoLabel = errors.New("no label is free")

// keep stores a tunnel with its paths, which get labels where they have none.
func (r *repairer) keep(ctx context.Context, t *tunnel, paths ...lsp) (*change, error) {
	b := r.b
	var taken []lspHop
	label := func(p lsp) (lsp, error) {
		p = slices.Clone(p)
		for i := 1; i < len(p)-1; i++ {
			if p[i].label != 0 {
				continue
			}
			l, ok := b.labels.take(p[i].sw, b.cfg.FirstLabel, b.cfg.LastLabel)
			if !ok {
				return nil, fmt.Errorf("%w at switch %v: all of %d to %d are in use; raise tunnels.last_label", errNoLabel, p[i].sw, b.cfg.FirstLabel, b.cfg.LastLabel)
			}
			p[i].label = l
			taken = append(taken, p[i])
		}
		return p, nil
	}
	gone := errors.New("changed meanwhile")
	_, now, err := b.tunnels.Change(ctx, t.name, func(old *tunnel) (*tunnel, error) {
		if old != t {
			return nil, gone // it is seen to again
		}
		primary, err := label(paths[0])
		if err != nil {
			return nil, err
		}
		standby, err := label(paths[1])
		if err != nil {
			return nil, err
		}
		if c := t.with(primary, standby); !c.equal(t) {
			return c, nil
		}
		return old, nil
	})
	if err != nil {
		b.mu.Lock()
		for _, h := range taken {
			b.labels.give(h.sw, h.label)
		}
		b.mu.Unlock()
		if errors.Is(err, gone) {
			return nil, nil
		}
		return nil, err
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
			s.needs, s.again = true, b.now().Add(time.Second)
			b.assess(s, "its new path is not confirmed: "+failed.Error())
			continue
		}
		b.index(s, false)
		s.entered, s.active = s.tunnel, onPrimary
		b.index(s, true)
		if !b.whole(s.entered.primary) && b.whole(s.entered.standby) {
			s.active = onStandby
		}
		b.declare(s.tunnel.from)
		b.assess(s, s.reason)
		b.differs(c.name)
		if s.state != "up" && s.again.IsZero() {
			s.needs, s.again = true, b.now().Add(b.cfg.Retry)
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
			b.release(p)
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
