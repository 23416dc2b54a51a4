package size

import (
	"errors"
	"math"

	"github.com/weft-sdn/weft/plan/simulate"
)

// Estimate is the time in a function, mean or percentile as asked, and the share
// of packets that are lost. NaN is not known, infinite is overloaded.
type Estimate struct {
	Time float64
	CI   float64 // half width of the 95 % interval, of simulations
	Loss float64
}

// formula computes a deployment.
func (c cell) formula() Estimate {
	q := c.q
	if load, _ := c.load(); load >= 1 && q.Room == 0 {
		return Estimate{Time: math.Inf(1)}
	}
	var mean, variance, loss float64
	switch {
	case c.shared() && q.Room > 0 || q.Room > 0 && c.n > 1 && (c.form == InChain || q.Dispatch == simulate.Central || q.Dispatch == simulate.Shortest):
		return Estimate{Time: math.NaN(), Loss: math.NaN()} // there is no formula
	case c.shared():
		mean, variance = c.inShared().Sojourn()
	case c.form == InChain && c.n > 1:
		mean, variance = c.chain()
	default:
		s, d := c.copy()
		if q.Room > 0 {
			loss, mean = s.Finite(q.Room)
			variance = min(s.Variance(), mean*mean)
			break
		}
		mean, variance = s.Sojourn(), s.Variance()
		if q.robust() && s.Servers == 1 {
			wait := s.RobustWait(d)
			mean = wait + s.Service
			variance = wait*wait + s.Service*s.Service*s.ServiceSCV
		}
	}
	if q.Percentile > 0 {
		return Estimate{Time: Percentile(q.Percentile, mean, variance), Loss: loss}
	}
	return Estimate{Time: mean, Loss: loss}
}

// copy is the station that a packet comes to: a copy, or all of them before one
// queue. The dispersion is that of a copy.
func (c cell) copy() (Station, Dispersion) {
	work, idle := c.perInstance()
	n, of := float64(c.n), c.q.dispersion()
	s := Station{Rate: c.q.Rate, ArrivalSCV: c.q.arrivalSCV(), Service: work + idle, ServiceSCV: c.q.ServiceSCV, Servers: c.n}
	switch c.q.Dispatch {
	case simulate.Random:
		s.Servers, s.Rate, s.ArrivalSCV = 1, s.Rate/n, 1+(s.ArrivalSCV-1)/n
		return s, func(t float64) float64 { return 1 + (of(t)-1)/n }
	case simulate.RoundRobin:
		s.Servers, s.Rate, s.ArrivalSCV = 1, s.Rate/n, s.ArrivalSCV/n
		return s, func(t float64) float64 { return of(t) / n }
	}
	return s, of // a queue for all, which the shortest of several comes near to
}

// chain is the time in parts on processors of their own: by robust queueing, the
// variance by QNA.
func (c cell) chain() (mean, variance float64) {
	work, idle := c.perInstance()
	nodes := make([]Node, c.n)
	for i := range nodes {
		nodes[i] = Node{Service: work + idle, ServiceSCV: c.q.ServiceSCV, Servers: 1}
	}
	mean = RobustChain(c.q.Rate, c.q.dispersion(), nodes...)
	nodes[0].Rate, nodes[0].ArrivalSCV = c.q.Rate, c.q.arrivalSCV()
	other, variance, err := Chain(nodes...).Sojourn()
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return mean, variance * mean * mean / (other * other)
}

// system is a deployment as it is simulated, with service times of a shape; nil: of
// the law that has their two moments.
func (c cell) system(times *simulate.Shape) simulate.System {
	work, idle := c.perInstance()
	s := simulate.System{Arrivals: c.q.arrives.law, Bursts: c.q.arrives.bursts}
	service := simulate.Law{Mean: work + idle, SCV: c.q.ServiceSCV, Shape: times}
	stage := simulate.Stage{Copies: 1, Service: service, Idle: idle / (work + idle), Room: c.q.Room}
	if c.shared() {
		s.Processors = c.cpus
	}
	if c.form == InChain {
		for range c.n {
			s.Stages = append(s.Stages, stage)
		}
		return s
	}
	if stage.Copies, stage.Dispatch = c.n, c.q.Dispatch; stage.Dispatch == simulate.Central {
		stage.Room *= c.n
	}
	s.Stages = []simulate.Stage{stage}
	return s
}

// price is about how long it takes to simulate a visit of an instance, in units of
// the cheapest.
func (c cell) price() int {
	of, a := 1.0, c.q.arrives
	switch {
	case c.shared() || c.q.Room > 0:
		of = 8
	case c.form == Copies && c.n > 1 && (c.q.Dispatch == simulate.Central || c.q.Dispatch == simulate.Shortest):
		of = 3
	case c.form == Copies && c.n > 1:
		if poisson := (a.law.SCV == 1 && a.law.Shape == nil || a.bursts != nil) && !(a.bursts != nil && a.bursts.Batch.Constant); !poisson || c.q.Dispatch == simulate.RoundRobin {
			of += float64(c.n) // all arrivals are drawn
		}
	}
	if a.bursts != nil {
		for _, w := range a.bursts.Waves {
			of += 1 + a.law.Mean/w.Time
		}
	}
	return int(of)
}

// precision is the half width of intervals at which a simulation ends, as a
// share: two of them differ by less than 2 % then, but for one of some ten
// thousand.
const precision = 0.006

// simulated simulates a deployment with a budget in units of price.
func (c cell) simulated(budget int, times *simulate.Shape) Estimate {
	o := simulate.Options{Seed: c.q.Seed, Visits: max(20_000, budget/c.price()), Precision: precision, Percentile: c.q.Percentile}
	r, err := simulate.Run(c.system(times), o)
	if errors.Is(err, simulate.ErrOverload) {
		return Estimate{Time: math.Inf(1)}
	}
	if err != nil {
		return Estimate{Time: math.NaN()}
	}
	e := Estimate{Loss: r.Loss}
	e.Time, e.CI = r.Value(o)
	return e
}
