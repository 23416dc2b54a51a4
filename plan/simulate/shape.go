package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Shape is how times are distributed around their mean, by a histogram. It is
// read-only once made.
type Shape struct {
	mean, scv float64 // of the histogram
	bins      []Bin
	// Walker's method of aliases: a bin is drawn by itself with a share, else
	// another in its place.
	shares []float64
	others []int
}

// Bin is times of a histogram: how many there are from one time to another,
// anywhere between.
type Bin struct{ From, To, Count float64 }

// NewShape returns the shape of a histogram.
func NewShape(bins []Bin) (*Shape, error) {
	s := &Shape{}
	total, squares := 0.0, 0.0
	for _, b := range bins {
		if !(b.From >= 0 && b.To >= b.From && b.Count >= 0) || math.IsInf(b.To+b.Count, 0) {
			return nil, fmt.Errorf("%v times from %v to %v: want numbers of at least 0, and rising", b.Count, b.From, b.To)
		}
		if b.Count == 0 {
			continue
		}
		s.bins = append(s.bins, b)
		total += b.Count
		s.mean += b.Count * (b.From + b.To) / 2
		squares += b.Count * (b.From*b.From + b.From*b.To + b.To*b.To) / 3
	}
	if s.mean == 0 {
		return nil, fmt.Errorf("want times above 0")
	}
	s.mean /= total
	s.scv = max(0, squares/total/(s.mean*s.mean)-1)
	s.aliases(total)
	return s, nil
}

// aliases prepares draws.
func (s *Shape) aliases(total float64) {
	n := len(s.bins)
	s.shares, s.others = make([]float64, n), make([]int, n)
	var few, many []int
	for i, b := range s.bins {
		s.shares[i], s.others[i] = b.Count/total*float64(n), i
		if s.shares[i] < 1 {
			few = append(few, i)
		} else {
			many = append(many, i)
		}
	}
	for len(few) > 0 && len(many) > 0 {
		i, j := few[len(few)-1], many[len(many)-1]
		few = few[:len(few)-1]
		s.others[i] = j
		if s.shares[j] -= 1 - s.shares[i]; s.shares[j] < 1 {
			many, few = many[:len(many)-1], append(few, j)
		}
	}
	for _, i := range append(few, many...) {
		s.shares[i] = 1 // but for rounding
	}
}

// Mean is that of the histogram.
func (s *Shape) Mean() float64 { return s.mean }

// SCV is the squared coefficient of variation of the histogram.
func (s *Shape) SCV() float64 { return s.scv }

// draw returns a time as a share of the mean.
func (s *Shape) draw(random *rand.Rand) float64 {
	i := random.IntN(len(s.bins))
	x := random.Float64()
	if share := s.shares[i]; x < share {
		x /= share
	} else {
		x = (x - share) / (1 - share)
		i = s.others[i]
	}
	b := &s.bins[i]
	return (b.From + x*(b.To-b.From)) / s.mean
}
