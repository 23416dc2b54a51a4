// Package gateway is the controller's northbound: gRPC, JSON over HTTP, events by
// WebSocket and metrics for Prometheus, on one port. It calls the services and
// passes on what they publish. Its own are the tokens that admit clients, and the
// log of what clients change.
//
// Only the list of services imports it; only this file imports weft.
package gateway

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/object"
)

// Process describes the process that the gateway runs in.
type Process struct {
	Version  string
	Started  time.Time
	Pipeline func() []string // the stages in order; called once the services run
	Metrics  http.Handler    // serves the metrics of all services; nil for none
	Plans    Plans           // nil: the controller is one process without a plan
	Planner  Planner         // nil: plans cannot be looked at
	Configs  Configs         // nil: the configuration is fixed
	State    State           // nil: the durable state cannot be inspected
	Profiles Profiles        // nil: there are no profiles
	Work     Work            // nil: there are no live figures
	Logs     Logs            // nil: no log can be read
	Packets  Packets         // nil: packets cannot be watched
	Name     string          // of the process; names its file of the audit log
	Audit    string          // directory of the audit log; empty for none
}

// Plans is the plan in force and the processes that carry it out.
type Plans interface {
	ListWorkers(context.Context, *api.ListWorkersRequest) (*api.ListWorkersResponse, error)
	GetPlan(context.Context, *api.GetPlanRequest) (*api.Plan, error)
	ApplyPlan(context.Context, *api.ApplyPlanRequest) (*api.ApplyPlanResponse, error)
	ListPlans(context.Context, *api.ListPlansRequest) (*api.ListPlansResponse, error)
	RollbackPlan(context.Context, *api.RollbackPlanRequest) (*api.ApplyPlanResponse, error)
}

// Planner looks at plans that clients show, and at the one in force.
type Planner interface {
	ShowPlan(context.Context, *api.ShowPlanRequest) (*api.ShowPlanResponse, error)
	CheckPlan(context.Context, *api.CheckPlanRequest) (*api.CheckPlanResponse, error)
	DiffPlans(context.Context, *api.DiffPlansRequest) (*api.DiffPlansResponse, error)
	ExplainPlan(context.Context, *api.ExplainPlanRequest) (*api.ExplainPlanResponse, error)
}

// Configs is the configuration in force and the former ones.
type Configs interface {
	GetConfig(context.Context, *api.GetConfigRequest) (*api.Configuration, error)
	ApplyConfig(context.Context, *api.ApplyConfigRequest) (*api.ApplyConfigResponse, error)
	ListConfigs(context.Context, *api.ListConfigsRequest) (*api.ListConfigsResponse, error)
	RollbackConfig(context.Context, *api.RollbackConfigRequest) (*api.ApplyConfigResponse, error)
}

// State is the durable state of all services.
type State interface {
	GetStore(context.Context, *api.GetStoreRequest) (*api.StoreStatus, error)
	ReadStore(context.Context, *api.ReadStoreRequest) (*api.ReadStoreResponse, error)
	RepairStore(context.Context, *api.RepairStoreRequest) (*api.RepairStoreResponse, error)
}

// Profiles reports where the time and memory of all processes go.
type Profiles interface {
	TakeProfile(context.Context, *api.TakeProfileRequest) (*api.TakeProfileResponse, error)
}

// Work reports the live figures of all processes, and the decisions that are
// made by them.
type Work interface {
	GetWork(context.Context, *api.GetWorkRequest) (*api.GetWorkResponse, error)
	ListCrossings(context.Context, *api.ListCrossingsRequest) (*api.ListCrossingsResponse, error)
	GetScaling(context.Context, *api.GetScalingRequest) (*api.GetScalingResponse, error)
	// FollowScaling calls a function with each decision of this process until the
	// context ends.
	FollowScaling(context.Context, func(*api.ScalingDecision))
}

