package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Options say how long to simulate, and what to look at.
type Options struct {
	Seed uint64
	// Visits is how many packets are served at most, counted at each stage.
	Visits int
	// Precision is the half width of the confidence interval, as a share of the
	// result, at which the simulation ends. 0: it ends with Visits.
	Precision float64
	// Percentile of the time in the system is what Precision is of; 0: its mean.
	Percentile float64
}

// Result is what was seen. Intervals are half widths at 95 %, by batch means.
type Result struct {
	Mean         float64 // time in the system of packets that were not lost
	MeanCI       float64
	Percentile   float64 // of Options, 0 if none was asked for
	PercentileCI float64
	Loss         float64 // share of packets
	Packets      int     // simulated after the warm-up
}

// Value is what Options ask for and its half width.
func (r Result) Value(o Options) (value, ci float64) {
	if o.Percentile > 0 {
		return r.Percentile, r.PercentileCI
	}
	return r.Mean, r.MeanCI
}

// engine simulates packet after packet.
type engine interface {
	// next returns the time in the system of the next packet that leaves, or that
	// it was lost.
	next() (sojourn float64, lost bool)
	// controls returns sums, over the packets since it was last asked, of what has
	// the expectation that means has; nil if there are none.
	controls() (sums []float64)
	means() []float64
}

// ErrOverload says that more comes than can be served.
var ErrOverload = errors.New("more packets come than can be served")

// Run simulates a system.
func Run(s System, o Options) (Result, error) {
	if err := s.check(); err != nil {
		return Result{}, err
	}
	visits, load := s.load()
	if load >= 1 {
		return Result{}, fmt.Errorf("%w: %.3g of what there is", ErrOverload, load)
	}
	var e engine
	if s.simple() {
		e = newLine(s, o.Seed)
	} else {
		e = newEvents(s, o.Seed)
	}
	relaxation := s.relaxation(load)
	most := max(1, int(float64(o.Visits)/max(visits, 1)))
	warmUp := min(int(20*relaxation)+1000, most/5)
	for range warmUp {
		e.next()
	}
	e.controls()
	b := newBatches(max(200, min(int(5*relaxation), most/batchesFew)), o.Percentile, e.means())
	for {
		for range batchesFew / 2 * b.size {
			b.add(e.next())
			if b.full() {
				b.close(e.controls())
			}
		}
		r := b.result()
		value, ci := r.Value(o)
		if len(b.closed) >= batchesFew && (o.Precision > 0 && ci <= o.Precision*value || r.Packets+b.size*batchesFew/2 > most) {
			return r, nil
		}
	}
}

// simple reports whether packets leave every stage in the order in which they
// came, so that one can be followed to its end before the next one.
func (s System) simple() bool {
	if s.Processors > 0 || s.Route != nil {
		return false
	}
	for _, st := range s.Stages {
		if len(s.Stages) > 1 && (st.Copies > 1 || st.Room > 0) {
			return false
		}
	}
	return s.Stages[0].Copies <= 256
}

// relaxation is about how many packets the system remembers.
func (s System) relaxation(load float64) float64 {
	vary := s.Arrivals.SCV
	if s.Bursts != nil {
		vary *= s.Bursts.Batch.Size()
		for _, w := range s.Bursts.Waves {
			vary += 20 * w.Time / s.Arrivals.Mean * (1 + math.Sqrt(w.Up*w.Down))
		}
	}
	copies := 1
	for _, st := range s.Stages {
		vary = max(vary, s.Arrivals.SCV+st.Service.SCV)
		copies = max(copies, min(st.Copies, 256))
	}
	if of := s.Stages[0].Dispatch; s.simple() && of != Central && of != Shortest {
		copies = 1 // it is one that is simulated
	}
	return float64(copies) * max(vary, 0.5) / ((1 - load) * (1 - load))
}

// sources returns a stream of random numbers for each use, so that two systems
// with the same seed see the same packets.
func sources(seed uint64) func() rand.Source {
	n := uint64(0)
	return func() rand.Source {
		n++
		return rand.NewPCG(seed, n*0x9e3779b97f4a7c15)
	}
}
