package wefttest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
)

// self is the name under which the test calls the service and hears it.
const self = "wefttest"

// Harness is a service under test, with the test in the place of all its
// peers. One goroutine uses it; fakes run on others.
type Harness struct {
	// Mode is how the service runs.
	Mode Mode
	// Timeout bounds every wait; then the test fails. 5 s at first.
	Timeout time.Duration
	// Store keeps the service's buckets, across restarts.
	Store *Store

	t        *testing.T
	spec     weft.Spec
	settings *config.Settings
	run      *running // nil while the service does not run

	mu     sync.Mutex // guards what follows
	fakes  map[string]func(context.Context, any) (any, error)
	events map[string]chan any // by subject: published and not waited for yet
	sent   []sent
	stage  weft.StageFunc
}

// running is one life of the service.
type running struct {
	worker   *local.Worker
	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan error
	peers    map[string]weft.Runtime

	mu       sync.Mutex // guards sessions
	sessions map[flow.DPID]*session
}

// session is that of a switch.
type session struct {
	mu sync.Mutex // held while it has a packet
	weft.Pipeline
}

// sent is a message that has been sent, and how it was then.
type sent struct {
	name    string
	message any
	bytes   []byte
}

// eventsKept is how many events of a subject may wait for the test.
const eventsKept = 65536

func newHarness(t *testing.T, spec weft.Spec, mode Mode) *Harness {
	h := &Harness{
		Mode: mode, Timeout: testwait.Limit, Store: NewStore(), t: t, spec: spec, settings: &config.Settings{},
		fakes: map[string]func(context.Context, any) (any, error){}, events: map[string]chan any{},
	}
	for _, s := range spec.Publishes {
		h.events[s.SubjectName()] = make(chan any, eventsKept)
	}
	return h
}

// Configure changes keys of the service's configuration, given as YAML. It
// takes effect when the service starts.
func (h *Harness) Configure(text string) {
	h.t.Helper()
	if h.run != nil {
		h.t.Fatal("Configure: the service runs already; configure it first, or Restart it afterwards")
	}
	if err := h.settings.Add(h.spec.Name, "Configure", []byte(text)); err != nil {
		h.t.Fatal(err)
	}
}

// Reconfigure has the running service take over a configuration (weft.OnConfig):
// that with which it runs, changed by the given function, in keys that its Spec
// lists in Live.
func Reconfigure[C any, P interface {
	*C
	weft.Config
}](h *Harness, change func(P)) error {
	h.t.Helper()
	h.Start()
	next := *h.run.worker.Effective(h.spec.Name).(P)
	change(&next)
	ctx, cancel := context.WithTimeout(context.Background(), h.Timeout)
	defer cancel()
	return h.run.worker.Reconfigure(ctx, h.spec.Name, P(&next))
}

// Start starts the service and waits until it is set up. It does nothing if
// the service runs.
func (h *Harness) Start() {
	h.t.Helper()
	if h.run != nil {
		return
	}
	if err := h.start(); err != nil {
		h.t.Fatalf("service %s does not start: %v", h.spec.Name, err)
	}
}

// StartError starts a service that is expected not to start, and returns why.
func (h *Harness) StartError() error {
	h.t.Helper()
	err := h.start()
	if err == nil {
		h.t.Fatalf("service %s starts, but should not", h.spec.Name)
	}
	return err
}

