package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// GenerateConfig says what instance Generate makes.
type GenerateConfig struct {
	Partitions, Services, Servers int // at least one of each
	Seed                          uint64
	// Edges are how many there are at least: what event chains and the traffic
	// between partitions do not make up is background between any two shards,
	// each of a weight of 1 to Background. 0 is none.
	Edges      int
	Background int // 0 is 1
	// Slack is what a server has of what each would need if all needed the
	// same; 0 is 1.2. It is more if a simple packing needs it.
	Slack float64
	// Plain leaves the capacities as the only constraints: what a partitioner
	// can express.
	Plain bool
}

// Generate makes an instance. Every shard takes part in the event chains of its
// partition, whose weights follow Zipf's law, and some services' shards talk
// with those of other partitions. Unless Plain, the last service of each
// partition is the replica of the one before it and apart from it, one
// real-time path of each partition may cross servers on half of its hops, and
// the second service is compute. There is always a placement. All weights are
// whole numbers.
func Generate(c GenerateConfig) (*Instance, error) {
	if c.Partitions < 1 || c.Services < 1 || c.Servers < 1 {
		return nil, fmt.Errorf("generate %d partitions, %d services, %d servers: want at least 1 of each", c.Partitions, c.Services, c.Servers)
	}
	if n := c.Partitions * c.Services; n > MaxShards || c.Servers > MaxServers || n*c.Servers > maxTable {
		return nil, fmt.Errorf("generate %d shards for %d servers: at most %d, %d, and %d for one times the other", n, c.Servers, MaxShards, MaxServers, maxTable)
	}
	n := c.Partitions * c.Services
	if most := min(n*(n-1)/4, MaxEdges); c.Edges < 0 || c.Edges > 0 && c.Edges > most {
		return nil, fmt.Errorf("generate %d edges between %d shards: at most %d", c.Edges, n, most)
	}
	if c.Background < 0 || c.Slack < 0 || c.Slack > 0 && c.Slack < 1 || c.Slack > 1000 {
		return nil, fmt.Errorf("generate background weights of %d and a slack of %g: want 0 or more, and 1 to 1000", c.Background, c.Slack)
	}
	if c.Slack == 0 {
		c.Slack = 1.2
	}
	g := generator{GenerateConfig: c, random: rand.New(rand.NewPCG(c.Seed, 0x9e3779b97f4a7c15)), in: &Instance{}, weight: map[[2]int]int{}}
	g.shards()
	for p := range c.Partitions {
		g.chains(p)
	}
	g.between()
	g.background()
	if !c.Plain {
		g.constraints()
	}
	g.edges()
	g.servers()
	return g.in, nil
}

// generator is an instance that is being made.
type generator struct {
	GenerateConfig
	random *rand.Rand
	in     *Instance
	weight map[[2]int]int // of edges
}

// shard is the index of a service's shard.
func (g *generator) shard(partition, service int) int { return partition*g.Services + service }

// pick returns a number from low to high.
func (g *generator) pick(low, high int) int { return low + g.random.IntN(high-low+1) }

// shards makes those: all shards of a service are of about the same size.
func (g *generator) shards() {
	cpu, memory := make([]int, g.Services), make([]int, g.Services)
	for s := range g.Services {
		cpu[s], memory[s] = g.pick(100, 800), g.pick(64, 1024)
	}
	for p := range g.Partitions {
		for s := range g.Services {
			g.in.Shards = append(g.in.Shards, Shard{
				Name: fmt.Sprintf("service%d/p%d", s, p), Service: fmt.Sprintf("service%d", s), Partition: fmt.Sprintf("p%d", p),
				CPU: int64(cpu[s] * g.pick(70, 130) / 100), Memory: int64(memory[s]*g.pick(70, 130)/100) << 20,
				Move: 100,
			})
		}
	}
}

// join adds traffic between two shards.
func (g *generator) join(a, b, w int) {
	if a != b {
		g.weight[[2]int{min(a, b), max(a, b)}] += w
	}
}

// chains makes the events of a partition: the k-th is 1/k as frequent as the
// first.
func (g *generator) chains(p int) {
	if g.Services < 2 {
		return
	}
	for k := 1; k <= g.Services; k++ {
		order := g.random.Perm(g.Services)
		length := g.pick(2, min(5, g.Services))
		w := max(1, 1000*g.pick(50, 150)/100/k)
		for h := 1; h < length; h++ {
			g.join(g.shard(p, order[h-1]), g.shard(p, order[h]), w)
		}
	}
}

// between makes the traffic between shards of the same service.
func (g *generator) between() {
	if g.Partitions < 2 {
		return
	}
	for s := range g.Services {
		if g.random.IntN(2) == 0 {
			continue
		}
		for p := range g.Partitions {
			g.join(g.shard(p, s), g.shard((p+1)%g.Partitions, s), g.pick(10, 200))
			g.join(g.shard(p, s), g.shard(g.random.IntN(g.Partitions), s), g.pick(1, 100))
		}
	}
}

// background fills up to the wanted number of edges.
func (g *generator) background() {
	n := len(g.in.Shards)
	for len(g.weight) < g.Edges {
		a, b := g.random.IntN(n), g.random.IntN(n)
		if a != b && g.weight[[2]int{min(a, b), max(a, b)}] == 0 {
			g.join(a, b, g.pick(1, max(g.Background, 1)))
		}
	}
}

// compute is the service whose shards are compute, -1 if there are too few
// services or servers for one.
func (g *generator) compute() int {
	if g.Services < 4 || g.Servers < 3 {
		return -1
	}
	return 1
}

