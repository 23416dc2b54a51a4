package size_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan/size"
)

// jackson is an open Jackson network: three queues, one of two servers, with
// feedback straight and around, and two classes on ways of their own.
func jackson() size.Mesh {
	service := []float64{1e-3, 2e-3, 0.5e-3}
	return size.Mesh{
		Queues: []size.Queue{{"parse", 1e-3, 1, 1}, {"match", 2e-3, 1, 2}, {"log", 0.5e-3, 1, 1}},
		Classes: []size.Class{
			{Name: "web", Rate: 400, ArrivalSCV: 1, Enter: []float64{1, 0, 0}, Route: [][]float64{{0.1, 0.9, 0}, {0.2, 0, 0.5}, {0, 0, 0}}, Service: service},
			{Name: "dns", Rate: 250, ArrivalSCV: 1, Enter: []float64{0, 0.4, 0.6}, Route: [][]float64{{0, 0, 0}, {0, 0, 0}, {0.5, 0, 0}}, Service: service},
		},
	}
}

// exactly returns the times of the classes of jackson by the product form.
func exactly() (web, dns float64) {
	// web: v0 = 1 + 0.1 v0 + 0.2 v1, v1 = 0.9 v0, v2 = 0.5 v1
	v0 := 1 / (1 - 0.1 - 0.18)
	v1, v2 := 0.9*v0, 0.45*v0
	rho := []float64{(400*v0 + 250*0.3) * 1e-3, (400*v1 + 250*0.4) * 2e-3 / 2, (400*v2 + 250*0.6) * 0.5e-3}
	t := []float64{1e-3 / (1 - rho[0]), 2e-3 / (1 - rho[1]*rho[1]), 0.5e-3 / (1 - rho[2])}
	return v0*t[0] + v1*t[1] + v2*t[2], 0.4*t[1] + 0.6*t[2] + 0.3*t[0]
}

func TestMeshIsExactForJackson(t *testing.T) {
	web, dns := exactly()
	a, err := jackson().Solve(size.MeshOptions{Simulate: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := (400*web + 250*dns) / 650
	for _, c := range []struct {
		name string
		got  size.MeshTime
		want float64
	}{{"web", a.Classes[0], web}, {"dns", a.Classes[1], dns}, {"all", a.All, all}} {
		if math.Abs(c.got.Formula.Time/c.want-1) > 1e-9 {
			t.Errorf("%s: formula %v, exactly %v", c.name, c.got.Formula.Time, c.want)
		}
		if s := c.got.Simulated; math.Abs(s.Time/c.want-1) > 0.02 || !(s.CI > 0 && s.CI < 0.01*s.Time) {
			t.Errorf("%s: simulated %v +- %v, exactly %v", c.name, s.Time, s.CI, c.want)
		}
	}
	again, err := jackson().Solve(size.MeshOptions{Simulate: true, Seed: 1})
	if err != nil || again.All != a.All {
		t.Errorf("the same seed gives %+v and %+v, %v", a.All, again.All, err)
	}
}

// Classes of different times at one queue wait as long: M/G/1 is exact.
func TestMeshOfClassesWithTimesOfTheirOwn(t *testing.T) {
	m := size.Mesh{Queues: []size.Queue{{"only", 1e-3, 1, 1}}, Classes: []size.Class{
		{Name: "short", Rate: 500, ArrivalSCV: 1, Enter: []float64{1}, Route: [][]float64{{0}}, Service: []float64{0.5e-3}},
		{Name: "long", Rate: 200, ArrivalSCV: 1, Enter: []float64{1}, Route: [][]float64{{0}}, Service: []float64{2e-3}},
	}}
	a, err := m.Solve(size.MeshOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait := (500*2*0.25e-6 + 200*2*4e-6) / 2 / (1 - 0.25 - 0.4)
	for i, own := range []float64{0.5e-3, 2e-3} {
		if got := a.Classes[i].Formula.Time; math.Abs(got-wait-own) > 1e-12 {
			t.Errorf("%s: %v, want %v", m.Classes[i].Name, got, wait+own)
		}
	}
	if !math.IsNaN(a.All.Simulated.Time) || math.Abs(a.Queues[0].Utilisation-0.65) > 1e-12 {
		t.Errorf("%+v", a)
	}
}

func TestMeshPercentile(t *testing.T) {
	m := size.Mesh{Queues: []size.Queue{{"only", 1e-3, 1, 1}}, Classes: []size.Class{
		{Name: "a", Rate: 800, ArrivalSCV: 1, Enter: []float64{1}, Route: [][]float64{{0}}, Service: []float64{1e-3}},
	}}
	a, err := m.Solve(size.MeshOptions{Percentile: 99, Simulate: true, Seed: 3})
	want := -math.Log(0.01) * 5e-3 // exponential in M/M/1
	if err != nil || math.Abs(a.All.Formula.Time/want-1) > 0.01 || math.Abs(a.Classes[0].Simulated.Time/want-1) > 0.03 {
		t.Errorf("%+v, %v; want %v", a, err, want)
	}
}

// The number of visits varies, too: a percentile by the formula is near what is
// simulated where packets come back.
func TestMeshPercentileOfPacketsThatComeBack(t *testing.T) {
	a, err := jackson().Solve(size.MeshOptions{Percentile: 99, Simulate: true, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range append(a.Classes, a.All) {
		if math.Abs(c.Formula.Time/c.Simulated.Time-1) > 0.15 { // waits of one packet depend on each other
			t.Errorf("%d: formula %v, simulated %v +- %v", i, c.Formula.Time, c.Simulated.Time, c.Simulated.CI)
		}
	}
}

func TestMeshThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(m *size.Mesh){
		"want at least one queue":     func(m *size.Mesh) { m.Queues = nil },
		"overloaded: packets keep":    func(m *size.Mesh) { m.Classes[0].Rate = 4000 },
		"class web: packets that":     func(m *size.Mesh) { m.Classes[0].Route = [][]float64{{0, 1, 0}, {1, 0, 0}, {0, 0, 0}} },
		"class dns: station 0: a pro": func(m *size.Mesh) { m.Classes[1].Route[0][0] = -1 },
	} {
		m := jackson()
		change(&m)
		if _, err := m.Solve(size.MeshOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