func (h *Harness) start() error {
	r := &running{
		registry: prometheus.NewRegistry(), ended: make(chan error, 1),
		peers: map[string]weft.Runtime{}, sessions: map[flow.DPID]*session{},
	}
	var mu sync.Mutex // guards r.peers until all have started
	config := local.Config{
		Specs: h.system(), Settings: h.settings, Store: h.Store, Registry: r.registry, Encoded: h.Mode != Pointer,
		StandIns: map[string]func(context.Context, weft.Runtime) error{}, ReadyTimeout: h.Timeout, StopTimeout: h.Timeout, WatchLife: time.Hour,
		Log: slog.New(slog.NewTextHandler(h.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, peer := range config.Specs {
		if peer.Name == h.spec.Name {
			if peer.Stage {
				config.Pipeline = []string{peer.Name}
			} else if peer.Pipeline || peer.Beside != nil {
				config.Pipeline = []string{self}
			}
			continue
		}
		config.StandIns[peer.Name] = func(ctx context.Context, rt weft.Runtime) error {
			mu.Lock()
			r.peers[peer.Name] = rt
			mu.Unlock()
			return h.standIn(ctx, peer, rt)
		}
	}
	worker, err := local.New(config)
	if err != nil {
		return err
	}
	r.worker = worker
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- worker.Run(ctx) }()
	select {
	case <-worker.Started():
	case err := <-r.ended:
		cancel()
		return err
	}
	h.run = r
	return nil
}

// system returns the service, one Spec for each peer that it wants something
// of, and one for the test itself.
func (h *Harness) system() []weft.Spec {
	test := weft.Spec{Name: self, Calls: h.spec.Serves, Subscribes: h.spec.Publishes, Stage: h.spec.Pipeline || h.spec.Beside != nil, Pipeline: h.spec.Stage}
	var peers []*weft.Spec
	peer := func(name string) *weft.Spec {
		owner := ownerOf(name)
		for _, p := range peers {
			if p.Name == owner {
				return p
			}
		}
		peers = append(peers, &weft.Spec{Name: owner})
		return peers[len(peers)-1]
	}
	for _, m := range h.spec.Calls {
		p := peer(m.MethodName())
		p.Serves = append(p.Serves, m)
	}
	for _, s := range h.spec.Wants() {
		p := peer(s.SubjectName())
		p.Publishes = append(p.Publishes, s)
	}
	var specs []weft.Spec
	for _, p := range append(peers, &test) {
		if p.Name != h.spec.Name {
			p.Run = func(context.Context, *weft.Env) error { return nil } // never: it has a stand-in
			specs = append(specs, *p)
		}
	}
	return append(specs, h.spec)
}

// ownerOf returns the service of a method or subject.
func ownerOf(name string) string {
	owner, _, _ := strings.Cut(name, ".")
	return owner
}

// standIn is the Run of a peer.
func (h *Harness) standIn(ctx context.Context, peer weft.Spec, rt weft.Runtime) error {
	for _, m := range peer.Serves {
		name := m.MethodName()
		rt.Handle(m, func(ctx context.Context, req any) (any, error) { return h.answer(ctx, name, req) })
	}
	for _, s := range peer.Subscribes {
		name := s.SubjectName()
		rt.Subscribe(s, func(_ context.Context, event any) { h.heard(name, event) })
	}
	if peer.Stage {
		rt.Stage(func(flow.DPID) weft.StageFunc { return h.ownStage })
	}
	if err := rt.Ready(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// answer calls the fake of a method.
func (h *Harness) answer(ctx context.Context, name string, req any) (any, error) {
	h.keep("request of "+name, req)
	h.mu.Lock()
	fake := h.fakes[name]
	h.mu.Unlock()
	if fake == nil {
		return nil, api.Errorf(codes.Unimplemented, "the test has no fake of %s; give one with wefttest.Fake", name)
	}
	return fake(ctx, req)
}

// heard takes an event that the service has published.
func (h *Harness) heard(name string, event any) {
	h.keep("event "+name, event)
	select {
	case h.events[name] <- event:
	default:
		h.t.Errorf("more than %d events %s that the test does not take", eventsKept, name)
	}
}

// keep remembers how a message of the service's is now.
func (h *Harness) keep(name string, message any) {
	b, err := encode(message)
	if err != nil {
		return // Encoded fails the test for it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = append(h.sent, sent{name, message, b})
}

// encode is weft.Encode with the same outcome for the same message, maps
// included.
func encode(message any) ([]byte, error) {
	if m, ok := message.(proto.Message); ok {
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	return weft.Encode(nil, message)
}

// Stop stops the service; the test fails if it does not end cleanly.
func (h *Harness) Stop() {
	h.t.Helper()
	if h.run == nil {
		return
	}
	h.run.cancel()
	err := <-h.run.ended
	h.run = nil
	if err != nil {
		h.t.Errorf("service %s does not end cleanly: %v", h.spec.Name, err)
	}
}

// Restart stops the service and starts it again with the same buckets and
// fakes. Events that the test has not taken are forgotten.
func (h *Harness) Restart() {
	h.t.Helper()
	h.Stop()
	for _, c := range h.events {
		for len(c) > 0 {
			<-c
		}
	}
	h.Start()
}

// finish ends the test of one mode.
func (h *Harness) finish() {
	h.Stop()
	for _, name := range h.rewritten() {
		h.t.Errorf("%s was written to after it was sent", name)
	}
}

// rewritten returns the messages of the service's that are no longer what they
// were when they were sent.
func (h *Harness) rewritten() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sent {
		if b, err := encode(s.message); err != nil || !bytes.Equal(b, s.bytes) {
			names = append(names, s.name)
		}
	}
	return names
}

// Bucket returns one of the service's buckets, named as in its Spec.
func (h *Harness) Bucket(name string) weft.Bucket {
	h.t.Helper()
	b, err := h.Store.Bucket(h.t.Context(), h.spec.Name+"."+name)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// Metric returns the present value of one of the service's counters or gauges,
// or the number of values that a histogram has seen; 0 if there is none of
// that name and labels.
func (h *Harness) Metric(name string, labels ...string) float64 {
	h.t.Helper()
	want := map[string]string{}
	for i := 0; i+1 < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	return h.Metrics(name)[fmt.Sprint(want)]
}

// Metrics returns the present values of all of the service's metrics of a name,
// by their labels as fmt prints a map of them.
func (h *Harness) Metrics(name string) map[string]float64 {
	h.t.Helper()
	h.Start()
	families, err := h.run.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "weft_"+h.spec.Name+"_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			values[fmt.Sprint(have)] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// PacketIn gives a packet to the service's stage and returns its verdict and
// what it decided. Packets of one switch follow each other in one session.
func (h *Harness) PacketIn(in *flow.PacketIn) (flow.Verdict, *flow.Decision) {
	h.t.Helper()
	h.Start()
	s := h.run.session(h, in.Switch)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &flow.Decision{}
	return s.Packet(in, d), d
}

// session returns the session of a switch.
func (r *running) session(h *Harness, sw flow.DPID) *session {
	h.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[sw]
	if s == nil {
		if !h.spec.Stage {
			h.t.Fatalf("service %s takes no packets: its Spec does not say Stage", h.spec.Name)
		}
		s = &session{Pipeline: r.peers[self].Pipeline(sw, func(*flow.Decision) {})}
		r.sessions[sw] = s
	}
	return s
}

// Packet is PacketIn for a frame that came in at a port now, parsed.
func (h *Harness) Packet(sw flow.DPID, port flow.Port, frame []byte) (flow.Verdict, *flow.Decision) {
	h.t.Helper()
	return h.PacketIn(NewPacketIn(sw, port, frame))
}

// Reconnect ends the session of a switch: its next packet opens another stage.
func (h *Harness) Reconnect(sw flow.DPID) {
	if h.run != nil {
		h.run.mu.Lock()
		defer h.run.mu.Unlock()
		delete(h.run.sessions, sw)
	}
}

// NewPacketIn returns the packet-in for a frame that came in at an edge port
// now, unbuffered and parsed.
func NewPacketIn(sw flow.DPID, port flow.Port, frame []byte) *flow.PacketIn {
	in := &flow.PacketIn{
		Switch: sw, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Reason: flow.ReasonAction,
		Data: frame, Role: flow.RoleEdge,
	}
	in.Key.InPort = port
	packet.Parse(frame, &in.Key)
	return in
}

// Stage makes f the pipeline of a service that runs one, on all switches.
// Without it every packet gets Next.
func (h *Harness) Stage(f weft.StageFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stage = f
}

func (h *Harness) ownStage(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	h.mu.Lock()
	f := h.stage
	h.mu.Unlock()
	if f == nil {
		return flow.Next
	}
	return f(in, d)
}

// Limits returns the limits of the configuration that the service has reached lately.
func (h *Harness) Limits() []*api.LimitReached {
	h.Start()
	return h.run.worker.Limits(time.Now().UnixNano())
}

// Watch has packets sampled, for some seconds, and returns what was recorded of
// them since it was asked last (deploy.Watch).
func (h *Harness) Watch(o *api.WatchOrder) *api.WatchSpans {
	h.Start()
	return h.run.worker.Recorder().Watch(o)
}
