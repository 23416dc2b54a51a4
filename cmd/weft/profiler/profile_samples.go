package profiler

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// samples is what has been measured of a controller's processes, put together.
type samples struct {
	processes  map[string]*processSamples
	traffic    map[[2]string]*plan.Rate // counts; by from and to
	packets    map[string]float64       // that stages have looked at
	converged  float64
	local      map[string][]float64 // delays by transport, in seconds
	remote     map[string][]float64
	seconds    float64
	processors uint32
}

// processSamples is what one process took.
type processSamples struct {
	services []string
	errors   []string
	seconds  float64
	cpu      map[string]float64 // seconds, by service; "" is the process
	memory   map[string]float64 // octets, the same
}

func newSamples() *samples {
	return &samples{
		processes: map[string]*processSamples{}, traffic: map[[2]string]*plan.Rate{}, packets: map[string]float64{},
		local: map[string][]float64{}, remote: map[string][]float64{},
	}
}

// add takes the answer of one request.
func (s *samples) add(m *api.TakeProfileResponse) error {
	longest, converged := 0.0, map[string]float64{}
	for _, p := range m.GetProcesses() {
		at := s.processes[p.Process]
		if at == nil {
			at = &processSamples{cpu: map[string]float64{}, memory: map[string]float64{}}
			s.processes[p.Process] = at
		}
		if p.Error != "" {
			at.errors = append(at.errors, p.Error)
			continue
		}
		at.services = p.Services
		at.seconds += p.Seconds
		longest = max(longest, p.Seconds)
		s.processors = max(s.processors, p.Processors)
		if err := at.time(p); err != nil {
			return fmt.Errorf("profile of process %s: %w", p.Process, err)
		}
		if len(p.Heap) > 0 {
			var err error
			if at.memory, err = Space(p); err != nil {
				return fmt.Errorf("profile of process %s: %w", p.Process, err)
			}
		}
		for _, t := range p.Traffic {
			n := float64(t.Count)
			if t.Kind == "packet" {
				s.packets[t.To] += n
				continue
			}
			if t.Name == api.PathsConvergedEvent.Name {
				converged[t.To] += n // each subscriber is told the same
			}
			r := s.traffic[[2]string{t.From, t.To}]
			if r == nil {
				r = &plan.Rate{From: t.From, To: t.To}
				s.traffic[[2]string{t.From, t.To}] = r
			}
			if t.Kind == "call" {
				r.Calls += n
			} else {
				r.Events += n
			}
		}
		for _, d := range p.Delays {
			to := s.remote
			if d.Local {
				to = s.local
			}
			to[d.Transport] = append(to[d.Transport], d.Microseconds/1e6)
		}
	}
	s.seconds += longest
	if len(converged) > 0 {
		s.converged += slices.Max(slices.Collect(maps.Values(converged)))
	}
	return nil
}

// time adds the time of a process to that of its services.
func (s *processSamples) time(p *api.ProcessProfile) error {
	by, _, err := Times(p)
	for name, v := range by {
		s.cpu[name] += v
	}
	return err
}

// sampleEvery is the processor time for which there is a sample.
const sampleEvery = 10 * time.Millisecond

// Times divides the processor time of a process among its services, in seconds;
// that of the empty name is no service's. Samples says how many samples that is
// of; without any, all of the time is no service's.
func Times(p *api.ProcessProfile) (by map[string]float64, samples map[string]int, err error) {
	seen, err := divide(p.Cpu, "cpu")
	if err != nil {
		return nil, nil, err
	}
	total := 0.0
	samples = map[string]int{}
	for name, v := range seen {
		total += v
		samples[name] = int(math.Round(v / float64(sampleEvery)))
	}
	if total == 0 {
		return map[string]float64{"": p.CpuSeconds}, samples, nil
	}
	by = map[string]float64{}
	for name, v := range seen {
		by[name] = p.CpuSeconds * v / total
	}
	return by, samples, nil
}

// garbage is how much more of the heap is taken than is in use, at most: the
// collector begins anew when as much lies about.
const garbage = 2

