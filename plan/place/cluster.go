package place

import (
	"cmp"
	"slices"
)

// clusterNodes is how many nodes a cluster has at most: of so many all ways to
// put them on servers are looked at.
const clusterNodes = 9

// clusterSteps bounds the work for one cluster; it is given up beyond.
const clusterSteps = 300_000

// clusters joins nodes along the heaviest edges into small sets; it returns the
// cluster of each node and how many there are.
func (p *problem) clusters() (of []int, n int) {
	type edge struct {
		a, b int
		w    float64
	}
	var edges []edge
	for a := range p.n {
		for e := p.first[a]; e < p.first[a+1]; e++ {
			if b := int(p.to[e]); a < b {
				edges = append(edges, edge{a, b, p.w[e]})
			}
		}
	}
	slices.SortStableFunc(edges, func(x, y edge) int { return cmp.Compare(y.w, x.w) })
	root, size := make([]int, p.n), make([]int, p.n)
	for k := range root {
		root[k], size[k] = k, 1
	}
	find := func(k int) int {
		for root[k] != k {
			root[k] = root[root[k]]
			k = root[k]
		}
		return k
	}
	for _, e := range edges {
		if a, b := find(e.a), find(e.b); a != b && size[a]+size[b] <= clusterNodes {
			root[b] = a
			size[a] += size[b]
		}
	}
	of = make([]int, p.n)
	number := map[int]int{}
	for k := range of {
		r := find(k)
		if _, there := number[r]; !there {
			number[r] = len(number)
		}
		of[k] = number[r]
	}
	return of, len(number)
}

// inside is the least that the edges between the nodes of a cluster cost, each
// by its weight if it crosses, over all ways to put the nodes on servers that
// keep what concerns only them. Without an answer in time it is 0, which is
// true as well.
func (p *problem) inside(nodes []int, weight func(a, b int) float64) float64 {
	c := clustering{p: p, nodes: nodes, block: make([]int, len(nodes)), best: -1}
	slices.SortStableFunc(c.nodes, func(a, b int) int { return cmp.Compare(p.cpu[b], p.cpu[a]) })
	index := map[int]int{}
	for i, k := range c.nodes {
		index[k] = i
	}
	c.weight, c.apart = make([][]float64, len(nodes)), make([][]bool, len(nodes))
	for i, a := range c.nodes {
		c.weight[i], c.apart[i] = make([]float64, len(nodes)), make([]bool, len(nodes))
		for j, b := range c.nodes {
			if i != j {
				c.weight[i][j] = weight(a, b)
				c.apart[i][j] = p.clash(a, b) != ""
			}
		}
	}
	if least := p.leastDelay(); p.s > 1 {
		for _, b := range p.budget {
			path := cutPath{most: int(b.deadline*(1+tolerance)/least + 1e-12)}
			for _, k := range b.nodes {
				if i, there := index[k]; there {
					path.nodes = append(path.nodes, i)
				}
			}
			if least > 0 && len(path.nodes) == len(b.nodes) {
				c.paths = append(c.paths, path)
			}
		}
	}
	c.try(0, 0, 0)
	if c.steps > clusterSteps || c.best < 0 {
		return 0
	}
	return c.best
}

// cutPath is a path of a cluster, and how often it may cross servers.
type cutPath struct {
	nodes []int
	most  int
}

// clustering is the enumeration of one cluster's partitions into blocks, each
// on a server of its own.
type clustering struct {
	p      *problem
	nodes  []int
	block  []int
	weight [][]float64
	apart  [][]bool
	paths  []cutPath
	best   float64 // -1: none yet
	steps  int
}

// try puts node i into each block that there is, and into one of its own.
func (c *clustering) try(i, blocks int, cost float64) {
	if c.steps++; c.steps > clusterSteps || c.best >= 0 && cost >= c.best {
		return
	}
	if i == len(c.nodes) {
		if !c.late() {
			c.best = cost
		}
		return
	}
	for b := range min(blocks+1, c.p.s) {
		c.block[i] = b
		if !c.holds(i, b) {
			continue
		}
		more := cost
		for j := range i {
			if c.block[j] != b {
				more += c.weight[i][j]
			}
		}
		c.try(i+1, max(blocks, b+1), more)
	}
}

// holds reports whether some server can take all of the first nodes, up to i,
// of a block.
func (c *clustering) holds(i, b int) bool {
	var cpu, memory int64
	for j := range i + 1 {
		if c.block[j] == b {
			if c.apart[i][j] {
				return false
			}
			cpu, memory = cpu+c.p.cpu[c.nodes[j]], memory+c.p.memory[c.nodes[j]]
		}
	}
	for s := range c.p.s {
		if cpu > c.p.capCPU[s] || memory > c.p.capMemory[s] {
			continue
		}
		all := true
		for j := range i + 1 {
			all = all && (c.block[j] != b || c.p.may(c.nodes[j], s))
		}
		if all {
			return true
		}
	}
	return false
}

// late reports whether a path crosses servers too often.
func (c *clustering) late() bool {
	for _, path := range c.paths {
		crossings := 0
		for h := 1; h < len(path.nodes); h++ {
			if c.block[path.nodes[h-1]] != c.block[path.nodes[h]] {
				crossings++
			}
		}
		if crossings > path.most {
			return true
		}
	}
	return false
}
