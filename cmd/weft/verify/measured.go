package verify

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/profiler"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// measured is what a controller did while it was looked at, in slices of time one
// after the other.
type measured struct {
	plan      *plan.Plan
	seconds   float64             // over which messages were counted
	processes map[string]*process // by the name of the plan's instance
	names     map[string]string   // of instances, by those of processes
	switches  []*api.Switch

	crossings map[crossing]*count
	rates     map[wayOf][]float64 // messages a second between processes, by slice
	seen      map[wayOf]uint64    // their number
	latency   map[wayOf][]*api.LatencyBucket
	converged []float64 // changes of the topology, by slice

	totals map[total]uint64 // as crossings were at the last look
	work   map[workOf]*api.Work
}

// process is what one process did.
type process struct {
	cpu      []float64            // seconds per second, by slice
	by       map[string][]float64 // the same of its services; "" is its own
	samples  map[string]int       // of its services
	resident []float64            // octets
	memory   map[string][]float64 // the same of its services
	delays   map[delayTo][]float64
	stages   map[string]times
}

// delayTo is another process, and the transport over which it was asked.
type delayTo struct{ to, transport string }

// times are sums of measured service times in seconds.
type times struct {
	n            int
	sum, squares float64
}

// wayOf names the messages of a kind from a service to another.
type wayOf struct{ from, to, kind string }

// crossing is the way of packets from a service to a stage, by the process that
// they came from.
type crossing struct {
	from, to, process string
}

// count is how many packets went that way, and how many of them crossed to another
// process.
type count struct{ all, crossed uint64 }

// total names a counter of a process.
type total struct{ from, to, fromProcess, toProcess, kind, name, transport string }

// workOf names the work of a service in a run of a process.
type workOf struct {
	process, service string
	run              uint64
}

// alonePlan is what is verified of a controller in one process without a plan.
const alonePlan = "one process"

func newMeasured(p *plan.Plan) *measured {
	return &measured{
		plan: p, processes: map[string]*process{}, names: map[string]string{}, crossings: map[crossing]*count{},
		rates: map[wayOf][]float64{}, seen: map[wayOf]uint64{}, latency: map[wayOf][]*api.LatencyBucket{},
		totals: map[total]uint64{}, work: map[workOf]*api.Work{},
	}
}

// instances takes which process carries out which instance of the plan.
func (m *measured) instances(list *api.ListWorkersResponse) error {
	for _, w := range list.GetWorkers() {
		if w.Instance == "" {
			continue // it ends
		}
		if w.State != "up" {
			return fmt.Errorf("process %s is %s: verify a plan when all of its processes are up (weft get workers)", w.Instance, w.State)
		}
		m.names[w.Process] = w.Instance
	}
	return nil
}

// instanceOf returns the instance that a process carries out.
func (m *measured) instanceOf(name string) string {
	if all := m.plan.Instances(); len(all) == 1 {
		return all[0].Name
	}
	if instance := m.names[name]; instance != "" {
		return instance
	}
	return name
}

func (m *measured) process(name string) *process {
	instance := m.instanceOf(name)
	if m.processes[instance] == nil {
		m.processes[instance] = &process{by: map[string][]float64{}, samples: map[string]int{}, memory: map[string][]float64{}, delays: map[delayTo][]float64{}, stages: map[string]times{}}
	}
	return m.processes[instance]
}

// profile takes one slice of time.
func (m *measured) profile(r *api.TakeProfileResponse) error {
	for _, p := range r.GetProcesses() {
		if p.Error != "" || p.Seconds == 0 {
			return fmt.Errorf("process %s: %s", m.instanceOf(p.Process), p.Error)
		}
		at := m.process(p.Process)
		by, samples, err := profiler.Times(p)
		if err != nil {
			return fmt.Errorf("profile of process %s: %w", p.Process, err)
		}
		at.cpu = append(at.cpu, p.CpuSeconds/p.Seconds)
		for _, s := range append([]string{""}, p.Services...) {
			at.by[s] = append(at.by[s], by[s]/p.Seconds)
			at.samples[s] += samples[s]
		}
		if len(p.Heap) > 0 && p.Resident > 0 {
			memory, err := profiler.Space(p)
			if err != nil {
				return fmt.Errorf("profile of process %s: %w", p.Process, err)
			}
			at.resident = append(at.resident, float64(p.Resident))
			for _, s := range append([]string{""}, p.Services...) {
				at.memory[s] = append(at.memory[s], memory[s])
			}
		}
		for _, d := range p.Delays {
			to := delayTo{m.instanceOf(d.To), d.Transport}
			at.delays[to] = append(at.delays[to], d.Microseconds/1e6)
		}
	}
	return nil
}

