// Package gateway is the controller's northbound: gRPC, JSON over HTTP, events by
// WebSocket and metrics for Prometheus, on one port. It calls the services and
// passes on what they publish. Its own are the tokens that admit clients, the log
// of what clients change, and the names of switches.
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
	Version string
	Started time.Time
	Metrics http.Handler        // serves the metrics of all services; nil for none
	Node    func() Node         // called once the services run; nil: there is none
	Answers func() []api.Answer // what others of the process answer of the gateway's methods; nil: nothing
	Name    string              // of the process; names its file of the audit log
	Audit   string              // directory of the audit log; empty for none
}

// Node is the part that a process has in carrying out a plan.
type Node interface {
	// Pipeline returns the stages in order.
	Pipeline() []string
	// Answers returns what the node answers of the gateway's methods.
	Answers() []api.Answer
	// FollowScaling calls a function with each decision of this process until the
	// context ends.
	FollowScaling(context.Context, func(*api.ScalingDecision))
	Packets
}

// Spec declares the service.
func Spec(p Process) weft.Spec {
	return weft.Spec{
		Name:       "gateway",
		Doc:        "the northbound: gRPC, JSON over HTTP, events by WebSocket, metrics",
		Serves:     served(),
		Calls:      forwarded(),
		Optional:   api.OptionalServices(),
		Subscribes: published(),
		Publishes:  weft.Subjects(api.ScalingDecidedEvent),
		Buckets:    []string{"tokens", "names"},
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
	names, err := openNames(ctx, env)
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
		refused: refused, stopWithin: stopTimeout,
		stream: &stream{
			log: events, behind: cfg.EventQueue, places: newPlaces("event streams", cfg.MaxEventClients, func() { evicted(); noEventPlace() }), full: noEventPlace, holds: g.holds, stopped: make(chan struct{}),
			sent: func() { f.sent.Add(1) }, slow: func() { f.slow.Add(1); reach("gateway.event_queue", cfg.EventQueue) },
		},
	}
	own := &ownAnswers{of: map[string]api.Answer{}}
	var node Node = noNode{}
	if p.Node != nil {
		node = p.Node()
	}
	own.add(node.Answers()...)
	if p.Answers != nil {
		own.add(p.Answers()...)
	}
	info := func(ctx context.Context, _ *api.GetInfoRequest) (*api.Info, error) {
		m := describe(p, node.Pipeline(), weft.Specs(env))
		ctx, cancel := context.WithTimeout(ctx, infoPatience)
		defer cancel()
		if c, err := own.answer(api.GetConfig).Call(ctx, &api.GetConfigRequest{}); err == nil {
			m.ConfigHash = c.(*api.Configuration).Hash
		}
		return m, nil
	}
	network := &asks{
		findHost: callOf(env, api.FindHost), listHosts: callOf(env, api.ListHosts), listPorts: callOf(env, api.ListPorts),
		listLinks: callOf(env, api.ListLinks), listPortRoles: callOf(env, api.ListPortRoles),
		readFlows: callOf(env, api.ReadFlows), readGroups: callOf(env, api.ReadGroups),
	}
	s.watch = &watching{packets: node, guard: g, places: newPlaces("watches of packets", watchersMost, evicted), ended: func(c codes.Code) { f.failed[c].Add(1) }}
	own.add(api.AnswerBy(api.GetInfo, info), api.AnswerBy(api.ReadEvents, events.read), api.AnswerBy(api.WatchPackets, s.watch.next),
		api.AnswerBy(api.CreateToken, ledger.create), api.AnswerBy(api.ListTokens, ledger.list), api.AnswerBy(api.RevokeToken, ledger.revoke),
		api.AnswerBy(api.ListAudit, log.list), api.AnswerBy(api.TracePacket, network.trace),
		api.AnswerBy(api.NameSwitch, names.name), api.AnswerBy(api.ListSwitchNames, names.list))
	offered := own.toClients(cfg.CallTimeout)
	for _, m := range forwarded() {
		offered = append(offered, forward(env, m))
	}
	s.calls = newCalls(offered, cfg.CallTimeout, func(c codes.Code) { f.failed[c].Add(1) })
	s.calls.audit, s.calls.refused, s.calls.holds, s.calls.names, s.calls.now = log, refused, g.holds, names, func() time.Time { return weft.Now(env) }
	s.watch.calls = s.calls
	if err := s.calls.missing(); err != nil {
		return err
	}
	env.Metric.Gauge("packet_clients", "Clients that watch packets.", func() float64 { return float64(s.watch.places.Len()) })
	env.Metric.Gauge("event_clients", "Clients that follow the events.", func() float64 { return float64(s.stream.places.Len()) })

	for _, subject := range published() {
		follow(env, events, names, subject)
	}
	for _, m := range served() {
		weft.HandleAny(env, m, own.answer(m).Call)
	}

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
		node.FollowScaling(ctx, func(d *api.ScalingDecision) {
			weft.Publish(env, api.ScalingDecidedEvent, &api.ScalingDecided{Decision: d})
		})
	})
	return s.serve(ctx, l)
}

