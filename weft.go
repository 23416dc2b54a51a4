// Package weft is how a service of the controller is written: a Spec that
// declares it as plain data, and the few functions by which its Run takes part
// in the system: Handle, Call, On, Publish, Stage, State and Serve.
//
// A service does not know in which process its peers run. Which service runs
// where is a plan's business (package deploy). Anyone may import weft; it
// imports only flow, api, nib and the protobuf runtime.
package weft

import (
	"context"
	"log/slog"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// Class says how urgent a service's work is: real-time before latency-sensitive
// before compute. Of a process it may become the operating system's priority
// (plan key class). Within a process it is told to people: the southbound deals
// with real-time messages before packet-ins, packets run to completion on the
// goroutine that read them, and computation is done in pieces.
type Class int

// The classes.
const (
	RealTime Class = iota // echo, heartbeat, probes, roles, port status
	Latency               // packet-in, path set-up
	Compute               // recomputation, statistics
)

// String returns the class as plans write it.
func (c Class) String() string { return [...]string{"realtime", "latency", "compute"}[c] }

// Scale says how many instances of a service may run at once.
type Scale int

// The scales.
const (
	Single       Scale = iota // one in the whole system
	PerPartition              // one for each partition of the network, or one for all; what runs the pipeline always for each
	Any                       // as many as one likes
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

// Spec declares a service. It is plain data: the whole graph of services can
// be read without starting anything. To use what is not declared here is an
// error at start, so the graph tells the truth.
type Spec struct {
	Name       string    // also its folder, its package and the prefix of its methods, subjects, buckets and metrics
	Doc        string    // one line: what it does
	Serves     []Method  // methods that it answers
	Calls      []Method  // methods of others that it calls
	Subscribes []Subject // events of others that it wants; of its own, too, if its instances work as one: those of all partitions of a network then hear what happens in any
	Reads      nib.Parts // what it reads of the network; the events that this is made of come to NIB instead of handlers
	Optional   []string  // services that it can do without: where they do not run, calls of them fail with Unavailable and their events do not come
	Publishes  []Subject // events of its own; nobody else publishes them
	Buckets    []string  // durable state that it writes; nobody else does
	Rebuilt    []string  // those of Buckets whose content it learns again: they can be written to even if they are damaged
	Stage      bool      // it is a stage of the packet-in pipeline
	Pipeline   bool      // it runs the pipeline; the southbound only. The keys switches and elsewhere of its Config are set to its partition's switches and those of others
	Beside     []string  // it opens the pipeline, too, beside the service that runs it, for packets that come to it another way; without these stages, whose part it does itself. Its Config is set as that of Pipeline
	Listens    bool      // it listens on an address of its configuration: when it moves on a machine, the old one ends first
	Standby    bool      // where a plan has a standby, a further instance is started that calls Ready when it has made sure that it may take the place of the one at work
	Class      Class
	Scale      Scale
	Config     Config   // defaults; a plan overrides single keys; nil if it has none
	Live       []string // keys of Config that a running instance takes over (OnConfig), with all below them; * is all. If another changes, the service is started again
	Run        func(context.Context, *Env) error
}

// Wants returns the events of others that the service is to get: those that make
// up what it reads of the network, and those that it subscribes to.
func (s *Spec) Wants() []Subject { return append(s.Reads.Subjects(), s.Subscribes...) }

// Config is a service's configuration: a pointer to a struct whose yaml tags
// name its keys, holding the defaults. Validate says which key is wrong, what
// it is and what is allowed.
type Config interface{ Validate() error }

// StageFunc is one stage at work on the packets of one switch. It is called
// for one packet at a time, in the order in which they arrived, and must not
// block, keep in or d, or allocate in the common case. It calls others by
// CallNow only; internal/archtest refuses a stage that may reach Call or
// Publish.
type StageFunc func(in *flow.PacketIn, d *flow.Decision) flow.Verdict

// Pipeline is the packet-in pipeline opened for one session of a switch. One
// goroutine uses it.
type Pipeline interface {
	// Packet runs the stages on a packet. If some of them are in another
	// process, it returns flow.Away: the packet has been copied, and its
	// decision comes later. What d holds then is none of the caller's business.
	Packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict
	// Flush sends off the packets that are away; for the end of a batch.
	Flush()
	// Returned is how many packets that were away are so no more, decided about or
	// given up, and how many of these are LLDP, which return apart; all others
	// return in their order. They are counted before Later is called with nil.
	Returned() (all, probes uint64)
	// Close ends the session; decisions that come later are dropped.
	Close()
}

// Later takes the decision of a packet that was away, valid during the call;
// nil says that no more follow at once. It is called by one goroutine at a
// time, in the order in which packets of a flow arrived.
type Later func(d *flow.Decision)

// Runtime is what a service runs on: implemented in one process and across
// processes by deploy, and for tests by wefttest. Services use the functions
// of this package instead.
type Runtime interface {
	// Handle registers the handler of a method.
	Handle(m Method, h func(ctx context.Context, req any) (resp any, err error))
	// Call calls a method and returns its response.
	Call(ctx context.Context, m Method, req any) (resp any, err error)
	// CallNow calls a method, without waiting for anything, in this process.
	CallNow(m Method, req any) (resp any, err error)
	// Subscribe registers a handler of events: one at a time, in order per
	// publisher, on a goroutine of this service's own.
	Subscribe(s Subject, h func(ctx context.Context, event any))
	// Network returns what the service reads of the network, as it is now.
	Network() nib.Snapshot
	// OnChange registers what is called, as an event, when parts of it have changed.
	OnChange(p nib.Parts, h func(nib.Change))
	// Publish hands an event to all subscribers; it waits for a full queue.
	Publish(s Subject, event any)
	// Stage registers this service's stage; open is called once per switch.
	Stage(open func(flow.DPID) StageFunc)
	// Pipeline opens the pipeline for one session of a switch.
	Pipeline(sw flow.DPID, later Later) Pipeline
	// Confirmed tells those who watch packets what a switch has confirmed.
	Confirmed(c *flow.Confirmation)
	// Bucket opens durable state.
	Bucket(name string) (Bucket, error)
	// Scratch returns memory of this service's that outlives the process. With an
	// error, it does not.
	Scratch(name string, size int) ([]byte, error)
	// Ready says that the service's set-up is complete, and waits until that
	// of all others is, too.
	Ready(ctx context.Context) error
	// Heard is closed once the service has handled what publishers retained when it
	// began, or they did not answer for seconds.
	Heard() <-chan struct{}
	// Specs returns all services of the system.
	Specs() []Spec
	// Replicas returns the number of this instance among those of its service
	// that run, from 0, and how many they are.
	Replicas() (index, count int)
	// OnReplicas registers what is called when Replicas has changed, as an event.
	OnReplicas(h func(index, count int))
	// OnLimits registers what lists the limits of the configuration that the service
	// has reached lately, at a time in nanoseconds since 1970.
	OnLimits(list func(now int64) []*api.LimitReached)
	// Others returns the instances of the plan that stand by for this one, or for
	// which it stands by.
	Others() []string
	// Ask asks one of them.
	Ask(ctx context.Context, instance string, question []byte) (answer []byte, err error)
	// OnAsked registers what answers them, at any time from then on.
	OnAsked(h func(question []byte) (answer []byte))
	// OnConfig registers what takes over a new configuration, as an event.
	OnConfig(take func(ctx context.Context, old, new any) error)
	// Now returns the time of day by the clock that all processes share.
	Now() time.Time
}

// Env is one running instance of a service, as its Run sees it.
type Env struct {
	Log    *slog.Logger // carries the service's name
	Config any          // the Spec's Config with the plan's changes
	Metric Metrics      // the service's figures

	spec    *Spec
	runtime Runtime
	buckets []Bucket // that are open
	errs    []error
}

// NewEnv returns the environment of one instance; for runtimes.
func NewEnv(spec *Spec, rt Runtime, config any, log *slog.Logger, m Metrics) *Env {
	return &Env{Log: log, Config: config, Metric: m, spec: spec, runtime: rt}
}

// Metrics registers a service's figures; names get the service's as prefix,
// and are exported as weft_SERVICE_NAME. Labels are alternating names and
// values. Asking again for the same name and labels returns the same figure.
type Metrics interface {
	// Counter returns a figure that only grows.
	Counter(name, help string, labels ...string) Counter
	// CounterFunc registers a figure that only grows and is read when somebody looks.
	CounterFunc(name, help string, read func() float64, labels ...string)
	// Gauge registers a figure that is read when somebody looks.
	Gauge(name, help string, read func() float64, labels ...string)
	// Histogram returns a distribution over the given upper bounds.
	Histogram(name, help string, bounds []float64, labels ...string) Observer
	// Remove takes back the figure of a name and labels, for what it told of is
	// no more; it may be none. Whoever labels figures by the names of objects
	// bounds their number, and removes them with the object.
	Remove(name string, labels ...string)
}

// Counter is a figure that only grows. Add does not allocate.
type Counter interface{ Add(float64) }

// Observer takes the values of a distribution.
type Observer interface{ Observe(float64) }
