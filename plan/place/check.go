package place

import (
	"fmt"
	"strings"
)

// Kind is which constraint a violation is of.
type Kind string

// The constraints.
const (
	KindUnplaced     Kind = "unplaced"      // a shard without a server
	KindCPU          Kind = "cpu"           // eq. 5
	KindMemory       Kind = "memory"        // eq. 5
	KindDeadline     Kind = "deadline"      // eq. 6
	KindApart        Kind = "apart"         // Instance.Apart
	KindApartDomains Kind = "apart-domains" // Instance.ApartDomains
	KindTogether     Kind = "together"      // Instance.Together
	KindServers      Kind = "servers"       // Shard.Servers
	KindClasses      Kind = "classes"       // Compute beside RealTime or Latency
	KindPower        Kind = "power"         // Shard.Domain
)

// Violation is one constraint that a placement breaks.
type Violation struct {
	Kind   Kind    `json:"kind"`
	Shards []int   `json:"shards,omitempty"` // those concerned
	Server int     `json:"server"`           // -1 if it is not about one
	Path   int     `json:"path"`             // -1 if it is not about one
	Excess float64 `json:"excess"`           // in the constraint's unit; for those without, how many pairs
	Text   string  `json:"text"`
}

// String returns Text.
func (v Violation) String() string { return v.Text }

// Check judges a placement, server[i] being where shard i runs: it returns what
// it costs, Latency plus Migration, and every constraint that it breaks. The
// instance has to be valid. It is independent of the solvers.
func Check(in *Instance, server []int) (cost float64, violations []Violation) {
	c := checker{in: in, at: server}
	if len(server) != len(in.Shards) {
		c.add(Violation{Kind: KindUnplaced, Server: -1, Path: -1, Excess: 1}, "a placement of %d shards for an instance of %d", len(server), len(in.Shards))
		return 0, c.found
	}
	for i, s := range server {
		if s < 0 || s >= len(in.Servers) {
			c.add(Violation{Kind: KindUnplaced, Shards: []int{i}, Server: -1, Path: -1, Excess: 1}, "shard %s is on server %d of %d", in.Shards[i].Name, s, len(in.Servers))
		}
	}
	if len(c.found) > 0 {
		return 0, c.found
	}
	c.capacities()
	c.servers()
	c.apart()
	c.together()
	c.neighbours()
	c.deadlines()
	return LatencyCost(in, server) + MigrationCost(in, server), c.found
}

// LatencyCost is eq. 4: the delay that crossing servers adds to all events, in
// µs a second (events a second where the instance has no delays).
func LatencyCost(in *Instance, server []int) float64 {
	var cost float64
	for _, e := range in.Edges {
		cost += e.Weight * in.delay(server[e.A], server[e.B])
	}
	for i := range in.Paths {
		cost += in.Paths[i].Weight * PathLatency(in, server, i)
	}
	return cost
}

// PathLatency is eq. 3: what crossing servers adds to an event of path p, in µs.
func PathLatency(in *Instance, server []int, p int) float64 {
	var sum float64
	shards := in.Paths[p].Shards
	for k := 1; k < len(shards); k++ {
		sum += in.delay(server[shards[k-1]], server[shards[k]])
	}
	return sum
}

// MigrationCost is what the shards cost that are not where they were.
func MigrationCost(in *Instance, server []int) float64 {
	var cost float64
	for i, was := range in.Current {
		if was >= 0 && was != server[i] {
			cost += in.Shards[i].Move
		}
	}
	return cost
}

// checker collects violations.
type checker struct {
	in    *Instance
	at    []int
	found []Violation
}

func (c *checker) add(v Violation, format string, args ...any) {
	v.Text = fmt.Sprintf(format, args...)
	c.found = append(c.found, v)
}

// capacities checks eq. 5.
func (c *checker) capacities() {
	cpu, memory := make([]int64, len(c.in.Servers)), make([]int64, len(c.in.Servers))
	on := make([][]int, len(c.in.Servers))
	for i, s := range c.at {
		cpu[s] += c.in.Shards[i].CPU
		memory[s] += c.in.Shards[i].Memory
		on[s] = append(on[s], i)
	}
	for s, have := range c.in.Servers {
		if cpu[s] > have.CPU {
			c.add(Violation{Kind: KindCPU, Shards: on[s], Server: s, Path: -1, Excess: float64(cpu[s] - have.CPU)},
				"server %s has %s, its %d shards need %s", have.Name, cpus(have.CPU), len(on[s]), cpus(cpu[s]))
		}
		if memory[s] > have.Memory {
			c.add(Violation{Kind: KindMemory, Shards: on[s], Server: s, Path: -1, Excess: float64(memory[s] - have.Memory)},
				"server %s has %s of memory, its %d shards need %s", have.Name, bytes(have.Memory), len(on[s]), bytes(memory[s]))
		}
	}
}

