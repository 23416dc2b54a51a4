package deploy

import (
	"context"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// A service with standbys in the plan runs in several processes, and is active
// in one. In the others it sets itself up and waits: the directory lists it as
// a standby, and it receives neither calls nor events. The instances agree on
// the active one themselves (the southbound uses a lease in its bucket): the
// chosen one calls weft.Ready. From then on it replaces all that became ready
// before it, even if their processes still run.

// standsBy reports whether a service of an instance may be a standby.
func standsBy(c *members.Current, mine plan.Instance, spec *weft.Spec) bool {
	w := c.InForce().Worker(mine.Worker)
	return spec.Standby && w != nil && w.Standby > 0
}

// runStandby starts services as standbys. It does not wait until they become active.
func (r *reconciler) runStandby(ctx context.Context, specs []weft.Spec) error {
	if err := r.setup.Settings.Check(r.config.Specs); err != nil {
		return err
	}
	g, err := r.worker.Build(specs, r.setup)
	if err != nil {
		return err
	}
	for _, s := range g.Services {
		s.Standby.Store(true)
		r.members.setState(s, members.StateStandby)
	}
	if err := r.members.publish(ctx); err != nil {
		return err
	}
	r.worker.Enter(g)
	r.worker.RunStandby(ctx, g, r.changed.Notify)
	return nil
}

// listActivatable returns the groups of standby services that may become active now.
func (r *reconciler) listActivatable() (list []*local.Group) {
	seen := map[*local.Group]bool{}
	for _, s := range r.worker.Running().Services {
		if s.Standby.Load() && s.Group.MayActivate.Load() && !seen[s.Group] {
			seen[s.Group] = true
			list = append(list, s.Group)
		}
	}
	return list
}

// activate activates standby services.
func (r *reconciler) activate(ctx context.Context, g *local.Group) error {
	r.beginRun(g)
	if slices.ContainsFunc(g.Services, func(s *local.Service) bool { return len(s.Spec.Wants()) > 0 }) {
		if err := r.sync(ctx, g); err != nil {
			return err
		}
	}
	g.Begin()
	return r.offer(ctx, g, "services ready, having stood by")
}

// beginRun begins the run of services that are set up. It replaces all runs that began
// before, also those that began while these waited: for their turn, or because this
// process was suspended.
func (r *reconciler) beginRun(g *local.Group) {
	epoch := r.members.nextEpoch()
	for _, s := range g.Services {
		if s.Spec.Standby || r.members.overtaken(s) {
			r.worker.BeginRun(s, epoch)
		}
	}
	r.members.mu.Lock()
	r.rebuild() // others may want what these publish
	r.members.mu.Unlock()
}
