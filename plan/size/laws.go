package size

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weft-sdn/weft/plan/simulate"
)

// Range is in which range a percentile lies, over laws of the service time that all
// have the same mean and variation.
type Range struct{ Low, High float64 }

// laws returns shapes of times with a squared coefficient of variation: lognormal,
// gamma, and three laws of two values, a short and a long one. The long one is drawn
// once in a hundred, once in ten, and as often as it can be.
func laws(scv float64) (list []*simulate.Shape) {
	width := math.Log1p(scv)
	lognormal := distuv.LogNormal{Mu: -width / 2, Sigma: math.Sqrt(width)}
	gamma := distuv.Gamma{Alpha: 1 / scv, Beta: 1 / scv}
	for _, cumulative := range []func(float64) float64{lognormal.CDF, gamma.CDF} {
		list = appendShape(list, binned(cumulative))
	}
	for _, long := range []float64{0.01, 0.1, 1} {
		long = min(long, 1/(1+scv))
		list = appendShape(list, []simulate.Bin{
			{From: max(0, 1-math.Sqrt(scv*long/(1-long))), To: max(0, 1-math.Sqrt(scv*long/(1-long))), Count: 1 - long},
			{From: 1 + math.Sqrt(scv*(1-long)/long), To: 1 + math.Sqrt(scv*(1-long)/long), Count: long},
		})
	}
	return list
}

// appendShape appends the shape of bins, unless there is no time in them.
func appendShape(list []*simulate.Shape, bins []simulate.Bin) []*simulate.Shape {
	if s, err := simulate.NewShape(bins); err == nil {
		return append(list, s)
	}
	return list
}

// binned returns a law with a mean of 1 as a histogram, of 2 % wide bins.
func binned(cumulative func(float64) float64) []simulate.Bin {
	bins := []simulate.Bin{{From: 0, To: 1e-6, Count: cumulative(1e-6)}}
	for from := 1e-6; from < 1e5; from *= 1.02 {
		if share := cumulative(from*1.02) - cumulative(from); share > 1e-15 {
			bins = append(bins, simulate.Bin{From: from, To: from * 1.02, Count: share})
		}
	}
	return bins
}

// spread returns the range of what a deployment takes, with what is known of it
// by the law of the question.
func (c cell) spread(known Estimate, budget int) Range {
	shapes := laws(c.q.ServiceSCV)
	times := make([]float64, len(shapes))
	c.q.all(len(shapes), func(i int) { times[i] = c.simulated(budget, shapes[i]).Time })
	r := Range{known.Time, known.Time}
	for _, t := range times {
		if !math.IsNaN(t) && !math.IsInf(t, 0) {
			r.Low, r.High = min(r.Low, t), max(r.High, t)
		}
	}
	return r
}
