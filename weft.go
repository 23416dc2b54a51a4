// Package weft is the framework in which the services of the controller are
// written. A service is a Spec, which declares it as plain data, and a Run
// function, which uses the functions of this package: Handle, Call, On,
// OnChange, Publish, Stage, State and Serve.
//
// A service does not know in which process its peers run; the plan decides
// that (package deploy). Any package may import weft. It imports only flow,
// api, nib and the protobuf runtime.
package weft

import (
	"context"
	"log/slog"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// Class is the urgency of a service's work: real-time work comes before
// latency-sensitive work, and that before computation. A plan may turn the
// class of a process into a priority of the operating system (key class).
// Inside a process the class is informational.
type Class int

// The classes.
const (
	RealTime Class = iota // echo, heartbeat, probes, roles, port status
	Latency               // packet-in, path set-up
	Compute               // recomputation, statistics
)

// String returns the class as plans write it.
func (c Class) String() string { return [...]string{"realtime", "latency", "compute"}[c] }

// Scale is the number of instances of a service that may run at once.
type Scale int

// The scales.
const (
	Single       Scale = iota // one in the whole system
	PerPartition              // one for each partition of the network, or one for all partitions; a service that runs the pipeline has one for each
	Any                       // any number
)

// String returns the scale as plans write it.
func (s Scale) String() string { return [...]string{"single", "per-partition", "any"}[s] }

// Method is an api.Method without its types.
type Method = api.AnyMethod

// Subject is an api.Subject without its type.
type Subject = api.AnySubject

// Methods lists methods in a Spec.
func Methods(m ...Method) []Method { return m }

// Subjects lists subjects in a Spec.
func Subjects(s ...Subject) []Subject { return s }

// Spec declares a service. It is plain data, so the whole graph of services can
// be read without starting any. It is an error to use a method, subject, stage
// or bucket that the Spec does not declare.
type Spec struct {
	Name       string    // name of its folder and package; prefix of its methods, subjects, buckets and metrics
	Doc        string    // purpose, in one line
	Serves     []Method  // methods that it answers
	Calls      []Method  // methods of other services that it calls
	Subscribes []Subject // events that it handles. A service that lists events of its own is clustered: its instances receive the events of all partitions of the network
	Reads      nib.Parts // parts of the network that it reads; the events behind them go to NIB, not to handlers
	Optional   []string  // services that it can work without: where they do not run, calls to them fail with Unavailable and their events do not come
	Publishes  []Subject // events that it alone publishes
	Buckets    []string  // durable state that it alone writes
	Rebuilt    []string  // buckets whose content it can learn again; they stay writable even if they are damaged
	Stage      bool      // it is a stage of the packet-in pipeline
	Pipeline   bool      // it runs the pipeline; only southbound does. Keys switches and elsewhere of its Config receive the switches of its partition and of the others
	Beside     []string  // stages whose work it does itself. It opens a pipeline of its own without them, for packets that do not come through southbound; its Config is set as for Pipeline
	Listens    bool      // it listens on an address of its configuration; when it moves within a machine, the old instance ends first
	Drains     bool      // when it is stopped, its stage takes packets until Run has returned; that of others takes none once their context has ended
	Standby    bool      // a plan may start a standby instance of it, which calls Ready once it may replace the active one
	Class      Class
	Scale      Scale
	Config     Config   // defaults, which a plan overrides key by key; nil if the service has no configuration
	Live       []string // keys of Config, with all keys below them, that OnConfig applies to a running instance; * is every key. A change of any other key restarts the service
	Run        func(context.Context, *Env) error
}

// Wants returns the events that the runtime delivers to the service: those that
// it subscribes to, and those behind the parts of the network that it reads.
func (s *Spec) Wants() []Subject { return append(s.Reads.Subjects(), s.Subscribes...) }

// Config is a service's configuration: a pointer to a struct whose yaml tags
// name its keys and whose values are the defaults. The error of Validate names
// the wrong key, its value and the values allowed.
type Config interface{ Validate() error }

// StageFunc handles the packets of one switch in one stage. It is called for
// one packet at a time, in order of arrival. It must not block, retain in or d,
// or allocate in the common case. It calls other services by CallNow only; a
// test in internal/archtest fails if a stage can reach Call or Publish.
type StageFunc func(in *flow.PacketIn, d *flow.Decision) flow.Verdict

// Pipeline is the packet-in pipeline of one session of a switch. It is not safe
// for concurrent use.
type Pipeline interface {
	// Packet runs the stages on a packet. If a stage is in another process, it
	// returns flow.Away: the packet has been copied, Later receives the decision,
	// and the content of d is undefined.
	Packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict
	// Flush sends the packets that wait for another process. The caller calls it
	// at the end of a batch.
	Flush()
	// Returned returns the number of packets that came back from another process
	// or were given up, and the number of LLDP packets among them. LLDP packets
	// return out of order, all others in order. Both counts are updated before
	// Later is called with nil.
	Returned() (all, probes uint64)
	// Close ends the session. Decisions that arrive afterwards are dropped.
	Close()
}

// Later receives the decision on a packet that another process handled. The
// decision is valid during the call only; nil ends a batch of decisions. Later
// is called by one goroutine at a time; the packets of a flow stay in order of
// arrival.
type Later func(d *flow.Decision)

// Runtime connects a service to the rest of the system. Package deploy
// implements it for one process and for many, package wefttest for tests.
// Services use the functions of this package instead.
type Runtime interface {
	// Handle registers the handler of a method.
	Handle(m Method, h func(ctx context.Context, req any) (resp any, err error))
	// Call calls a method and returns its response.
	Call(ctx context.Context, m Method, req any) (resp any, err error)
	// CallNow calls a method that this process serves, without waiting.
	CallNow(m Method, req any) (resp any, err error)
	// Subscribe registers a handler of events. Events are handled one at a time,
	// in order per publisher, on the service's own goroutine.
	Subscribe(s Subject, h func(ctx context.Context, event any))
	// Network returns the current snapshot of the network.
	Network() nib.Snapshot
	// OnChange registers a handler of changes in some parts of the network. It
	// runs as an event handler.
	OnChange(p nib.Parts, h func(nib.Change))
	// Publish delivers an event to all subscribers. It waits while a queue is full.
	Publish(s Subject, event any)
	// Stage registers the service's stage. open is called once per session of a
	// switch.
	Stage(open func(flow.DPID) StageFunc)
	// Pipeline opens the pipeline for one session of a switch.
	Pipeline(sw flow.DPID, later Later) Pipeline
	// ReportConfirmation reports a switch's confirmation to the packet traces.
	ReportConfirmation(c *flow.Confirmation)
	// Bucket opens a bucket of durable state.
	Bucket(name string) (Bucket, error)
	// Scratch returns memory of this service that outlives the process. If it
	// also returns an error, the memory does not outlive the process.
	Scratch(name string, size int) ([]byte, error)
	// Ready marks the service's set-up as complete and waits until every service
	// has completed its own.
	Ready(ctx context.Context) error
	// Synced returns a channel that is closed once the service has handled the
	// events that publishers retained when it started. Publishers that do not
	// answer within seconds are left out.
	Synced() <-chan struct{}
	// Specs returns the Specs of all services of the system.
	Specs() []Spec
	// Replicas returns the index of this instance among the running instances of
	// its service, from 0, and their number.
	Replicas() (index, count int)
	// OnReplicas registers a handler of changes of Replicas. It runs as an event
	// handler.
	OnReplicas(h func(index, count int))
	// OnLimits registers a function that lists the limits of the configuration
	// that the service has recently reached. now is in nanoseconds since 1970.
	OnLimits(list func(now int64) []*api.LimitReached)
	// StandbyPeers returns the names of the plan's other instances of this worker,
	// the active one and its standbys; none if the worker has no standby.
	StandbyPeers() []string
	// AskPeer sends a question to one of StandbyPeers and returns its answer.
	AskPeer(ctx context.Context, instance string, question []byte) (answer []byte, err error)
	// AnswerPeers registers the function that answers AskPeer. It may be called at
	// any time from then on.
	AnswerPeers(h func(question []byte) (answer []byte))
	// OnConfig registers the function that applies a new configuration. It runs
	// as an event handler.
	OnConfig(apply func(ctx context.Context, old, new any) error)
	// Now returns the time of day by the clock that all processes share.
	Now() time.Time
}

// Env is the environment of one running instance of a service.
type Env struct {
	Log    *slog.Logger // logs with the service's name
	Config any          // Spec.Config with the plan's values
	Metric Metrics      // registers the service's metrics

	spec    *Spec
	runtime Runtime
	buckets []Bucket // open buckets
	errs    []error  // mistakes in the set-up, which Ready returns
}

// NewEnv returns the environment of one instance. Runtimes call it.
func NewEnv(spec *Spec, rt Runtime, config any, log *slog.Logger, m Metrics) *Env {
	return &Env{Log: log, Config: config, Metric: m, spec: spec, runtime: rt}
}

// Metrics registers a service's metrics. They are exported as
// weft_SERVICE_NAME. labels alternates label names and values. A second
// registration of the same name and labels returns the same metric.
type Metrics interface {
	// Counter returns a counter.
	Counter(name, help string, labels ...string) Counter
	// CounterFunc registers a counter whose value read returns at each scrape.
	CounterFunc(name, help string, read func() float64, labels ...string)
	// Gauge registers a gauge whose value read returns at each scrape.
	Gauge(name, help string, read func() float64, labels ...string)
	// Histogram returns a histogram whose buckets have the given upper bounds.
	Histogram(name, help string, bounds []float64, labels ...string) Observer
	// Remove removes the metric with the given name and labels, if there is one.
	// A service that labels metrics by the names of objects bounds their number,
	// and removes the metrics of an object together with the object.
	Remove(name string, labels ...string)
}

// Counter is a metric that only grows. Add does not allocate.
type Counter interface{ Add(float64) }

// Observer adds values to a histogram.
type Observer interface{ Observe(float64) }
