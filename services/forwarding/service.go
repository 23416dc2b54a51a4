// Package forwarding carries packets between hosts: it programs the whole path
// when the first packet of a pair comes, keeps it whole when links fail, and
// keeps broadcasts on a tree. Only the list of services imports it.
package forwarding

import (
	"context"
	"sync"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:   "forwarding",
		Doc:    "programs paths between hosts, answers ARP and ND, floods on a tree",
		Serves: weft.Methods(api.ListRoutes, api.GetFlooding),
		Calls:  weft.Methods(api.Send, api.FindPath, api.GetTree, api.SetStanding, api.ReadGroups, api.Observe),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.PortChangedEvent, api.PortRoleChangedEvent, api.LinkChangedEvent,
			api.PathsConvergedEvent, api.HostChangedEvent, api.FlowsObservedEvent, api.FlowRemovedEvent, api.SwitchErrorEvent,
			api.RoutesSharedEvent, api.SegmentChangedEvent, api.ChainPortChangedEvent, api.CircuitPortChangedEvent),
		Optional:  []string{"tenants", "chain", "l2vpn"},
		Publishes: weft.Subjects(api.RouteChangedEvent, api.RoutesSharedEvent),
		Stage:     true,
		Class:     weft.Latency,
		Scale:     weft.Any,
		Config:    defaults(),
		Run:       run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	if cfg.Mode == modeLearning {
		return runLearning(ctx, env, cfg)
	}
	e, err := newEngine(*cfg)
	if err != nil {
		return err
	}
	e.log = env.Log
	e.findPath = func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		return weft.Call(ctx, env, api.FindPath, req)
	}
	e.findNow = e.paths.local(func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		return weft.CallNow(env, api.FindPath, req)
	})
	e.send = func(d *flow.Decision) (*api.ApplyResult, error) { return weft.Call(ctx, env, api.Send, d) }
	lasting, giveUp := context.WithCancel(context.WithoutCancel(ctx)) // until no packet is waiting
	defer giveUp()
	e.deferral.find = e.paths.keeping(func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		return weft.Call(lasting, env, api.FindPath, req)
	})
	e.deferral.send = func(d *flow.Decision) (*api.ApplyResult, error) { return weft.Call(lasting, env, api.Send, d) }
	e.publish = func(r *api.RouteChanged) { weft.Publish(env, api.RouteChangedEvent, r) }
	e.readGroups = func(dpid string) (*api.ReadGroupsResponse, error) {
		return weft.Call(ctx, env, api.ReadGroups, &api.ReadGroupsRequest{Dpid: dpid})
	}
	e.observe = func(dpids []string) ([]string, error) {
		resp, err := weft.Call(ctx, env, api.Observe, &api.ObserveRequest{Dpids: dpids})
		return resp.GetDpids(), err
	}
	e.count.register(env.Metric, e.routes)
	f := newFlooding(e, cfg.Settle)
	f.tree = func(ctx context.Context) (*api.Tree, error) {
		return weft.Call(ctx, env, api.GetTree, &api.GetTreeRequest{})
	}
	f.set = func(ctx context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		return weft.Call(ctx, env, api.SetStanding, req)
	}

	weft.Stage(env, func(sw flow.DPID) weft.StageFunc { return e.open(sw) })
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, ev *api.SwitchChanged) { e.handleSwitch(f, ev) })
	weft.On(env, api.PortChangedEvent, func(_ context.Context, ev *api.PortChanged) { e.portChanged(ev); f.noteChange() })
	weft.On(env, api.PortRoleChangedEvent, func(_ context.Context, ev *api.PortRoleChanged) { e.roleChanged(ev); f.noteChange() })
	weft.On(env, api.LinkChangedEvent, func(_ context.Context, ev *api.LinkChanged) { e.linkChanged(ev); f.noteChange() })
	weft.On(env, api.PathsConvergedEvent, func(_ context.Context, ev *api.PathsConverged) {
		e.converged(ev)
		if ev.TreeChanged {
			f.treeChanged(ev)
		}
	})
	weft.On(env, api.HostChangedEvent, func(_ context.Context, ev *api.HostChanged) { e.hostChanged(ev) })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, ev *api.FlowsObserved) { e.handleReport(f, ev) })
	weft.On(env, api.FlowRemovedEvent, func(_ context.Context, ev *api.FlowRemoved) { e.flowRemoved(ev) })
	weft.On(env, api.SwitchErrorEvent, func(_ context.Context, ev *api.SwitchError) { e.switchError(ev) })
	weft.On(env, api.RoutesSharedEvent, func(_ context.Context, ev *api.RoutesShared) {
		e.handleShared(ev)
		if ev.Flooding != nil {
			f.handleShared(ev.Flooding)
		}
	})
	weft.On(env, api.SegmentChangedEvent, func(_ context.Context, ev *api.SegmentChanged) { e.segmentChanged(ev); f.noteChange() })
	weft.On(env, api.ChainPortChangedEvent, func(_ context.Context, ev *api.ChainPortChanged) {
		e.setReserved(flow.OwnerChains, ev.At, 0, !ev.Gone)
		f.noteChange()
	})
	weft.On(env, api.CircuitPortChangedEvent, func(_ context.Context, ev *api.CircuitPortChanged) {
		e.setReserved(flow.OwnerCircuits, ev.At, ev.Vlan, !ev.Gone)
		f.noteChange()
	})
	var grouping sync.Mutex
	regroup := func() {
		grouping.Lock()
		defer grouping.Unlock()
		index, count := weft.Replicas(env)
		e.regroup(f, index, count)
	}
	weft.OnReplicas(env, func(int, int) { regroup() })
	weft.Handle(env, api.ListRoutes, e.listRoutes)
	weft.Handle(env, api.GetFlooding, f.get)
	e.askAgain() // for what was programmed before this instance started
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	regroup()
	var working sync.WaitGroup
	working.Go(func() { e.housekeep(ctx) })
	working.Go(func() { e.paths.refresh(ctx, e.deferral.find) })
	working.Go(func() {
		e.sharing.run(ctx, func(m *api.RoutesShared) { weft.Publish(env, api.RoutesSharedEvent, m) })
	})
	defer working.Wait()
	defer e.deferral.drain(giveUp)
	return f.run(ctx)
}