// Space divides the memory of a process among its services, in octets; that of
// the empty name is no service's.
func Space(p *api.ProcessProfile) (map[string]float64, error) {
	by, err := divide(p.Heap, "inuse_space")
	if err != nil {
		return nil, err
	}
	total := 0.0
	for _, v := range by {
		total += v
	}
	scale := float64(garbage)
	if total > 0 {
		scale = min(scale, float64(p.Resident)/total)
	}
	memory, rest := map[string]float64{}, float64(p.Resident)
	for name, v := range by {
		if name != "" {
			memory[name] = v * scale
			rest -= v * scale
		}
	}
	memory[""] = max(rest, 0)
	return memory, nil
}

// divide adds up the samples of a profile by the service whose code is innermost
// on the stack; "" is no service's.
func divide(packed []byte, kind string) (map[string]float64, error) {
	p, err := profile.ParseData(packed)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	at := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == kind })
	if at < 0 {
		return nil, errors.New("it has no samples of " + kind)
	}
	by := map[string]float64{}
	for _, s := range p.Sample {
		by[ServiceOf(s)] += float64(s.Value[at])
	}
	return by, nil
}

// ServiceOf returns the service that a sample is charged to.
func ServiceOf(s *profile.Sample) string {
	wire := false
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function == nil {
				continue
			}
			if name, ok := servicePackage(line.Function.Name); ok {
				return name
			}
			wire = wire || strings.HasPrefix(line.Function.Name, "github.com/weft-sdn/weft/openflow.") || strings.HasPrefix(line.Function.Name, "github.com/weft-sdn/weft/openflow/")
		}
	}
	if wire {
		return "southbound"
	}
	return ""
}

// servicePackage returns the service in whose folder a function is.
func servicePackage(function string) (string, bool) {
	rest, ok := strings.CutPrefix(function, "github.com/weft-sdn/weft/services/")
	if !ok {
		return "", false
	}
	end := strings.IndexAny(rest, "./")
	if end <= 0 {
		return "", false
	}
	return rest[:end], true
}

// failed says of which processes there is nothing.
func (s *samples) failed() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.processes)) {
		if at := s.processes[name]; len(at.errors) > 0 {
			list = append(list, fmt.Sprintf("process %s is not in the profile, or not wholly: %s", name, at.errors[0]))
		}
	}
	return list
}

// profile puts the samples together.
func (s *samples) profile(switches int) (*plan.Profile, error) {
	if switches == 0 {
		return nil, errors.New("no switch is connected: what a service takes is said of a number of switches; connect some, such as weft lab up demo")
	}
	p := &plan.Profile{Seconds: s.seconds, Switches: switches}
	demands := map[string]*plan.Demand{}
	measured := 0.0 // processes
	for _, name := range slices.Sorted(maps.Keys(s.processes)) {
		at := s.processes[name]
		if at.seconds == 0 {
			continue
		}
		measured++
		for _, service := range append([]string{""}, at.services...) {
			d := demands[service]
			if d == nil {
				d = &plan.Demand{Service: service}
				demands[service] = d
			}
			d.CPU = plan.Measured(d.CPU.Value + at.cpu[service]/at.seconds)
			d.Memory = plan.Measured(d.Memory.Value + at.memory[service])
		}
	}
	if measured == 0 {
		return nil, errors.Join(append([]error{errors.New("no process could be measured")}, asErrors(s.failed())...)...)
	}
	for name, d := range demands {
		if name == "" {
			p.Process = plan.Demand{CPU: plan.Measured(d.CPU.Value / measured), Memory: plan.Measured(d.Memory.Value / measured)}
			continue
		}
		if n, ok := s.packets[name]; ok {
			d.Packets = plan.Measured(n / s.seconds)
			if name != "discovery" { // its stage sees the probes
				p.PacketIns = max(p.PacketIns, n/s.seconds)
			}
		}
		p.Services = append(p.Services, *d)
	}
	p.Changes = s.converged / s.seconds
	for _, r := range s.traffic {
		p.Rates = append(p.Rates, plan.Rate{From: r.From, To: r.To, Calls: r.Calls / s.seconds, Events: r.Events / s.seconds})
	}
	slices.SortFunc(p.Rates, func(a, b plan.Rate) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	p.Delays = sortedDelays(s.local, s.remote)
	return p, p.Validate()
}

func asErrors(list []string) (errs []error) {
	for _, s := range list {
		errs = append(errs, errors.New(s))
	}
	return errs
}
