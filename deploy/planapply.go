package deploy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// startSource is where a plan came from that nobody applied.
const startSource = "the start"

// plans brings plans into force, and keeps their history.
type plans struct {
	config  *NodeConfig
	members *membership
	log     *slog.Logger
	history *members.History
	configs *config.Store // the configurations that plans are applied with
}

// GetPlan returns the plan in force, or one of the history.
func (ps *plans) GetPlan(ctx context.Context, req *api.GetPlanRequest) (*api.Plan, error) {
	if req.GetGeneration() != 0 {
		_, former, place, err := ps.ofHistory(ctx, req.Generation)
		if err != nil {
			return nil, err
		}
		m := formerPlan(former, place == 0)
		m.Text = former.Plan
		return m, nil
	}
	current := ps.members.plan()
	if current == nil {
		return nil, api.Errorf(codes.Unavailable, "this process has not seen the plan yet; try again")
	}
	return &api.Plan{Text: current.Plan, Generation: current.Generation}, nil
}

// ApplyPlan brings another plan into force. It returns when the plan is
// written; the processes then apply it, and ListWorkers shows their progress.
func (ps *plans) ApplyPlan(ctx context.Context, req *api.ApplyPlanRequest) (*api.ApplyPlanResponse, error) {
	return ps.apply(ctx, req, "the northbound", "")
}

// apply is ApplyPlan of a plan from somewhere, which the history keeps unless
// that is empty, and for a reason, which the directory keeps.
func (ps *plans) apply(ctx context.Context, req *api.ApplyPlanRequest, source, why string) (*api.ApplyPlanResponse, error) {
	p, err := plan.Parse("plan", []byte(req.Text))
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	old, revision, err := ps.members.directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	if req.MadeFrom != 0 && (old == nil || req.MadeFrom != old.Generation) {
		return nil, api.Errorf(codes.Aborted, "plan %d is not in force any more; look at the one that is with GET /v1/plan, and make yours from it", req.MadeFrom)
	}
	if req.MadeFrom == 0 && old != nil {
		p = p.KeepScale(old.InForce())
	}
	if err := config.CheckPlan(p, ps.config.Specs, ps.config.Settings...); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	chosen, err := ps.configs.Choose(ctx, config.GivenBy(p))
	if err != nil {
		return nil, err
	}
	if p = chosen.In(p); chosen.Kept() {
		if err := config.CheckPlan(p, ps.config.Specs, ps.config.Settings...); err != nil {
			return nil, api.Errorf(codes.FailedPrecondition, "the configuration in force, number %d, does not fit this plan; give the plan a config of its own, or apply another configuration first: %w", chosen.Number, err)
		}
	}
	resp := &api.ApplyPlanResponse{}
	if old != nil {
		if err := config.StartOnly(old.InForce(), p, ps.config.Specs, ps.config.Settings...); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
		resp.Generation = old.Generation
		for _, c := range plan.Diff(old.InForce(), p) {
			resp.Changes = append(resp.Changes, c.String())
		}
	}
	if old != nil && len(resp.Changes) == 0 {
		return resp, nil
	}
	next, err := members.Succeed(old, p, ps.config.Specs)
	if err != nil {
		return nil, err
	}
	if err := ps.config.startable(old, next, ps.members.links.Machine); err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	}
	if req.DryRun {
		return resp, nil
	}
	next.Why = why
	if err := ps.members.directory.Put(ctx, next, revision); err != nil {
		return nil, api.Errorf(codes.Aborted, "%w", err)
	}
	if source != "" {
		if err := ps.record(ctx, old, next, source); err != nil {
			ps.log.Warn("the plan is not in the history", "error", err)
		}
	}
	ps.log.Info("plan is applied", "plan", p.Name, "generation", next.Generation, "configuration", chosen.Why)
	if err := ps.configs.Start(ctx, chosen, ps.members.now()); err != nil {
		ps.log.Warn("the configuration of the plan is not in the history", "error", err)
	}
	resp.Generation = next.Generation
	return resp, nil
}

// list returns the plan in force and the history, the newest first. The first
// record is that of the plan in force, whether it is written or not.
func (ps *plans) list(ctx context.Context) (*members.Current, []*members.Former, error) {
	current, _, err := ps.members.directory.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	if current == nil {
		return nil, nil, api.Errorf(codes.Unavailable, "there is no plan in force yet; try again")
	}
	list, err := ps.history.List(ctx)
	if err == nil && (len(list) == 0 || !list[0].Is(current)) {
		var now *members.Former
		now, err = members.FormerOf(current, startSource, time.Time{})
		list = slices.Insert(list, 0, now)
	}
	return current, list, err
}

// record adds a plan that was applied to the history, and the one before it if
// it is not there.
func (ps *plans) record(ctx context.Context, before, now *members.Current, source string) error {
	var added []*members.Former
	if before != nil {
		list, err := ps.history.List(ctx)
		if err != nil {
			return err
		}
		if len(list) == 0 || !list[0].Is(before) {
			former, err := members.FormerOf(before, startSource, time.Time{})
			if err != nil {
				return err
			}
			added = append(added, former)
		}
	}
	f, err := members.FormerOf(now, source, ps.members.now())
	if err != nil {
		return err
	}
	return ps.history.Add(ctx, append(added, f)...)
}

// formerPlan returns a record of the history as clients see it.
func formerPlan(f *members.Former, first bool) *api.Plan {
	m := &api.Plan{Generation: f.Generation, Name: f.Name, State: "former", Source: f.Source}
	if first {
		m.State = "in-force"
	}
	if !f.Applied.IsZero() {
		m.Applied = f.Applied.UTC().Format(time.RFC3339)
	}
	return m
}

// ListPlans returns the plans in the history.
func (ps *plans) ListPlans(ctx context.Context, _ *api.ListPlansRequest) (*api.ListPlansResponse, error) {
	_, list, err := ps.list(ctx)
	if err != nil {
		return nil, err
	}
	resp := &api.ListPlansResponse{}
	for i, f := range list {
		resp.Plans = append(resp.Plans, formerPlan(f, i == 0))
	}
	return resp, nil
}

// ofHistory returns the plan of a generation, or for 0 the one before the one in
// force, and its place in the history.
func (ps *plans) ofHistory(ctx context.Context, generation uint64) (*members.Current, *members.Former, int, error) {
	current, list, err := ps.list(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	i := 1
	if generation != 0 {
		i = slices.IndexFunc(list, func(f *members.Former) bool { return f.Generation == generation })
	}
	switch {
	case i < 0:
		return nil, nil, 0, api.Errorf(codes.NotFound, "plan %d is not in the history; weft plan history lists those that are", generation)
	case i >= len(list):
		return nil, nil, 0, api.Errorf(codes.FailedPrecondition, "there is no plan before the one in force; weft plan history lists all")
	}
	return current, list[i], i, nil
}

// RollbackPlan applies a plan from the history again, with the configuration in
// force.
func (ps *plans) RollbackPlan(ctx context.Context, req *api.RollbackPlanRequest) (*api.ApplyPlanResponse, error) {
	current, former, _, err := ps.ofHistory(ctx, req.Generation)
	if err != nil {
		return nil, err
	}
	p, err := plan.Parse(fmt.Sprintf("plan %d", former.Generation), []byte(former.Plan))
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	text, err := p.WithConfig(current.InForce().Config).YAML()
	if err != nil {
		return nil, err
	}
	return ps.apply(ctx, &api.ApplyPlanRequest{Text: string(text), DryRun: req.DryRun}, fmt.Sprintf("roll-back to %d", former.Generation), "")
}
