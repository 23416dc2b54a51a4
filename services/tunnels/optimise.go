package tunnels

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/pce/assign"
)

// The bounds of an optimisation.
const (
	atOnce     = 4    // tunnels that move at the same time unless another number is given
	atOnceMost = 64   //
	moveLeast  = 1e-3 // share of the mean delay that a move gains
	boundGap   = 1e-3 // to which the bound is computed
	boundMost  = 300  // rounds for the bound
)

// An optimiser moves tunnels to paths that are better for all of them together.
type optimiser struct {
	r     *repairer
	turn  chan struct{}        // capacity one
	moved map[string]time.Time // when it has last moved tunnels, for two rounds; who has the turn may use it
}

func newOptimiser(r *repairer) *optimiser {
	return &optimiser{r: r, turn: make(chan struct{}, 1), moved: map[string]time.Time{}}
}

// optimise answers OptimiseTunnels.
func (o *optimiser) optimise(ctx context.Context, q *api.OptimiseTunnelsRequest) (*api.OptimiseTunnelsResponse, error) {
	gain := uint32(gainLeast)
	if q.GainPercent != nil {
		gain = *q.GainPercent
	}
	switch {
	case gain > 100:
		return nil, api.Errorf(codes.InvalidArgument, "gain_percent is %d: want at most 100", gain)
	case q.GetAtOnce() > atOnceMost:
		return nil, api.Errorf(codes.InvalidArgument, "at_once is %d: want at most %d", q.AtOnce, atOnceMost)
	}
	n := int(q.GetAtOnce())
	if n == 0 {
		n = atOnce
	}
	return o.run(ctx, wish{gain: gain, atOnce: n, dry: q.GetDryRun()})
}

// A wish is what is wanted of an optimisation.
type wish struct {
	gain   uint32 // percent that all moves gain at least
	atOnce int
	dry    bool // only say what would move
	holds  bool // tunnels stay that have been moved in the last two rounds
}

// run moves tunnels.
func (o *optimiser) run(ctx context.Context, w wish) (*api.OptimiseTunnelsResponse, error) {
	select {
	case o.turn <- struct{}{}:
	default:
		return nil, api.Errorf(codes.Aborted, "tunnels are being optimised by another call: wait until they are")
	}
	defer func() { <-o.turn }()
	b := o.r.b
	maps.DeleteFunc(o.moved, func(_ string, at time.Time) bool { return b.now().Sub(at) >= 2*b.cfg.Optimise.Every })
	p := newProblem(b, func(name string) bool {
		_, did := o.moved[name]
		return did && w.holds
	})
	resp := &api.OptimiseTunnelsResponse{Tunnels: uint32(p.tunnels), Fixed: uint32(p.fixed)}
	if err := p.Check(); err != nil {
		return nil, api.Errorf(codes.Internal, "tunnels cannot be optimised: %w", err)
	}
	now, to := p.Present(), p.Present()
	to, bound := to.Optimise(assign.Terms{Least: moveLeast, Gap: boundGap, Rounds: boundMost})
	steps := to.Moves(w.atOnce)
	before := now.MeanDelay()
	resp.MeanDelay, resp.Bound = before*1e6, bound.Bound*1e6
	resp.WorstLoad, _ = now.WorstLoad()
	if before > 0 {
		resp.Gain = 100 * (before - to.MeanDelay()) / before
	}
	switch {
	case p.tunnels == 0:
		resp.Reason = "no tunnel books bandwidth"
	case len(steps) == 0:
		resp.Reason = fmt.Sprintf("no tunnel moves: no move gains %v %% of the mean delay", 100*moveLeast)
	case resp.Gain < float64(w.gain):
		resp.Reason = fmt.Sprintf("nothing moves: all %d moves together gain %.2f %% of the mean delay, less than %d %%", len(slices.Concat(steps...)), resp.Gain, w.gain)
		steps = nil
	}
	for _, step := range steps {
		list := make([]*api.TunnelMove, len(step))
		for k, m := range step {
			d := p.demands[m.Demand]
			list[k] = &api.TunnelMove{Tunnel: d.t.name, Which: [...]string{"primary", "standby"}[d.which], From: names(p.path(m.From)), To: names(p.path(m.To)),
				Gain: 100 * m.Gain / before, State: "planned"}
		}
		if !w.dry {
			o.step(ctx, p, step, list)
		}
		for k, m := range step {
			if list[k].State != "failed" {
				now.Set(m.Demand, m.To)
			}
		}
		resp.Moves = append(resp.Moves, list...)
	}
	resp.MeanDelayAfter = now.MeanDelay() * 1e6
	var worst int
	if resp.WorstLoadAfter, worst = now.WorstLoad(); worst >= 0 {
		resp.WorstLink = api.NewLocation(p.links[worst][0])
	}
	return resp, nil
}

