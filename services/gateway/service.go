// Package gateway is the controller's northbound: gRPC, JSON over HTTP, events
// by WebSocket and figures for Prometheus, on one port. It holds no state; it
// calls the services and passes on what they publish.
//
// Only the list of services imports it; only this file imports weft.
package gateway

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"weft"
	"weft/api"
)

// Process is what the gateway tells of the process that it runs in.
type Process struct {
	Version  string
	Started  time.Time
	Pipeline func() []string // the stages in order; asked once the services run
	Metrics  http.Handler    // serves the figures of all services; nil for none
	Plans    Plans           // nil: the controller is one process without a plan
}

// Plans is the plan in force and the processes that carry it out.
type Plans interface {
	ListWorkers(context.Context, *api.ListWorkersRequest) (*api.ListWorkersResponse, error)
	GetPlan(context.Context, *api.GetPlanRequest) (*api.Plan, error)
	ApplyPlan(context.Context, *api.ApplyPlanRequest) (*api.ApplyPlanResponse, error)
}

// Spec declares the service.
func Spec(p Process) weft.Spec {
	return weft.Spec{
		Name:   "gateway",
		Doc:    "the northbound: gRPC, JSON over HTTP, events by WebSocket, metrics",
		Serves: weft.Methods(api.GetInfo, api.ListWorkers, api.GetPlan, api.ApplyPlan),
		Calls: weft.Methods(
			api.ListSwitches, api.ListPorts, api.ReadFlows, api.ReadGroups, api.ReadMeters, api.ReadPortStats, api.ReadTableStats, api.ListLimits,
			api.ListLinks, api.ListPortRoles,
			api.ListHosts, api.FindHost,
			api.FindPath, api.GetTree,
			api.ListRoutes, api.GetFlooding,
			api.AddFlows, api.DeleteFlows, api.ListFlows, api.ListSync,
			api.ListHeartbeats,
			api.ListPortStats, api.ListTableStats, api.ListFlowStats),
		Subscribes: weft.Subjects(
			api.SwitchChangedEvent, api.PortChangedEvent, api.FlowRemovedEvent, api.SwitchErrorEvent,
			api.LinkChangedEvent, api.PortRoleChangedEvent,
			api.HostChangedEvent,
			api.PathsConvergedEvent,
			api.RouteChangedEvent,
			api.FloodChangedEvent, api.HeartbeatChangedEvent,
			api.FlowsObservedEvent, api.FlowFailedEvent),
		Listens: true,
		Class:   weft.Latency,
		Scale:   weft.Any,
		Config:  defaults(),
		Run:     func(ctx context.Context, env *weft.Env) error { return run(ctx, env, p) },
	}
}

func run(ctx context.Context, env *weft.Env, p Process) error {
	cfg := env.Config.(*Config)
	tokens, err := newTokens(cfg)
	if err != nil {
		return err
	}
	f := newFigures(env.Metric)
	s := &server{
		config: *cfg, tokens: tokens, metrics: p.Metrics, log: env.Log,
		refused: func(r refusal) { f.refused[r].Add(1) },
		stream: &stream{
			queue: cfg.EventQueue, max: cfg.MaxEventClients, now: time.Now, clients: map[*client]bool{},
			sent: func() { f.sent.Add(1) }, slow: func() { f.slow.Add(1) },
		},
	}
	info := func(context.Context, *api.GetInfoRequest) (*api.Info, error) {
		return describe(p, weft.Specs(env)), nil
	}
	plans := p.Plans
	if plans == nil {
		plans = onePlan{p}
	}
	s.calls = newCalls(append(offered(env), itself(api.GetInfo, info), itself(api.ListWorkers, plans.ListWorkers),
		itself(api.GetPlan, plans.GetPlan), itself(api.ApplyPlan, plans.ApplyPlan)), cfg.CallTimeout, func(c codes.Code) { f.failed[c].Add(1) })
	if err := s.calls.missing(); err != nil {
		return err
	}
	env.Metric.Gauge("event_clients", "Clients that follow the events.", func() float64 { return float64(s.stream.any.Load()) })

	follow(env, s.stream, api.SwitchChangedEvent)
	follow(env, s.stream, api.PortChangedEvent)
	follow(env, s.stream, api.FlowRemovedEvent)
	follow(env, s.stream, api.SwitchErrorEvent)
	follow(env, s.stream, api.LinkChangedEvent)
	follow(env, s.stream, api.PortRoleChangedEvent)
	follow(env, s.stream, api.HostChangedEvent)
	follow(env, s.stream, api.PathsConvergedEvent)
	follow(env, s.stream, api.RouteChangedEvent)
	follow(env, s.stream, api.FlowsObservedEvent)
	follow(env, s.stream, api.FlowFailedEvent)
	follow(env, s.stream, api.FloodChangedEvent)
	follow(env, s.stream, api.HeartbeatChangedEvent)
	weft.Handle(env, api.GetInfo, info)
	weft.Handle(env, api.ListWorkers, plans.ListWorkers)
	weft.Handle(env, api.GetPlan, plans.GetPlan)
	weft.Handle(env, api.ApplyPlan, plans.ApplyPlan)

	l, err := s.listen()
	if err != nil {
		return err
	}
	if err := weft.Ready(ctx, env); err != nil {
		l.Close()
		return err
	}
	return s.serve(ctx, l)
}

