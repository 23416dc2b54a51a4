package size

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/weft-sdn/weft/plan/simulate"
)

// Mesh is queues between which packets of several classes go. Times are in
// seconds.
type Mesh struct {
	Queues  []Queue
	Classes []Class
}

// Queue is one queue before servers that are alike.
type Queue struct {
	Name       string
	Service    float64
	ServiceSCV float64
	Servers    int
}

// Class is packets that come, go and are served alike.
type Class struct {
	Name       string
	Rate       float64 // per second
	ArrivalSCV float64 // of the times between them
	Enter      []float64
	// Route has the probability that a packet goes from a queue to each queue next;
	// what is left of 1 leaves.
	Route [][]float64
	// Service is the mean time at each queue.
	Service []float64
}

// MeshAnswer is how long packets are in a mesh.
type MeshAnswer struct {
	All     MeshTime
	Classes []MeshTime // in the order of the mesh
	Queues  []MeshQueue
}

// MeshTime is the time of packets, its mean or a percentile.
type MeshTime struct {
	Rate      float64
	Visits    float64 // queues that a packet visits
	Formula   Estimate
	Simulated Estimate // NaN if nothing was simulated
}

// Time is what counts: what was simulated, else what the formula gives.
func (t MeshTime) Time() Estimate {
	return Point{Formula: t.Formula, Simulated: t.Simulated}.Time()
}

// MeshQueue is one queue at work.
type MeshQueue struct {
	Rate        float64 // of packets that come to it
	Utilisation float64 // of a server
	Wait        float64 // by the formula, for each visit
}

// MeshOptions say what is asked of a mesh.
type MeshOptions struct {
	Percentile float64 // 0: the mean
	Simulate   bool
	Seed       uint64
}

// meshVisits is how many visits are simulated at most: some ten seconds.
const meshVisits = 20_000_000

// Solve returns how long packets are in the mesh: by Whitt's Queueing Network
// Analyzer, of which classes share the waits (exact for Poisson arrivals and
// exponential times that are the same for all classes, Jackson 1963), and
// simulated.
func (m Mesh) Solve(o MeshOptions) (MeshAnswer, error) {
	var a MeshAnswer
	whole, visits, err := m.whole()
	if err != nil {
		return a, err
	}
	stations, _, err := whole.Solve()
	if err != nil {
		return a, err
	}
	rate := make([]float64, len(m.Queues))
	for c, of := range m.Classes {
		for k := range m.Queues {
			rate[k] += of.Rate * visits[c][k]
		}
	}
	// Packets that come straight back are served once, for longer: once is a share
	// of the visits.
	once := make([]float64, len(m.Queues))
	for k, s := range stations {
		once[k] = 1 - whole.Route[k][k]
		if s.Utilisation() >= 1 {
			return a, fmt.Errorf("overloaded: packets keep queue %s busy for %.3g of the time: at most %.4g of the rates can be served", m.Queues[k].Name, s.Utilisation(), 1/s.Utilisation())
		}
		a.Queues = append(a.Queues, MeshQueue{Rate: rate[k], Utilisation: s.Utilisation(), Wait: s.Wait() * once[k]})
	}
	all, squares := 0.0, 0.0
	for c, of := range m.Classes {
		t := MeshTime{Rate: of.Rate, Simulated: Estimate{Time: math.NaN()}}
		times, variances := make([]float64, len(stations)), make([]float64, len(stations))
		for k, s := range stations {
			t.Visits += visits[c][k]
			times[k], variances[k] = s.Wait()*once[k]+of.Service[k], s.Variance()*once[k]
		}
		mean, variance := of.sojourn(times, variances)
		t.Formula.Time = mean
		if o.Percentile > 0 {
			t.Formula.Time = Percentile(o.Percentile, mean, variance)
		}
		a.Classes = append(a.Classes, t)
		a.All.Rate += of.Rate
		a.All.Visits += of.Rate * t.Visits
		all += of.Rate * mean
		squares += of.Rate * (variance + mean*mean)
	}
	a.All.Visits /= a.All.Rate
	mean := all / a.All.Rate
	a.All.Formula.Time, a.All.Simulated = mean, Estimate{Time: math.NaN()}
	if o.Percentile > 0 {
		a.All.Formula.Time = Percentile(o.Percentile, mean, max(0, squares/a.All.Rate-mean*mean))
	}
	if o.Simulate {
		return a, m.simulate(o, &a)
	}
	return a, nil
}

