package size_test

import (
	"math"
	"testing"

	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// QNA is exact for Jackson's networks: chains, meshes, packets that come back.
func TestJackson(t *testing.T) {
	node := size.Node{Service: 1, ServiceSCV: 1, Servers: 1}
	first := node
	first.Rate, first.ArrivalSCV = 0.5, 1
	mean, _, err := size.Chain(first, node, node).Sojourn()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "a chain", mean, 6, 1e-9)
	mesh := size.Network{Nodes: []size.Node{first, node}, Route: [][]float64{{0.1, 0.5}, {0.3, 0}}}
	stations, visits, err := mesh.Solve()
	if err != nil {
		t.Fatal(err)
	}
	a := 0.5 / (1 - 0.1 - 0.15) // visits to the first station
	near(t, "visits", visits[1], a, 1e-9)
	for _, s := range stations {
		near(t, "variability", s.ArrivalSCV, 1, 1e-9)
	}
	mean, _, _ = mesh.Sojourn()
	near(t, "a mesh", mean, (a/(1-a)+a/2/(1-a/2))/0.5, 1e-9)
}

// A mesh that is no Jackson network is near what is simulated.
func TestMesh(t *testing.T) {
	n := size.Network{Nodes: []size.Node{
		{Rate: 0.4, ArrivalSCV: 2, Service: 1, ServiceSCV: 0.5, Servers: 1},
		{Service: 1, ServiceSCV: 2, Servers: 1}, {Service: 1.5, ServiceSCV: 0, Servers: 2},
	}, Route: [][]float64{{0, 0.5, 0.5}, {0.2, 0.2, 0}, {0.3, 0, 0}}}
	system := simulate.System{Arrivals: simulate.Law{Mean: 2.5, SCV: 2}, Route: n.Route}
	for _, d := range n.Nodes {
		system.Stages = append(system.Stages, simulate.Stage{Copies: d.Servers, Dispatch: simulate.Central, Service: simulate.Law{Mean: d.Service, SCV: d.ServiceSCV}})
	}
	r, err := simulate.Run(system, simulate.Options{Seed: 1, Visits: 1_500_000, Precision: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	mean, _, err := n.Sojourn()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "a mesh", mean, r.Mean, 0.08)
}

// Robust queueing sees what QNA does not: the last station of a chain with bursts
// that pass the first ones unharmed (Suresh and Whitt).
func TestRobust(t *testing.T) {
	bursts := simulate.Bursts{Waves: []simulate.Wave{{Up: 0.5, Down: 0.5, Time: 20}}}
	burst := func(time float64) float64 { return bursts.Index(1, time) } // of the simulator's arrivals
	stage := simulate.Stage{Copies: 1, Service: simulate.Law{Mean: 0.9, SCV: 1}}
	system := simulate.System{Arrivals: simulate.Law{Mean: 1, SCV: 1}, Bursts: &bursts, Stages: []simulate.Stage{stage, stage}}
	r, err := simulate.Run(system, simulate.Options{Seed: 1, Visits: 6_000_000, Precision: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	node := size.Node{Service: 0.9, ServiceSCV: 1, Servers: 1}
	near(t, "bursts", size.RobustChain(1, burst, node, node), r.Mean, 0.25)
	points := []size.MeasuredDispersion{}
	for time := 0.1; time < 3000; time *= 3 {
		points = append(points, size.MeasuredDispersion{Time: time, Index: burst(time)})
	}
	near(t, "measured", size.RobustChain(1, size.Interpolated(points), node, node), size.RobustChain(1, burst, node, node), 0.05)
	poisson := node
	poisson.Rate, poisson.ArrivalSCV = 1, 1
	if qna, _, _ := size.Chain(poisson, node).Sojourn(); qna > 0.7*r.Mean {
		t.Errorf("without dispersion: %v, simulated %v", qna, r.Mean)
	}
}

// Networks without an answer are said.
func TestNetworkErrors(t *testing.T) {
	node := size.Node{Rate: 0.5, ArrivalSCV: 1, Service: 1, ServiceSCV: 1, Servers: 1}
	silent, many := node, node
	silent.Rate, many.Servers = 0, 0
	for name, n := range map[string]size.Network{
		"nothing": {}, "no way out": {Nodes: []size.Node{node, node}, Route: [][]float64{{0, 1}, {1, 0}}},
		"silent": size.Chain(silent), "no server": size.Chain(many), "above 1": {Nodes: []size.Node{node}, Route: [][]float64{{1.5}}},
		"NaN": {Nodes: []size.Node{node}, Route: [][]float64{{math.NaN()}}},
	} {
		if _, _, err := n.Sojourn(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Instances on shared processors: exact where there is a closed form, else near
// what is simulated.
func TestShared(t *testing.T) {
	s := size.Shared{Rate: 0.7, ArrivalSCV: 1, Work: 1, ServiceSCV: 1, Instances: 1, Processors: 1}
	for n := range 8 {
		s.Instances = n + 1
		mean, _ := s.Sojourn()
		near(t, "M/M/1 with processor sharing", mean, 1/0.3, 1e-6)
	}
	s.Instances, s.Processors, s.Rate = 3, 3, 2.1
	mean, _ := s.Sojourn()
	near(t, "M/M/3", mean, size.Station{Rate: 2.1, ArrivalSCV: 1, Service: 1, ServiceSCV: 1, Servers: 3}.Sojourn(), 1e-6)
	s.Dealt = true
	mean, _ = s.Sojourn()
	near(t, "three M/M/1", mean, 1/0.3, 1e-6)
	s.Rate = 3
	if mean, _ := s.Sojourn(); !math.IsInf(mean, 1) {
		t.Errorf("overloaded: %v", mean)
	}
	for _, n := range []int{2, 4, 8} {
		for _, d := range []simulate.Dispatch{simulate.Central, simulate.Random} {
			for _, processors := range []int{1, 2} {
				s := size.Shared{Rate: 1.2, ArrivalSCV: 1, Work: 0.35, Idle: 0.25, ServiceSCV: 1, Instances: n, Processors: processors, Dealt: d == simulate.Random}
				stage := simulate.Stage{Copies: n, Dispatch: d, Service: simulate.Law{Mean: 0.6, SCV: 1}, Idle: 0.25 / 0.6}
				r, err := simulate.Run(simulate.System{Arrivals: simulate.Law{Mean: 1 / s.Rate, SCV: 1}, Stages: []simulate.Stage{stage}, Processors: processors},
					simulate.Options{Seed: 1, Visits: 300_000, Precision: 0.01})
				if err != nil {
					t.Fatal(err)
				}
				mean, _ := s.Sojourn()
				near(t, "copies", mean, r.Mean, 0.05)
			}
		}
	}
}
