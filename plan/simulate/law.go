package simulate

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Law is how times are distributed, by their mean and their squared coefficient
// of variation: constant at 0, a mixture of Erlang distributions below 1,
// exponential at 1, and a mixture of two exponential ones with balanced means
// above (Tijms, "A First Course in Stochastic Models", appendix B).
type Law struct {
	Mean float64
	SCV  float64
	// Shape is how times are distributed in place of that, whatever their mean; SCV
	// is its own then.
	Shape *Shape
}

// exact is how near to 1 a squared coefficient of variation is taken to be 1.
const exact = 1e-9

// smooth is the squared coefficient of variation below which a gamma
// distribution replaces the mixture of many phases.
const smooth = 1.0 / 16

// sampler draws times of a law.
type sampler struct {
	kind   kind
	mean   float64
	scv    float64
	phases int     // of the longer Erlang distribution
	share  float64 // of the first part of a mixture
	first  float64 // mean of that part, or of a phase
	second float64
	gamma  distuv.Gamma
	shape  *Shape
	random *rand.Rand
}

type kind int

const (
	constant kind = iota
	gamma
	erlang
	exponential
	mixed
	shaped
)

func newSampler(l Law, source rand.Source) *sampler {
	s := &sampler{mean: l.Mean, scv: l.SCV, random: rand.New(source)}
	c := l.SCV
	switch {
	case l.Shape != nil:
		s.kind, s.shape = shaped, l.Shape
	case l.Mean == 0 || c == 0:
		s.kind = constant
	case c < smooth:
		s.kind = gamma
		s.gamma = distuv.Gamma{Alpha: 1 / c, Beta: 1 / (c * l.Mean), Src: source}
	case c < 1-exact:
		s.kind, s.phases = erlang, int(math.Ceil(1/c-exact))
		k := float64(s.phases)
		s.share = max(0, (k*c-math.Sqrt(max(0, k*(1+c)-k*k*c)))/(1+c))
		s.first = l.Mean / (k - s.share)
	case c <= 1+exact:
		s.kind = exponential
	default:
		s.kind, s.share = mixed, (1+math.Sqrt((c-1)/(c+1)))/2
		s.first, s.second = l.Mean/(2*s.share), l.Mean/(2*(1-s.share))
	}
	return s
}

// draw returns a time.
func (s *sampler) draw() float64 {
	switch s.kind {
	case exponential:
		return s.mean * s.random.ExpFloat64()
	case erlang:
		n := s.phases
		if s.share > 0 && s.random.Float64() < s.share {
			n--
		}
		sum := 0.0
		for range n {
			sum += s.random.ExpFloat64()
		}
		return s.first * sum
	case mixed:
		if s.random.Float64() < s.share {
			return s.first * s.random.ExpFloat64()
		}
		return s.second * s.random.ExpFloat64()
	case gamma:
		return s.gamma.Rand()
	case shaped:
		return s.mean * s.shape.draw(s.random)
	}
	return s.mean
}
