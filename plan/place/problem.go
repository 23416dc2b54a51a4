package place

import (
	"math"
	"slices"
)

// problem is an instance as the solvers see it: shards that are to be together
// are one node, paths are edges where they cost and budgets where they have
// deadlines.
type problem struct {
	in      *Instance
	n, s    int     // nodes, servers
	node    []int   // of each shard
	members [][]int // shards of each node

	cpu, memory       []int64 // of nodes
	capCPU, capMemory []int64 // of servers
	allowed           [][]bool
	compute           []bool
	sensitive         []bool
	power             []int   // 0 is none
	powers            int     // how many there are, none among them
	home              [][]int // where a node's members are now; nil if none is anywhere

	apart  [][]int // sets of nodes that do not share a server
	zones  [][]int // sets of nodes that do not share a power domain
	zone   []int   // of servers
	zoneN  int
	sets   [][]int // of each node, indices into apart
	zsets  [][]int // of each node, indices into zones
	budget []budget
	paths  [][]int // of each node, indices into budget

	// Neighbours of node i are to[first[i]:first[i+1]], at the weights w.
	first []int
	to    []int32
	w     []float64

	uniform float64     // the delay between any two servers; 0 if it differs
	delay   [][]float64 // always set
}

// budget is a path with a deadline.
type budget struct {
	path     int // of the instance
	nodes    []int
	deadline float64
}

// compile makes a problem of an instance that Validate has not found wrong. It
// does not ask whether the sets can be merged (contradictions does).
func compile(in *Instance) *problem {
	p := &problem{in: in, s: len(in.Servers)}
	p.merge()
	p.cpu, p.memory = make([]int64, p.n), make([]int64, p.n)
	p.compute, p.sensitive = make([]bool, p.n), make([]bool, p.n)
	p.power, p.allowed = make([]int, p.n), make([][]bool, p.n)
	p.sets, p.zsets, p.paths = make([][]int, p.n), make([][]int, p.n), make([][]int, p.n)
	powers := map[string]int{"": 0}
	for i, shard := range in.Shards {
		k := p.node[i]
		p.cpu[k] += shard.CPU
		p.memory[k] += shard.Memory
		p.compute[k] = p.compute[k] || shard.Class == Compute
		p.sensitive[k] = p.sensitive[k] || shard.Class.sensitive()
		if _, there := powers[shard.Domain]; !there {
			powers[shard.Domain] = len(powers)
		}
		if d := powers[shard.Domain]; d != 0 {
			p.power[k] = d
		}
		if shard.Servers != nil {
			p.allowed[k] = intersect(p.allowed[k], shard.Servers, p.s)
		}
	}
	p.powers = len(powers)
	p.apart, p.zones = p.asNodes(in.Apart), p.asNodes(in.ApartDomains)
	for g, set := range p.apart {
		for _, k := range set {
			p.sets[k] = append(p.sets[k], g)
		}
	}
	for g, set := range p.zones {
		for _, k := range set {
			p.zsets[k] = append(p.zsets[k], g)
		}
	}
	p.machines()
	p.migration()
	p.graph()
	return p
}

// merge joins the shards that are to be together.
func (p *problem) merge() {
	root := make([]int, len(p.in.Shards))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, set := range p.in.Together {
		for _, i := range set {
			if a, b := find(set[0]), find(i); a != b {
				root[max(a, b)] = min(a, b)
			}
		}
	}
	p.node = make([]int, len(root))
	for i := range root {
		if r := find(i); r == i {
			p.node[i] = len(p.members)
			p.members = append(p.members, []int{i})
		} else {
			p.node[i] = p.node[r]
			p.members[p.node[i]] = append(p.members[p.node[i]], i)
		}
	}
	p.n = len(p.members)
}

// intersect keeps the servers of a list.
func intersect(have []bool, list []int, servers int) []bool {
	now := make([]bool, servers)
	for _, s := range list {
		now[s] = have == nil || have[s]
	}
	return now
}

// asNodes turns sets of shards into sets of nodes.
func (p *problem) asNodes(sets [][]int) [][]int {
	var out [][]int
	for _, set := range sets {
		var nodes []int
		for _, i := range set {
			nodes = append(nodes, p.node[i])
		}
		slices.Sort(nodes)
		if nodes = slices.Compact(nodes); len(nodes) > 1 {
			out = append(out, nodes)
		}
	}
	return out
}

