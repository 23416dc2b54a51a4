// Package converge is the model of paper 001 §3.2 of how long a partitioned
// network takes until all routes are right again after a failure, its
// calibration by a few measurements, and the choice of the number of partitions
// from it.
//
// It is pure. Anyone who plans may import it; it imports the standard library,
// package partition, and gonum for linear algebra.
package converge

import (
	"fmt"
	"math"

	"github.com/weft-sdn/weft/plan/partition"
)

// Shape is what the model knows of a partitioned network.
type Shape struct {
	Switches   int     // N of the paper
	Partitions int     // P
	Borders    int     // B, border switches of all partitions
	Each       float64 // k, border switches that belong to a partition, those of several counted in each
	// Failures is the share of failures that concern a border switch. 0 means B/N:
	// all switches are equally likely to fail.
	Failures float64
}

// ShapeOf returns the shape of a partitioning of a network: k is the mean over
// its partitions.
func ShapeOf(g *partition.Graph, r partition.Result) Shape {
	s := Shape{Switches: len(g.Switches), Partitions: len(r.Parts), Borders: len(r.Borders)}
	for _, p := range r.Parts {
		s.Each += float64(p.Borders) / float64(len(r.Parts))
	}
	return s
}

// LinkFailures returns the shape if links fail, all equally likely, instead of
// switches: the share of those at a border switch.
func (s Shape) LinkFailures(g *partition.Graph, r partition.Result) Shape {
	border := make([]bool, len(g.Switches))
	for _, b := range r.Borders {
		border[b] = true
	}
	at := 0
	for _, l := range g.Links {
		if border[l.A] || border[l.B] {
			at++
		}
	}
	if len(g.Links) > 0 {
		s.Failures = float64(at) / float64(len(g.Links))
	}
	return s
}

// Check returns what the model has no answer for: no switches or partitions,
// more border switches than switches, numbers below 0.
func (s Shape) Check() error {
	switch {
	case s.Switches < 1 || s.Partitions < 1 || s.Partitions > s.Switches:
		return fmt.Errorf("%d partitions of %d switches: want at least one switch in each", s.Partitions, s.Switches)
	case s.Borders < 0 || s.Borders > s.Switches:
		return fmt.Errorf("%d border switches of %d switches: want 0 to all", s.Borders, s.Switches)
	case !(s.Each >= 0) || s.Each > float64(s.Borders):
		return fmt.Errorf("%v border switches in each partition, %d in all: want 0 to all", s.Each, s.Borders)
	case !(s.Failures >= 0) || s.Failures > 1:
		return fmt.Errorf("a share of %v of failures concerns border switches: want 0 to 1", s.Failures)
	}
	return nil
}

// Internal is n of the paper, the internal switches of a partition: (N - B) / P.
func (s Shape) Internal() float64 { return float64(s.Switches-s.Borders) / float64(s.Partitions) }

// Share is the share of failures that concern a border switch.
func (s Shape) Share() float64 {
	if s.Failures == 0 {
		return float64(s.Borders) / float64(s.Switches)
	}
	return s.Failures
}

// squared is x² log x, what the shortest paths between x nodes cost (§3.2, step
// 1). The logarithm is the natural one.
func squared(x float64) float64 { return x * linear(x) }

// linear is x log x.
func linear(x float64) float64 {
	if x <= 1 {
		return 0
	}
	return x * math.Log(x)
}

// Terms are the parts of a cost.
type Terms struct {
	// Intra is the paths inside a partition: (n+k)² log(n+k) (§3.2, step 1).
	Intra float64
	// Border is the paths in the network of border switches: (P+B)² log(P+B) for
	// all, (P+B) log(P+B) for those from one partition (step 2).
	Border float64
	// External is the routes of internal switches to other partitions: nPk for
	// all, nk for those to one partition (step 3).
	External float64
	// Messages are those that a partition exchanges with the others: P - 1. The
	// paper's cost leaves them out, and names them as what makes many partitions
	// slow (§3.1).
	Messages float64
}

// Cost is what the paper adds up; messages are not in it.
func (t Terms) Cost() float64 { return t.Intra + t.Border + t.External }

// BorderFailure is the cost of a failure that concerns a border switch:
//
//	conv_cost_border = (n+k)² log(n+k) + (P+B)² log(P+B) + nPk    (paper 001 eq. 1)
func (s Shape) BorderFailure() Terms {
	n, p := s.Internal(), float64(s.Partitions)
	return Terms{squared(n + s.Each), squared(p + float64(s.Borders)), n * p * s.Each, p - 1}
}

// InternalFailure is the cost of a failure that concerns internal switches only:
//
//	conv_cost_internal = (n+k)² log(n+k) + (P+B) log(P+B) + nk    (paper 001 eq. 2)
func (s Shape) InternalFailure() Terms {
	n, p := s.Internal(), float64(s.Partitions)
	return Terms{squared(n + s.Each), linear(p + float64(s.Borders)), n * s.Each, p - 1}
}

// Expected is the cost of a failure that may concern any switch:
//
//	t_conv = B/N · conv_cost_border + (1 - B/N) · conv_cost_internal    (paper 001 §3.2)
//
// with Share in the place of B/N.
func (s Shape) Expected() Terms {
	f, b, i := s.Share(), s.BorderFailure(), s.InternalFailure()
	mix := func(b, i float64) float64 { return f*b + (1-f)*i }
	return Terms{mix(b.Intra, i.Intra), mix(b.Border, i.Border), mix(b.External, i.External), mix(b.Messages, i.Messages)}
}