// messages takes the counters of messages; those of the first time are where
// counting begins.
func (m *measured) messages(r *api.ListCrossingsResponse, seconds float64) error {
	if missing := r.GetMissing(); len(missing) > 0 {
		return fmt.Errorf("process %s: %s", m.instanceOf(missing[0].Process), missing[0].Error)
	}
	first := len(m.totals) == 0
	now := map[wayOf]uint64{}
	changes := map[string]uint64{} // by subscriber
	for _, x := range r.GetCrossings() {
		key := total{x.From, x.To, x.FromProcess, x.ToProcess, x.Kind, x.Name, x.Transport}
		before := m.totals[key]
		m.totals[key] = x.Total
		if first {
			continue
		}
		if x.Total < before {
			return fmt.Errorf("process %s or %s was started anew while it was measured: verify again", m.instanceOf(x.FromProcess), m.instanceOf(x.ToProcess))
		}
		n := x.Total - before
		way := wayOf{x.From, x.To, x.Kind}
		if x.Kind == plan.PacketWay {
			at := crossing{x.From, x.To, m.instanceOf(x.FromProcess)}
			if m.crossings[at] == nil {
				m.crossings[at] = &count{}
			}
			m.crossings[at].all += n
			if x.FromProcess != x.ToProcess {
				m.crossings[at].crossed += n
			}
		}
		if x.Name == api.PathsConvergedEvent.Name {
			changes[x.To+" "+x.ToProcess] += n
		}
		if x.FromProcess != x.ToProcess {
			now[way] += n
			m.seen[way] += n
		}
	}
	if first || seconds <= 0 {
		return nil
	}
	m.seconds += seconds
	for way, n := range now {
		before := make([]float64, len(m.converged)-len(m.rates[way])) // slices in which there was none yet
		m.rates[way] = append(append(m.rates[way], before...), float64(n)/seconds)
	}
	most := uint64(0)
	for _, n := range changes {
		most = max(most, n)
	}
	m.converged = append(m.converged, float64(most)/seconds)
	return nil
}

// latencies takes how long messages took lately that crossed to another process.
func (m *measured) latencies(r *api.ListCrossingsResponse) {
	clear(m.latency)
	for _, x := range r.GetCrossings() {
		if x.FromProcess == x.ToProcess {
			continue
		}
		way := wayOf{x.From, x.To, x.Kind}
		for _, b := range x.Latency {
			i := slices.IndexFunc(m.latency[way], func(o *api.LatencyBucket) bool { return o.ToUs == b.ToUs })
			if i < 0 {
				m.latency[way] = append(m.latency[way], &api.LatencyBucket{ToUs: b.ToUs})
				i = len(m.latency[way]) - 1
			}
			m.latency[way][i].Count += b.Count
		}
	}
}

// stagesBefore takes the service times of stages when measuring begins, stages
// those when it ends.
func (m *measured) stagesBefore(r *api.GetWorkResponse) {
	eachStage(r, func(of workOf, w *api.Work) { m.work[of] = w })
}

func (m *measured) stages(r *api.GetWorkResponse) {
	eachStage(r, func(of workOf, w *api.Work) {
		before := m.work[of]
		at := m.process(of.process)
		at.stages[of.service] = times{
			n: int(w.Measured - before.GetMeasured()), sum: w.Seconds - before.GetSeconds(), squares: w.SecondsSquares - before.GetSecondsSquares(),
		}
	})
}

func eachStage(r *api.GetWorkResponse, take func(workOf, *api.Work)) {
	for _, p := range r.GetProcesses() {
		for _, w := range p.GetWork() {
			if w.Work == "stage" {
				take(workOf{p.Process, w.Service, p.Run}, w)
			}
		}
	}
}

// load returns under which load the controller was. Probes of links are no
// packet-ins.
func (m *measured) load(specs []weft.Spec) (plan.NetworkLoad, error) {
	load := plan.NetworkLoad{Parts: map[string]plan.PartLoad{}}
	for _, s := range m.switches {
		if !s.Connected {
			continue
		}
		dpid, err := flow.ParseDPID(s.Dpid)
		if err != nil {
			return load, err
		}
		name := m.plan.PartitionOf(dpid)
		part := load.Parts[name]
		part.Switches++
		load.Parts[name] = part
	}
	if len(load.Parts) == 0 {
		return load, errors.New("no switch is connected: what a service takes is said of a number of switches; connect some, such as weft lab up demo")
	}
	stages, first, all := map[string]uint64{}, map[string]uint64{}, uint64(0)
	for c, n := range m.crossings {
		if !isProbes(specs, c.to) {
			stages[c.to] += n.all
		}
		if isRunner(specs, c.from) {
			i, _ := m.plan.Of(c.process)
			first[i.Partition] += n.all
			all += n.all
		}
	}
	packetIns := uint64(0)
	for _, n := range stages {
		packetIns = max(packetIns, n)
	}
	for _, name := range slices.Sorted(maps.Keys(load.Parts)) {
		part := load.Parts[name]
		if part.PacketIns = float64(packetIns) / m.seconds; all > 0 && len(load.Parts) > 1 {
			part.PacketIns *= float64(first[name]) / float64(all)
		}
		load.Parts[name] = part
	}
	load.Changes = ofSlices(m.converged).value
	return load, nil
}

// isRunner reports whether a service receives packet-ins and runs the stages.
func isRunner(specs []weft.Spec, name string) bool {
	return slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Name == name && s.Pipeline })
}

// isProbes reports whether the stage of a service takes the probes of links.
func isProbes(specs []weft.Spec, name string) bool {
	return slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Name == name && s.Stage && s.Class == weft.RealTime })
}
