package lab

import (
	"context"
	"maps"
	"runtime"
	"time"

	"github.com/weft-sdn/weft/lab/machine"
)

// Sample is what the nodes of a lab use of a machine, at a time by its clock.
type Sample struct {
	Taken      time.Time                `json:"taken"`
	Processors int                      `json:"processors"`
	Memory     uint64                   `json:"memory"` // of the machine, octets; 0 if it is not known
	Nodes      map[string]machine.Usage `json:"nodes"`  // those with a namespace of their own
	Shared     machine.Usage            `json:"shared"` // of what the other switches share
}

// Sample returns what the lab's nodes use now.
func (l *Lab) Sample() (Sample, error) {
	use, err := l.Usage()
	s := Sample{Taken: time.Now(), Processors: runtime.NumCPU(), Memory: machine.Memory(), Nodes: map[string]machine.Usage{}, Shared: use[l.SwitchNetns()]}
	for _, node := range l.NodeNames() {
		if place, err := l.PlaceOf(node); err == nil && place.Own {
			s.Nodes[node] = use[place.Namespace]
		}
	}
	return s, err
}

// SumSamples is what the nodes of a lab use of all of its machines.
func SumSamples(samples []Sample) Sample {
	all := Sample{Nodes: map[string]machine.Usage{}}
	for _, s := range samples {
		all.Taken, all.Processors, all.Memory = s.Taken, all.Processors+s.Processors, all.Memory+s.Memory
		maps.Copy(all.Nodes, s.Nodes)
		all.Shared.Add(s.Shared)
	}
	return all
}

// Samples returns what the lab's nodes use now of each of its machines: of this one.
func (l *Lab) Samples(context.Context) ([]Sample, error) {
	s, err := l.Sample()
	return []Sample{s}, err
}

// Usage returns what the processes in each network namespace of the lab use, by
// its name; those without processes are left out.
func (l *Lab) Usage() (map[string]machine.Usage, error) {
	return machine.UsageIn(machine.LabNetns(l.state.Name))
}
