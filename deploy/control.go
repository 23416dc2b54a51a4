package deploy

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// Control is what a node is for the gateway of its process.
type Control struct{ *Node }

// Pipeline returns the stages in order.
func (n Control) Pipeline() []string { return n.worker.Pipeline() }

// Answers returns what the node answers of the gateway's methods: about the plan, its
// processes and what they do, the configuration and the durable state.
func (n Control) Answers() []api.Answer {
	list := []api.Answer{
		api.AnswerBy(api.GetConfig, n.GetConfig), api.AnswerBy(api.ApplyConfig, n.ApplyConfig),
		api.AnswerBy(api.ListConfigs, n.ListConfigs), api.AnswerBy(api.RollbackConfig, n.RollbackConfig),
		api.AnswerBy(api.GetStore, n.storeAdmin.GetStore), api.AnswerBy(api.ReadStore, n.storeAdmin.ReadStore),
		api.AnswerBy(api.RepairStore, n.storeAdmin.RepairStore),
		api.AnswerBy(api.GetWork, n.GetWork), api.AnswerBy(api.ListCrossings, n.ListCrossings),
		api.AnswerBy(api.GetScaling, n.GetScaling), api.AnswerBy(api.TakeProfile, n.TakeProfile),
		api.AnswerBy(api.ReadWorkerLog, n.ReadWorkerLog),
	}
	if n.config.Alone {
		return append(list, api.AnswerBy(api.ListWorkers, n.listItself), api.AnswerBy(api.GetPlan, withoutPlan[api.GetPlanRequest, api.Plan]),
			api.AnswerBy(api.ApplyPlan, withoutPlan[api.ApplyPlanRequest, api.ApplyPlanResponse]),
			api.AnswerBy(api.ListPlans, withoutPlan[api.ListPlansRequest, api.ListPlansResponse]),
			api.AnswerBy(api.RollbackPlan, withoutPlan[api.RollbackPlanRequest, api.ApplyPlanResponse]))
	}
	return append(list, api.AnswerBy(api.ListWorkers, n.ListWorkers), api.AnswerBy(api.GetPlan, n.GetPlan),
		api.AnswerBy(api.ApplyPlan, n.ApplyPlan), api.AnswerBy(api.ListPlans, n.ListPlans), api.AnswerBy(api.RollbackPlan, n.RollbackPlan))
}

// listItself answers ListWorkers for a controller of one process without a plan.
func (n Control) listItself(context.Context, *api.ListWorkersRequest) (*api.ListWorkersResponse, error) {
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	e := &n.members.entry
	return &api.ListWorkersResponse{Workers: []*api.Worker{{
		Process: aloneName, State: "up", Pid: uint32(e.PID), Machine: e.Machine, Version: e.Version,
		Started: e.Started.UTC().Format(time.RFC3339), Current: true,
	}}}, nil
}

// withoutPlan answers a method about plans for a controller of one process without one.
func withoutPlan[Req, Resp any](context.Context, *Req) (*Resp, error) {
	return nil, api.Errorf(codes.FailedPrecondition, "the controller runs in one process without a plan; start it with weft up PLAN, such as weft up single")
}
