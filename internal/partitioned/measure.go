// Package partitioned measures how long a partitioned network takes until all
// partitions have their routes, after a link has failed and from the start.
//
// The planner and experiments import it.
package partitioned

import (
	"context"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/services/paths"
)

// Times is how long a partitioned network takes after a failure, or at its
// start, until all partitions have their routes, in ms, each partition having a process to
// itself.
type Times struct {
	Partitions int     `json:"partitions"`
	Mean       float64 `json:"mean_ms"` // the sum of the three below
	Max        float64 `json:"max_ms"`
	Inside     float64 `json:"inside_ms"`  // mean: the slowest partition's paths inside
	Messages   float64 `json:"message_ms"` // mean: what partitions tell each other
	Outside    float64 `json:"outside_ms"` // mean: the slowest partition's routes to the others
	Told       float64 `json:"told"`       // mean: partitions whose summary changed
	Message    float64 `json:"each_ms"`    // one message: encoded, over TCP, decoded
	Failures   int     `json:"failures"`   // measured
}

// tries is how often each thing is measured: the least counts, which is that
// without what the runtime was doing beside.
const tries = 3

// MeasureFailures takes down random links of a partitioned network, one after
// the other, each mended before the next, and measures what each partition has
// to do. The partitions are worked on one after the other, their processor time is
// taken, and the slowest of each step counts: that is what takes so long where
// each has a processor to itself, whatever else this machine has to do. The same
// seed takes down the same links.
func MeasureFailures(ctx context.Context, g *partition.Graph, r partition.Result, failures int, seed uint64) (*Times, error) {
	links := Links(g)
	h := linked(g, r, links)
	h.Converge()
	p, err := newTimes(h, r)
	if err != nil || len(links) == 0 {
		return p, err
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	runtime.GC()
	for range failures {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := links[rng.IntN(len(links))]
		var steps [tries]convergeSteps
		for i := range steps {
			h.RemoveLink(l.Src, l.Dst)
			h.RemoveLink(l.Dst, l.Src)
			steps[i] = converge(h)
			h.SetLink(l)
			h.SetLink(Reverse(l))
			h.Converge()
		}
		p.add(steps[:], failures)
	}
	return p, nil
}

// MeasureStart measures the same for a network of which nothing is known yet:
// all is computed from nothing.
func MeasureStart(ctx context.Context, g *partition.Graph, r partition.Result) (*Times, error) {
	links := Links(g)
	var steps [tries]convergeSteps
	var h *paths.Hierarchy
	for i := range steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h = linked(g, r, links)
		runtime.GC()
		steps[i] = converge(h)
	}
	p, err := newTimes(h, r)
	if err != nil {
		return nil, err
	}
	p.add(steps[:], 1)
	return p, nil
}

// newTimes measures a message between partitions that have converged.
func newTimes(h *paths.Hierarchy, r partition.Result) (*Times, error) {
	p := &Times{Partitions: len(r.Parts)}
	if len(r.Parts) < 2 {
		return p, nil
	}
	var err error
	p.Message, err = messageTime(h.Area(r.Names[0]).Summary())
	return p, err
}

// add adds what was measured several times of one of so many things.
func (p *Times) add(list []convergeSteps, of int) {
	s := list[0]
	slowest := func(step func(convergeSteps) []float64) (most float64) {
		for area := range step(s) {
			least := step(s)[area]
			for _, x := range list[1:] {
				least = min(least, step(x)[area])
			}
			most = max(most, least)
		}
		return most
	}
	inside := slowest(func(x convergeSteps) []float64 { return x.inside })
	outside := slowest(func(x convergeSteps) []float64 { return x.outside })
	messages := 0.0 // a partition tells all others one by one, or takes in what they tell
	if s.told > 0 {
		messages = p.Message * float64(p.Partitions-1)
	}
	p.Inside += inside / float64(of)
	p.Messages += messages / float64(of)
	p.Outside += outside / float64(of)
	p.Told += float64(s.told) / float64(of)
	p.Mean += (inside + messages + outside) / float64(of)
	p.Max = max(p.Max, inside+messages+outside)
	p.Failures++
}

// Network returns a partitioned network without its links.
func Network(g *partition.Graph, r partition.Result) *paths.Hierarchy {
	of, shared := map[flow.DPID]string{}, map[flow.DPID]bool{}
	for i, s := range g.Switches {
		of[s.DPID] = r.Names[r.Of[i]]
	}
	if r.Shared {
		for _, b := range r.Borders {
			shared[g.Switches[b].DPID] = true
		}
	}
	h := paths.NewHierarchy(r.Names, paths.AreaConfig{
		Of:     func(d flow.DPID) string { return of[d] },
		Shared: func(d flow.DPID) bool { return shared[d] },
	})
	for _, s := range g.Switches {
		h.AddSwitch(s.DPID)
	}
	return h
}

// linked returns a partitioned network of which nothing is computed yet.
func linked(g *partition.Graph, r partition.Result, links []paths.Link) *paths.Hierarchy {
	h := Network(g, r)
	for _, l := range links {
		h.SetLink(l)
		h.SetLink(Reverse(l))
	}
	return h
}

// convergeSteps is how long each partition took inside and outside, in ms, and
// how many told the others.
type convergeSteps struct {
	inside, outside []float64
	told            int
}

// converge has all partitions compute what has changed.
func converge(h *paths.Hierarchy) (x convergeSteps) {
	var news []*paths.Summary
	for _, name := range h.Partitions() {
		var s *paths.Summary
		var changed bool
		x.inside = append(x.inside, computed(func() { s, changed = h.Area(name).Inside() }))
		if changed {
			news = append(news, s)
		}
	}
	for _, name := range h.Partitions() {
		a := h.Area(name)
		x.outside = append(x.outside, computed(func() {
			for _, s := range news {
				_, _ = a.Learn(s) // a summary just made is never wrong
			}
			a.Outside()
		}))
	}
	x.told = len(news)
	return x
}

// computed returns how much time of processors work takes, in ms.
func computed(work func()) float64 {
	began := cputime.Used()
	work()
	return float64(cputime.Used()-began) / 1e6
}

// messageTime is how long a summary takes to another process on this machine, in
// ms: encoded, over TCP, decoded; half of there and back.
func messageTime(s *paths.Summary) (float64, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("measure a message: %w", err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, out := gob.NewDecoder(c), gob.NewEncoder(c)
		for {
			var got paths.Summary
			if in.Decode(&got) != nil || out.Encode(&got) != nil {
				return
			}
		}
	}()
	c, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second)
	if err != nil {
		return 0, fmt.Errorf("measure a message: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	in, out := gob.NewDecoder(c), gob.NewEncoder(c)
	var list []float64
	for i := range 24 {
		var back paths.Summary
		began := time.Now()
		err := out.Encode(s)
		if err == nil {
			err = in.Decode(&back)
		}
		if err != nil {
			return 0, fmt.Errorf("measure a message: %w", err)
		}
		if i >= 4 { // the first also tell the types
			list = append(list, float64(time.Since(began).Nanoseconds())/1e6/2)
		}
	}
	return slices.Min(list), nil
}
