package size

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Network is stations between which packets go: a chain, or a mesh with packets
// that come back.
type Network struct {
	Nodes []Node
	// Route has the probability that a packet goes from a station to each station
	// next; what is left of 1 leaves.
	Route [][]float64
}

// Node is a station of a network.
type Node struct {
	Rate       float64 // of packets from outside
	ArrivalSCV float64 // of these
	Service    float64
	ServiceSCV float64
	Servers    int
}

// Chain returns a network of stations one after the other, with all packets
// coming to the first.
func Chain(nodes ...Node) Network {
	n := Network{Nodes: nodes, Route: make([][]float64, len(nodes))}
	for i := range n.Route {
		n.Route[i] = make([]float64, len(nodes))
		if i+1 < len(nodes) {
			n.Route[i][i+1] = 1
		}
	}
	return n
}

// check says what is wrong with a network.
func (n Network) check() error {
	if len(n.Nodes) == 0 || len(n.Route) != len(n.Nodes) {
		return fmt.Errorf("%d stations and %d rows of routes: want at least one, and as many", len(n.Nodes), len(n.Route))
	}
	for i, d := range n.Nodes {
		if !(d.Rate >= 0 && d.ArrivalSCV >= 0 && d.Service >= 0 && d.ServiceSCV >= 0 && d.Servers >= 1) || math.IsInf(d.Rate+d.ArrivalSCV+d.Service+d.ServiceSCV, 0) {
			return fmt.Errorf("station %d: %+v: want numbers of at least 0, and a server", i, d)
		}
		sum := 0.0
		for _, p := range n.Route[i] {
			if !(p >= 0) {
				return fmt.Errorf("station %d: a probability of %v", i, p)
			}
			sum += p
		}
		if len(n.Route[i]) != len(n.Nodes) || sum > 1+1e-9 {
			return fmt.Errorf("station %d: %d probabilities with a sum of %v: want one for each station and at most 1", i, len(n.Route[i]), sum)
		}
	}
	return nil
}

// Solve returns the stations as packets come to them, how often a packet visits
// each, by Whitt's Queueing Network Analyzer (1983): traffic equations for rates,
// linear equations for the variability of arrivals, packets that come straight
// back taken to be served once, for longer.
func (n Network) Solve() (stations []Station, visits []float64, err error) {
	if err := n.check(); err != nil {
		return nil, nil, err
	}
	nodes, route := n.straight()
	size := len(nodes)
	outside := mat.NewVecDense(size, nil)
	traffic, total := mat.NewDense(size, size, nil), 0.0
	for i, d := range nodes {
		outside.SetVec(i, d.Rate)
		total += d.Rate
		for j := range nodes {
			traffic.Set(j, i, -route[i][j])
		}
		traffic.Set(i, i, 1+traffic.At(i, i))
	}
	if total == 0 {
		return nil, nil, errors.New("no packets come from outside")
	}
	var rates mat.VecDense
	if rates.SolveVec(traffic, outside) != nil {
		return nil, nil, errors.New("packets that never leave: there are stations from which no way leads out")
	}
	stations, visits = make([]Station, size), make([]float64, size)
	for i, d := range nodes {
		stations[i] = Station{Rate: rates.AtVec(i), Service: d.Service, ServiceSCV: d.ServiceSCV, Servers: d.Servers}
		visits[i] = rates.AtVec(i) / total
	}
	return stations, visits, vary(stations, nodes, route)
}

// straight returns the network without packets that come straight back.
func (n Network) straight() ([]Node, [][]float64) {
	nodes, route := make([]Node, len(n.Nodes)), make([][]float64, len(n.Nodes))
	for i, d := range n.Nodes {
		back := n.Route[i][i]
		route[i] = append([]float64{}, n.Route[i]...)
		if nodes[i] = d; back == 0 || back >= 1 {
			continue
		}
		nodes[i].Service /= 1 - back
		nodes[i].ServiceSCV = back + (1-back)*d.ServiceSCV
		for j := range route[i] {
			route[i][j] /= 1 - back
		}
		route[i][i] = 0
	}
	return nodes, route
}

// vary computes the variability of what comes to stations, of which the rates
// are known (QNA, equations 24 to 29).
func vary(stations []Station, nodes []Node, route [][]float64) error {
	size := len(stations)
	left, right := mat.NewDense(size, size, nil), mat.NewVecDense(size, nil)
	for j := range stations {
		left.Set(j, j, 1)
		rate := stations[j].Rate
		if rate == 0 {
			continue
		}
		share := func(i int) float64 { return stations[i].Rate * route[i][j] / rate }
		squares := nodes[j].Rate / rate * nodes[j].Rate / rate
		for i := range stations {
			squares += share(i) * share(i)
		}
		idle := 1 - min(1, stations[j].Utilisation())
		weight := 1 / (1 + 4*idle*idle*(1/squares-1))
		a := 1 + weight*(nodes[j].Rate/rate*nodes[j].ArrivalSCV-1)
		for i, s := range stations {
			p, q, rho := share(i), route[i][j], min(1, s.Utilisation())
			x := 1 + (max(s.ServiceSCV, 0.2)-1)/math.Sqrt(float64(s.Servers))
			a += weight * p * (1 - q + q*rho*rho*x)
			left.Set(j, i, left.At(j, i)-weight*p*q*(1-rho*rho))
		}
		right.SetVec(j, a)
	}
	var solved mat.VecDense
	if solved.SolveVec(left, right) != nil {
		return errors.New("the variability of arrivals has no solution")
	}
	for j := range stations {
		stations[j].ArrivalSCV = max(0, solved.AtVec(j))
	}
	return nil
}

// Sojourn returns the mean and the variance of the time in the network; infinite
// where a station is overloaded.
func (n Network) Sojourn() (mean, variance float64, err error) {
	stations, visits, err := n.Solve()
	if err != nil {
		return 0, 0, err
	}
	for i, s := range stations {
		if visits[i] > 0 {
			mean += visits[i] * s.Sojourn()
			variance += visits[i] * s.Variance()
		}
	}
	return mean, variance, nil
}
