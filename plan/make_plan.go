package plan

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan/place"
)

// The ports at which the services of made plans listen; further partitions on a
// machine use the next ones.
const (
	switchPort  = 6653
	gatewayPort = 8181
	// computeNice is the priority of processes of compute-class services.
	computeNice = 5
)

// cell identifies a worker of a made plan.
type cell struct {
	partition int // -1: works for all
	server    int
	compute   bool // its services are of the class compute
	replica   int  // replicas of one service are never in one worker
}

// made converts a placement into a plan. Each server has a worker for each
// partition with shards there, and one for what works for all; compute-class
// services have workers of their own.
func (m *model) made(solution *place.Solution) *Made {
	made := &Made{Instance: m.instance, Solution: solution, Shards: m.shards, Servers: m.servers, Where: map[string]string{}, Notes: m.notes, model: m}
	services := map[cell][]string{}
	for i, x := range m.shards {
		c := cell{slices.Index(m.names, x.Partition), solution.Server[i], x.Class == weft.Compute && m.options.Isolate != IsolateNone, 0}
		for slices.Contains(services[c], x.Service) {
			c.replica++
		}
		services[c] = append(services[c], x.Service)
	}
	var cells []cell
	for c := range services {
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.partition, b.partition), cmp.Compare(order(a.compute), order(b.compute)), cmp.Compare(a.replica, b.replica))
	})
	p := &Plan{
		Name: m.options.Name, Transport: m.options.Transport, Events: defaultEvents, Balance: defaultBalance, Bus: Bus{Replicas: 1},
		Partial: m.partial, Partitions: m.partitions(),
	}
	for _, c := range cells {
		s := m.servers[c.server]
		w := Worker{Name: m.workerName(c), Services: services[c], Replicas: 1, Balance: defaultBalance, Listen: defaultListen, CPUs: s.CPUs}
		if c.partition >= 0 {
			w.Partition = m.names[c.partition]
		}
		if s.Address != "" {
			w.Machine, w.Listen = s.Name, net.JoinHostPort(s.Address, "0")
		}
		switch {
		case c.compute:
			w.Class, w.Nice = weft.Compute.String(), computeNice
		case m.options.Isolate != IsolateNone && !slices.ContainsFunc(w.Services, func(name string) bool { return specOf(m.specs, name).Class != weft.RealTime }):
			w.Class = weft.RealTime.String()
		}
		w.Settings = m.settings(&w, s, c.partition)
		p.Workers = append(p.Workers, w)
		made.Where[w.Name] = s.Name
	}
	made.Plan = p
	return made
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// workerName returns the name of a worker: the partition, or shared, followed
// by the server if there are several.
func (m *model) workerName(c cell) string {
	name := "shared"
	switch {
	case c.partition >= 0:
		name = m.names[c.partition]
	case len(m.names) == 0:
		name = "all"
	}
	if c.compute {
		name += "-compute"
	}
	if len(m.servers) > 1 {
		name += "-" + m.servers[c.server].Name
	}
	if c.replica > 0 {
		name += fmt.Sprintf("-r%d", c.replica+1)
	}
	return name
}

// settings returns the settings that keep a worker's addresses distinct: each
// partition's switches connect to a different port, and so do clients if each
// partition has a gateway.
func (m *model) settings(w *Worker, s Server, partition int) (list []Section) {
	partition = max(partition, 0)
	for _, name := range w.Services {
		spec := specOf(m.specs, name)
		switch {
		case spec == nil || spec.Config == nil:
		case spec.Pipeline && s.Address != "" && m.options.Plain:
			list = append(list, Section{Service: name, Text: fmt.Appendf(nil, "listen: [%q]\nplain: true\n", "tcp:"+net.JoinHostPort(s.Address, strconv.Itoa(switchPort+partition)))})
		case spec.Pipeline && partition > 0:
			list = append(list, Section{Service: name, Text: fmt.Appendf(nil, "listen: [%q]\n", "tcp:"+net.JoinHostPort("127.0.0.1", strconv.Itoa(switchPort+partition)))})
		case spec.Listens && m.per[name] && name == gatewayName && partition > 0:
			list = append(list, Section{Service: name, Text: fmt.Appendf(nil, "listen: %q\n", net.JoinHostPort("127.0.0.1", strconv.Itoa(gatewayPort+partition)))})
		}
	}
	slices.SortFunc(list, func(a, b Section) int { return cmp.Compare(a.Service, b.Service) })
	return list
}

// gatewayName is the service that clients connect to.
const gatewayName = "gateway"
