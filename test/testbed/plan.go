package testbed

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is a plan that an experiment makes up: which worker processes there
// are, and the transport between them.
type Plan struct {
	Name      string
	Transport string   // between workers: grpc, ws, rest, shm or nats
	Balance   string   // of packet-ins over replicas; empty is the default
	Pipeline  []string // stages in order; none is the default
	// Partitions is a set of switches each, as plans write them; none is all.
	Partitions []Partition
	Workers    []Worker
	// Config is settings of services: service, key, value as YAML.
	Config map[string]map[string]string
}

// Partition is a set of switches under one network service.
type Partition struct {
	Name     string
	Switches []string // 16 hexadecimal digits each, or "rest"
}

// Worker is one entry of a plan.
type Worker struct {
	Name      string
	Services  []string
	Replicas  int    // 0 is one
	Partition string // empty is none
	CPUs      string // as plans write them; empty is all
	Nice      int
	CPUQuota  float64 // share of a processor; 0 is all
	Autoscale string  // as plans write it, in braces; empty is none
	Settings  map[string]map[string]string
}

// Split is the plan of the MSN paper's decomposition: southbound, event
// handling and routing in processes of their own, and the northbound in a
// fourth.
func Split(name, transport string, replicas int) *Plan {
	return &Plan{
		Name: name, Transport: transport,
		Workers: []Worker{
			{Name: "southbound", Services: []string{"southbound"}},
			{Name: "topology", Services: []string{"discovery", "hosts"}},
			{Name: "routing", Services: []string{"paths", "forwarding"}, Replicas: replicas},
			{Name: "north", Services: []string{"flowrules", "stats", "gateway"}},
		},
	}
}

// Learning is a controller of learning switches in which a packet-in crosses
// once: southbound with the stages before forwarding, and one or more of
// forwarding, each with its share of the switches, for a learning switch has a
// memory. The services that a plan must have besides are in a third worker.
// Without a transport all of it is one worker.
func Learning(name, transport string, replicas int) *Plan {
	p := &Plan{Name: name, Transport: transport, Config: map[string]map[string]string{"forwarding": {"mode": "learning"}}}
	first, idle := []string{"southbound", "discovery", "hosts"}, []string{"paths", "flowrules", "stats"}
	if transport == "" {
		p.Workers = []Worker{{Name: "weft", Services: slices.Concat(first, []string{"forwarding"}, idle)}}
		return p
	}
	p.Workers = []Worker{
		{Name: "southbound", Services: first},
		{Name: "routing", Services: []string{"forwarding"}, Replicas: replicas},
		{Name: "idle", Services: idle},
	}
	if replicas > 1 {
		p.Balance = "switch"
	}
	return p
}

// Multiple is the paper's multiple network services: complete controllers, each
// with a share of the switches, as one plan.
func Multiple(name, transport string, shares [][]string) *Plan {
	p := &Plan{Name: name, Transport: transport}
	for i, switches := range shares {
		part := fmt.Sprintf("ns%d", i+1)
		p.Partitions = append(p.Partitions, Partition{part, switches})
		for _, w := range Split("", transport, 1).Workers {
			p.Workers = append(p.Workers, Worker{Name: part + "-" + w.Name, Services: w.Services, Partition: part})
		}
	}
	return p
}

// PartitionOf returns the number of the partition that a switch is in, -1 if
// none lists it.
func (p Plan) PartitionOf(dpid uint64) int {
	for i, part := range p.Partitions {
		if slices.Contains(part.Switches, fmt.Sprintf("%016x", dpid)) || slices.Contains(part.Switches, "rest") {
			return i
		}
	}
	return -1
}

// YAML writes the plan as weft up reads it.
func (p Plan) YAML() string {
	var b strings.Builder
	line := func(indent int, format string, args ...any) {
		fmt.Fprintf(&b, strings.Repeat("  ", indent)+format+"\n", args...)
	}
	line(0, "name: %s", p.Name)
	if p.Transport != "" {
		line(0, "transport: %s", p.Transport)
	}
	if p.Balance != "" {
		line(0, "balance: %s", p.Balance)
	}
	if len(p.Pipeline) > 0 {
		line(0, "pipeline: [%s]", strings.Join(p.Pipeline, ", "))
	}
	if len(p.Partitions) > 0 {
		line(0, "partitions:")
		for _, part := range p.Partitions {
			line(1, "%s: {switches: [%s]}", part.Name, quoted(part.Switches))
		}
	}
	line(0, "workers:")
	for _, w := range p.Workers {
		line(1, "%s:", w.Name)
		line(2, "services: [%s]", strings.Join(w.Services, ", "))
		if w.Replicas > 1 {
			line(2, "replicas: %d", w.Replicas)
		}
		if w.Partition != "" {
			line(2, "partition: %s", w.Partition)
		}
		if w.CPUs != "" {
			line(2, "cpus: %q", w.CPUs)
		}
		if w.Nice != 0 {
			line(2, "nice: %d", w.Nice)
		}
		if w.CPUQuota > 0 {
			line(2, "cpu_quota: %g", w.CPUQuota)
		}
		if w.Autoscale != "" {
			line(2, "autoscale: %s", w.Autoscale)
		}
		if len(w.Settings) > 0 {
			line(2, "settings:")
			settings(line, 3, w.Settings)
		}
	}
	if len(p.Config) > 0 {
		line(0, "config:")
		settings(line, 1, p.Config)
	}
	return b.String()
}

// settings writes settings of services in the order of their names.
func settings(line func(int, string, ...any), indent int, all map[string]map[string]string) {
	for _, service := range sorted(all) {
		line(indent, "%s:", service)
		for _, key := range sorted(all[service]) {
			line(indent+1, "%s: %s", key, all[service][key])
		}
	}
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(out, ", ")
}
