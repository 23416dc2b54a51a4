package planner

import (
	"math"
	"time"

	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/place"
)

// placeReader reads an instance of the placement problem. Shards and servers are
// named; the rest of the file refers to them, and is read after them.
type placeReader struct {
	*keyed
	in              place.Instance
	shards, servers []string
	later           []func()
}

// ReadInstance reads an instance of the placement problem from a file; its form
// is in the help of weft plan place.
func ReadInstance(file string) (*place.Instance, error) {
	var p *placeReader
	err := readKeyed(file, "placement instance", func(r *keyed) []key {
		p = &placeReader{keyed: r}
		return []key{
			{"servers", p.readServers}, {"shards", p.readShards},
			{"edges", p.each("edges", p.edge)}, {"paths", p.each("paths", p.path)},
			{"delay", func(path string, v document.Value) { p.after(func() { p.delay(path, v) }) }},
			{"delays", p.each("delays", p.between)},
			{"apart", p.each("apart", p.set(&p.in.Apart))}, {"apart_domains", p.each("apart_domains", p.set(&p.in.ApartDomains))},
			{"together", p.each("together", p.set(&p.in.Together))},
		}
	}, func(*keyed) {
		for _, read := range p.later {
			read()
		}
	})
	if err != nil {
		return nil, err
	}
	return &p.in, nil
}

// after reads something when all shards and servers are known.
func (p *placeReader) after(read func()) { p.later = append(p.later, read) }

func (p *placeReader) readServers(path string, v document.Value) {
	p.named(path, v, "a name for each server with its keys below", func(name, path string, v document.Value) {
		s := place.Server{Name: name}
		cpu := 0.0
		before := len(p.mistakes)
		p.keys(path, v, key{"cpu", p.number(&cpu, 0.001, 1e6)}, key{"memory", p.memory(&s.Memory)}, key{"domain", p.word(&s.Domain)})
		if s.CPU = int64(math.Round(cpu * 1000)); len(p.mistakes) == before && (s.CPU == 0 || s.Memory == 0) {
			p.fail(v.Line, "%s: want cpu and memory, such as {cpu: 4, memory: 8GiB}", path)
		}
		p.in.Servers, p.servers = append(p.in.Servers, s), append(p.servers, name)
	})
}

func (p *placeReader) readShards(path string, v document.Value) {
	p.named(path, v, "a name for each shard with its keys below", func(name, path string, v document.Value) {
		i := len(p.in.Shards)
		p.in.Shards, p.shards = append(p.in.Shards, place.Shard{Name: name}), append(p.shards, name)
		s := place.Shard{Name: name}
		cpu, class := 0.0, ""
		p.keys(path, v,
			key{"cpu", p.number(&cpu, 0, 1e6)}, key{"memory", p.memory(&s.Memory)}, key{"domain", p.word(&s.Domain)},
			key{"move", p.number(&s.Move, 0, 1e12)},
			key{"class", func(path string, v document.Value) {
				for c := place.NoClass; c <= place.Compute; c++ {
					if v.Text == c.String() {
						s.Class, class = c, v.Text
					}
				}
				if class == "" {
					p.fail(v.Line, "%s: want any, real-time, latency-sensitive or compute, not %s", path, v.Short())
				}
			}},
			key{"servers", func(path string, v document.Value) {
				p.after(func() { p.in.Shards[i].Servers = p.list(path, v, p.servers, "servers") })
			}},
			key{"on", func(path string, v document.Value) {
				p.after(func() {
					if at, ok := p.index(path, v, p.servers); ok {
						p.now()[i] = at
					}
				})
			}})
		s.CPU = int64(math.Ceil(cpu*1000 - 1e-9))
		p.in.Shards[i] = s
	})
}

// now returns where shards are now; nowhere, unless the file says it.
func (p *placeReader) now() []int {
	if p.in.Current == nil {
		p.in.Current = make([]int, len(p.in.Shards))
		for i := range p.in.Current {
			p.in.Current[i] = -1
		}
	}
	return p.in.Current
}

// each reads the items of a list when all shards and servers are known.
func (p *placeReader) each(name string, read func(path string, v document.Value)) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Kind != document.List {
			p.fail(v.Line, "%s: want a list, not %s", path, v.Short())
			return
		}
		p.after(func() {
			for _, item := range v.Items {
				read(name, item)
			}
		})
	}
}

