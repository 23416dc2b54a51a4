package place

import (
	"context"
	"fmt"
	"slices"
)

// How much is tried to find out why there is no placement.
const (
	explainRuns    = 4
	explainSteps   = 30_000
	explainServers = 64 // more servers, at most
	explainProbes  = 64 // members of a family, each left out once
)

// conflictsOf turns violations into conflicts.
func conflictsOf(broken []Violation) []Conflict {
	var out []Conflict
	for _, v := range broken {
		out = append(out, Conflict{Kind: v.Kind, Shards: v.Shards, Text: v.Text})
	}
	return out
}

// explain says why no placement was found: which family of constraints is in
// the way, which few of its members suffice for that, and what would help.
// nearest is the placement that breaks least.
func explain(ctx context.Context, in *Instance, nearest []int, proven bool) *InfeasibleError {
	_, broken := Check(in, nearest)
	e := &InfeasibleError{Proven: proven, Nearest: nearest, Violations: broken}
	x := explainer{ctx: ctx, steps: max(explainSteps, 200*len(in.Shards))}
	for _, f := range families {
		if ctx.Err() != nil {
			break
		}
		n := f.members(in)
		if n == 0 {
			continue
		}
		if at := x.solve(f.keep(in, nil)); at != nil {
			e.Conflicts = append(e.Conflicts, x.familyConflict(in, f, n, at))
		}
	}
	if mend := x.capacity(in); mend != "" {
		e.Conflicts = append(e.Conflicts, Conflict{Kind: KindCPU, Text: fmt.Sprintf("the %d servers are too small or too few for all constraints together", len(in.Servers)), Mend: mend})
	}
	if len(e.Conflicts) == 0 {
		e.Conflicts = conflictsOf(broken)
	}
	return e
}

// explainer tries instances.
type explainer struct {
	ctx   context.Context
	steps int
}

// solve returns a placement, nil if none is found.
func (x *explainer) solve(in *Instance) []int {
	if in.Validate() != nil {
		return nil
	}
	p := compile(in)
	r, err := heuristic(x.ctx, p, Options{Runs: explainRuns, Steps: x.steps})
	if err != nil || r.violation > satisfied {
		return nil
	}
	return p.shards(r.at)
}

// family is a kind of constraints that can be left out.
type family struct {
	kind    Kind
	name    string
	members func(in *Instance) int
	// keep returns the instance with only some of the family's members.
	keep func(in *Instance, members []int) *Instance
	// shards are those that a member concerns.
	shards func(in *Instance, member int) []int
}

// families are all that can be left out; capacities are looked at apart.
var families = []family{
	{KindDeadline, "deadlines",
		func(in *Instance) int { return len(in.Paths) },
		func(in *Instance, members []int) *Instance {
			out := *in
			out.Paths = slices.Clone(in.Paths)
			for k := range out.Paths {
				if !slices.Contains(members, k) {
					out.Paths[k].Deadline = 0
				}
			}
			return &out
		},
		func(in *Instance, k int) []int { return in.Paths[k].Shards }},
	{KindApart, "sets of shards on different servers",
		func(in *Instance) int { return len(in.Apart) },
		func(in *Instance, members []int) *Instance {
			out := *in
			out.Apart = pick(in.Apart, members)
			return &out
		},
		func(in *Instance, k int) []int { return in.Apart[k] }},
	{KindApartDomains, "sets of shards in different power domains",
		func(in *Instance) int { return len(in.ApartDomains) },
		func(in *Instance, members []int) *Instance {
			out := *in
			out.ApartDomains = pick(in.ApartDomains, members)
			return &out
		},
		func(in *Instance, k int) []int { return in.ApartDomains[k] }},
	{KindTogether, "sets of shards on one server",
		func(in *Instance) int { return len(in.Together) },
		func(in *Instance, members []int) *Instance {
			out := *in
			out.Together = pick(in.Together, members)
			return &out
		},
		func(in *Instance, k int) []int { return in.Together[k] }},
	{KindServers, "shards that may run on some servers only",
		func(in *Instance) int {
			return count(in, func(s *Shard) bool { return s.Servers != nil })
		},
		func(in *Instance, members []int) *Instance {
			return change(in, members, func(s *Shard) bool { return s.Servers != nil }, func(s *Shard) { s.Servers = nil })
		},
		func(in *Instance, k int) []int {
			return []int{nth(in, k, func(s *Shard) bool { return s.Servers != nil })}
		}},
	{KindClasses, "compute shards, kept from real-time and latency-sensitive ones",
		func(in *Instance) int { return count(in, func(s *Shard) bool { return s.Class == Compute }) },
		func(in *Instance, members []int) *Instance {
			return change(in, members, func(s *Shard) bool { return s.Class == Compute }, func(s *Shard) { s.Class = NoClass })
		},
		func(in *Instance, k int) []int {
			return []int{nth(in, k, func(s *Shard) bool { return s.Class == Compute })}
		}},
	{KindPower, "shards of parts of the network with power sources of their own",
		func(in *Instance) int { return count(in, func(s *Shard) bool { return s.Domain != "" }) },
		func(in *Instance, members []int) *Instance {
			return change(in, members, func(s *Shard) bool { return s.Domain != "" }, func(s *Shard) { s.Domain = "" })
		},
		func(in *Instance, k int) []int {
			return []int{nth(in, k, func(s *Shard) bool { return s.Domain != "" })}
		}},
}