// servers checks pins.
func (c *checker) servers() {
	for i, shard := range c.in.Shards {
		if shard.Servers == nil {
			continue
		}
		allowed := false
		for _, s := range shard.Servers {
			allowed = allowed || s == c.at[i]
		}
		if !allowed {
			c.add(Violation{Kind: KindServers, Shards: []int{i}, Server: c.at[i], Path: -1, Excess: 1},
				"shard %s may not run on server %s", shard.Name, c.in.Servers[c.at[i]].Name)
		}
	}
}

// apart checks both kinds of replicas.
func (c *checker) apart() {
	for _, set := range c.in.Apart {
		c.pairs(set, func(a, b int) {
			if c.at[a] == c.at[b] {
				c.add(Violation{Kind: KindApart, Shards: []int{a, b}, Server: c.at[a], Path: -1, Excess: 1},
					"%s and %s are to be apart, both are on server %s", c.name(a), c.name(b), c.in.Servers[c.at[a]].Name)
			}
		})
	}
	for _, set := range c.in.ApartDomains {
		c.pairs(set, func(a, b int) {
			s, t := c.in.Servers[c.at[a]], c.in.Servers[c.at[b]]
			if c.at[a] == c.at[b] || s.Domain != "" && s.Domain == t.Domain {
				c.add(Violation{Kind: KindApartDomains, Shards: []int{a, b}, Server: c.at[a], Path: -1, Excess: 1},
					"%s and %s are to be in different power domains; server %s and server %s are in the same", c.name(a), c.name(b), s.Name, t.Name)
			}
		})
	}
}

// together checks shards that share a server.
func (c *checker) together() {
	for _, set := range c.in.Together {
		for _, i := range set {
			if c.at[i] != c.at[set[0]] {
				c.add(Violation{Kind: KindTogether, Shards: []int{set[0], i}, Server: -1, Path: -1, Excess: 1},
					"%s and %s are to be together, they are on servers %s and %s", c.name(set[0]), c.name(i),
					c.in.Servers[c.at[set[0]]].Name, c.in.Servers[c.at[i]].Name)
			}
		}
	}
}

// neighbours checks who shares a server with whom: classes and power sources.
func (c *checker) neighbours() {
	on := make([][]int, len(c.in.Servers))
	for i, s := range c.at {
		on[s] = append(on[s], i)
	}
	for s, shards := range on {
		var mixed, powered []int
		compute, sensitive := 0, 0
		domains := map[string]int{}
		for _, i := range shards {
			switch class := c.in.Shards[i].Class; {
			case class == Compute:
				compute++
				mixed = append(mixed, i)
			case class.sensitive():
				sensitive++
				mixed = append(mixed, i)
			}
			if d := c.in.Shards[i].Domain; d != "" {
				domains[d]++
				powered = append(powered, i)
			}
		}
		if compute > 0 && sensitive > 0 {
			c.add(Violation{Kind: KindClasses, Shards: mixed, Server: s, Path: -1, Excess: float64(compute * sensitive)},
				"server %s has %d compute shards beside %d real-time or latency-sensitive ones: %s", c.in.Servers[s].Name, compute, sensitive, c.names(mixed))
		}
		if len(domains) > 1 {
			same := 0
			for _, n := range domains {
				same += n * n
			}
			c.add(Violation{Kind: KindPower, Shards: powered, Server: s, Path: -1, Excess: float64((len(powered)*len(powered) - same) / 2)},
				"server %s has shards of parts of the network with %d power sources: %s", c.in.Servers[s].Name, len(domains), c.names(powered))
		}
	}
}

// deadlines checks eq. 6.
func (c *checker) deadlines() {
	for p, path := range c.in.Paths {
		if path.Deadline <= 0 {
			continue
		}
		if t := PathLatency(c.in, c.at, p); t > path.Deadline*(1+tolerance) {
			c.add(Violation{Kind: KindDeadline, Shards: path.Shards, Server: -1, Path: p, Excess: t - path.Deadline},
				"path %s (%s) takes %.6g µs for crossing servers, its deadline is %.6g µs", path.Name, c.names(path.Shards), t, path.Deadline)
		}
	}
}

// tolerance is what sums of µs may be off by rounding, relatively.
const tolerance = 1e-9

// pairs calls f with every two of a set.
func (c *checker) pairs(set []int, f func(a, b int)) {
	for k, a := range set {
		for _, b := range set[k+1:] {
			f(a, b)
		}
	}
}

func (c *checker) name(i int) string { return c.in.Shards[i].Name }

// names lists shards, the first few.
func (c *checker) names(list []int) string { return names(c.in, list) }

// names lists shards, the first few.
func names(in *Instance, list []int) string {
	const most = 6
	var b strings.Builder
	for k, i := range list {
		if k == most {
			fmt.Fprintf(&b, " and %d more", len(list)-most)
			break
		}
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString(in.Shards[i].Name)
	}
	return b.String()
}

// cpus writes thousandths of a CPU.
func cpus(n int64) string { return fmt.Sprintf("%.6g CPUs", float64(n)/1000) }

// bytes writes an amount of memory.
func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