// list reads a list of names.
func (p *placeReader) list(path string, v document.Value, known []string, what string) (list []int) {
	if v.Kind != document.List {
		p.fail(v.Line, "%s: want a list of %s, not %s", path, what, v.Short())
		return nil
	}
	for _, item := range v.Items {
		if i, ok := p.index(path, item, known); ok {
			list = append(list, i)
		}
	}
	return list
}

// pair reads a list of two names.
func (p *placeReader) pair(path string, v document.Value, known []string, what string, to *[2]int) {
	if list := p.list(path, v, known, what); len(list) == 2 {
		*to = [2]int{list[0], list[1]}
	} else if len(list) == len(v.Items) {
		p.fail(v.Line, "%s: %d %s; want two", path, len(list), what)
	}
}

func (p *placeReader) edge(path string, v document.Value) {
	e := place.Edge{Weight: -1}
	ends := [2]int{-1, -1}
	p.keys(path, v,
		key{"between", func(path string, v document.Value) { p.pair(path, v, p.shards, "shards", &ends) }},
		key{"weight", p.number(&e.Weight, 0, 1e12)})
	if e.A, e.B = ends[0], ends[1]; e.A >= 0 && e.A == e.B {
		p.fail(v.Line, "%s: between a shard and itself; leave it out, it never crosses servers", path)
	}
	p.needs(path, v, "between", "weight")
	p.in.Edges = append(p.in.Edges, e)
}

func (p *placeReader) path(path string, v document.Value) {
	var x place.Path
	deadline := 0.0
	p.keys(path, v,
		key{"name", p.word(&x.Name)}, key{"weight", p.number(&x.Weight, 0, 1e12)},
		key{"shards", func(path string, v document.Value) { x.Shards = p.list(path, v, p.shards, "shards") }},
		key{"deadline", p.span(&deadline)})
	p.needs(path, v, "shards")
	x.Deadline = deadline * 1e6
	p.in.Paths = append(p.in.Paths, x)
}

// delay reads the delay between any two servers.
func (p *placeReader) delay(path string, v document.Value) {
	d := 0.0
	p.span(&d)(path, v)
	p.matrix(d * 1e6)
}

// between reads the delay between two servers.
func (p *placeReader) between(path string, v document.Value) {
	ends, d := [2]int{-1, -1}, 0.0
	p.keys(path, v,
		key{"between", func(path string, v document.Value) { p.pair(path, v, p.servers, "servers", &ends) }},
		key{"delay", p.span(&d)})
	if p.needs(path, v, "between", "delay"); ends[0] < 0 {
		return
	}
	if ends[0] == ends[1] {
		p.fail(v.Line, "%s: between a server and itself there is no delay", path)
		return
	}
	if p.in.Delay == nil {
		p.matrix(0)
	}
	p.in.Delay[ends[0]][ends[1]], p.in.Delay[ends[1]][ends[0]] = d*1e6, d*1e6
}

// matrix makes the delays between servers, in microseconds.
func (p *placeReader) matrix(us float64) {
	p.in.Delay = make([][]float64, len(p.servers))
	for s := range p.in.Delay {
		p.in.Delay[s] = make([]float64, len(p.servers))
		for t := range p.in.Delay[s] {
			if s != t {
				p.in.Delay[s][t] = us
			}
		}
	}
}

// set reads a set of shards.
func (p *placeReader) set(to *[][]int) func(string, document.Value) {
	return func(path string, v document.Value) { *to = append(*to, p.list(path, v, p.shards, "shards")) }
}

// needs reports keys that are missing.
func (p *placeReader) needs(path string, v document.Value, keys ...string) {
	for _, k := range keys {
		if _, ok := v.Get(k); !ok && v.Kind == document.Mapping {
			p.fail(v.Line, "%s: no %s", path, k)
		}
	}
}

// memory reads an amount of memory.
func (p *placeReader) memory(to *int64) func(string, document.Value) {
	return func(path string, v document.Value) {
		b, err := plan.ParseBytes(v.Text)
		if err != nil || b > 1<<50 {
			p.fail(v.Line, "%s: want an amount of memory up to 1 PiB, such as 512MiB, not %s", path, v.Short())
			return
		}
		*to = int64(b)
	}
}

// longestSearch bounds --time.
const longestSearch = 24 * time.Hour
