package hydra

import (
	"context"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"time"

	"weft/flow"
	"weft/plan/partition"
	"weft/services/paths"
)

// Partitioned is how long a partitioned network takes after a failure until all
// partitions have their routes again, in ms, each partition having a process to
// itself.
type Partitioned struct {
	Partitions int     `json:"partitions"`
	Mean       float64 `json:"mean_ms"` // the sum of the three below
	Max        float64 `json:"max_ms"`
	Inside     float64 `json:"inside_ms"`  // mean: the slowest partition's paths inside
	Messages   float64 `json:"message_ms"` // mean: what partitions tell each other
	Outside    float64 `json:"outside_ms"` // mean: the slowest partition's routes to the others
	Told       float64 `json:"told"`       // mean: partitions whose summary changed
	Message    float64 `json:"each_ms"`    // one message: encoded, over TCP, decoded
	Failures   int     `json:"failures"`
}

// failureTries is how often each failure is measured: the least counts, which is
// that without what else the machine was doing.
const failureTries = 3

// MeasurePartitioned takes down random links of a network, one after the other,
// each mended before the next, and measures what each partition has to do. The
// partitions are worked on one after the other, and the slowest of each step
// counts: that is what takes so long where all have a processor. The same seed
// takes down the same links.
func MeasurePartitioned(ctx context.Context, g *partition.Graph, r partition.Result, failures int, seed uint64) (*Partitioned, error) {
	links := cables(g)
	h := hierarchyOf(g, r)
	for _, l := range links {
		h.SetLink(l)
		h.SetLink(reversed(l))
	}
	h.Converge()
	p := &Partitioned{Partitions: len(r.Parts)}
	if len(r.Parts) > 1 {
		var err error
		if p.Message, err = messageTime(h.Area(r.Names[0]).Summary()); err != nil {
			return nil, err
		}
	}
	if len(links) == 0 {
		return p, nil
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	runtime.GC()
	for range failures {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := links[rng.IntN(len(links))]
		var inside, outside float64
		told := 0
		for try := range failureTries {
			h.RemoveLink(l.Src, l.Dst)
			h.RemoveLink(l.Dst, l.Src)
			in, out, n := converge(h)
			if try == 0 || in+out < inside+outside {
				inside, outside, told = in, out, n
			}
			h.SetLink(l)
			h.SetLink(reversed(l))
			h.Converge()
		}
		messages := 0.0 // a partition tells all others one by one, or takes in what they tell
		if told > 0 {
			messages = p.Message * float64(len(r.Parts)-1)
		}
		all := inside + messages + outside
		p.Inside += inside / float64(failures)
		p.Messages += messages / float64(failures)
		p.Outside += outside / float64(failures)
		p.Told += float64(told) / float64(failures)
		p.Mean += all / float64(failures)
		p.Max = max(p.Max, all)
		p.Failures++
	}
	return p, nil
}

// hierarchyOf returns a partitioned network without its links.
func hierarchyOf(g *partition.Graph, r partition.Result) *paths.Hierarchy {
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

// converge has all partitions compute what has changed. It returns how long the
// slowest took inside and outside, and how many told the others.
func converge(h *paths.Hierarchy) (inside, outside float64, told int) {
	var news []*paths.Summary
	for _, name := range h.Partitions() {
		var s *paths.Summary
		var changed bool
		inside = max(inside, elapsed(func() { s, changed = h.Area(name).Inside() }))
		if changed {
			news = append(news, s)
		}
	}
	for _, name := range h.Partitions() {
		a := h.Area(name)
		outside = max(outside, elapsed(func() {
			for _, s := range news {
				_, _ = a.Learn(s) // a summary just made is never wrong
			}
			a.Outside()
		}))
	}
	return inside, outside, len(news)
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
	c.SetDeadline(time.Now().Add(10 * time.Second))
	in, out := gob.NewDecoder(c), gob.NewEncoder(c)
	var list []float64
	for i := range 24 {
		var bad error
		took := elapsed(func() {
			var back paths.Summary
			if bad = out.Encode(s); bad == nil {
				bad = in.Decode(&back)
			}
		})
		if bad != nil {
			return 0, fmt.Errorf("measure a message: %w", bad)
		}
		if i >= 4 { // the first also tell the types
			list = append(list, took/2)
		}
	}
	return median(list), nil
}