// machines reads the servers and the delays between them.
func (p *problem) machines() {
	zones := map[string]int{}
	p.delay = make([][]float64, p.s)
	same, seen := true, -1.0
	for s, server := range p.in.Servers {
		p.capCPU, p.capMemory = append(p.capCPU, server.CPU), append(p.capMemory, server.Memory)
		z, there := zones[server.Domain]
		if !there || server.Domain == "" {
			z = p.zoneN
			p.zoneN++
			zones[server.Domain] = z
		}
		p.zone = append(p.zone, z)
		p.delay[s] = make([]float64, p.s)
		for t := range p.s {
			p.delay[s][t] = p.in.delay(s, t)
			if s != t {
				same = same && (seen < 0 || seen == p.delay[s][t])
				seen = p.delay[s][t]
			}
		}
	}
	if same {
		p.uniform = max(seen, 0)
	}
}

// migration reads where shards are now.
func (p *problem) migration() {
	if p.in.Current == nil {
		return
	}
	p.home = make([][]int, p.n)
	for i, s := range p.in.Current {
		if s >= 0 {
			p.home[p.node[i]] = append(p.home[p.node[i]], i)
		}
	}
}

// moving is what it costs to have node k on server s.
func (p *problem) moving(k, s int) float64 {
	if p.home == nil {
		return 0
	}
	var cost float64
	for _, i := range p.home[k] {
		if p.in.Current[i] != s {
			cost += p.in.Shards[i].Move
		}
	}
	return cost
}

// graph sums the edges and hops between any two nodes.
func (p *problem) graph() {
	type pair struct {
		a, b int
		w    float64
	}
	var pairs []pair
	add := func(i, j int, w float64) {
		if a, b := p.node[i], p.node[j]; a != b && w > 0 {
			pairs = append(pairs, pair{a, b, w}, pair{b, a, w})
		}
	}
	for _, e := range p.in.Edges {
		add(e.A, e.B, e.Weight)
	}
	for k, path := range p.in.Paths {
		for h := 1; h < len(path.Shards); h++ {
			add(path.Shards[h-1], path.Shards[h], path.Weight)
		}
		if path.Deadline > 0 && len(path.Shards) > 1 {
			p.addBudget(k)
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int {
		if x.a != y.a {
			return x.a - y.a
		}
		return x.b - y.b
	})
	p.first = make([]int, p.n+1)
	last := -1
	for k, x := range pairs {
		if k > 0 && pairs[k-1].a == x.a && pairs[k-1].b == x.b {
			p.w[last] += x.w
			continue
		}
		last = len(p.to)
		p.to, p.w = append(p.to, int32(x.b)), append(p.w, x.w)
		p.first[x.a+1] = len(p.to)
	}
	for k := 1; k <= p.n; k++ {
		p.first[k] = max(p.first[k], p.first[k-1])
	}
}

// addBudget notes the deadline of a path.
func (p *problem) addBudget(k int) {
	b := budget{path: k, deadline: p.in.Paths[k].Deadline}
	for _, i := range p.in.Paths[k].Shards {
		b.nodes = append(b.nodes, p.node[i])
	}
	for _, x := range b.nodes {
		if list := p.paths[x]; len(list) == 0 || list[len(list)-1] != len(p.budget) {
			p.paths[x] = append(list, len(p.budget))
		}
	}
	p.budget = append(p.budget, b)
}

// between returns the weight of the edge between two nodes, 0 if there is none.
func (p *problem) between(a, b int) float64 {
	list := p.to[p.first[a]:p.first[a+1]]
	if k, there := slices.BinarySearch(list, int32(b)); there {
		return p.w[p.first[a]+k]
	}
	return 0
}

// may reports whether a node may run on a server by its pins.
func (p *problem) may(k, s int) bool { return p.allowed[k] == nil || p.allowed[k][s] }

// fits reports whether a node may run on a server and alone would fit there.
func (p *problem) fits(k, s int) bool {
	return p.may(k, s) && p.cpu[k] <= p.capCPU[s] && p.memory[k] <= p.capMemory[s]
}

// shards expands a placement of nodes.
func (p *problem) shards(at []int32) []int {
	server := make([]int, len(p.node))
	for i, k := range p.node {
		server[i] = int(at[k])
	}
	return server
}

// leastDelay is the least between two servers; infinite if there is one only.
func (p *problem) leastDelay() float64 {
	least := math.Inf(1)
	for s := range p.s {
		for t := range s {
			least = min(least, p.delay[s][t])
		}
	}
	return least
}

// clash says why two nodes never share a server, "" if they may.
func (p *problem) clash(a, b int) Kind {
	switch {
	case p.compute[a] && p.sensitive[b] || p.sensitive[a] && p.compute[b]:
		return KindClasses
	case p.power[a] != 0 && p.power[b] != 0 && p.power[a] != p.power[b]:
		return KindPower
	case common(p.sets[a], p.sets[b]):
		return KindApart
	case common(p.zsets[a], p.zsets[b]):
		return KindApartDomains
	}
	return ""
}

// common reports whether two ascending lists share a member.
func common(a, b []int) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}
