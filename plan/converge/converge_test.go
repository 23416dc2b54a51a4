package converge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/plan/partition"
)

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestEquations: the equations of paper 001 §3.2, worked out by hand for its
// example of 20 border switches, 5 partitions and 5 border switches in each,
// here with 100 internal switches: n = 20, n + k = 25, P + B = 25.
func TestEquations(t *testing.T) {
	s := Shape{Switches: 120, Partitions: 5, Borders: 20, Each: 5}
	if s.Internal() != 20 {
		t.Errorf("n = %v, want 20", s.Internal())
	}
	const log25 = 3.2188758248682006
	near(t, "eq. 1", s.BorderFailure().Cost(), 625*log25+625*log25+20*5*5, 1e-12)
	near(t, "eq. 1", s.BorderFailure().Cost(), 4523.594781, 1e-9)
	near(t, "eq. 2", s.InternalFailure().Cost(), 625*log25+25*log25+20*5, 1e-12)
	near(t, "eq. 2", s.InternalFailure().Cost(), 2192.269286, 1e-9)
	near(t, "t_conv", s.Expected().Cost(), 4523.594781/6+2192.269286*5/6, 1e-9)
	if s.BorderFailure().Messages != 4 {
		t.Errorf("messages: %v, want P - 1 = 4", s.BorderFailure().Messages)
	}
	s.Failures = 0.5
	near(t, "half the failures at the border", s.Expected().Cost(), (4523.594781+2192.269286)/2, 1e-9)
}

// TestWhole: one partition has no border; the cost is that of the paths inside.
func TestWhole(t *testing.T) {
	s := Shape{Switches: 10, Partitions: 1}
	near(t, "t_conv", s.Expected().Intra, 100*math.Log(10), 1e-12)
	if e := s.Expected(); e.Border != 0 || e.External != 0 || e.Messages != 0 {
		t.Errorf("one partition: %+v, want nothing but what is inside", e)
	}
	if c := (Shape{Switches: 1, Partitions: 1}).Expected().Cost(); c != 0 {
		t.Errorf("one switch costs %v, want 0", c)
	}
}

// TestHydraShape: the paper's fat tree in eight partitions: 512 core switches
// belong to all, 256 switches are inside each.
func TestHydraShape(t *testing.T) {
	g := partition.Hydra()
	r, err := partition.Partition(g, partition.Options{Partitions: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := ShapeOf(g, r)
	if want := (Shape{Switches: 2560, Partitions: 8, Borders: 512, Each: 512}); s != want {
		t.Errorf("shape %+v, want %+v", s, want)
	}
	near(t, "n", s.Internal(), 256, 0)
	near(t, "share of links at the core", s.LinkFailures(g, r).Share(), 1.0/3, 1e-12)
}

// hydraShapes are those of the paper's fat tree, Fig. 4.
func hydraShapes() (list []Shape) {
	for _, p := range []int{1, 2, 4, 8, 16, 32} {
		s := Shape{Switches: 2560, Partitions: p, Borders: 512, Each: 512}
		if p == 1 {
			s.Borders, s.Each = 0, 0
		}
		list = append(list, s)
	}
	return list
}

// TestCalibrateRecovers: constants that made the measurements are found again,
// exactly without noise and nearly with it; none is below 0.
func TestCalibrateRecovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		want := Constants{rng.Float64() * 1e-5, rng.Float64() * 1e-5, rng.Float64() * 1e-4, rng.Float64()}
		if round%4 == 1 {
			want.Border = 0
		}
		var list []Measurement
		for _, b := range []int{20, 50} { // two networks tell the terms apart
			for _, p := range []int{1, 2, 4, 8, 16, 32} {
				s := Shape{Switches: 1000 * b / 20, Partitions: p, Borders: b, Each: float64(b) / 2}
				list = append(list, Measurement{s, want.Predict(s)})
			}
		}
		got, err := Calibrate(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range [][2]float64{{got.Intra, want.Intra}, {got.External, want.External}, {got.Message, want.Message}} {
			near(t, "a constant", x[0], x[1], 1e-4)
		}
		for i := range list {
			list[i].Time *= 1 + 0.1*(rng.Float64()-0.5)
		}
		noisy, err := Calibrate(list)
		if err != nil {
			t.Fatal(err)
		}
		if min(noisy.Intra, noisy.Border, noisy.External, noisy.Message) < 0 {
			t.Errorf("constants %+v, want none below 0", noisy)
		}
		for _, row := range noisy.Compare(list) {
			if math.Abs(row.Error) > 0.1 {
				t.Errorf("P = %d: error %.3f after noise of 0.05", row.Partitions, row.Error)
			}
		}
	}
}

// TestCalibrateFew: two measurements fit, though they cannot tell four terms
// apart; the scale of time goes into the constants.
func TestCalibrateFew(t *testing.T) {
	shapes := hydraShapes()
	list := []Measurement{{shapes[0], 40}, {shapes[3], 10}}
	c, err := Calibrate(list)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Time *= 7
	}
	seven, err := Calibrate(list)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "scaled prediction", seven.Predict(shapes[2]), 7*c.Predict(shapes[2]), 1e-9)
}

