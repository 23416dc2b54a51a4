package place

import (
	"fmt"
	"slices"
)

// separate matches the shards of each set that is to be apart with servers, or
// power domains: each needs one of its own.
func (p diagnosis) separate() []Conflict {
	var found []Conflict
	for _, set := range p.apart {
		short := len(set) - p.matching(set, p.s, p.fits)
		if short > 0 {
			shards := p.expand(set)
			found = append(found, Conflict{KindApart, shards, fmt.Sprintf("%s are to be on %d different servers, only %d of those that they may run on are large enough", names(p.in, shards), len(set), len(set)-short),
				p.more(int64(short))})
		}
	}
	for _, set := range p.zones {
		in := func(k, z int) bool {
			for s := range p.s {
				if p.zone[s] == z && p.fits(k, s) {
					return true
				}
			}
			return false
		}
		if short := len(set) - p.matching(set, p.zoneN, in); short > 0 {
			shards := p.expand(set)
			found = append(found, Conflict{KindApartDomains, shards, fmt.Sprintf("%s are to be in %d different power domains, only %d have servers for them", names(p.in, shards), len(set), len(set)-short),
				fmt.Sprintf("servers in %d more power domains", short)})
		}
	}
	return found
}

// maxMatching is how large a set is matched exactly; of larger ones only the
// size is looked at.
const maxMatching = 2000

// matching is how many of a set find a place of their own.
func (p diagnosis) matching(set []int, places int, in func(k, place int) bool) int {
	if len(set) > maxMatching {
		return min(len(set), places)
	}
	holder := make([]int, places)
	for t := range holder {
		holder[t] = -1
	}
	var seen []bool
	var settle func(k int) bool
	settle = func(k int) bool {
		for t := range places {
			if seen[t] || !in(k, t) {
				continue
			}
			seen[t] = true
			if holder[t] < 0 || settle(holder[t]) {
				holder[t] = k
				return true
			}
		}
		return false
	}
	n := 0
	for _, k := range set {
		seen = make([]bool, places)
		if settle(k) {
			n++
		}
	}
	return n
}

// isolated counts the servers that classes and power sources need for
// themselves.
func (p diagnosis) isolated() []Conflict {
	var found []Conflict
	var compute, sensitive []int
	byPower := make([][]int, p.powers)
	for k := range p.n {
		switch {
		case p.compute[k]:
			compute = append(compute, k)
		case p.sensitive[k]:
			sensitive = append(sensitive, k)
		}
		byPower[p.power[k]] = append(byPower[p.power[k]], k)
	}
	if a, b := p.serversFor(compute), p.serversFor(sensitive); a > 0 && b > 0 && a+b > p.s {
		found = append(found, Conflict{KindClasses, p.expand(append(compute, sensitive...)),
			fmt.Sprintf("compute shards need at least %d servers, real-time and latency-sensitive ones %d others, there are %d", a, b, p.s), p.more(int64(a + b - p.s))})
	}
	total := 0
	for _, nodes := range byPower[1:] {
		total += p.serversFor(nodes)
	}
	if total > p.s {
		found = append(found, Conflict{KindPower, nil,
			fmt.Sprintf("the parts of the network with %d power sources need at least %d servers of their own, there are %d", p.powers-1, total, p.s), p.more(int64(total - p.s))})
	}
	return found
}

// serversFor is how many servers the nodes need at least if no others are on
// them: the largest that together have enough of each resource, and one for
// each node that needs more than half of the largest.
func (p diagnosis) serversFor(nodes []int) int {
	if len(nodes) == 0 {
		return 0
	}
	need := 1
	for _, r := range []struct{ want, have []int64 }{{p.cpu, p.capCPU}, {p.memory, p.capMemory}} {
		have := slices.Clone(r.have)
		slices.Sort(have)
		slices.Reverse(have)
		var total int64
		large := 0
		for _, k := range nodes {
			total += r.want[k]
			if 2*r.want[k] > have[0] {
				large++
			}
		}
		n := 0
		for total > 0 && n < len(have) {
			total -= have[n]
			n++
		}
		if total > 0 {
			n++
		}
		need = max(need, n, large)
	}
	return need
}

// tooFar finds paths that cannot keep their deadline: their shards fill so many
// servers that the least delays between these are more.
func (p diagnosis) tooFar() []Conflict {
	var found []Conflict
	least := p.leastDelay()
	for _, b := range p.budget {
		crossings := 0
		var why Kind
		for from, k := 0, 1; k < len(b.nodes); k++ {
			if kind := p.apartOn(b.nodes[from : k+1]); kind != "" {
				if from = k; why == "" {
					why = kind
				}
				crossings++
			}
		}
		if t := float64(crossings) * least; crossings > 0 && t > b.deadline*(1+tolerance) {
			path := p.in.Paths[b.path]
			found = append(found, Conflict{KindDeadline, path.Shards,
				fmt.Sprintf("path %s (%s) crosses servers at least %d times (%s), which takes %.6g µs; its deadline is %.6g µs", path.Name, names(p.in, path.Shards), crossings, why, t, b.deadline),
				fmt.Sprintf("a deadline of %.6g µs", t)})
		}
	}
	return found
}

// apartOn says why nodes cannot all share one server, "" if they may.
func (p diagnosis) apartOn(nodes []int) Kind {
	last := nodes[len(nodes)-1]
	var cpu, memory int64
	distinct := map[int]bool{}
	for _, k := range nodes {
		if distinct[k] {
			continue
		}
		distinct[k] = true
		cpu, memory = cpu+p.cpu[k], memory+p.memory[k]
		if k != last {
			if kind := p.clash(k, last); kind != "" {
				return kind
			}
		}
	}
	kind := KindServers
	for s := range p.s {
		all := true
		for k := range distinct {
			all = all && p.may(k, s)
		}
		switch {
		case all && cpu <= p.capCPU[s] && memory <= p.capMemory[s]:
			return ""
		case all && cpu > p.capCPU[s]:
			kind = KindCPU
		case all && kind == KindServers:
			kind = KindMemory
		}
	}
	return kind
}
