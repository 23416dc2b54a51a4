package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan/place"
)

// declared is the weight, in events per second, of traffic that services
// declare but the measurement lacks: enough to keep them together where nothing
// else matters.
const declared = 1e-3

// problem makes the placement problem of the shards.
func (m *model) problem() error {
	in := &place.Instance{}
	m.instance = in
	for _, x := range m.shards {
		shard := place.Shard{
			Name: x.Name(), Service: x.Service, Partition: x.Partition,
			CPU: int64(math.Ceil(x.CPU * 1000)), Memory: int64(x.Memory), Domain: m.options.Domains[x.Partition],
		}
		if m.options.Isolate == IsolateServer {
			shard.Class = [...]place.Class{weft.RealTime: place.RealTime, weft.Latency: place.Latency, weft.Compute: place.Compute}[x.Class]
		}
		in.Shards = append(in.Shards, shard)
	}
	in.Servers = make([]place.Server, len(m.servers))
	for i, s := range m.servers {
		in.Servers[i] = place.Server{Name: s.Name, Domain: s.Domain}
	}
	m.capacities()
	m.distances()
	m.edges()
	m.paths()
	if err := m.constraints(); err != nil {
		return err
	}
	return m.current()
}

// capacities computes the capacity that servers have left for shards.
func (m *model) capacities() {
	for i, s := range m.servers {
		cpu := s.CPU*(1-m.options.Headroom) - m.base[i]
		memory := float64(s.Memory)*(1-m.options.Headroom) - float64(m.basemem[i])
		m.instance.Servers[i].CPU, m.instance.Servers[i].Memory = max(int64(cpu*1000), 1), max(int64(memory), 1)
	}
}

// distances fills in d_st.
func (m *model) distances() {
	n := len(m.servers)
	m.instance.Delay = make([][]float64, n)
	for s := range n {
		m.instance.Delay[s] = make([]float64, n)
		for t := range n {
			switch {
			case s == t:
			case m.servers[s].Address == m.servers[t].Address:
				m.instance.Delay[s][t] = m.delays[0]
			default:
				m.instance.Delay[s][t] = m.delays[1]
			}
		}
	}
}

// find returns the shards of a service that work for a partition.
func (m *model) find(service, partition string) (list []int) {
	for i, x := range m.shards {
		if x.Service == service && (x.Partition == partition || x.Partition == "") {
			list = append(list, i)
		}
	}
	return list
}

// edges makes the communication graph. It scales the measured traffic between
// services to the planned packet-ins and divides it by the partitions' load;
// for services without measured traffic it uses their declarations.
func (m *model) edges() {
	rates := map[[2]string]float64{}
	for _, r := range m.profile.rates(m.options.PacketIns) {
		rates[[2]string{r.From, r.To}] += r.Calls + r.Events
	}
	for _, pair := range m.declared() {
		rates[pair] = max(rates[pair], declared)
	}
	weights := map[[2]int]float64{}
	parts := m.names
	if len(parts) == 0 {
		parts = []string{""}
	}
	for _, pair := range sortedPairs(rates) {
		for i, part := range parts {
			from, to := m.find(pair[0], part), m.find(pair[1], part)
			if len(from) == 0 || len(to) == 0 || pair[0] == pair[1] {
				continue
			}
			share := rates[pair] * m.loads[i] / float64(len(from)*len(to))
			for _, a := range from {
				for _, b := range to {
					weights[[2]int{min(a, b), max(a, b)}] += share
				}
			}
		}
	}
	for a := range m.shards {
		for b := a + 1; b < len(m.shards); b++ {
			if w := weights[[2]int{a, b}]; w > 0 {
				m.instance.Edges = append(m.instance.Edges, place.Edge{A: a, B: b, Weight: w})
			}
		}
	}
}

