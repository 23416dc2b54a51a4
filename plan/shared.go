package plan

import (
	"fmt"
	"slices"
)

// sharedMemory checks that only workers of one machine reach each other by
// shared memory.
func (j *judge) sharedMemory() {
	p := j.plan
	apart := slices.IndexFunc(p.Workers, func(w Worker) bool { return w.Machine != p.Workers[0].Machine })
	if apart < 0 {
		return
	}
	const advice = "the memory of a machine is its own"
	if p.Events == SHM {
		j.fail("events", "events: shm, but worker %s is %s, and %s %s: %s; take grpc, ws, rest or nats",
			p.Workers[0].Name, p.Workers[0].where(), p.Workers[apart].Name, p.Workers[apart].where(), advice)
	}
	told := map[int]bool{} // by link; -1 is the plan's transport
	for i := range p.Workers {
		from := &p.Workers[i]
		ways := j.waysFrom(from.Name)
		for k := range p.Workers {
			to := &p.Workers[k]
			n, ok := ways[to.Name]
			if !ok {
				n = ways["*"]
			}
			transport, path := p.Transport, "transport"
			if n >= 0 {
				transport, path = p.Links[n].Transport, fmt.Sprintf("links[%d].transport", n)
			}
			if transport == SHM && from.Machine != to.Machine && !told[n] {
				told[n] = true
				j.fail(path, "%s: shm, but worker %s is %s, and %s %s: %s; take another transport from %s to %s, such as grpc",
					path, from.Name, from.where(), to.Name, to.where(), advice, from.Name, to.Name)
			}
		}
	}
}

// waysFrom returns, for what a worker sends, the index in Links of the link to
// each worker that is named in one, and that to all others as "*"; -1 is none.
func (j *judge) waysFrom(worker string) map[string]int {
	ways := map[string]int{}
	for i, l := range j.plan.Links {
		if l.From != "*" && l.From != worker {
			continue
		}
		if _, before := ways[l.To]; !before {
			ways[l.To] = i
		}
		if l.To == "*" {
			return ways
		}
	}
	ways["*"] = -1
	return ways
}

// where says on which machine a worker runs.
func (w *Worker) where() string {
	if w.Machine == "" {
		return "on the supervisor's machine"
	}
	return "on machine " + w.Machine
}
