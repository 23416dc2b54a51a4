package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/plan/place"
)

// Reason says why a shard is where it is.
type Reason string

// The reasons.
const (
	ReasonConstraint Reason = "constraint" // it could be nowhere else
	ReasonCost       Reason = "cost"       // anywhere else it would cost more
	ReasonEqual      Reason = "equal"      // elsewhere it would cost the same
	ReasonBetter     Reason = "better"     // elsewhere it would cost less: the search did not find that, or the plan is not its
)

// Elsewhere is what it would mean if one shard were on another server and all
// others stayed.
type Elsewhere struct {
	Server string `json:"server"`
	// Cost is how much more, in µs of latency a second; less than 0 is less.
	Cost float64 `json:"cost"`
	// Breaks are the constraints that it would break; empty: none.
	Breaks []string `json:"breaks,omitempty"`
}

// Explanation is why one shard is where it is.
type Explanation struct {
	Shard  string `json:"shard"`
	Server string `json:"server"`
	Reason Reason `json:"reason"`
	// Why is a sentence.
	Why string `json:"why"`
	// CPU is the demand in seconds per second, Memory in octets.
	CPU    float64 `json:"cpu"`
	Memory uint64  `json:"memory"`
	// Neighbours are the shards that it has most to do with, and where they are.
	Neighbours []Neighbour `json:"neighbours"`
	Elsewhere  []Elsewhere `json:"elsewhere"`
}

// Neighbour is a shard that another has to do with.
type Neighbour struct {
	Shard  string  `json:"shard"`
	Server string  `json:"server"`
	Events float64 `json:"events"` // per second between the two
}

// maxNeighbours is how many neighbours are told.
const maxNeighbours = 5

// Find returns the index of a shard by its name, or a service that has one only.
func (m *Made) Find(name string) (int, error) {
	var found []int
	for i, x := range m.Shards {
		if x.Name() == name {
			return i, nil
		}
		if x.called(name) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("no shard %q; there are %s", name, strings.Join(m.shardNames(nil), ", "))
	case 1:
		return found[0], nil
	}
	return 0, fmt.Errorf("%q is %d shards; name one of %s", name, len(found), strings.Join(m.shardNames(found), ", "))
}

func (m *Made) shardNames(list []int) (names []string) {
	for i, x := range m.Shards {
		if list == nil || slices.Contains(list, i) {
			names = append(names, x.Name())
		}
	}
	return names
}

// Explain says why a shard is on its server: for every other server what it
// would cost to have it there, and which constraints that would break.
func (m *Made) Explain(shard int) Explanation {
	in, at := m.Instance, slices.Clone(m.Solution.Server)
	x, here := m.Shards[shard], at[shard]
	e := Explanation{Shard: x.Name(), Server: m.Servers[here].Name, CPU: x.CPU, Memory: uint64(x.Memory), Neighbours: m.neighbours(shard)}
	cost, broken := place.Check(in, at)
	known := map[string]bool{}
	for _, v := range broken {
		known[v.Text] = true
	}
	free, equal, less := 0, "", ""
	for s := range m.Servers {
		if s == here {
			continue
		}
		at[shard] = s
		there, breaks := place.Check(in, at)
		one := Elsewhere{Server: m.Servers[s].Name, Cost: there - cost}
		for _, v := range breaks {
			if !known[v.Text] {
				one.Breaks = append(one.Breaks, v.Text)
			}
		}
		if len(one.Breaks) == 0 {
			free++
			switch {
			case one.Cost < -1e-9*max(cost, 1) && less == "":
				less = one.Server
			case one.Cost <= 1e-9*max(cost, 1) && equal == "":
				equal = one.Server
			}
		}
		e.Elsewhere = append(e.Elsewhere, one)
	}
	at[shard] = here
	switch {
	case len(m.Servers) == 1:
		e.Reason, e.Why = ReasonConstraint, "there is one server only"
	case in.Shards[shard].Servers != nil:
		e.Reason, e.Why = ReasonConstraint, "it is pinned to "+e.Server
	case free == 0:
		e.Reason, e.Why = ReasonConstraint, "on every other server it would break a constraint"
	case less != "":
		e.Reason, e.Why = ReasonBetter, fmt.Sprintf("it would cost less on %s", less)
	case equal != "":
		e.Reason, e.Why = ReasonEqual, fmt.Sprintf("it would cost the same on %s", equal)
	default:
		e.Reason, e.Why = ReasonCost, "on every other server it would cost more, or break a constraint"
	}
	return e
}

