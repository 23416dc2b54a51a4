package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/plan/place"
)

// The ways to isolate compute-class services, whose load comes in spikes.
const (
	IsolateServer  = "server"  // on servers of their own (paper 001 §3.3)
	IsolateProcess = "process" // in processes of their own with less priority
	IsolateNone    = "none"    // not at all
)

// Isolations returns what MakeOptions may name as an isolation.
func Isolations() []string { return []string{IsolateServer, IsolateProcess, IsolateNone} }

// The defaults of MakeOptions.
const (
	DefaultHeadroom          = 0.1
	DefaultChanges           = 0.1  // a link that fails every 10 s (paper 001 §5.2)
	DefaultHeartbeatDeadline = 10e3 // µs
	DefaultProbeDeadline     = 50e3 // µs
)

// MakeOptions say what a plan is to be like.
type MakeOptions struct {
	// Name is the plan's.
	Name string
	// Services are those that are to run; empty means all.
	Services []string
	// Cut is the network in partitions; nil means one partition.
	Cut *partition.Result
	// Seed picks one of many searches; the same gives the same plan.
	Seed uint64
	// Runs and Steps bound the search for a placement, as in place.Options.
	Runs, Steps int
	// PacketIns is how many per second the whole network makes; below 0 means as
	// many as when the profile was measured.
	PacketIns float64
	// Changes is how often per second the topology changes; below 0 means
	// DefaultChanges.
	Changes float64
	// Isolate is how compute-class services are kept from others; empty means
	// IsolateServer with two servers or more, else IsolateProcess.
	Isolate string
	// Transport is the plan's; empty means grpc.
	Transport string
	// Headroom is the share of every server that is left free; below 0 means
	// DefaultHeadroom.
	Headroom float64
	// HeartbeatDeadline and ProbeDeadline are what crossing servers may add to
	// the way of a heartbeat and of a probe of links, in µs (eq. 6); 0 means the
	// defaults.
	HeartbeatDeadline, ProbeDeadline float64
	// Replicas is how many there are to be of a service, each on a server of its
	// own and, if there are several, in a power domain of its own.
	Replicas map[string]int
	// Pins are the servers, by name, of services or shards.
	Pins map[string]string
	// Apart and Together are sets of services or shards no two of which, or all of
	// which, share a server.
	Apart, Together [][]string
	// Plain has switches connect without TLS to servers that have an address. Else
	// they connect on the loopback, until somebody writes where, and certificates,
	// into the plan.
	Plain bool
	// PerPartition are services that each partition has for itself, besides those
	// that cannot be otherwise.
	PerPartition []string
	// Domains are the power domains of partitions: shards of partitions with
	// different ones never share a server.
	Domains map[string]string
	// Current is the plan that runs now, and where its shards are; moves away from
	// there cost what Move says. Nil: nothing runs.
	Current map[string]string
	// Move is what the moves of shards cost.
	Move MoveCost
}

// Made is a computed plan, with the data behind it.
type Made struct {
	Plan *Plan
	// Instance is the placement problem and Solution its answer.
	Instance *place.Instance
	Solution *place.Solution
	// Shards are those of Instance, in its order.
	Shards []Shard
	// Servers are those of Instance, in its order.
	Servers []Server
	// Where says on which server a worker is, by their names.
	Where map[string]string
	// Notes are decisions and assumptions, for people.
	Notes []string

	model *model
}

// Shard is one service's share for one partition.
type Shard struct {
	Service   string
	Partition string // empty: works for all
	Replica   int    // from 1; 0 if there is one only
	Switches  int    // that it works for
	Sessions  int    // of switches that it holds
	PacketIns float64
	CPU       float64 // seconds per second
	Memory    Bytes
	Class     weft.Class
}

// Name is service/partition#replica, as far as it has them.
func (s Shard) Name() string {
	name := s.Service
	if s.Partition != "" {
		name += "/" + s.Partition
	}
	if s.Replica > 0 {
		name += fmt.Sprintf("#%d", s.Replica)
	}
	return name
}

// called reports whether a name in a pin or a set refers to the shard: its own
// name, that without the replica, or its service's.
func (s Shard) called(name string) bool {
	whole := s.Name()
	plain, _, _ := strings.Cut(whole, "#")
	return name == whole || name == plain || name == s.Service
}