// offered returns the methods that clients may call.
func offered(env *weft.Env) []rpc {
	return []rpc{
		forward(env, api.ListSwitches), forward(env, api.ListPorts), forward(env, api.ReadFlows),
		forward(env, api.ReadGroups), forward(env, api.ReadMeters), forward(env, api.ReadPortStats), forward(env, api.ReadTableStats), forward(env, api.ListLimits),
		forward(env, api.ListLinks), forward(env, api.ListPortRoles),
		forward(env, api.ListHosts), forward(env, api.FindHost),
		forward(env, api.FindPath), forward(env, api.GetTree),
		forward(env, api.ListRoutes), forward(env, api.GetFlooding),
		forward(env, api.AddFlows), forward(env, api.DeleteFlows), forward(env, api.ListFlows), forward(env, api.ListSync),
		forward(env, api.ListHeartbeats),
		forward(env, api.ListPortStats), forward(env, api.ListTableStats), forward(env, api.ListFlowStats),
	}
}

// forward offers a method of another service.
func forward[Req, Resp any](env *weft.Env, m api.Method[Req, Resp]) rpc {
	return rpc{
		name: m.Name, request: func() any { return new(Req) },
		call: func(ctx context.Context, req any) (any, error) { return weft.Call(ctx, env, m, req.(*Req)) },
	}
}

// itself offers a method of the gateway itself.
func itself[Req, Resp any](m api.Method[Req, Resp], h func(context.Context, *Req) (*Resp, error)) rpc {
	return rpc{
		name: m.Name, request: func() any { return new(Req) },
		call: func(ctx context.Context, req any) (any, error) { return h(ctx, req.(*Req)) },
	}
}

// follow passes the events of a subject to the stream.
func follow[E any](env *weft.Env, s *stream, subject api.Subject[E]) {
	s.subjects = append(s.subjects, subject.Name)
	weft.On(env, subject, func(_ context.Context, e *E) { s.publish(subject.Name, any(e).(proto.Message)) })
}

// describe returns what runs. All services of a process are ready when the
// gateway answers.
func describe(p Process, specs []weft.Spec) *api.Info {
	info := &api.Info{
		Version: p.Version, GoVersion: runtime.Version(), Started: p.Started.UTC().Format(time.RFC3339),
	}
	if p.Pipeline != nil {
		info.Pipeline = p.Pipeline()
	}
	for _, s := range specs {
		d := &api.ServiceInfo{
			Name: s.Name, Doc: s.Doc, Class: s.Class.String(), Scale: s.Scale.String(), Stage: s.Stage, State: "ready",
		}
		for _, m := range s.Serves {
			d.Serves = append(d.Serves, m.MethodName())
		}
		for _, m := range s.Calls {
			d.Calls = append(d.Calls, m.MethodName())
		}
		for _, e := range s.Subscribes {
			d.Subscribes = append(d.Subscribes, e.SubjectName())
		}
		for _, e := range s.Publishes {
			d.Publishes = append(d.Publishes, e.SubjectName())
		}
		info.Services = append(info.Services, d)
	}
	return info
}

// figures are the gateway's metrics.
type figures struct {
	refused    map[refusal]weft.Counter
	failed     map[codes.Code]weft.Counter
	sent, slow weft.Counter
}

func newFigures(m weft.Metrics) *figures {
	f := &figures{
		refused: map[refusal]weft.Counter{}, failed: map[codes.Code]weft.Counter{},
		sent: m.Counter("events_sent_total", "Events queued for clients."),
		slow: m.Counter("slow_clients_total", "Clients of the event stream that were dropped because they did not keep up."),
	}
	for _, r := range refusals() {
		f.refused[r] = m.Counter("refused_total", "Requests that were not let in.", "reason", string(r))
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		f.failed[c] = m.Counter("failed_calls_total", "Calls of clients that failed.", "kind", c.String())
	}
	return f
}
