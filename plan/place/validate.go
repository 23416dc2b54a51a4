package place

import (
	"fmt"
	"math"
)

// What an instance may have at most.
const (
	MaxShards  = 20000
	MaxServers = 2048
	MaxEdges   = 2_000_000
	maxTable   = 16 << 20 // shards times servers
	maxDemand  = 1 << 50  // of a shard, capacity of a server
	maxWeight  = 1e12     // of edges and paths; delays, deadlines and moves too
	maxMembers = 4 << 20  // of paths, and of sets
)

// Validate says whether the instance means something: an *InvalidError lists
// all that is wrong. If it does, but its constraints contradict each other or
// need more than there is, whatever the placement, it is an *InfeasibleError
// that says which and what would make it feasible. An instance that passes may
// still have no placement.
func (in *Instance) Validate() error {
	v := validator{in: in}
	v.sizes()
	if len(v.problems) == 0 {
		v.shards()
		v.servers()
		v.edges()
		v.paths()
		v.delays()
		v.sets("apart", in.Apart)
		v.sets("apart-domains", in.ApartDomains)
		v.sets("together", in.Together)
		v.current()
	}
	if len(v.problems) > 0 {
		return &InvalidError{v.problems}
	}
	if conflicts := contradictions(in); len(conflicts) > 0 {
		return &InfeasibleError{Conflicts: conflicts, Proven: true}
	}
	return nil
}

// maxProblems is how many are listed.
const maxProblems = 20

// validator collects what is wrong.
type validator struct {
	in       *Instance
	problems []string
}

func (v *validator) add(format string, args ...any) {
	switch {
	case len(v.problems) < maxProblems:
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	case len(v.problems) == maxProblems:
		v.problems = append(v.problems, "and more")
	}
}

// sizes checks what there is to bound all that follows.
func (v *validator) sizes() {
	in := v.in
	count := func(what string, n, most int) {
		if n > most {
			v.add("%d %s: at most %d", n, what, most)
		}
	}
	if len(in.Shards) == 0 {
		v.add("no shards: nothing to place")
	}
	if len(in.Servers) == 0 {
		v.add("no servers: give at least one")
	}
	count("shards", len(in.Shards), MaxShards)
	count("servers", len(in.Servers), MaxServers)
	count("edges", len(in.Edges), MaxEdges)
	count("shards times servers", len(in.Shards)*len(in.Servers), maxTable)
	members := 0
	for _, p := range in.Paths {
		members += len(p.Shards) + 1
	}
	for _, sets := range [][][]int{in.Apart, in.ApartDomains, in.Together} {
		for _, set := range sets {
			members += len(set) + 1
		}
	}
	for _, s := range in.Shards {
		members += len(s.Servers)
	}
	count("members of paths, sets and lists of servers", members, maxMembers)
}

// number checks a quantity that is finite and not negative.
func (v *validator) number(n float64, what string, args ...any) {
	if math.IsNaN(n) || n < 0 || n > maxWeight {
		v.add("%s is %g: want 0 to %g", fmt.Sprintf(what, args...), n, float64(maxWeight))
	}
}

func (v *validator) shards() {
	names := make(map[string]int, len(v.in.Shards))
	for i, s := range v.in.Shards {
		if s.Name == "" {
			v.add("shard %d has no name", i)
		} else if j, there := names[s.Name]; there {
			v.add("shards %d and %d are both called %s", j, i, s.Name)
		}
		names[s.Name] = i
		if s.CPU < 0 || s.CPU > maxDemand {
			v.add("shard %s needs %d thousandths of a CPU: want 0 to %d", s.Name, s.CPU, int64(maxDemand))
		}
		if s.Memory < 0 || s.Memory > maxDemand {
			v.add("shard %s needs %d bytes: want 0 to %d", s.Name, s.Memory, int64(maxDemand))
		}
		if s.Class > Compute {
			v.add("shard %s has the unknown class %d", s.Name, uint8(s.Class))
		}
		v.number(s.Move, "the cost of moving shard %s", s.Name)
		if s.Servers != nil && len(s.Servers) == 0 {
			v.add("shard %s may run on no server: list some, or leave the list out", s.Name)
		}
		for _, t := range s.Servers {
			if t < 0 || t >= len(v.in.Servers) {
				v.add("shard %s is to run on server %d, there are %d, from 0", s.Name, t, len(v.in.Servers))
			}
		}
	}
}