// runLearning is the learning mode: each switch works by itself and needs no
// other service. Each of several instances knows the hosts whose packets come
// to it, and floods to others.
func runLearning(ctx context.Context, env *weft.Env, cfg *Config) error {
	m := &missing{switches: map[flow.DPID]bool{}, log: env.Log, send: func(d *flow.Decision) error {
		_, err := weft.Call(ctx, env, api.Send, d)
		return err
	}}
	m.replicas.set(0, 1)
	weft.Stage(env, func(sw flow.DPID) weft.StageFunc {
		l := &learner{sw: sw, idle: uint16(cfg.IdleTimeout.Seconds())}
		return l.packet
	})
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, ev *api.SwitchChanged) { m.switchChanged(ev) })
	weft.OnReplicas(env, m.regroup)
	ignore(env, api.PortChangedEvent)
	ignore(env, api.PortRoleChangedEvent)
	ignore(env, api.LinkChangedEvent)
	ignore(env, api.PathsConvergedEvent)
	ignore(env, api.HostChangedEvent)
	ignore(env, api.FlowsObservedEvent)
	ignore(env, api.FlowRemovedEvent)
	ignore(env, api.SwitchErrorEvent)
	ignore(env, api.RoutesSharedEvent)
	ignore(env, api.SegmentChangedEvent)
	ignore(env, api.ChainPortChangedEvent)
	ignore(env, api.CircuitPortChangedEvent)
	weft.Handle(env, api.ListRoutes, func(context.Context, *api.ListRoutesRequest) (*api.ListRoutesResponse, error) {
		return &api.ListRoutesResponse{}, nil
	})
	weft.Handle(env, api.GetFlooding, func(context.Context, *api.GetFloodingRequest) (*api.Flooding, error) { return &api.Flooding{}, nil })
	return weft.Serve(ctx, env)
}

// ignore subscribes to events that are not used in this mode: a Spec declares
// what any mode needs.
func ignore[E any](env *weft.Env, s api.Subject[E]) {
	weft.On(env, s, func(context.Context, *E) {})
}