// Spec declares the service.
func Spec(p Process) weft.Spec {
	return weft.Spec{
		Name:       "gateway",
		Doc:        "the northbound: gRPC, JSON over HTTP, events by WebSocket, metrics",
		Serves:     weft.Methods(api.GetInfo, api.ReadEvents, api.ListWorkers, api.GetPlan, api.ApplyPlan, api.GetConfig, api.ApplyConfig, api.ListConfigs, api.RollbackConfig, api.TakeProfile, api.GetWork, api.ListCrossings, api.GetScaling, api.GetStore, api.ReadStore, api.RepairStore, api.TracePacket),
		Calls:      forwarded(),
		Optional:   api.OptionalServices(),
		Subscribes: published(),
		Publishes:  weft.Subjects(api.ScalingDecidedEvent),
		Buckets:    []string{"tokens"},
		Listens:    true,
		Class:      weft.Latency,
		Scale:      weft.Any,
		Config:     defaults(),
		Run:        func(ctx context.Context, env *weft.Env) error { return run(ctx, env, p) },
	}
}

// infoPatience is how long GetInfo waits for the store, which may be away.
const infoPatience = 300 * time.Millisecond

func run(ctx context.Context, env *weft.Env, p Process) error {
	cfg := env.Config.(*Config)
	tokens, err := newTokens(cfg)
	if err != nil {
		return err
	}
	users, err := cfg.userRoles()
	if err != nil {
		return err
	}
	ledger, err := openLedger(ctx, env)
	if err != nil {
		return err
	}
	f := newFigures(env.Metric)
	log := &audit{auditlog.Log{
		Dir: p.Audit, Name: cmp.Or(p.Name, "controller"), Size: int64(cfg.AuditSize), Files: cfg.AuditFiles,
		Failed: func(err error) {
			f.unaudited.Add(1)
			env.Log.Error("a change could not be written to the audit log", "error", err)
		},
	}}
	if err := log.Open(); err != nil {
		return err
	}
	defer log.Close()
	reached := &object.Limits{}
	weft.ReportLimits(env, reached.List)
	reach := func(key string, limit int) { reached.Reach(time.Now().UnixNano(), key, limit, "clients") }
	refused := func(r refusal) {
		f.refused[r].Add(1)
		switch r {
		case refusedMany, refusedOldest:
			reach("gateway.max_connections", cfg.MaxConnections)
		case refusedOctets:
			reach("gateway.max_octets", cfg.MaxOctets)
		case refusedRate:
			reach("gateway.wrong_tokens_per_minute", cfg.WrongTokensPerMinute)
		}
	}
	evicted := func() { f.refused[refusedOldest].Add(1) }
	noEventPlace := func() { reach("gateway.max_event_clients", cfg.MaxEventClients) }
	g := &guard{
		tokens: tokens, ledger: ledger, throttle: newThrottle(cfg.WrongTokensPerMinute, time.Now),
		open: cfg.OpenLoopback, users: users, listen: hostname(cfg.Listen), count: refused,
	}
	if cfg.ClientAuthority != "" {
		g.orCertificate = ", or show a client's certificate (weft: --client-cert or WEFT_CLIENT_CERT)"
	}
	events := newEventLog(func() time.Time { return weft.Now(env) }, ctx.Done())
	s := &server{
		config: *cfg, guard: g, metrics: p.Metrics, log: env.Log,
		refused: refused,
		stream: &stream{
			log: events, behind: cfg.EventQueue, places: newPlaces("event streams", cfg.MaxEventClients, func() { evicted(); noEventPlace() }), full: noEventPlace, holds: g.holds, stopped: make(chan struct{}),
			sent: func() { f.sent.Add(1) }, slow: func() { f.slow.Add(1); reach("gateway.event_queue", cfg.EventQueue) },
		},
	}
	plans := p.Plans
	if plans == nil {
		plans = onePlan{p}
	}
	planner := p.Planner
	if planner == nil {
		planner = noPlanner{}
	}
	configs := p.Configs
	if configs == nil {
		configs = noConfigs{}
	}
	profiles := p.Profiles
	if profiles == nil {
		profiles = noProfiles{}
	}
	work := p.Work
	if work == nil {
		work = noWork{}
	}
	packets := p.Packets
	if packets == nil {
		packets = noPackets{}
	}
	state := p.State
	if state == nil {
		state = noState{}
	}
	info := func(ctx context.Context, _ *api.GetInfoRequest) (*api.Info, error) {
		m := describe(p, weft.Specs(env))
		ctx, cancel := context.WithTimeout(ctx, infoPatience)
		defer cancel()
		if c, err := configs.GetConfig(ctx, &api.GetConfigRequest{}); err == nil {
			m.ConfigHash = c.Hash
		}
		return m, nil
	}
	network := &asks{
		findHost: callOf(env, api.FindHost), listHosts: callOf(env, api.ListHosts), listPorts: callOf(env, api.ListPorts),
		listLinks: callOf(env, api.ListLinks), listPortRoles: callOf(env, api.ListPortRoles),
		readFlows: callOf(env, api.ReadFlows), readGroups: callOf(env, api.ReadGroups),
	}
	s.watch = &watching{packets: packets, guard: g, places: newPlaces("watches of packets", watchersMost, evicted), ended: func(c codes.Code) { f.failed[c].Add(1) }}
	var offered []rpc
	for _, m := range forwarded() {
		offered = append(offered, forward(env, m))
	}
	s.calls = newCalls(append(offered, itself(api.GetInfo, info), itself(api.ReadEvents, events.read), jointly(api.ListWorkers, cfg.CallTimeout, plans.ListWorkers),
		itself(api.GetPlan, plans.GetPlan), itself(api.ApplyPlan, plans.ApplyPlan),
		itself(api.ListPlans, plans.ListPlans), itself(api.RollbackPlan, plans.RollbackPlan),
		itself(api.GetConfig, configs.GetConfig), itself(api.ApplyConfig, configs.ApplyConfig),
		itself(api.ListConfigs, configs.ListConfigs), itself(api.RollbackConfig, configs.RollbackConfig),
		itself(api.TakeProfile, profiles.TakeProfile),
		jointly(api.GetWork, cfg.CallTimeout, work.GetWork), jointly(api.ListCrossings, cfg.CallTimeout, work.ListCrossings),
		jointly(api.GetScaling, cfg.CallTimeout, work.GetScaling), itself(api.WatchPackets, s.watch.next),
		jointly(api.GetStore, cfg.CallTimeout, state.GetStore), itself(api.ReadStore, state.ReadStore), itself(api.RepairStore, state.RepairStore),
		itself(api.CreateToken, ledger.create), itself(api.ListTokens, ledger.list), itself(api.RevokeToken, ledger.revoke), itself(api.ListAudit, log.list),
		itself(api.TracePacket, network.trace), itself(api.ReadWorkerLog, readLog(p.Logs)),
		itself(api.ShowPlan, planner.ShowPlan), itself(api.CheckPlan, planner.CheckPlan), itself(api.DiffPlans, planner.DiffPlans),
		itself(api.ExplainPlan, planner.ExplainPlan),
	), cfg.CallTimeout, func(c codes.Code) { f.failed[c].Add(1) })
	s.calls.audit, s.calls.refused, s.calls.holds, s.calls.now = log, refused, g.holds, func() time.Time { return weft.Now(env) }
	s.watch.calls = s.calls
	if err := s.calls.missing(); err != nil {
		return err
	}
	env.Metric.Gauge("packet_clients", "Clients that watch packets.", func() float64 { return float64(s.watch.places.Len()) })
	env.Metric.Gauge("event_clients", "Clients that follow the events.", func() float64 { return float64(s.stream.places.Len()) })

	for _, subject := range published() {
		follow(env, events, subject)
	}
	weft.Handle(env, api.GetInfo, info)
	weft.Handle(env, api.ReadEvents, events.read)
	weft.Handle(env, api.ListWorkers, plans.ListWorkers)
	weft.Handle(env, api.GetPlan, plans.GetPlan)
	weft.Handle(env, api.ApplyPlan, plans.ApplyPlan)
	weft.Handle(env, api.GetConfig, configs.GetConfig)
	weft.Handle(env, api.ApplyConfig, configs.ApplyConfig)
	weft.Handle(env, api.ListConfigs, configs.ListConfigs)
	weft.Handle(env, api.RollbackConfig, configs.RollbackConfig)
	weft.Handle(env, api.TakeProfile, profiles.TakeProfile)
	weft.Handle(env, api.GetWork, work.GetWork)
	weft.Handle(env, api.ListCrossings, work.ListCrossings)
	weft.Handle(env, api.GetScaling, work.GetScaling)
	weft.Handle(env, api.GetStore, state.GetStore)
	weft.Handle(env, api.ReadStore, state.ReadStore)
	weft.Handle(env, api.RepairStore, state.RepairStore)
	weft.Handle(env, api.TracePacket, network.trace)

	l, err := s.listen()
	if err != nil {
		return err
	}
	if err := weft.Ready(ctx, env); err != nil {
		_ = l.Close()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() {
		work.FollowScaling(ctx, func(d *api.ScalingDecision) {
			weft.Publish(env, api.ScalingDecidedEvent, &api.ScalingDecided{Decision: d})
		})
	})
	return s.serve(ctx, l)
}

