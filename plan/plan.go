// Package plan is the data that says which service runs in which process, how
// many of each, on which machine and over which transports, and pure functions
// over it: reading and writing it as YAML, checking it against the services'
// declarations, deriving the processes from it, comparing two plans, drawing.
//
// It does no input or output. Package deploy runs plans, cmd/weft checks and
// shows them. It imports the weft root, flow and api, and two YAML parsers: one
// reads the text, the other says what a word without quotes is, as deploy has it.
package plan

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// The transports. Inproc joins services in one process; a plan does not name it.
const (
	Inproc = "inproc"
	GRPC   = "grpc"
	WS     = "ws"
	REST   = "rest"
	SHM    = "shm" // between processes of one machine
	NATS   = "nats"
)

// Transports returns what a plan may name as a transport.
func Transports() []string { return []string{GRPC, WS, REST, SHM, NATS} }

// The ways in which packet-ins are spread over the replicas of a worker.
const (
	BalanceFlow       = "flow"        // by hash of the flow: keeps the order of each flow
	BalanceSwitch     = "switch"      // by switch: keeps the order of each switch
	BalanceRoundRobin = "round-robin" // one after the other
	BalanceLeast      = "least"       // to the one with the fewest unanswered
)

// Balances returns what a plan may name as a balance.
func Balances() []string {
	return []string{BalanceFlow, BalanceSwitch, BalanceRoundRobin, BalanceLeast}
}

// DefaultPipeline returns the order of the known stages of the packet-in
// pipeline.
func DefaultPipeline() []string { return flow.Stages() }

// The defaults that Parse applies.
const (
	defaultTransport = GRPC
	defaultEvents    = NATS
	defaultBalance   = BalanceFlow
	defaultListen    = "127.0.0.1:0"
)

// Plan says which service runs in which process. Parse returns it with all
// defaults filled in. Nobody writes to a plan after that.
type Plan struct {
	// Name is how people call the plan.
	Name string
	// Transport carries what goes between workers that no Link is about: grpc,
	// ws, rest, shm or nats.
	Transport string
	// Events is the transport of events between workers: the same five.
	Events string
	// Balance spreads packet-ins over the replicas of workers that do not say
	// otherwise: flow, switch, round-robin or least.
	Balance string
	// Pipeline names the stages of the packet-in pipeline in order, services and
	// apps; empty means those of DefaultPipeline that are in the plan, and the
	// apps before forwarding.
	Pipeline []string
	// Partial says that services are left out on purpose: what others want of
	// them is no mistake, but their calls fail and the events do not come.
	Partial bool
	// Bus is where state and events of all processes meet.
	Bus Bus
	// Partitions are sets of switches, each with a southbound of its own, in the
	// order of the file: networks of their own, or parts of one.
	Partitions []Partition
	// Workers are the processes, in the order of the file.
	Workers []Worker
	// Apps are stages that live outside Weft; sorted by name. Observers need no
	// place in the plan.
	Apps []App
	// Links are exceptions to Transport; the first that matches counts.
	Links []Link
	// Config are settings of services, wherever they run; sorted by service.
	Config []Section

	source string         // where the text is from
	lines  map[string]int // of keys and list items, as workers.routing.services.paths

	unread map[string]bool // keys whose values are not what they must be, which is reported
}

// Single returns the plan of one worker with the given services.
func Single(services []string) *Plan {
	p := &Plan{Name: "single", source: "services", Workers: []Worker{{Name: "all", Services: services}}}
	p.defaults()
	return p
}

// Bus says which NATS servers a plan's processes use.
type Bus struct {
	// URL names external servers, several separated by commas; empty means a
	// server embedded in the supervisor.
	URL string
	// Credentials is the file with the credentials for them.
	Credentials string
	// Replicas is on how many servers state is kept: 1 to 5.
	Replicas int
}

// Partition is a set of switches under one mastership.
type Partition struct {
	Name     string
	Switches []flow.DPIDRange // disjoint, sorted
	Rest     bool             // and all switches that are in no other partition
}

// List returns the partition's switches in the notation of a plan.
func (x *Partition) List() []string {
	l := flow.SwitchList{Ranges: x.Switches, Rest: x.Rest}
	return l.Items()
}