// served returns the methods of the gateway that other services may call.
func served() []weft.Method {
	return weft.Methods(api.GetInfo, api.ReadEvents, api.ListWorkers, api.GetPlan, api.ApplyPlan, api.GetConfig, api.ApplyConfig,
		api.ListConfigs, api.RollbackConfig, api.TakeProfile, api.GetWork, api.ListCrossings, api.GetScaling,
		api.GetStore, api.ReadStore, api.RepairStore, api.TracePacket)
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
func forward(env *weft.Env, m weft.Method) api.Answer {
	return api.Answer{
		Method: m.MethodName(),
		New:    func() any { req, _ := m.NewMessages(); return req },
		Call:   func(ctx context.Context, req any) (any, error) { return weft.CallAny(ctx, env, m, req) },
	}
}

// callOf returns a function that calls a method of another service.
func callOf[Req, Resp any](env *weft.Env, m api.Method[Req, Resp]) func(context.Context, *Req) (*Resp, error) {
	return func(ctx context.Context, req *Req) (*Resp, error) { return weft.Call(ctx, env, m, req) }
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
	return l, load(ctx, env, bucket, "tokens", l.changed)
}

// openNames loads the names of switches, and follows the changes of other instances.
func openNames(ctx context.Context, env *weft.Env) (*switchNames, error) {
	bucket, err := weft.State(env, "names")
	if err != nil {
		return nil, err
	}
	n := newSwitchNames(bucket)
	return n, load(ctx, env, bucket, "names of switches", n.changed)
}

// load calls a function with all that a bucket has, and from then on with its changes.
func load(ctx context.Context, env *weft.Env, bucket object.Bucket, what string, changed func(name string, value []byte, revision uint64)) error {
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
			changed(name, value, revision)
		})
		if ctx.Err() == nil {
			env.Log.Error(what+" that other instances of the gateway change are not heard of any more", "error", err)
		}
		select {
		case through <- err:
		default:
		}
	}()
	select {
	case err := <-through:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow passes the events of a subject to the log.
func follow(env *weft.Env, log *eventLog, names *switchNames, subject weft.Subject) {
	name := subject.SubjectName()
	log.subjects = append(log.subjects, name)
	weft.OnAny(env, subject, func(_ context.Context, e any) {
		key, fact := subject.KeyOf(e)
		log.add(name, e.(proto.Message), key, fact, subject.GoneBy(e), subject.Renewed())
		switch x := e.(type) {
		case *api.SwitchChanged:
			names.heard(x)
		case *api.SwitchForgotten:
			names.forgotten(x)
		}
	})
}

// describe describes what runs. All services of a process are ready when the
// gateway answers.
func describe(p Process, pipeline []string, specs []weft.Spec) *api.Info {
	info := &api.Info{
		Version: p.Version, GoVersion: runtime.Version(), Started: p.Started.UTC().Format(time.RFC3339), Pipeline: pipeline,
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
		for _, e := range s.Wants() {
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