// TestCalibrateRefuses: what is no measurement.
func TestCalibrateRefuses(t *testing.T) {
	good := Measurement{Shape{Switches: 10, Partitions: 2}, 1}
	for _, list := range [][]Measurement{
		nil, {good},
		{good, {Shape{Switches: 10, Partitions: 11}, 1}},
		{good, {Shape{Switches: 10, Partitions: 2, Borders: 11}, 1}},
		{good, {Shape{Switches: 10, Partitions: 2, Borders: 2, Each: math.NaN()}, 1}},
		{good, {good.Shape, 0}}, {good, {good.Shape, -1}}, {good, {good.Shape, math.NaN()}}, {good, {good.Shape, math.Inf(1)}},
		{good, {Shape{Switches: 10, Partitions: 2, Failures: 2}, 1}},
	} {
		if c, err := Calibrate(list); err == nil {
			t.Errorf("%v: no error, constants %+v", list, c)
		}
	}
}

// TestChoose: the paper's curve (Fig. 4): falling to its least and rising again,
// with messages; the smallest within the tolerance is taken.
func TestChoose(t *testing.T) {
	c := Constants{Intra: 1e-6, External: 1e-7, Message: 0.3}
	curve, err := c.Curve(hydraShapes())
	if err != nil {
		t.Fatal(err)
	}
	x, err := Choose(curve, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Curve) != 6 || x.Partitions != x.Best || x.Best == 1 || x.Best == 32 {
		t.Errorf("choice %+v, want one in the middle of six", x)
	}
	for i := 1; i < len(x.Curve); i++ {
		fell := x.Curve[i].Time < x.Curve[i-1].Time
		if falling := x.Curve[i].Partitions <= x.Best; fell != falling {
			t.Errorf("the curve %v is no U about %d", x.Curve, x.Best)
		}
	}
	loose, err := Choose(curve, 1e6)
	if err != nil || loose.Partitions != 1 || loose.Best != x.Best {
		t.Errorf("with any tolerance %+v, %v: want 1 partition", loose, err)
	}
	flat := []Point{{8, 1.01}, {4, 1.04}, {2, 1.2}, {16, 1}, {32, 1}}
	if x, err := Choose(flat, 0.05); err != nil || x.Partitions != 4 || x.Best != 16 {
		t.Errorf("a flat curve: %+v, %v: want 4, the best 16", x, err)
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := Choose(curve, bad); err == nil {
			t.Errorf("tolerance %v: no error", bad)
		}
	}
	if _, err := Choose(nil, 0); err == nil {
		t.Error("no curve: no error")
	}
	if _, err := Choose([]Point{{1, math.NaN()}}, 0); err == nil {
		t.Error("a time that is none: no error")
	}
	if _, err := c.Curve([]Shape{{}}); err == nil {
		t.Error("a shape of nothing: no error")
	}
}
