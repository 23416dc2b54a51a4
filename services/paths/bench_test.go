package paths

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// The network of the Hydra paper's evaluation: 2,560 switches, 49,152 links.
func hydra() *network { return fatTree(32, 32, 512) }

func networks(b *testing.B, f func(b *testing.B, n *network)) {
	for _, c := range []struct {
		name string
		make func() *network
	}{
		{"hydra", hydra},
		{"random1000", func() *network { return randomNetwork(rand.New(rand.NewPCG(1, 1)), 1000, 3000, 1, false) }},
		{"weighted1000", func() *network { return randomNetwork(rand.New(rand.NewPCG(1, 1)), 1000, 3000, 100, true) }},
	} {
		b.Run(c.name, func(b *testing.B) { f(b, c.make()) })
	}
}

func BenchmarkAllPairs(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		for b.Loop() {
			top.Afresh().Converge()
		}
	})
}

func BenchmarkNextHopTable(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		for b.Loop() {
			top.Afresh().NextHopTable()
		}
	})
}

// One iteration is one link that fails: the snapshot after it, every distance
// right again. The time to bring it back is up-ns, the longest failure max-ns.
func BenchmarkLinkFailure(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		r := rand.New(rand.NewPCG(2, 2))
		top := n.graph.Snapshot()
		top.Converge()
		links := top.Links()
		var up, longest time.Duration
		for b.Loop() {
			l := links[r.IntN(len(links))]
			back := n.links[[2]flow.Location{l.Dst, l.Src}]
			start := time.Now()
			n.graph.RemoveLink(l.Src, l.Dst)
			n.graph.RemoveLink(l.Dst, l.Src)
			n.graph.Snapshot().Converge()
			longest = max(longest, time.Since(start))
			b.StopTimer()
			start = time.Now()
			n.graph.SetLink(l)
			n.graph.SetLink(Link{l.Dst, l.Src, back})
			n.graph.Snapshot().Converge()
			up += time.Since(start)
			b.StartTimer()
		}
		b.ReportMetric(float64(up.Nanoseconds())/float64(b.N), "up-ns/op")
		b.ReportMetric(float64(longest.Nanoseconds()), "max-ns")
	})
}

// One iteration is one switch that fails, all its links with it.
func BenchmarkSwitchFailure(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		r := rand.New(rand.NewPCG(3, 3))
		top := n.graph.Snapshot()
		top.Converge()
		ids := top.Switches()
		for b.Loop() {
			d := ids[r.IntN(len(ids))]
			n.graph.RemoveSwitch(d)
			n.graph.Snapshot().Converge()
			b.StopTimer()
			n.graph.AddSwitch(d)
			n.graph.Snapshot().Converge()
			b.StartTimer()
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	n := hydra()
	top := n.graph.Snapshot()
	links := top.Links()
	for b.Loop() {
		g := NewGraph()
		for _, d := range top.Switches() {
			g.AddSwitch(d)
		}
		for _, l := range links {
			g.SetLink(l)
		}
		g.Snapshot()
	}
}

func BenchmarkPath(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		top.Converge()
		ids := top.Switches()
		p := make(Path, 0, 32)
		i := uint64(0)
		for b.Loop() {
			i++
			p, _ = top.AppendPath(p[:0], ids[i*7919%uint64(len(ids))], ids[i*104729%uint64(len(ids))], i)
		}
	})
}

// One iteration is the first path to a destination.
func BenchmarkFirstPath(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		ids := top.Switches()
		i := uint64(0)
		for b.Loop() {
			if i%uint64(len(ids)) == 0 {
				top = top.Afresh()
			}
			i++
			top.Path(ids[0], ids[i%uint64(len(ids))], i)
		}
	})
}

func BenchmarkKShortest(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		ids := top.Switches()
		for b.Loop() {
			top.KShortest(ids[len(ids)-1], ids[len(ids)-40], 8)
		}
	})
}

func BenchmarkDisjoint(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		ids := top.Switches()
		for b.Loop() {
			top.Disjoint(ids[len(ids)-1], ids[len(ids)-40], 2)
		}
	})
}

func BenchmarkTree(b *testing.B) {
	networks(b, func(b *testing.B, n *network) {
		top := n.graph.Snapshot()
		for b.Loop() {
			top.Afresh().Tree()
		}
	})
}

// One iteration is one link that fails in the fat tree cut into partitions: all
// have converged, one after the other.
func BenchmarkHierarchyFailure(b *testing.B) {
	for _, groups := range []int{8, 32} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			n := hydra()
			top := n.graph.Snapshot()
			links := top.Links()
			p := tree(n, 32, groups, Most)
			p.h.Converge()
			r := rand.New(rand.NewPCG(4, 4))
			told := 0
			for b.Loop() {
				l := links[r.IntN(len(links))]
				p.h.RemoveLink(l.Src, l.Dst)
				p.h.RemoveLink(l.Dst, l.Src)
				summaries, _ := p.h.Converge()
				told += summaries
				b.StopTimer()
				p.h.SetLink(l)
				p.h.SetLink(Link{l.Dst, l.Src, l.Weight})
				p.h.Converge()
				b.StartTimer()
			}
			b.ReportMetric(float64(told)/float64(b.N), "summaries/op")
		})
	}
}
