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
	"github.com/weft-sdn/weft/deploy/members"
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
			ctx, cancel := context.WithTimeout(ctx, members.StatePing)
			defer cancel()
			began := time.Now()
			sign, err := p.Sign(ctx)
			switch {
			case err == nil:
				w.Apps = appsOf(e, readSign(sign))
				w.State, w.AnswerUs = alive, uint64(time.Since(began).Microseconds())
			case errors.Is(err, context.DeadlineExceeded):
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