func (v *validator) servers() {
	names := make(map[string]int, len(v.in.Servers))
	for i, s := range v.in.Servers {
		if s.Name == "" {
			v.add("server %d has no name", i)
		} else if j, there := names[s.Name]; there {
			v.add("servers %d and %d are both called %s", j, i, s.Name)
		}
		names[s.Name] = i
		if s.CPU <= 0 || s.CPU > maxDemand {
			v.add("server %s has %d thousandths of a CPU: want 1 to %d, or leave it out", s.Name, s.CPU, int64(maxDemand))
		}
		if s.Memory <= 0 || s.Memory > maxDemand {
			v.add("server %s has %d bytes of memory: want 1 to %d, or leave it out", s.Name, s.Memory, int64(maxDemand))
		}
	}
}

// reference checks an index of a shard.
func (v *validator) reference(i int, what string, args ...any) bool {
	if i >= 0 && i < len(v.in.Shards) {
		return true
	}
	v.add("%s names shard %d, there are %d, from 0", fmt.Sprintf(what, args...), i, len(v.in.Shards))
	return false
}

func (v *validator) edges() {
	for k, e := range v.in.Edges {
		if !v.reference(e.A, "edge %d", k) || !v.reference(e.B, "edge %d", k) {
			continue
		}
		if e.A == e.B {
			v.add("edge %d joins shard %s with itself: leave it out, it never crosses servers", k, v.in.Shards[e.A].Name)
		}
		v.number(e.Weight, "the weight of edge %d, %s to %s,", k, v.in.Shards[e.A].Name, v.in.Shards[e.B].Name)
	}
}

func (v *validator) paths() {
	for k, p := range v.in.Paths {
		if len(p.Shards) == 0 {
			v.add("path %d (%s) has no shards", k, p.Name)
		}
		seen := make(map[int]bool, len(p.Shards))
		for _, i := range p.Shards {
			if !v.reference(i, "path %d (%s)", k, p.Name) {
				continue
			}
			if seen[i] {
				v.add("path %d (%s) comes back to shard %s: an event path is not cyclic; cut it where it returns, or count the way back as another path", k, p.Name, v.in.Shards[i].Name)
				break
			}
			seen[i] = true
		}
		v.number(p.Weight, "the weight of path %d (%s)", k, p.Name)
		v.number(p.Deadline, "the deadline of path %d (%s)", k, p.Name)
	}
}

func (v *validator) delays() {
	d := v.in.Delay
	if d == nil {
		return
	}
	if len(d) != len(v.in.Servers) {
		v.add("delays of %d servers, there are %d", len(d), len(v.in.Servers))
		return
	}
	for s, row := range d {
		if len(row) != len(d) {
			v.add("server %s has %d delays, want one for each of %d servers", v.in.Servers[s].Name, len(row), len(d))
			return
		}
	}
	for s, row := range d {
		for t, x := range row {
			v.number(x, "the delay from server %s to %s", v.in.Servers[s].Name, v.in.Servers[t].Name)
			switch {
			case s == t && x != 0:
				v.add("the delay from server %s to itself is %g µs: want 0", v.in.Servers[s].Name, x)
			case t > s && x != d[t][s] && !math.IsNaN(x):
				v.add("the delay from server %s to %s is %g µs, back it is %g µs: give the mean of both", v.in.Servers[s].Name, v.in.Servers[t].Name, x, d[t][s])
			}
		}
	}
}

func (v *validator) sets(what string, sets [][]int) {
	for k, set := range sets {
		seen := make(map[int]bool, len(set))
		for _, i := range set {
			if v.reference(i, "set %d of %s", k, what) && seen[i] {
				v.add("set %d of %s names shard %s twice", k, what, v.in.Shards[i].Name)
			}
			seen[i] = true
		}
	}
}

func (v *validator) current() {
	c := v.in.Current
	if c == nil {
		return
	}
	if len(c) != len(v.in.Shards) {
		v.add("the current placement is of %d shards, there are %d", len(c), len(v.in.Shards))
		return
	}
	for i, s := range c {
		if s < -1 || s >= len(v.in.Servers) {
			v.add("shard %s is on server %d now, there are %d, from 0; -1 is nowhere", v.in.Shards[i].Name, s, len(v.in.Servers))
		}
	}
}
