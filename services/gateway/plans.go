package gateway

import (
	"context"
	"os"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// onePlan is Plans for a controller of one process without a plan.
type onePlan struct{ p Process }

func (o onePlan) ListWorkers(context.Context, *api.ListWorkersRequest) (*api.ListWorkersResponse, error) {
	machine, _ := os.Hostname() // informational
	return &api.ListWorkersResponse{Workers: []*api.Worker{{
		Process: "controller", State: "up", Pid: uint32(os.Getpid()), Machine: machine, Version: o.p.Version,
		Started: o.p.Started.UTC().Format(time.RFC3339), Current: true,
	}}}, nil
}

func (onePlan) GetPlan(context.Context, *api.GetPlanRequest) (*api.Plan, error) {
	return nil, api.Errorf(codes.FailedPrecondition, "the controller runs in one process without a plan; start it with weft up PLAN, such as weft up single")
}

func (o onePlan) ApplyPlan(context.Context, *api.ApplyPlanRequest) (*api.ApplyPlanResponse, error) {
	_, err := o.GetPlan(context.Background(), nil)
	return nil, err
}

func (o onePlan) ListPlans(context.Context, *api.ListPlansRequest) (*api.ListPlansResponse, error) {
	_, err := o.GetPlan(context.Background(), nil)
	return nil, err
}

func (o onePlan) RollbackPlan(context.Context, *api.RollbackPlanRequest) (*api.ApplyPlanResponse, error) {
	_, err := o.GetPlan(context.Background(), nil)
	return nil, err
}

// noPlanner is Planner where no process can look at plans.
type noPlanner struct{}

func (noPlanner) none() error {
	return api.Errorf(codes.Unimplemented, "this gateway runs outside a controller's process, which could look at plans")
}

func (n noPlanner) ShowPlan(context.Context, *api.ShowPlanRequest) (*api.ShowPlanResponse, error) {
	return nil, n.none()
}

func (n noPlanner) CheckPlan(context.Context, *api.CheckPlanRequest) (*api.CheckPlanResponse, error) {
	return nil, n.none()
}

func (n noPlanner) DiffPlans(context.Context, *api.DiffPlansRequest) (*api.DiffPlansResponse, error) {
	return nil, n.none()
}

func (n noPlanner) ExplainPlan(context.Context, *api.ExplainPlanRequest) (*api.ExplainPlanResponse, error) {
	return nil, n.none()
}

// noProfiles is Profiles where no process can profile the services.
type noProfiles struct{}

func (noProfiles) TakeProfile(context.Context, *api.TakeProfileRequest) (*api.TakeProfileResponse, error) {
	return nil, api.Errorf(codes.Unimplemented, "this gateway runs outside a controller's process, which could look at where its time goes")
}

// noWork is Work where no process can report live figures.
type noWork struct{}

func (noWork) none() error {
	return api.Errorf(codes.Unimplemented, "this gateway runs outside a controller's process, which could report live figures")
}

func (n noWork) GetWork(context.Context, *api.GetWorkRequest) (*api.GetWorkResponse, error) {
	return nil, n.none()
}

func (n noWork) ListCrossings(context.Context, *api.ListCrossingsRequest) (*api.ListCrossingsResponse, error) {
	return nil, n.none()
}

func (n noWork) GetScaling(context.Context, *api.GetScalingRequest) (*api.GetScalingResponse, error) {
	return nil, n.none()
}

func (noWork) FollowScaling(ctx context.Context, _ func(*api.ScalingDecision)) { <-ctx.Done() }