// neighbours returns the shards that one has most to do with.
func (m *Made) neighbours(shard int) []Neighbour {
	events := map[int]float64{}
	for _, e := range m.Instance.Edges {
		switch shard {
		case e.A:
			events[e.B] += e.Weight
		case e.B:
			events[e.A] += e.Weight
		}
	}
	for _, p := range m.Instance.Paths {
		for i := 1; i < len(p.Shards); i++ {
			switch shard {
			case p.Shards[i]:
				events[p.Shards[i-1]] += p.Weight
			case p.Shards[i-1]:
				events[p.Shards[i]] += p.Weight
			}
		}
	}
	var list []Neighbour
	for i := range m.Shards {
		if events[i] > declared {
			list = append(list, Neighbour{m.Shards[i].Name(), m.Servers[m.Solution.Server[i]].Name, events[i]})
		}
	}
	slices.SortStableFunc(list, func(a, b Neighbour) int {
		switch {
		case a.Events > b.Events:
			return -1
		case a.Events < b.Events:
			return 1
		}
		return 0
	})
	return list[:min(len(list), maxNeighbours)]
}

// Load is how full a server is.
type Load struct {
	Server    string   `json:"server"`
	Shards    int      `json:"shards"`
	Workers   []string `json:"workers"`
	CPU       float64  `json:"cpu"`      // seconds per second, that of the processes themselves included
	CPUMost   float64  `json:"cpu_most"` // that it has, headroom taken off
	Memory    uint64   `json:"memory"`   // octets, the same
	MemMost   uint64   `json:"memory_most"`
	Processes int      `json:"processes"`
}

// Loads says how full the servers are.
func (m *Made) Loads() []Load {
	list := make([]Load, len(m.Servers))
	for s, server := range m.Servers {
		list[s] = Load{Server: server.Name, CPUMost: server.CPU * (1 - m.model.options.Headroom), MemMost: uint64(float64(server.Memory) * (1 - m.model.options.Headroom))}
		for i := range m.Plan.Workers {
			if w := &m.Plan.Workers[i]; m.Where[w.Name] == server.Name {
				list[s].Workers = append(list[s].Workers, w.Name)
				list[s].Processes += max(w.Replicas, 1)
			}
		}
		cpu, memory := m.model.profile.processes(list[s].Processes)
		list[s].CPU, list[s].Memory = cpu, uint64(memory)
	}
	for i, s := range m.Solution.Server {
		list[s].Shards++
		list[s].CPU += m.Shards[i].CPU
		list[s].Memory += uint64(m.Shards[i].Memory)
	}
	return list
}

// Within is what crossing from process to process on one server costs, in µs of
// latency a second. No placement on servers avoids it as long as services that
// have to do with each other are in different processes; it is told, and is not
// part of the cost that was minimised.
func (m *Made) Within() float64 {
	worker := map[int]string{}
	for i, x := range m.Shards {
		for k := range m.Plan.Workers {
			w := &m.Plan.Workers[k]
			if w.Partition == x.Partition && slices.Contains(w.Services, x.Service) && m.Where[w.Name] == m.Servers[m.Solution.Server[i]].Name {
				worker[i] = w.Name
				break
			}
		}
	}
	sum := 0.0
	cross := func(a, b int, weight float64) {
		if m.Solution.Server[a] == m.Solution.Server[b] && worker[a] != worker[b] {
			sum += weight * m.model.delays[0]
		}
	}
	for _, e := range m.Instance.Edges {
		cross(e.A, e.B, e.Weight)
	}
	for _, p := range m.Instance.Paths {
		for i := 1; i < len(p.Shards); i++ {
			cross(p.Shards[i-1], p.Shards[i], p.Weight)
		}
	}
	return sum
}

// As returns what the same model says of another plan, of which it is known on
// which server each worker is: that plan's placement, its cost, and the
// constraints that it breaks. Shards that the plan does not run are an error.
func (m *Made) As(p *Plan, where map[string]string) (*Made, []place.Violation, error) {
	at := make([]int, len(m.Shards))
	taken := map[string]int{} // shards of a service and partition found so far
	for i, x := range m.Shards {
		var found []string
		for k := range p.Workers {
			w := &p.Workers[k]
			if w.Partition == x.Partition && slices.Contains(w.Services, x.Service) {
				for range max(w.Replicas, 1) {
					found = append(found, w.Name)
				}
			}
		}
		key := x.Service + "/" + x.Partition
		n := taken[key]
		taken[key]++
		if n >= len(found) {
			return nil, nil, fmt.Errorf("the plan does not run %s; was it made for another network, or with other services or partitions?", x.Name())
		}
		server := where[found[n]]
		if at[i] = slices.IndexFunc(m.Servers, func(s Server) bool { return s.Name == server }); at[i] < 0 {
			return nil, nil, fmt.Errorf("worker %s is on server %q, which is none of %s", found[n], server, serverNames(m.Servers))
		}
	}
	cost, broken := place.Check(m.Instance, at)
	other := *m
	other.Plan, other.Where = p, where
	other.Solution = &place.Solution{
		Server: at, Cost: cost, Latency: place.LatencyCost(m.Instance, at), Migration: place.MigrationCost(m.Instance, at),
		Bound: m.Solution.Bound, Proven: m.Solution.Proven && cost <= m.Solution.Cost && len(broken) == 0,
	}
	return &other, broken, nil
}
