package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// startSource is where a plan came from that nobody applied.
const startSource = "the start"

// plansOf returns the plan in force and the history, the newest first. The first
// record is that of the plan in force, whether it is written or not.
func (n *Node) plansOf(ctx context.Context) (*members.Current, []*members.Former, error) {
	current, _, err := n.members.directory.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	if current == nil {
		return nil, nil, api.Errorf(codes.Unavailable, "there is no plan in force yet; try again")
	}
	list, err := n.history.List(ctx)
	if err == nil && (len(list) == 0 || !list[0].Is(current)) {
		var now *members.Former
		now, err = members.FormerOf(current, startSource, time.Time{})
		list = slices.Insert(list, 0, now)
	}
	return current, list, err
}

// record adds a plan that was applied to the history, and the one before it if
// it is not there.
func (n *Node) record(ctx context.Context, before, now *members.Current, source string) error {
	var added []*members.Former
	if before != nil {
		list, err := n.history.List(ctx)
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
	f, err := members.FormerOf(now, source, n.members.now())
	if err != nil {
		return err
	}
	return n.history.Add(ctx, append(added, f)...)
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
func (n *Node) ListPlans(ctx context.Context, _ *api.ListPlansRequest) (*api.ListPlansResponse, error) {
	_, list, err := n.plansOf(ctx)
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
func (n *Node) ofHistory(ctx context.Context, generation uint64) (*members.Current, *members.Former, int, error) {
	current, list, err := n.plansOf(ctx)
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
func (n *Node) RollbackPlan(ctx context.Context, req *api.RollbackPlanRequest) (*api.ApplyPlanResponse, error) {
	current, former, _, err := n.ofHistory(ctx, req.Generation)
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
	return n.applyPlan(ctx, &api.ApplyPlanRequest{Text: string(text), DryRun: req.DryRun}, fmt.Sprintf("roll-back to %d", former.Generation), "")
}
