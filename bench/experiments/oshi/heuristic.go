package oshi

import (
	"math"
	"slices"

	"github.com/weft-sdn/weft/pce/assign"
)

// A paperRouting places demands as the paper's own program for flow assignment does.
type paperRouting struct {
	p     *assign.Problem
	out   [][]int // links that leave a node
	load  []float64
	paths [][]int
}

func newPaperRouting(p *assign.Problem) *paperRouting {
	r := &paperRouting{p: p, out: make([][]int, p.Nodes), load: make([]float64, len(p.Links)), paths: make([][]int, len(p.Demands))}
	for i, l := range p.Links {
		r.out[l.From] = append(r.out[l.From], i)
	}
	return r
}

// shortest returns the path of least length; nil if there is none over links of finite length.
func (r *paperRouting) shortest(from, to int, length func(link int) float64) []int {
	dist, via, done := make([]float64, r.p.Nodes), make([]int, r.p.Nodes), make([]bool, r.p.Nodes)
	for n := range dist {
		dist[n] = math.Inf(1)
	}
	dist[from] = 0
	for {
		at := -1
		for n, d := range dist {
			if !done[n] && !math.IsInf(d, 1) && (at < 0 || d < dist[at]) {
				at = n
			}
		}
		if at < 0 {
			return nil
		}
		if at == to {
			break
		}
		done[at] = true
		for _, i := range r.out[at] {
			if far := r.p.Links[i].To; dist[at]+length(i) < dist[far] {
				dist[far], via[far] = dist[at]+length(i), i
			}
		}
	}
	var path []int
	for at := to; at != from; at = r.p.Links[via[at]].From {
		path = append(path, via[at])
	}
	slices.Reverse(path)
	return path
}

// add gives a demand a path, whose load counts sign times.
func (r *paperRouting) add(i int, path []int, sign float64) {
	for _, l := range path {
		r.load[l] += sign * r.p.Demands[i].Rate
	}
}

// fewest gives all demands the paths with the fewest links, whatever room these have.
func (r *paperRouting) fewest() {
	for i, d := range r.p.Demands {
		r.paths[i] = r.shortest(d.From, d.To, func(int) float64 { return 1 })
		r.add(i, r.paths[i], 1)
	}
}

// heuristic is the paper's: each demand in turn takes the path of least 1/(C−f) over links with
// room; then each is taken out and put on the path of least C/(C−f)² over links that have
// more than room, if the mean delay Σ f/(C−f) falls, until it falls no more.
func (r *paperRouting) heuristic() {
	for i, d := range r.p.Demands {
		r.paths[i] = r.shortest(d.From, d.To, func(l int) float64 {
			rest := r.p.Links[l].Capacity - r.load[l]
			if rest < d.Rate {
				return math.Inf(1)
			}
			return 1 / rest
		})
		r.add(i, r.paths[i], 1)
	}
	for delay := r.packets(); ; {
		for i, d := range r.p.Demands {
			if r.paths[i] == nil {
				continue
			}
			before := r.on(r.paths[i])
			r.add(i, r.paths[i], -1)
			without := r.on(r.paths[i])
			path := r.shortest(d.From, d.To, func(l int) float64 {
				rest := r.p.Links[l].Capacity - r.load[l]
				if rest <= d.Rate {
					return math.Inf(1)
				}
				return r.p.Links[l].Capacity / (rest * rest)
			})
			if path != nil {
				there := r.on(path)
				if r.add(i, path, 1); r.on(path)-there < before-without {
					r.paths[i] = path
					continue
				}
				r.add(i, path, -1)
			}
			r.add(i, r.paths[i], 1)
		}
		now := r.packets()
		if now >= delay*(1-1e-6) {
			return
		}
		delay = now
	}
}

// packets is Σ f/(C−f) over all links.
func (r *paperRouting) packets() (sum float64) {
	for l := range r.load {
		sum += r.on([]int{l})
	}
	return sum
}

// on is that sum over some links.
func (r *paperRouting) on(links []int) (sum float64) {
	for _, l := range links {
		if rest := r.p.Links[l].Capacity - r.load[l]; rest > 0 {
			sum += r.load[l] / rest
		} else {
			return math.Inf(1)
		}
	}
	return sum
}