// forwarded returns the methods of other services that clients may call.
func forwarded() []weft.Method {
	var list []weft.Method
	for _, m := range api.Methods() {
		if api.RulesOf(m.MethodName()).GetRole() != api.Role_ROLE_UNSPECIFIED && !strings.HasPrefix(m.MethodName(), "gateway.") {
			list = append(list, m)
		}
	}
	return list
}

// published returns the events that clients get.
func published() []weft.Subject {
	var list []weft.Subject
	for _, s := range api.Subjects() {
		if s.ForClients() {
			list = append(list, s)
		}
	}
	return list
}

// forward offers a method of another service.
func forward(env *weft.Env, m weft.Method) rpc {
	return rpc{
		name:    m.MethodName(),
		request: func() any { req, _ := m.NewMessages(); return req },
		call:    func(ctx context.Context, req any) (any, error) { return weft.CallAny(ctx, env, m, req) },
	}
}

// callOf returns a function that calls a method of another service.
func callOf[Req, Resp any](env *weft.Env, m api.Method[Req, Resp]) func(context.Context, *Req) (*Resp, error) {
	return func(ctx context.Context, req *Req) (*Resp, error) { return weft.Call(ctx, env, m, req) }
}

// itself offers a method of the gateway itself.
func itself[Req, Resp any](m api.Method[Req, Resp], h func(context.Context, *Req) (*Resp, error)) rpc {
	return rpc{
		name: m.Name, request: func() any { return new(Req) },
		call: func(ctx context.Context, req any) (any, error) { return h(ctx, req.(*Req)) },
	}
}

