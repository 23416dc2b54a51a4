package size

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Dispersion is the index of dispersion of a stream of packets over a time: the
// variance of how many come, to their mean.
type Dispersion func(time float64) float64

// Poisson is the dispersion of a Poisson process.
func Poisson(float64) float64 { return 1 }

// MeasuredDispersion is a dispersion that was measured over some times.
type MeasuredDispersion struct {
	Time  float64
	Index float64
}

// Interpolated returns the dispersion through measured points, which are in the
// order of their times: 1 at time 0, the last one's beyond it, and straight lines
// over the logarithm of time between.
func Interpolated(points []MeasuredDispersion) Dispersion {
	return func(time float64) float64 {
		if len(points) == 0 {
			return 1
		}
		before := MeasuredDispersion{Time: points[0].Time / 100, Index: 1}
		for _, p := range points {
			if time <= p.Time {
				if time <= before.Time {
					return before.Index
				}
				return before.Index + (p.Index-before.Index)*math.Log(time/before.Time)/math.Log(p.Time/before.Time)
			}
			before = p
		}
		return before.Index
	}
}

// renewal is about the dispersion of independent times between packets, with a
// rate and a squared coefficient of variation: exact where they are exponential
// or a mixture of two exponential distributions with balanced means.
func renewal(rate, scv float64) Dispersion {
	if scv == 1 {
		return Poisson
	}
	decay := 2 / max(scv, 1e-3)
	if scv > 1 {
		p := (1 + math.Sqrt((scv-1)/(scv+1))) / 2
		decay = 4 * p * (1 - p) // of rates 2p and 2(1-p), each with the other's probability
	}
	return func(time float64) float64 {
		x := decay * rate * time
		if x < 1e-9 {
			return 1
		}
		return scv + (1-scv)*(1-math.Exp(-x))/x
	}
}

// RobustWait is the mean wait at a station with one server whose arrivals have
// a dispersion, by the robust queueing of Whitt and You ("Using robust queueing
// to expose the impact of dependence in single-server queues", 2018). The
// station's ArrivalSCV does not count. It is exact for M/G/1.
func (s Station) RobustWait(d Dispersion) float64 {
	rho := s.Utilisation()
	if rho >= 1 {
		return math.Inf(1)
	}
	if rho == 0 {
		return 0
	}
	work := 0.0 // in the time between arrivals
	top := 200 * (1 + d(1e12*s.Service) + s.ServiceSCV) * rho * rho / ((1 - rho) * (1 - rho))
	for x := top; x > 1e-6*top; x /= 1.01 {
		work = max(work, -(1-rho)*x+rho*math.Sqrt(2*x*max(0, d(x/s.Rate)+s.ServiceSCV)))
	}
	return max(0, (work/rho-(s.ServiceSCV+1)*rho/2)/s.Rate)
}

// Departures returns the dispersion of what leaves a station, from that of what
// comes.
func (s Station) Departures(d Dispersion) Dispersion {
	rho := s.Utilisation()
	if s.Service == 0 || rho >= 1 {
		return d
	}
	serve := renewal(1/s.Service, s.ServiceSCV)
	vary := max(1e-9, d(1e12*s.Service)+s.ServiceSCV)
	return tabulated(s.Service, func(time float64) float64 {
		w := weightOf((1 - rho) * (1 - rho) * s.Rate * time / (rho * vary))
		return w*d(time) + (1-w)*serve(time)
	})
}

// tabulated returns a dispersion by straight lines between its values at times
// from a thousandth to 10^12 of a unit, 16 to a decade.
func tabulated(unit float64, d Dispersion) Dispersion {
	const each, low, high = 16, -3, 12
	values := make([]float64, each*(high-low)+1)
	for i := range values {
		values[i] = d(unit * math.Pow(10, low+float64(i)/each))
	}
	return func(time float64) float64 {
		x := min(max(each*(math.Log10(time/unit)-low), 0), float64(len(values)-1))
		i := min(int(x), len(values)-2)
		return values[i] + (x-float64(i))*(values[i+1]-values[i])
	}
}

// weightOf is the weight of arrivals in departures: of the correlation of
// reflected Brownian motion.
func weightOf(t float64) float64 {
	if t < 1e-8 {
		return 0
	}
	root := math.Sqrt(t)
	normal := distuv.UnitNormal
	correlation := 2*(1-2*t-t*t)*normal.Survival(root) + 2*root*normal.Prob(root)*(1+t)
	return min(1, max(0, 1-(1-correlation)/(2*t)))
}

// RobustChain is the mean time in a chain of stations with one server each, whose
// first one's arrivals have a dispersion.
func RobustChain(rate float64, d Dispersion, nodes ...Node) float64 {
	total := 0.0
	for _, n := range nodes {
		s := Station{Rate: rate, Service: n.Service, ServiceSCV: n.ServiceSCV, Servers: 1}
		total += s.RobustWait(d) + n.Service
		d = s.Departures(d)
	}
	return total
}