// Make computes a plan for a network from the measured demands of its services
// (paper 001 §3.3). Every service has a shard for each partition, or one for
// all, and place.Solve assigns shards to servers such that as few events as
// possible cross servers. The plan keeps all rules of Plan.Check. The errors of
// Make say what the profile lacks, what is contradictory, or why there is no
// placement (*place.InfeasibleError). If ctx ends early, the plan may cost
// more; without a deadline the plan depends only on the arguments.
func Make(ctx context.Context, specs []weft.Spec, network *partition.Graph, profile *Profile, servers []Server, o MakeOptions) (*Made, error) {
	m, err := newModel(specs, network, profile, servers, o)
	if err != nil {
		return nil, err
	}
	// The processes' own demand depends on their number: the search starts over
	// with less capacity.
	for {
		solution, err := place.Solve(ctx, m.instance, place.Options{Seed: o.Seed, Runs: o.Runs, Steps: o.Steps})
		if err != nil {
			return nil, err
		}
		made := m.made(solution)
		if m.charge(made) { // capacities only shrink, so it ends
			continue
		}
		if err := made.Plan.Check(m.specs); err != nil {
			return nil, fmt.Errorf("the plan that was computed breaks rules of plans: %w", err)
		}
		return made, nil
	}
}

// model is the placement problem of a network under construction.
type model struct {
	specs    []weft.Spec // that are to run
	network  *partition.Graph
	profile  *Profile
	servers  []Server
	options  MakeOptions
	names    []string // of partitions; none if there is one
	sizes    []int    // switches of each; of the network if there are none
	loads    []float64
	per      map[string]bool // services that each partition has for itself
	partial  bool            // services that others want are left out
	shards   []Shard
	instance *place.Instance
	delays   [2]float64 // between processes of one machine, and between machines, in µs
	base     []float64  // processes' own demand by server, in seconds per second
	basemem  []Bytes
	notes    []string
}

func newModel(all []weft.Spec, network *partition.Graph, profile *Profile, servers []Server, o MakeOptions) (*model, error) {
	m := &model{network: network, profile: profile, servers: servers, options: o, base: make([]float64, len(servers)), basemem: make([]Bytes, len(servers))}
	if err := errors.Join(CheckServers(servers), profile.Validate(), m.defaults(), m.choose(all)); err != nil {
		return nil, err
	}
	m.cut()
	if !o.Plain && slices.ContainsFunc(servers, func(s Server) bool { return s.Address != "" }) {
		m.notes = append(m.notes, "southbound listens on the loopback: where switches are to connect, and by which certificates, is to be set in its settings (weft certs controller)")
	}
	if err := m.scopes(); err != nil {
		return nil, err
	}
	if err := m.complete(); err != nil {
		return nil, err
	}
	m.split()
	return m, m.problem()
}

// defaults fills in what the options leave out.
func (m *model) defaults() error {
	o := &m.options
	o.Name = cmp.Or(o.Name, "made")
	o.Transport = cmp.Or(o.Transport, defaultTransport)
	if o.PacketIns < 0 {
		o.PacketIns = m.profile.PacketIns
		if o.PacketIns < quiet {
			return errors.New("the profile was measured without packet-ins, so it does not say how many to plan for: give their number per second")
		}
	}
	if o.Changes < 0 {
		o.Changes = DefaultChanges
	}
	if o.Headroom < 0 {
		o.Headroom = DefaultHeadroom
	}
	o.HeartbeatDeadline, o.ProbeDeadline = cmp.Or(o.HeartbeatDeadline, DefaultHeartbeatDeadline), cmp.Or(o.ProbeDeadline, DefaultProbeDeadline)
	if o.Isolate == "" {
		o.Isolate = IsolateProcess
		if len(m.servers) > 1 {
			o.Isolate = IsolateServer
		}
	}
	switch {
	case !slices.Contains(Isolations(), o.Isolate):
		return fmt.Errorf("isolation %q: want one of %s", o.Isolate, strings.Join(Isolations(), ", "))
	case !slices.Contains(Transports(), o.Transport):
		return fmt.Errorf("transport %q: want one of %s", o.Transport, strings.Join(Transports(), ", "))
	case !(o.Headroom < 1):
		return fmt.Errorf("headroom %v: want a share below 1, such as 0.1", o.Headroom)
	case !(o.PacketIns <= maxRate) || !(o.Changes <= maxRate):
		return fmt.Errorf("%g packet-ins and %g changes a second: want at most %g", o.PacketIns, o.Changes, maxRate)
	}
	return nil
}

