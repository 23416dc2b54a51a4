package place

import (
	"fmt"
	"slices"
	"strings"
)

// diagnosis says why a problem has no solution.
type diagnosis struct{ *problem }

// contradictions are the reasons for which there is no placement that
// arithmetic alone finds: each is sound, together they are not complete.
func contradictions(in *Instance) []Conflict {
	p := diagnosis{compile(in)}
	if c := p.merged(); len(c) > 0 {
		return c // the rest supposes that what is together can be
	}
	var found []Conflict
	found = append(found, p.tooLarge()...)
	if len(found) > 0 {
		return found // more of all would be said of the same shards
	}
	found = append(found, p.tooMany()...)
	found = append(found, p.pinned()...)
	found = append(found, p.separate()...)
	found = append(found, p.isolated()...)
	found = append(found, p.tooFar()...)
	return found
}

// merged finds shards that are to be together and cannot.
func (p diagnosis) merged() []Conflict {
	var found []Conflict
	for k, members := range p.members {
		if len(members) == 1 {
			if p.allowed[k] != nil && !slices.Contains(p.allowed[k], true) {
				found = append(found, Conflict{KindServers, members, fmt.Sprintf("shard %s may run on no server", p.in.Shards[members[0]].Name), "a server in its list"})
			}
			continue
		}
		list := names(p.in, members)
		if p.compute[k] && p.sensitive[k] {
			found = append(found, Conflict{KindClasses, members, "together are to be " + list + ", of which some are compute and some real-time or latency-sensitive, which never share a server", "only one of these classes among them"})
		}
		if p.allowed[k] != nil && !slices.Contains(p.allowed[k], true) {
			found = append(found, Conflict{KindServers, members, "together are to be " + list + ", which may run on no server in common", "a server that is in all their lists"})
		}
		power := ""
		for _, i := range members {
			d := p.in.Shards[i].Domain
			if d != "" && power != "" && d != power {
				found = append(found, Conflict{KindPower, members, "together are to be " + list + ", whose switches have different power sources (" + power + ", " + d + ")", "shards of one of them only"})
				break
			}
			if d != "" {
				power = d
			}
		}
		for what, sets := range map[Kind][][]int{KindApart: p.in.Apart, KindApartDomains: p.in.ApartDomains} {
			for _, set := range sets {
				var both []int
				for _, i := range set {
					if p.node[i] == k {
						both = append(both, i)
					}
				}
				if len(both) > 1 {
					found = append(found, Conflict{what, both, names(p.in, both) + " are to be together and apart", "only one of the two"})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Conflict) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return found
}

// tooLarge finds shards that no server is large enough for.
func (p diagnosis) tooLarge() []Conflict {
	var found []Conflict
	for k, members := range p.members {
		fits, cpu, memory := false, int64(0), int64(0)
		for s := range p.s {
			if p.may(k, s) {
				fits = fits || p.fits(k, s)
				cpu, memory = max(cpu, p.capCPU[s]), max(memory, p.capMemory[s])
			}
		}
		if fits {
			continue
		}
		who := "shard " + names(p.in, members) + " needs"
		if len(members) > 1 {
			who = "shards " + names(p.in, members) + ", which are to be together, need"
		}
		where := "any server"
		if p.allowed[k] != nil {
			where = "any of the servers that it may run on"
		}
		c := Conflict{Kind: KindCPU, Shards: members}
		switch {
		case p.cpu[k] > cpu:
			c.Text = fmt.Sprintf("%s %s, more than %s has (%s)", who, cpus(p.cpu[k]), where, cpus(cpu))
			c.Mend = fmt.Sprintf("a server of %s and %s", cpus(p.cpu[k]), bytes(p.memory[k]))
		case p.memory[k] > memory:
			c.Kind = KindMemory
			c.Text = fmt.Sprintf("%s %s of memory, more than %s has (%s)", who, bytes(p.memory[k]), where, bytes(memory))
			c.Mend = fmt.Sprintf("server memory %s", bytes(p.memory[k]))
		default:
			c.Text = fmt.Sprintf("%s %s and %s, and %s has not both", who, cpus(p.cpu[k]), bytes(p.memory[k]), strings.Replace(where, "any", "one", 1))
			c.Mend = fmt.Sprintf("a server of %s and %s", cpus(p.cpu[k]), bytes(p.memory[k]))
		}
		found = append(found, c)
	}
	return found
}

// usual is the largest server, of which more would help most.
func (p diagnosis) usual() (cpu, memory int64) {
	best := 0
	for s := range p.s {
		if p.capCPU[s] > p.capCPU[best] || p.capCPU[s] == p.capCPU[best] && p.capMemory[s] > p.capMemory[best] {
			best = s
		}
	}
	return p.capCPU[best], p.capMemory[best]
}

// more says "2 more servers of 4 CPUs and 8 GiB".
func (p diagnosis) more(n int64) string {
	cpu, memory := p.usual()
	if n == 1 {
		return fmt.Sprintf("1 more server of %s and %s", cpus(cpu), bytes(memory))
	}
	return fmt.Sprintf("%d more servers of %s and %s", n, cpus(cpu), bytes(memory))
}

// tooMany compares what all shards need with what all servers have, and counts
// the shards of which no two fit on one server.
func (p diagnosis) tooMany() []Conflict {
	var found []Conflict
	resource := func(kind Kind, need, have []int64, what func(int64) string, each int64, more string) {
		total, there := sum(need), sum(have)
		if total > there {
			n := (total - there + each - 1) / each
			found = append(found, Conflict{Kind: kind, Text: fmt.Sprintf("all shards together need %s%s, all %d servers together have %s", what(total), more, p.s, what(there)),
				Mend: p.more(n)})
			return
		}
		largest, large := slices.Max(have), []int(nil)
		for k, x := range need {
			if 2*x > largest {
				large = append(large, k)
			}
		}
		if len(large) > p.s {
			found = append(found, Conflict{kind, p.expand(large), fmt.Sprintf("%d shards need more than half of the largest server's %s%s each, there are %d servers", len(large), what(largest), more, p.s),
				p.more(int64(len(large) - p.s))})
		}
	}
	cpu, memory := p.usual()
	resource(KindCPU, p.cpu, p.capCPU, cpus, cpu, "")
	resource(KindMemory, p.memory, p.capMemory, bytes, memory, " of memory")
	return found
}

// expand lists the shards of nodes.
func (p diagnosis) expand(nodes []int) []int {
	var list []int
	for _, k := range nodes {
		list = append(list, p.members[k]...)
	}
	return list
}

// maxPools is how many lists of allowed servers are looked at.
const maxPools = 256

// pinned compares what shards need that may run on a few servers only with what
// these have.
func (p diagnosis) pinned() []Conflict {
	var found []Conflict
	seen := map[string]bool{}
	for _, pool := range p.allowed {
		if pool == nil || len(seen) >= maxPools {
			continue
		}
		key := fmt.Sprint(pool)
		if seen[key] {
			continue
		}
		seen[key] = true
		var cpu, memory, haveCPU, haveMemory int64
		var servers []string
		var nodes []int
		for s, in := range pool {
			if in {
				haveCPU, haveMemory = haveCPU+p.capCPU[s], haveMemory+p.capMemory[s]
				servers = append(servers, p.in.Servers[s].Name)
			}
		}
		for k, other := range p.allowed {
			if other != nil && within(other, pool) {
				cpu, memory = cpu+p.cpu[k], memory+p.memory[k]
				nodes = append(nodes, k)
			}
		}
		shards := p.expand(nodes)
		text := fmt.Sprintf("%s may run on %s only, and together need", names(p.in, shards), strings.Join(servers, ", "))
		if cpu > haveCPU {
			found = append(found, Conflict{KindServers, shards, fmt.Sprintf("%s %s of %s", text, cpus(cpu), cpus(haveCPU)), fmt.Sprintf("%s more there, or more servers in their lists", cpus(cpu-haveCPU))})
		}
		if memory > haveMemory {
			found = append(found, Conflict{KindServers, shards, fmt.Sprintf("%s %s of memory of %s", text, bytes(memory), bytes(haveMemory)), fmt.Sprintf("%s more there, or more servers in their lists", bytes(memory-haveMemory))})
		}
		if len(servers) == 1 {
			found = append(found, p.pinnedPairs(nodes, servers[0])...)
		}
	}
	return found
}

// pinnedPairs finds shards pinned to the same server that never share one.
func (p diagnosis) pinnedPairs(nodes []int, server string) []Conflict {
	for x, a := range nodes {
		for _, b := range nodes[x+1:] {
			if kind := p.clash(a, b); kind != "" {
				shards := p.expand([]int{a, b})
				return []Conflict{{kind, shards, fmt.Sprintf("%s are pinned to server %s and never share a server (%s)", names(p.in, shards), server, kind), "one of them pinned elsewhere"}}
			}
		}
	}
	return nil
}

// within reports whether every server of a is in b.
func within(a, b []bool) bool {
	for s := range a {
		if a[s] && !b[s] {
			return false
		}
	}
	return true
}

// sum adds up.
func sum(list []int64) int64 {
	var total int64
	for _, x := range list {
		total += x
	}
	return total
}
