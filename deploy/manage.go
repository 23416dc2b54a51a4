package deploy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// ListWorkers returns the state of every process of the plan, and of every
// other process, after pinging each.
func (n *Node) ListWorkers(ctx context.Context, _ *api.ListWorkersRequest) (*api.ListWorkersResponse, error) {
	n.members.mu.Lock()
	current, entries, peers, over := n.members.current, maps.Clone(n.members.entries), maps.Clone(n.members.peers), n.members.links.View.Load().Superseded
	n.members.mu.Unlock()
	if current == nil {
		return nil, api.Errorf(codes.Unavailable, "this process has not seen the plan yet; try again")
	}
	worked := map[members.RunOf]bool{} // running services, by partition
	for _, e := range entries {
		for _, s := range e.Services {
			if s.State == members.StateReady {
				worked[members.RunOf{Service: s.Name, Partition: e.Partition}] = true
			}
		}
	}
	storeCtx, cancel := context.WithTimeout(ctx, time.Second)
	keeper, err := members.ReadKept(storeCtx, n.config.Store)
	cancel()
	if err != nil {
		n.log.Warn("what the supervisor says is not known now", "error", err)
	}
	expected := map[string]bool{}
	for _, i := range current.InForce().Instances() {
		expected[current.ProcessOf(i.Name)] = true
	}
	names := maps.Clone(expected)
	for name := range entries {
		names[name] = true
	}
	resp := &api.ListWorkersResponse{Generation: current.Generation, Plan: current.InForce().Name}
	var asked sync.WaitGroup
	asked.Go(func() { resp.Store = n.storeState(ctx) })
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w := &api.Worker{Process: name, State: "down"}
		resp.Workers = append(resp.Workers, w)
		if i, ok := current.InstanceOf(name); ok {
			w.Instance, w.Partition = i.Name, i.Partition
		}
		if k, ok := keeper[name]; ok {
			w.Restarts, w.LastExit, w.Unapplied, w.Pid = uint32(k.Restarts), k.LastExit, k.Unapplied, uint32(k.PID)
			if k.State == "backing-off" {
				w.State = k.State
			}
		}
		e := entries[name]
		if e == nil {
			continue
		}
		w.Pid, w.Machine, w.Version, w.Addresses = uint32(e.PID), e.Machine, e.Version, e.Addresses
		w.Started = e.Started.UTC().Format(time.RFC3339Nano)
		w.Current = e.Generation == current.Generation
		alive := "up"
		if len(e.Services) == 0 && e.Generation != current.Generation {
			alive = "starting" // it has just published its entry
		}
		for _, s := range e.Services {
			role := members.RoleOf(current, over, e, &s)
			w.Services = append(w.Services, &api.WorkerService{Name: s.Name, State: s.State, Role: role})
			if s.State != members.StateReady && !(s.State == members.StateStandby && worked[members.RunOf{Service: s.Name, Partition: e.Partition}]) {
				alive = "starting"
			}
			if s.State == members.StateDraining {
				alive = "draining"
			}
		}
		slices.SortFunc(w.Services, func(a, b *api.WorkerService) int {
			return n.config.place(a.Name) - n.config.place(b.Name)
		})
		if !expected[name] {
			alive = "draining"
		}
		w.Apps = appsOf(e, nil)
		p := peers[name]
		if p == nil {
			if name == n.config.Process {
				w.Apps = appsOf(e, n.apps.list())
				w.State = alive
			}
			continue
		}
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, members.StallPing)
			defer cancel()
			began := time.Now()
			sign, err := p.Request(ctx, members.PingMethod, nil)
			switch {
			case err == nil:
				w.Apps = appsOf(e, readSign(sign))
				w.State, w.AnswerUs = alive, uint64(time.Since(began).Microseconds())
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				w.State = "unresponsive"
			}
		})
	}
	asked.Wait()
	return resp, nil
}

// storeState returns the state of the store; nil if it does not answer.
func (n *Node) storeState(ctx context.Context) *api.StoreState {
	store, ok := n.config.Store.(interface {
		State(ctx context.Context) (*api.StoreState, error)
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	st, err := store.State(ctx)
	if err != nil {
		st.Error = err.Error()
	}
	return st
}

// storeWait bounds the time that storeState waits for the store.
const storeWait = 2 * time.Second

// GetPlan returns the plan in force, or one of the history.
func (n *Node) GetPlan(ctx context.Context, req *api.GetPlanRequest) (*api.Plan, error) {
	if req.GetGeneration() != 0 {
		_, former, place, err := n.ofHistory(ctx, req.Generation)
		if err != nil {
			return nil, err
		}
		m := formerPlan(former, place == 0)
		m.Text = former.Plan
		return m, nil
	}
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	if n.members.current == nil {
		return nil, api.Errorf(codes.Unavailable, "this process has not seen the plan yet; try again")
	}
	return &api.Plan{Text: n.members.current.Plan, Generation: n.members.current.Generation}, nil
}

// ApplyPlan brings another plan into force. It returns when the plan is
// written; the processes then apply it, and ListWorkers shows their progress.
func (n *Node) ApplyPlan(ctx context.Context, req *api.ApplyPlanRequest) (*api.ApplyPlanResponse, error) {
	return n.applyPlan(ctx, req, "the northbound", "")
}

// applyPlan is ApplyPlan of a plan from somewhere, which the history keeps unless
// that is empty, and for a reason, which the directory keeps.
func (n *Node) applyPlan(ctx context.Context, req *api.ApplyPlanRequest, source, why string) (*api.ApplyPlanResponse, error) {
	p, err := plan.Parse("plan", []byte(req.Text))
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	old, revision, err := n.members.directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	if req.MadeFrom != 0 && (old == nil || req.MadeFrom != old.Generation) {
		return nil, api.Errorf(codes.Aborted, "plan %d is not in force any more; look at the one that is with GET /v1/plan, and make yours from it", req.MadeFrom)
	}
	if req.MadeFrom == 0 && old != nil {
		p = p.KeepScale(old.InForce())
	}
	if err := config.CheckPlan(p, n.config.Specs, n.config.Settings...); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	chosen, err := n.configurations.store.Choose(ctx, config.GivenBy(p))
	if err != nil {
		return nil, err
	}
	if p = chosen.In(p); chosen.Kept() {
		if err := config.CheckPlan(p, n.config.Specs, n.config.Settings...); err != nil {
			return nil, api.Errorf(codes.FailedPrecondition, "the configuration in force, number %d, does not fit this plan; give the plan a config of its own, or apply another configuration first: %w", chosen.Number, err)
		}
	}
	resp := &api.ApplyPlanResponse{}
	if old != nil {
		if err := config.StartOnly(old.InForce(), p, n.config.Specs, n.config.Settings...); err != nil {
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
	next, err := members.Succeed(old, p, n.config.Specs)
	if err != nil {
		return nil, err
	}
	if err := n.config.startable(old, next, n.members.links.Machine); err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	}
	if req.DryRun {
		return resp, nil
	}
	next.Why = why
	if err := n.members.directory.Put(ctx, next, revision); err != nil {
		return nil, api.Errorf(codes.Aborted, "%w", err)
	}
	if source != "" {
		if err := n.record(ctx, old, next, source); err != nil {
			n.log.Warn("the plan is not in the history", "error", err)
		}
	}
	n.log.Info("plan is applied", "plan", p.Name, "generation", next.Generation, "configuration", chosen.Why)
	if err := n.configurations.store.Start(ctx, chosen, n.members.now()); err != nil {
		n.log.Warn("the configuration of the plan is not in the history", "error", err)
	}
	resp.Generation = next.Generation
	return resp, nil
}