// whole returns the network of all classes together, and how often a packet of
// each class visits each queue.
func (m Mesh) whole() (n Network, visits [][]float64, err error) {
	if len(m.Queues) == 0 || len(m.Classes) == 0 {
		return n, nil, errors.New("want at least one queue and one class")
	}
	size := len(m.Queues)
	n = Network{Nodes: make([]Node, size), Route: make([][]float64, size)}
	for k, q := range m.Queues {
		n.Nodes[k], n.Route[k] = Node{ServiceSCV: q.ServiceSCV, Servers: q.Servers}, make([]float64, size)
	}
	rates, squares, varying := make([]float64, size), make([]float64, size), make([]float64, size)
	for _, c := range m.Classes {
		v, err := c.visits(m.Queues)
		if err != nil {
			return n, nil, fmt.Errorf("class %s: %w", c.Name, err)
		}
		visits = append(visits, v)
		for k := range n.Nodes {
			rate, s := c.Rate*v[k], c.Service[k]
			rates[k] += rate
			n.Nodes[k].Rate += c.Rate * c.Enter[k]
			// A share of packets that is dealt at random to the queue is the more like
			// Poisson's.
			varying[k] += c.Rate * c.Enter[k] * (1 + c.Enter[k]*(c.ArrivalSCV-1))
			n.Nodes[k].Service += rate * s
			squares[k] += rate * s * s * (1 + m.Queues[k].ServiceSCV)
			for j := range n.Nodes {
				n.Route[k][j] += rate * c.Route[k][j]
			}
		}
	}
	for k := range n.Nodes {
		d := &n.Nodes[k]
		if d.ArrivalSCV = 1; d.Rate > 0 {
			d.ArrivalSCV = varying[k] / d.Rate
		}
		if rates[k] == 0 {
			d.Service = m.Queues[k].Service
			continue
		}
		if d.Service /= rates[k]; d.Service > 0 {
			d.ServiceSCV = max(0, squares[k]/rates[k]/(d.Service*d.Service)-1)
		}
		for j := range n.Route[k] {
			n.Route[k][j] /= rates[k]
		}
	}
	return n, visits, nil
}

// visits solves the traffic equations of the class.
func (c Class) visits(queues []Queue) ([]float64, error) {
	n := Network{Nodes: make([]Node, len(queues)), Route: c.Route}
	for k := range n.Nodes {
		n.Nodes[k] = Node{Rate: c.Enter[k], ArrivalSCV: 1, Servers: 1}
	}
	_, visits, err := n.Solve()
	if err != nil {
		return nil, err
	}
	for k := range visits { // Solve has those that come straight back as one
		visits[k] /= max(1-c.Route[k][k], 1e-12)
	}
	return visits, nil
}

// sojourn returns the mean and the variance of the time in all queues that a
// packet visits, of which those of each visit are known and independent.
func (c Class) sojourn(times, variances []float64) (mean, variance float64) {
	size := len(times)
	stays := mat.NewDense(size, size, nil) // of what follows, by the queue that it begins with
	for k := range size {
		for j := range size {
			stays.Set(k, j, -c.Route[k][j])
		}
		stays.Set(k, k, 1+stays.At(k, k))
	}
	var means, squares mat.VecDense
	if means.SolveVec(stays, mat.NewVecDense(size, times)) != nil {
		return math.NaN(), math.NaN()
	}
	right := mat.NewVecDense(size, nil)
	for k := range size {
		after := means.AtVec(k) - times[k]
		right.SetVec(k, variances[k]+times[k]*times[k]+2*times[k]*after)
	}
	if squares.SolveVec(stays, right) != nil {
		return math.NaN(), math.NaN()
	}
	second := 0.0
	for k := range size {
		mean += c.Enter[k] * means.AtVec(k)
		second += c.Enter[k] * squares.AtVec(k)
	}
	return mean, max(0, second-mean*mean)
}

// simulate adds what is simulated.
func (m Mesh) simulate(o MeshOptions, a *MeshAnswer) error {
	s := simulate.Mesh{}
	for _, q := range m.Queues {
		s.Stages = append(s.Stages, simulate.Stage{Copies: q.Servers, Dispatch: simulate.Central})
	}
	for _, c := range m.Classes {
		of := simulate.Class{Arrivals: simulate.Law{Mean: 1 / c.Rate, SCV: c.ArrivalSCV}, Enter: c.Enter, Route: c.Route}
		for k, q := range m.Queues {
			of.Service = append(of.Service, simulate.Law{Mean: c.Service[k], SCV: q.ServiceSCV})
		}
		s.Classes = append(s.Classes, of)
	}
	options := simulate.Options{Seed: o.Seed, Visits: meshVisits, Precision: precision, Percentile: o.Percentile}
	all, each, err := simulate.RunMesh(s, options)
	if err != nil {
		return err
	}
	a.All.Simulated.Time, a.All.Simulated.CI = all.Value(options)
	for i, r := range each {
		a.Classes[i].Simulated.Time, a.Classes[i].Simulated.CI = r.Value(options)
	}
	return nil
}