// realTime are the services on a partition's real-time path: neither the one
// that computes nor the replica.
func (g *generator) realTime() []int {
	var list []int
	for s := range g.Services - 1 {
		if s != g.compute() && len(list) < 4 {
			list = append(list, s)
		}
	}
	return list
}

// constraints adds what a partitioner cannot express.
func (g *generator) constraints() {
	if s := g.compute(); s >= 0 {
		for p := range g.Partitions {
			g.in.Shards[g.shard(p, s)].Class = Compute
			for _, rt := range g.realTime() {
				g.in.Shards[g.shard(p, rt)].Class = RealTime
			}
		}
	}
	for p := range g.Partitions {
		if g.Services > 1 && g.Servers > 1 {
			a, b := g.shard(p, g.Services-2), g.shard(p, g.Services-1)
			g.in.Apart = append(g.in.Apart, []int{a, b})
			g.join(a, b, g.pick(1, 100))
		}
		path := Path{Name: fmt.Sprintf("heartbeats/p%d", p)}
		for _, s := range g.realTime() {
			path.Shards = append(path.Shards, g.shard(p, s))
		}
		if hops := len(path.Shards) - 1; hops > 0 {
			path.Deadline = max(float64(hops/2), 0.5) // of one hop, none
			w := g.pick(100, 500)
			for h := 1; h < len(path.Shards); h++ {
				g.join(path.Shards[h-1], path.Shards[h], w)
			}
			g.in.Paths = append(g.in.Paths, path)
		}
	}
}

// edges writes the traffic down.
func (g *generator) edges() {
	for pair, w := range g.weight {
		g.in.Edges = append(g.in.Edges, Edge{pair[0], pair[1], float64(w)})
	}
	slices.SortFunc(g.in.Edges, func(a, b Edge) int {
		if a.A != b.A {
			return a.A - b.A
		}
		return a.B - b.B
	})
}

// servers makes equal servers, as large as Slack says, and larger until a
// simple packing finds a place for every shard.
func (g *generator) servers() {
	var cpu, memory int64
	for _, s := range g.in.Shards {
		cpu, memory = cpu+s.CPU, memory+s.Memory
	}
	for s := range g.Servers {
		g.in.Servers = append(g.in.Servers, Server{Name: fmt.Sprintf("server%d", s), Domain: fmt.Sprintf("power%d", s%4)})
	}
	for slack := g.Slack; ; slack *= 1.02 {
		for s := range g.in.Servers {
			g.in.Servers[s].CPU = int64(float64(cpu) / float64(g.Servers) * slack)
			g.in.Servers[s].Memory = int64(float64(memory) / float64(g.Servers) * slack)
		}
		if g.packs() {
			return
		}
	}
}

// computing is how many servers packs keeps for compute shards: their share.
func (g *generator) computing() int {
	var all, compute int64
	for _, s := range g.in.Shards {
		if all += s.CPU; s.Class == Compute {
			compute += s.CPU
		}
	}
	if compute == 0 {
		return 0
	}
	return min(int((int64(g.Servers)*compute+all-1)/all), g.Servers-2)
}

// packs tries to place all shards, the largest first, those of a real-time path
// in as many pieces as may be, without regard to cost.
func (g *generator) packs() bool {
	var units [][]int
	inPath := make([]bool, len(g.in.Shards))
	for _, path := range g.in.Paths {
		pieces := int(path.Deadline) + 1
		for k := range pieces {
			unit := path.Shards[k*len(path.Shards)/pieces : (k+1)*len(path.Shards)/pieces]
			for _, i := range unit {
				inPath[i] = true
			}
			units = append(units, unit)
		}
	}
	for i := range g.in.Shards {
		if !inPath[i] {
			units = append(units, []int{i})
		}
	}
	first := g.in.Servers[0]
	size := func(unit []int) (cpu, memory int64) {
		for _, i := range unit {
			cpu, memory = cpu+g.in.Shards[i].CPU, memory+g.in.Shards[i].Memory
		}
		return cpu, memory
	}
	share := func(unit []int) float64 {
		cpu, memory := size(unit)
		return max(float64(cpu)/float64(first.CPU), float64(memory)/float64(first.Memory))
	}
	slices.SortStableFunc(units, func(a, b []int) int {
		switch x, y := share(a), share(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	at := make([]int, len(g.in.Shards))
	for i := range at {
		at[i] = -1
	}
	partner := make([]int, len(g.in.Shards))
	for _, pair := range g.in.Apart {
		partner[pair[0]], partner[pair[1]] = pair[1]+1, pair[0]+1
	}
	computing := g.computing()
	cpu, memory := make([]int64, g.Servers), make([]int64, g.Servers)
	for _, unit := range units {
		uc, um := size(unit)
		best := -1
		for s := range g.Servers {
			ok := cpu[s]+uc <= first.CPU && memory[s]+um <= first.Memory
			for _, i := range unit {
				if p := partner[i]; p > 0 && at[p-1] == s {
					ok = false
				}
				if c := g.in.Shards[i].Class; c == Compute && s >= computing || c.sensitive() && s < computing {
					ok = false
				}
			}
			if ok && (best < 0 || cpu[s] < cpu[best]) {
				best = s
			}
		}
		if best < 0 {
			return false
		}
		for _, i := range unit {
			at[i] = best
		}
		cpu[best], memory[best] = cpu[best]+uc, memory[best]+um
	}
	return true
}
