package simulate

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestClasses compares classes in a mesh with what is known exactly.
func TestClasses(t *testing.T) {
	near := func(name string, got Result, want float64) {
		t.Helper()
		if math.Abs(got.Mean/want-1) > 0.02 || !(got.MeanCI > 0) {
			t.Errorf("%s: %v +- %v, want %v", name, got.Mean, got.MeanCI, want)
		}
	}
	// M/G/1 of two classes in order: both wait as long, and are served for their own time.
	short, long := Law{Mean: 0.5, SCV: 1}, Law{Mean: 2, SCV: 0}
	m := Mesh{Stages: []Stage{{Copies: 1}}, Classes: []Class{
		{Arrivals: Law{Mean: 2, SCV: 1}, Enter: []float64{1}, Route: [][]float64{{0}}, Service: []Law{short}},
		{Arrivals: Law{Mean: 5, SCV: 1}, Enter: []float64{1}, Route: [][]float64{{0}}, Service: []Law{long}},
	}}
	all, each, err := RunMesh(m, Options{Seed: 1, Visits: 3_000_000, Precision: 0.005})
	if err != nil {
		t.Fatal(err)
	}
	wait := (0.5*2*0.25 + 0.2*4) / 2 / (1 - 0.25 - 0.4)
	near("short", each[0], wait+0.5)
	near("long", each[1], wait+2)
	near("all", all, wait+(0.5*0.5+0.2*2)/0.7)
	// Jackson: three stations, two classes on ways of their own, one with feedback, one
	// of two copies.
	exponential := []Law{{Mean: 1, SCV: 1}, {Mean: 1, SCV: 1}, {Mean: 1, SCV: 1}}
	m = Mesh{Stages: []Stage{{Copies: 1}, {Copies: 2, Dispatch: Central}, {Copies: 1}}, Classes: []Class{
		{Arrivals: Law{Mean: 4, SCV: 1}, Enter: []float64{0.5, 0.5, 0}, Route: [][]float64{{0, 1, 0}, {0.2, 0, 0.8}, {0, 0, 0}}, Service: exponential},
		{Arrivals: Law{Mean: 5, SCV: 1}, Enter: []float64{0, 0, 1}, Route: [][]float64{{0, 0, 0}, {0, 0, 0}, {0.5, 0, 0}}, Service: exponential},
	}}
	if all, each, err = RunMesh(m, Options{Seed: 2, Visits: 4_000_000, Precision: 0.005}); err != nil {
		t.Fatal(err)
	}
	// Visits of the first: v0 = 0.5+0.2 v1, v1 = 0.5+v0, v2 = 0.8 v1.
	v1 := 1 / 0.8
	v0, v2 := 0.5+0.2*v1, 0.8*v1
	load := []float64{0.25*v0 + 0.2*0.5, 0.25 * v1, 0.25*v2 + 0.2}
	time := []float64{1 / (1 - load[0]), 1 / (1 - load[1]*load[1]/4), 1 / (1 - load[2])} // M/M/2: 1/(1-rho²)
	first, second := v0*time[0]+v1*time[1]+v2*time[2], time[2]+0.5*time[0]
	near("first of a mesh", each[0], first)
	near("second of a mesh", each[1], second)
	near("a mesh", all, (0.25*first+0.2*second)/0.45)
}

func TestClassesThatCannotBe(t *testing.T) {
	good := Class{Arrivals: Law{Mean: 2, SCV: 1}, Enter: []float64{1}, Route: [][]float64{{0}}, Service: []Law{{Mean: 1, SCV: 1}}}
	for want, change := range map[string]func(c *Class){
		"sum of 0.5":      func(c *Class) { c.Enter = []float64{0.5} },
		"a probability":   func(c *Class) { c.Enter = []float64{math.NaN()} },
		"want a route":    func(c *Class) { c.Route = nil },
		"row 0 has 1":     func(c *Class) { c.Route = [][]float64{{1.5}} },
		"between packets": func(c *Class) { c.Arrivals.Mean = 0 },
	} {
		c := good
		change(&c)
		if _, _, err := RunMesh(Mesh{Stages: []Stage{{Copies: 1}}, Classes: []Class{c}}, Options{Visits: 1000}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	busy := good
	busy.Service = []Law{{Mean: 3, SCV: 1}}
	if _, _, err := RunMesh(Mesh{Stages: []Stage{{Copies: 1}}, Classes: []Class{busy}}, Options{Visits: 1000}); !errors.Is(err, ErrOverload) {
		t.Errorf("overloaded: %v", err)
	}
}