// choose selects the services to run.
func (m *model) choose(all []weft.Spec) error {
	for _, name := range m.options.Services {
		s := specOf(all, name)
		if s == nil {
			var known []string
			for _, s := range all {
				known = append(known, s.Name)
			}
			return fmt.Errorf("unknown service %q; allowed: %s", name, strings.Join(known, ", "))
		}
	}
	for _, s := range all {
		if len(m.options.Services) == 0 && s.Beside == nil || slices.Contains(m.options.Services, s.Name) {
			m.specs = append(m.specs, s)
		}
	}
	return nil
}

// complete reports what the profile lacks.
func (m *model) complete() error {
	var names []string
	for _, s := range m.specs {
		names = append(names, s.Name)
	}
	o := m.options
	keys := m.profile.Missing(names, o.PacketIns > 0, o.Changes > 0)
	d := m.profile.DelayOf(o.Transport)
	local, remote := false, false
	for i, a := range m.servers {
		for _, b := range m.servers[:i] {
			local, remote = local || a.Address == b.Address, remote || a.Address != b.Address
		}
	}
	if local && !d.Local.Known {
		keys = append(keys, "delays."+o.Transport+".local")
	}
	if remote && !d.Remote.Known {
		keys = append(keys, "delays."+o.Transport+".remote")
	}
	if remote && o.Transport == SHM {
		return errors.New("transport shm: the servers are several machines, and the memory of a machine is its own; take another transport, such as grpc")
	}
	m.delays = [2]float64{d.Local.Value * 1e6, d.Remote.Value * 1e6}
	if len(keys) == 0 {
		return nil
	}
	const most = 8
	text := strings.Join(keys[:min(len(keys), most)], ", ")
	if more := len(keys) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("the profile does not say all that is needed: %s: measure it with weft profile, or write it by hand", text)
}

// split makes the shards.
func (m *model) split() {
	if n := len(m.network.Switches); n > 2*max(m.profile.Switches, 1) {
		m.notes = append(m.notes, fmt.Sprintf("the profile is of %d switches; for %d, time at rest, time for changes and memory are taken to grow in proportion: better measure at that size", m.profile.Switches, n))
	}
	for _, s := range m.specs {
		d := m.profile.Of(s.Name)
		parts := []string{""}
		if m.per[s.Name] {
			parts = m.names
		}
		for i, part := range parts {
			switches, load := len(m.network.Switches), 1.0
			if part != "" {
				switches, load = m.sizes[i], m.loads[i]
			}
			replicas := max(m.options.Replicas[s.Name], 1)
			for n := 1; n <= replicas; n++ {
				x := Shard{Service: s.Name, Partition: part, Switches: switches, Class: s.Class}
				if replicas > 1 {
					x.Replica = n
				}
				x.PacketIns = m.options.PacketIns * load / float64(replicas)
				if s.Pipeline {
					x.Sessions = switches
				}
				x.CPU, x.Memory = m.profile.share(d, switches, x.PacketIns, m.options.Changes)
				m.shards = append(m.shards, x)
			}
		}
	}
}

// charge subtracts the demand of a plan's processes from the servers' capacity;
// it reports whether a server is left with too little, so that another
// placement is needed.
func (m *model) charge(made *Made) (again bool) {
	count := make([]int, len(m.servers))
	for worker, server := range made.Where {
		w := made.Plan.Worker(worker)
		count[slices.IndexFunc(m.servers, func(s Server) bool { return s.Name == server })] += max(w.Replicas, 1)
	}
	in := m.instance
	cpu, memory := make([]int64, len(m.servers)), make([]int64, len(m.servers))
	for i, s := range made.Solution.Server {
		cpu[s] += in.Shards[i].CPU
		memory[s] += in.Shards[i].Memory
	}
	for s := range m.servers {
		own, octets := m.profile.processes(count[s])
		m.base[s], m.basemem[s] = max(m.base[s], own), max(m.basemem[s], octets)
	}
	m.capacities()
	for s := range m.servers {
		again = again || cpu[s] > in.Servers[s].CPU || memory[s] > in.Servers[s].Memory
	}
	return again
}

// sorted returns the keys of a map in order.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
