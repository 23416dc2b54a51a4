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
	random *rand.Rand
}

type kind int

const (
	constant kind = iota
	gamma
	erlang
	exponential
	mixed
)

func newSampler(l Law, source rand.Source) *sampler {
	s := &sampler{mean: l.Mean, scv: l.SCV, random: rand.New(source)}
	c := l.SCV
	switch {
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
	}
	return s.mean
}

// Bursts make arrivals come in bursts: a Poisson process whose rate is by Swing,
// a share of at most 1, above the mean or below it, for exponential times of a
// mean of Period. Its index of dispersion over a long time is
// 1 + rate·Swing²·Period.
type Bursts struct {
	Swing  float64
	Period float64
}

// arrivals draws the times between packets.
type arrivals struct {
	*sampler
	bursts   *Bursts
	rates    [2]float64
	now      int     // which of the rates
	switches float64 // time until the other
	copies   int     // of which one gets the packet; 0: all do
	turns    bool
}

func newArrivals(l Law, b *Bursts, source rand.Source) *arrivals {
	a := &arrivals{sampler: newSampler(l, source), bursts: b}
	if b != nil {
		a.rates = [2]float64{(1 + b.Swing) / l.Mean, (1 - b.Swing) / l.Mean}
		a.switches = b.Period * a.random.ExpFloat64()
	}
	return a
}

// deal makes the arrivals those of one of several copies, and returns their law.
func (a *arrivals) deal(copies int, d Dispatch) Law {
	n, l := float64(copies), Law{Mean: a.mean, SCV: a.scv}
	if a.turns = d == RoundRobin; a.turns {
		a.copies = copies
		return Law{Mean: n * l.Mean, SCV: l.SCV / n}
	}
	if a.kind == exponential && a.bursts == nil {
		a.mean *= n // as Poisson as before
	} else {
		a.copies = copies
	}
	return Law{Mean: n * l.Mean, SCV: 1 + (l.SCV-1)/n}
}

// draw returns the time to the next packet.
func (a *arrivals) draw() float64 {
	between := a.one()
	switch {
	case a.copies == 0:
	case a.turns:
		for range a.copies - 1 {
			between += a.one()
		}
	default:
		for a.random.IntN(a.copies) > 0 {
			between += a.one()
		}
	}
	return between
}

// one returns the time to the next packet, whichever copy gets it.
func (a *arrivals) one() float64 {
	if a.bursts == nil {
		return a.sampler.draw()
	}
	for total := 0.0; ; a.now = 1 - a.now {
		if x := a.random.ExpFloat64() / a.rates[a.now]; x < a.switches {
			a.switches -= x
			return total + x
		}
		total += a.switches
		a.switches = a.bursts.Period * a.random.ExpFloat64()
	}
}