// pick keeps some sets.
func pick(sets [][]int, members []int) [][]int {
	var out [][]int
	for _, k := range members {
		out = append(out, sets[k])
	}
	return out
}

// count counts shards.
func count(in *Instance, of func(*Shard) bool) int {
	n := 0
	for i := range in.Shards {
		if of(&in.Shards[i]) {
			n++
		}
	}
	return n
}

// nth is the index of the n-th of certain shards.
func nth(in *Instance, n int, of func(*Shard) bool) int {
	for i := range in.Shards {
		if of(&in.Shards[i]) {
			if n--; n < 0 {
				return i
			}
		}
	}
	return -1
}

// change changes certain shards, all but the members.
func change(in *Instance, members []int, of func(*Shard) bool, f func(*Shard)) *Instance {
	out := *in
	out.Shards = slices.Clone(in.Shards)
	k := 0
	for i := range out.Shards {
		if of(&in.Shards[i]) {
			if !slices.Contains(members, k) {
				f(&out.Shards[i])
			}
			k++
		}
	}
	return &out
}

// familyConflict describes a family without which there is a placement: at.
func (x *explainer) familyConflict(in *Instance, f family, n int, at []int) Conflict {
	c := Conflict{Kind: f.kind, Text: fmt.Sprintf("of the %d %s, some are too many beside the other constraints", n, f.name), Mend: "them left out"}
	if n <= explainProbes {
		few := make([]int, n)
		for k := range few {
			few[k] = k
		}
		for k := range n { // as long as there is none without it, it is not needed for there to be none
			if rest := slices.DeleteFunc(slices.Clone(few), func(m int) bool { return m == k }); x.ctx.Err() == nil && x.solve(f.keep(in, rest)) == nil {
				few = rest
			}
		}
		for _, k := range few {
			c.Shards = append(c.Shards, f.shards(in, k)...)
		}
		if len(few) < n {
			c.Text = fmt.Sprintf("%d of the %d %s are too many beside the other constraints: those of %s", len(few), n, f.name, names(in, c.Shards))
		} else {
			c.Text = fmt.Sprintf("the %d %s, of %s, are too many beside the other constraints", n, f.name, names(in, c.Shards))
		}
	}
	if f.kind == KindDeadline {
		late := 0.0
		for k, path := range in.Paths {
			if t := PathLatency(in, at, k); path.Deadline > 0 && t > path.Deadline {
				late = max(late, t)
			}
		}
		c.Mend = fmt.Sprintf("deadlines of %.6g µs", late)
	}
	return c
}

// capacity says how many more servers, or how much larger ones, would do.
func (x *explainer) capacity(in *Instance) string {
	p := compile(in)
	largest := 0
	for s := range p.s {
		if p.capCPU[s] > p.capCPU[largest] {
			largest = s
		}
	}
	for n := 1; n <= explainServers && in.Delay == nil && x.ctx.Err() == nil; n *= 2 {
		if x.solve(moreServers(in, largest, n)) == nil {
			continue
		}
		low := n / 2 // not enough
		for n-low > 1 {
			if mid := (low + n) / 2; x.solve(moreServers(in, largest, mid)) != nil {
				n = mid
			} else {
				low = mid
			}
		}
		return diagnosis{p}.more(int64(n))
	}
	for _, percent := range []int64{105, 110, 125, 150, 200, 400} {
		if x.ctx.Err() != nil {
			return ""
		}
		out := *in
		out.Servers = slices.Clone(in.Servers)
		for s := range out.Servers {
			out.Servers[s].CPU, out.Servers[s].Memory = out.Servers[s].CPU*percent/100, out.Servers[s].Memory*percent/100
		}
		if x.solve(&out) != nil {
			return fmt.Sprintf("servers %d %% larger, the largest with %s and %s", percent-100, cpus(out.Servers[largest].CPU), bytes(out.Servers[largest].Memory))
		}
	}
	return ""
}

// moreServers adds copies of a server, in power domains of their own.
func moreServers(in *Instance, like, n int) *Instance {
	out := *in
	out.Servers = slices.Clone(in.Servers)
	for k := range n {
		s := in.Servers[like]
		s.Name, s.Domain = fmt.Sprintf("%s+%d", s.Name, k+1), ""
		out.Servers = append(out.Servers, s)
	}
	return &out
}