// follow optimises as often as is configured, until ctx ends.
func (o *optimiser) follow(ctx context.Context) {
	cfg := o.r.b.cfg.Optimise
	if cfg.Every == 0 {
		return
	}
	tick := time.NewTicker(cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o.again(ctx)
	}
}

// again is one round of the continuous optimisation.
func (o *optimiser) again(ctx context.Context) {
	cfg := o.r.b.cfg.Optimise
	resp, err := o.run(ctx, wish{gain: cfg.Gain, atOnce: atOnce, holds: true})
	switch {
	case err != nil:
		o.r.log.Warn("tunnels not optimised", "error", err)
	case len(resp.Moves) > 0:
		o.r.log.Info("tunnels optimised", "moves", len(resp.Moves), "gain_percent", resp.Gain, "mean_delay_us", resp.MeanDelayAfter, "bound_us", resp.Bound)
	}
}

// names returns the switches of a path.
func names(p lsp) (list []string) {
	for _, h := range p {
		list = append(list, h.sw.String())
	}
	return list
}

// step makes the moves of one step, and says in moves what has become of them.
func (o *optimiser) step(ctx context.Context, p *problem, step []assign.Move, moves []*api.TunnelMove) {
	r, b := o.r, o.r.b
	fail := func(k int, why string) { moves[k].State, moves[k].Reason = "failed", why }
	late := false
	if deadline, ok := ctx.Deadline(); ok {
		late = time.Until(deadline) < b.cfg.Deadline
	}
	if !late {
		select {
		case r.turn <- struct{}{}:
			defer func() { <-r.turn }()
		case <-ctx.Done():
			late = true
		}
	}
	if late {
		for k := range moves {
			fail(k, "the time of the call is over: call again")
		}
		return
	}
	defer r.tidy(ctx)
	var changes []change
	for k, m := range step {
		d := p.demands[m.Demand]
		c, err := r.move(ctx, d, p.path(m.From), p.path(m.To))
		if err != nil {
			fail(k, err.Error())
			continue
		}
		moves[k].State = "moved"
		o.moved[d.t.name] = b.now()
		if c != nil {
			changes = append(changes, *c)
		}
	}
	r.install(ctx, changes)
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, m := range step {
		d := p.demands[m.Demand]
		switch s := b.status[d.t.name]; {
		case moves[k].State == "failed":
		case s == nil || !s.tunnel.both()[d.which].sameWay(p.path(m.To)):
			fail(k, "it has changed meanwhile")
		case s.entered != s.tunnel:
			fail(k, s.reason+"; it is tried again")
		}
	}
}

// move stores another path of a tunnel, if nothing that speaks against it has happened since it was
// found, and it has room beside all that is booked now. It is called by who has the turn.
func (r *repairer) move(ctx context.Context, d booked, from, to lsp) (*change, error) {
	if err := r.fit([]lsp{to}); err != nil {
		return nil, err
	}
	b := r.b
	b.mu.Lock()
	s := b.status[d.t.name]
	var p placing
	err := func() error {
		if s == nil || !s.tunnel.equalWanted(d.t) || !s.movable(b) {
			return fmt.Errorf("tunnel %s has changed, or lacks something, since its path was found", d.t.name)
		}
		p = placing{primary: s.tunnel.primary, standby: s.tunnel.standby, optimised: true}
		path := &p.primary
		if d.which == onStandby {
			path = &p.standby
		}
		if !path.sameWay(from) {
			return fmt.Errorf("tunnel %s has another path than when it was found", d.t.name)
		}
		*path = to
		if b.links.drained(to) {
			return errors.New("a link of its new path is drained")
		}
		return b.booked.room(&b.links, s, to)
	}()
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return r.keep(ctx, s.tunnel, p)
}

// equalWanted reports whether two tunnels are wanted to be the same.
func (t *tunnel) equalWanted(o *tunnel) bool { return t.group == o.group && sameDemand(t, o) }