// openLedger loads the tokens, and follows the changes of other instances.
func openLedger(ctx context.Context, env *weft.Env) (*ledger, error) {
	bucket, err := weft.State(env, "tokens")
	if err != nil {
		return nil, err
	}
	l := newLedger(bucket, func() time.Time { return weft.Now(env) }, func(name string, err error) {
		env.Log.Error("a token cannot be read and is not let in; revoke it", "token", name, "error", err)
	})
	through := make(chan error, 1)
	go func() {
		err := bucket.Watch(ctx, func(name string, value []byte, revision uint64) {
			if name == "" {
				select {
				case through <- nil:
				default: // notified again
				}
				return
			}
			l.changed(name, value, revision)
		})
		if ctx.Err() == nil {
			env.Log.Error("tokens that other instances of the gateway create or revoke are not heard of any more", "error", err)
		}
		select {
		case through <- err:
		default:
		}
	}()
	select {
	case err := <-through:
		return l, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// follow passes the events of a subject to the log.
func follow(env *weft.Env, log *eventLog, subject weft.Subject) {
	name := subject.SubjectName()
	log.subjects = append(log.subjects, name)
	weft.OnAny(env, subject, func(_ context.Context, e any) {
		key, fact := subject.KeyOf(e)
		log.add(name, e.(proto.Message), key, fact, subject.GoneBy(e), subject.Renewed())
	})
}

// describe describes what runs. All services of a process are ready when the
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
	unaudited  weft.Counter
}

func newFigures(m weft.Metrics) *figures {
	f := &figures{
		refused: map[refusal]weft.Counter{}, failed: map[codes.Code]weft.Counter{},
		sent:      m.Counter("events_sent_total", "Events sent to clients of the event stream."),
		unaudited: m.Counter("audit_failed_total", "Changes that could not be written to the audit log."),
		slow:      m.Counter("slow_clients_total", "How often a client of the event stream did not keep up, and was told to read the state anew."),
	}
	for _, r := range refusals() {
		f.refused[r] = m.Counter("refused_total", "Requests that were not let in.", "reason", string(r))
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		f.failed[c] = m.Counter("failed_calls_total", "Calls of clients that failed.", "kind", c.String())
	}
	return f
}
