package size

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Station is one queue before servers that are alike. Times are in any one unit.
// A squared coefficient of variation (SCV) is 0 for constant times and 1 for
// exponential ones.
type Station struct {
	Rate       float64 // of arrivals
	ArrivalSCV float64 // of the times between them
	Service    float64 // mean
	ServiceSCV float64
	Servers    int
}

// Utilisation is the share of its time that a server works, 1 or more if the
// station is overloaded.
func (s Station) Utilisation() float64 { return s.Rate * s.Service / float64(s.Servers) }

// ErlangC is the probability that a packet waits in an M/M/c queue.
func (s Station) ErlangC() float64 {
	a, b := s.Rate*s.Service, 1.0
	for k := 1; k <= s.Servers; k++ { // Erlang's loss formula, by recursion
		b = a * b / (float64(k) + a*b)
	}
	return b / (1 - s.Utilisation()*(1-b))
}

// Wait is the mean time before service: for one server Kingman's formula with
// the correction of Kraemer and Langenbach-Belz (exact for M/G/1), for more that
// of Allen and Cunneen (exact for M/M/c). It is infinite where the station is
// overloaded.
func (s Station) Wait() float64 {
	rho := s.Utilisation()
	if rho >= 1 {
		return math.Inf(1)
	}
	if s.Service == 0 || s.Rate == 0 {
		return 0
	}
	poisson := s.ErlangC() * s.Service / (float64(s.Servers) * (1 - rho))
	return poisson * (s.ArrivalSCV + s.ServiceSCV) / 2 * s.correction()
}

// correction is that of Kraemer and Langenbach-Belz for arrivals smoother than
// Poisson's. For burstier ones there is none: simulation is nearer to Kingman's
// formula than to their correction of it.
func (s Station) correction() float64 {
	rho, a, b := s.Utilisation(), s.ArrivalSCV, s.ServiceSCV
	if a >= 1 || a+b == 0 {
		return 1
	}
	return math.Exp(-2 * (1 - rho) * (1 - a) * (1 - a) / (3 * rho * (a + b)))
}

// Sojourn is the mean time in the station.
func (s Station) Sojourn() float64 { return s.Wait() + s.Service }

// Variance is that of the time in the station, by Whitt's approximation of the
// wait (The Queueing Network Analyzer, 1983, section 5.1).
func (s Station) Variance() float64 {
	w := s.Wait()
	own := s.Service * s.Service * s.ServiceSCV
	rho, b := s.Utilisation(), s.ServiceSCV
	if w == 0 || rho >= 1 {
		return own
	}
	third := 3 * b * (1 + b)
	if b < 1 {
		third = (2*b + 1) * (b + 1)
	}
	delayed := 2*rho - 1 + 4*(1-rho)*third/(3*(b+1)*(b+1))
	waits := s.waits()
	return w*w*((max(0, delayed)+1)/waits-1) + own
}

// waits is the probability that a packet waits.
func (s Station) waits() float64 {
	if s.Servers > 1 {
		return min(1, s.ErlangC())
	}
	rho, a, b := s.Utilisation(), s.ArrivalSCV, s.ServiceSCV
	h := 4 * rho / (a + rho*rho*(4*a+b))
	if a < 1 {
		h = (1 + a + rho*b) / (1 + rho*(b-1) + rho*rho*(4*a+b))
	}
	return min(1, max(1e-6, rho+(a-1)*rho*(1-rho)*h))
}

// Percentile returns a percentile of a time with a mean and a variance, which is
// taken to have a gamma distribution: exact for the time in an M/M/1 station and
// in a chain of equal ones.
func Percentile(percentile, mean, variance float64) float64 {
	if !(variance > 1e-12*mean*mean) || math.IsInf(mean, 0) {
		return mean
	}
	return distuv.Gamma{Alpha: mean * mean / variance, Beta: mean / variance}.Quantile(percentile / 100)
}