func sortedPairs(rates map[[2]string]float64) (list [][2]string) {
	for pair := range rates {
		list = append(list, pair)
	}
	slices.SortFunc(list, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return list
}

// declared returns who calls whom, and who publishes for whom, by the Specs.
func (m *model) declared() (pairs [][2]string) {
	for _, a := range m.specs {
		for _, b := range m.specs {
			calls := slices.ContainsFunc(a.Calls, func(x weft.Method) bool {
				return slices.ContainsFunc(b.Serves, func(y weft.Method) bool { return x.MethodName() == y.MethodName() })
			})
			tells := slices.ContainsFunc(a.Publishes, func(x weft.Subject) bool {
				return slices.ContainsFunc(b.Wants(), func(y weft.Subject) bool { return x.SubjectName() == y.SubjectName() })
			})
			if a.Name != b.Name && (calls || tells) {
				pairs = append(pairs, [2]string{a.Name, b.Name})
			}
		}
	}
	return pairs
}

// paths returns the ways of packet-ins through the pipeline, which are most of
// the crossing traffic, and the ways with a deadline: heartbeats and link
// probes.
func (m *model) paths() {
	skeleton := &Plan{Workers: []Worker{{}}}
	runner, beats, probes := "", "", ""
	for _, s := range m.specs {
		skeleton.Workers[0].Services = append(skeleton.Workers[0].Services, s.Name)
		if s.Pipeline {
			runner = s.Name
		}
	}
	stages := skeleton.Stages(m.specs)
	for _, s := range m.specs {
		switch {
		case s.Class == weft.RealTime && s.Stage:
			probes = s.Name
		case s.Class == weft.RealTime && !s.Pipeline:
			beats = s.Name
		}
	}
	parts := m.names
	if len(parts) == 0 {
		parts = []string{""}
	}
	for i, part := range parts {
		first := m.find(runner, part)
		if len(first) == 0 {
			continue
		}
		title := strings.Trim(" of "+part, " ")
		if part == "" {
			title = "of the network"
		}
		m.instance.Paths = append(m.instance.Paths, m.pipelines(title, first[0], stages, part, m.options.PacketIns*m.loads[i])...)
		if at := m.find(probes, part); len(at) > 0 {
			m.instance.Paths = append(m.instance.Paths, place.Path{Name: "probes " + title, Shards: []int{first[0], at[0]}, Deadline: m.options.ProbeDeadline})
		}
		if at := m.find(beats, part); len(at) > 0 {
			m.instance.Paths = append(m.instance.Paths, place.Path{Name: "heartbeats " + title, Shards: []int{at[0], first[0]}, Deadline: m.options.HeartbeatDeadline})
		}
	}
}

// pipelines returns the ways of a partition's packet-ins: one, or one for each
// replica of the last stage that has several.
func (m *model) pipelines(title string, first int, stages []string, part string, rate float64) (list []place.Path) {
	most := 1
	for _, stage := range stages {
		most = max(most, len(m.find(stage, part)))
	}
	for n := range most {
		p := place.Path{Name: "packet-ins " + title, Shards: []int{first}, Weight: rate / float64(most)}
		if most > 1 {
			p.Name += fmt.Sprintf(" by replica %d", n+1)
		}
		for _, stage := range stages {
			if at := m.find(stage, part); len(at) > 0 {
				p.Shards = append(p.Shards, at[n%len(at)])
			}
		}
		if len(p.Shards) > 1 {
			list = append(list, p)
		}
	}
	return list
}

// called returns the shards that a name refers to.
func (m *model) called(what, name string) ([]int, error) {
	var list []int
	for i, x := range m.shards {
		if x.called(name) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s %q: no shard is called so; want a service, or SERVICE/PARTITION, such as %s", what, name, m.shards[0].Name())
	}
	return list, nil
}

// constraints converts the options' demands into constraints of shards.
func (m *model) constraints() error {
	in := m.instance
	for _, name := range sorted(m.options.Pins) {
		server := m.options.Pins[name]
		at := slices.IndexFunc(m.servers, func(s Server) bool { return s.Name == server })
		if at < 0 {
			return fmt.Errorf("pin %s=%s: there is no such server; there are %s", name, server, serverNames(m.servers))
		}
		list, err := m.called("pin", name)
		if err != nil {
			return err
		}
		for _, i := range list {
			if old := in.Shards[i].Servers; old != nil && old[0] != at {
				return fmt.Errorf("pins: shard %s is pinned to %s and to %s; keep one of them", in.Shards[i].Name, m.servers[old[0]].Name, server)
			}
			in.Shards[i].Servers = []int{at}
		}
	}
	sets := func(what string, given [][]string, to *[][]int) error {
		for _, names := range given {
			var set []int
			for _, name := range names {
				list, err := m.called(what, name)
				if err != nil {
					return err
				}
				set = append(set, list...)
			}
			slices.Sort(set)
			if set = slices.Compact(set); len(set) > 1 {
				*to = append(*to, set)
			}
		}
		return nil
	}
	if err := sets("apart", m.options.Apart, &in.Apart); err != nil {
		return err
	}
	if err := sets("together", m.options.Together, &in.Together); err != nil {
		return err
	}
	for _, part := range sorted(m.options.Domains) {
		if !slices.Contains(m.names, part) {
			return fmt.Errorf("domain of %q: there is no such partition; there are %s", part, orNone(m.names))
		}
	}
	return m.replicas()
}

func serverNames(list []Server) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return orNone(names)
}

// replicas keeps the replicas of a service apart.
func (m *model) replicas() error {
	powered := map[string]bool{}
	for _, s := range m.servers {
		if s.Domain != "" {
			powered[s.Domain] = true
		}
	}
	for _, name := range sorted(m.options.Replicas) {
		n := m.options.Replicas[name]
		s := specOf(m.specs, name)
		switch {
		case s == nil:
			return fmt.Errorf("replicas of %q: there is no such service", name)
		case n < 1 || n > maxReplicas:
			return fmt.Errorf("%d replicas of %s: want 1 to %d", n, name, maxReplicas)
		case n > 1 && s.Scale != weft.Any:
			return fmt.Errorf("%d replicas of %s: it may run %s only; those that may have replicas are of the scale any", n, name, s.Scale)
		case n == 1:
			continue
		}
		parts := []string{""}
		if m.per[name] {
			parts = m.names
		}
		for _, part := range parts {
			set := m.find(name, part)
			m.instance.Apart = append(m.instance.Apart, set)
			if len(powered) > 1 {
				m.instance.ApartDomains = append(m.instance.ApartDomains, set)
			}
		}
	}
	return nil
}

// current records where shards are now.
func (m *model) current() error {
	if m.options.Current == nil {
		return nil
	}
	m.instance.Current = make([]int, len(m.shards))
	for i, x := range m.shards {
		server := m.options.Current[x.Name()]
		at := slices.IndexFunc(m.servers, func(s Server) bool { return s.Name == server })
		m.instance.Current[i] = at // -1: nowhere, or on an unknown server
		if at >= 0 {
			m.instance.Shards[i].Move = m.options.Move.Once(x, m.sends(i)) / m.options.Move.horizon()
		}
	}
	return nil
}

// sends returns the events per second from and to a shard.
func (m *model) sends(shard int) float64 {
	sum := 0.0
	for _, e := range m.instance.Edges {
		if e.A == shard || e.B == shard {
			sum += e.Weight
		}
	}
	for _, p := range m.instance.Paths {
		if slices.Contains(p.Shards, shard) {
			sum += p.Weight
		}
	}
	return sum
}