// Worker is one process, or several alike.
type Worker struct {
	// Name is that of the process; with Replicas above 1, the processes are
	// called NAME-1, NAME-2 and so on.
	Name string
	// Services are the names of those that run in it.
	Services []string
	// Replicas is how many processes there are, at least 1.
	Replicas int
	// Autoscale has the number of replicas follow the load; nil leaves it at
	// Replicas, with which it begins.
	Autoscale *Autoscale
	// Standby is how many processes more stand ready to take the place of the
	// first, whose services must be able to: NAME-standby, NAME-standby-2 and so
	// on. One of all is at work at a time.
	Standby int
	// Balance spreads packet-ins over the replicas.
	Balance string
	// Partition is that whose switches it works for; empty means all.
	Partition string
	// Class is realtime, latency or compute. It is told to people, by default the
	// most urgent of its services' classes; realtime, where it is written, also
	// asks the operating system for SCHED_RR.
	Class string
	// Nice is the priority for the operating system: -20 (first) to 19.
	Nice int
	// CPUs are those it may run on, in the form of Linux' cpulists: "0,2-3";
	// empty means all.
	CPUs string
	// CPUQuota is the share of a processor that each of its processes may use,
	// such as 0.25, or 2 for two processors; 0 is no limit.
	CPUQuota float64
	// Memory is how much it may use; 0 is no limit.
	Memory Bytes
	// Listen is the HOST:PORT at which other workers reach it; port 0 means one
	// that the system picks.
	Listen string
	// Env is added to the environment.
	Env map[string]string
	// Machine is where it runs. Empty means where the supervisor is; with
	// another name the supervisor leaves its start to somebody else.
	Machine string
	// Settings are those of its services that differ from Config; sorted by
	// service.
	Settings []Section
}

// Link is an exception to the plan's Transport.
type Link struct {
	From, To  string // names of workers, or * for any
	Transport string
}

// Source returns where the plan was read from, as Parse was told.
func (p *Plan) Source() string { return p.source }

// Worker returns the worker of a name, nil if there is none.
func (p *Plan) Worker(name string) *Worker {
	if i := slices.IndexFunc(p.Workers, func(w Worker) bool { return w.Name == name }); i >= 0 {
		return &p.Workers[i]
	}
	return nil
}

// Partition returns the partition of a name, nil if there is none.
func (p *Plan) Partition(name string) *Partition {
	if i := slices.IndexFunc(p.Partitions, func(x Partition) bool { return x.Name == name }); i >= 0 {
		return &p.Partitions[i]
	}
	return nil
}

// Has reports whether a service is in any worker.
func (p *Plan) Has(service string) bool {
	return slices.ContainsFunc(p.Workers, func(w Worker) bool { return slices.Contains(w.Services, service) })
}

// Services returns the names of all services in the plan, sorted.
func (p *Plan) Services() []string {
	var names []string
	for _, w := range p.Workers {
		names = append(names, w.Services...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SettingsOf returns the settings for the services of a worker, those of Config
// before the worker's own: where both set a key the later one counts.
func (p *Plan) SettingsOf(worker string) []Section {
	w := p.Worker(worker)
	if w == nil {
		return nil
	}
	var list []Section
	for _, s := range slices.Concat(p.Config, w.Settings) {
		if slices.Contains(w.Services, s.Service) {
			list = append(list, s)
		}
	}
	return list
}

// TransportBetween returns the transport by which what one worker sends reaches
// another: inproc if both are the same single process. Between the replicas of
// a worker it is that of a link from the worker to itself.
func (p *Plan) TransportBetween(from, to string) string {
	if from == to {
		if w := p.Worker(from); w == nil || w.Replicas <= 1 && w.Standby == 0 {
			return Inproc
		}
	}
	for _, l := range p.Links {
		if (l.From == "*" || l.From == from) && (l.To == "*" || l.To == to) {
			return l.Transport
		}
	}
	return p.Transport
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// defaults fills in omitted values.
func (p *Plan) defaults() {
	if p.Name == "" {
		base := filepath.Base(p.source)
		p.Name = strings.Trim(notName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"), "-._")
		p.Name = p.Name[:min(len(p.Name), maxName)]
	}
	p.Name = cmp.Or(p.Name, "plan")
	p.Transport = cmp.Or(p.Transport, defaultTransport)
	p.Events = cmp.Or(p.Events, defaultEvents)
	p.Balance = cmp.Or(p.Balance, defaultBalance)
	if _, set := p.lines["bus.replicas"]; !set || p.unread["bus.replicas"] {
		p.Bus.Replicas = 1
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		path := "workers." + w.Name + ".replicas"
		if _, set := p.lines[path]; !set || p.unread[path] {
			w.Replicas = 1
			if w.Autoscale != nil {
				w.Replicas = max(1, w.Autoscale.Min)
			}
		}
		w.Balance = cmp.Or(w.Balance, p.Balance)
		w.Listen = cmp.Or(w.Listen, defaultListen)
	}
	for i := range p.Apps {
		a := &p.Apps[i]
		a.Kind = cmp.Or(a.Kind, AppStage)
		a.Absent, a.Timeout = cmp.Or(a.Absent, AbsentHold), cmp.Or(a.Timeout, defaultAppTimeout)
	}
}

// The bounds of values.
const (
	maxName     = 50 // of workers and partitions; leaves room for -999
	maxReplicas = 256
	maxStandby  = 4
	minMemory   = 16 << 20
	maxMemory   = 1 << 50
)

var (
	label   = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	serial  = regexp.MustCompile(`^(.+)-([1-9][0-9]*)$`)
	notName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	service = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)
