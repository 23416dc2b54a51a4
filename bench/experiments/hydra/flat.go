package hydra

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/internal/partitioned"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/services/paths"
)

// FlatConfig is how the computation of paths of a whole network is measured.
type FlatConfig struct {
	Rounds   int    // of the computations from nothing, of which the median counts
	Failures int    // random links that fail, one after the other, each mended again
	Verify   int    // of them are compared with a computation from nothing
	Seed     uint64 // which links
	// Say tells how far it is; nil tells nobody.
	Say func(format string, args ...any)
}

// Flat is the figures of one network, in milliseconds.
type Flat struct {
	Topology      string  `json:"topology"`
	Switches      int     `json:"switches"`
	Links         int     `json:"links"`
	Processors    int     `json:"processors"`
	Rounds        int     `json:"rounds"`
	AllPairs      float64 `json:"all_pairs_ms"`    // the distances between all switches, from nothing
	NextHops      float64 `json:"next_hops_ms"`    // those and all equal-cost next hops, from nothing
	FailureMean   float64 `json:"failure_mean_ms"` // from a link's failure until all distances are right again
	FailureMedian float64 `json:"failure_median_ms"`
	FailureMax    float64 `json:"failure_max_ms"`
	RestoreMean   float64 `json:"restore_mean_ms"` // the same when it is back
	RestoreMax    float64 `json:"restore_max_ms"`
	Failures      int     `json:"failures"`
	Verified      int     `json:"verified"`     // failures and returns of links after which all distances were computed from nothing, too
	Wrong         int     `json:"wrong"`        // distances that differed
	ChangedMean   float64 `json:"changed_mean"` // pairs of switches farther apart after a failure that was verified
	RecomputeMean float64 `json:"recompute_ms"` // what computing from nothing took where that was done to verify
}

// MeasureFlat measures how fast package paths computes a network as a whole.
func MeasureFlat(ctx context.Context, g *partition.Graph, c FlatConfig) (*Flat, error) {
	say := c.Say
	if say == nil {
		say = func(string, ...any) {}
	}
	links := partitioned.Links(g)
	graph := paths.NewGraph()
	for _, s := range g.Switches {
		graph.AddSwitch(s.DPID)
	}
	for _, l := range links {
		graph.SetLink(l)
		graph.SetLink(partitioned.Reverse(l))
	}
	top := graph.Snapshot()
	f := &Flat{Switches: len(g.Switches), Links: len(links), Processors: runtime.GOMAXPROCS(0), Rounds: c.Rounds}
	var all, hops []float64
	for range c.Rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all = append(all, timed(top.Afresh().Converge))
		hops = append(hops, timed(func() { top.Afresh().NextHopTable() }))
	}
	f.AllPairs, f.NextHops = quantile.Median(all), quantile.Median(hops)
	say("%d rounds of all pairs and next hops", c.Rounds)
	if len(links) == 0 {
		return f, nil
	}
	top.Converge()
	r := rand.New(rand.NewPCG(c.Seed, 1))
	var down, up, rebuilt, changed []float64
	runtime.GC()
	for i := range c.Failures {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, verify := links[r.IntN(len(links))], i < c.Verify
		var before, after *paths.Topology
		before = graph.Current()
		down = append(down, elapsed(func() {
			graph.RemoveLink(l.Src, l.Dst)
			graph.RemoveLink(l.Dst, l.Src)
			after = graph.Snapshot()
			after.Converge()
		}))
		if verify {
			wrong, took := f.verify(after)
			rebuilt = append(rebuilt, took)
			f.Wrong += wrong
			changed = append(changed, float64(differences(before, after)))
		}
		up = append(up, elapsed(func() {
			graph.SetLink(l)
			graph.SetLink(partitioned.Reverse(l))
			after = graph.Snapshot()
			after.Converge()
		}))
		if verify {
			wrong, took := f.verify(after)
			rebuilt = append(rebuilt, took)
			f.Wrong += wrong
		}
		if i%50 == 49 {
			say("%d of %d links have failed and come back", i+1, c.Failures)
		}
	}
	f.Failures = len(down)
	failure, restore := experiments.NewSpread(down), experiments.NewSpread(up)
	f.FailureMean, f.FailureMedian, f.FailureMax = failure.Mean, failure.Median, failure.Max
	f.RestoreMean, f.RestoreMax = restore.Mean, restore.Max
	f.ChangedMean = experiments.NewSpread(changed).Mean
	if len(rebuilt) > 0 {
		f.RecomputeMean = experiments.NewSpread(rebuilt).Mean
	}
	if f.Wrong > 0 {
		return f, fmt.Errorf("%d distances differ from a computation from nothing", f.Wrong)
	}
	return f, nil
}

// verify compares all distances with those computed from nothing, and returns
// how many differ, and how long that computation took, in ms.
func (f *Flat) verify(t *paths.Topology) (wrong int, took float64) {
	f.Verified++
	fresh := t.Afresh()
	took = timed(fresh.Converge)
	return differences(t, fresh), took
}

// differences counts pairs of switches with another distance.
func differences(a, b *paths.Topology) int {
	n := 0
	list := a.Switches()
	for _, dst := range list {
		for _, src := range list {
			x, okX := a.Distance(src, dst)
			y, okY := b.Distance(src, dst)
			if x != y || okX != okY {
				n++
			}
		}
	}
	return n
}

// timed returns how long work takes, in ms, memory having been tidied before.
func timed(work func()) float64 {
	runtime.GC()
	return elapsed(work)
}

func elapsed(work func()) float64 {
	began := time.Now()
	work()
	return millis(time.Since(began))
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
