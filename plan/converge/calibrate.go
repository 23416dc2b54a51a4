package converge

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Constants make a time of the terms of a Shape:
//
//	T = a · intra + b · border + c · external + d · messages
//
// each at least 0, in ms for a unit of the term.
type Constants struct {
	Intra    float64 `json:"intra"`    // a
	Border   float64 `json:"border"`   // b
	External float64 `json:"external"` // c
	Message  float64 `json:"message"`  // d
}

// Predict is the expected time until all routes are right again, in ms.
func (c Constants) Predict(s Shape) float64 {
	t := s.Expected()
	return c.Intra*t.Intra + c.Border*t.Border + c.External*t.External + c.Message*t.Messages
}

// Measurement is a time that was measured.
type Measurement struct {
	Shape Shape
	Time  float64 // mean, in ms; above 0
}

// Row is a prediction beside the measurement.
type Row struct {
	Partitions int     `json:"partitions"`
	Predicted  float64 `json:"predicted_ms"`
	Measured   float64 `json:"measured_ms"`
	Error      float64 `json:"error"` // of the prediction, as a share of the measurement
}

// Compare puts predictions beside measurements.
func (c Constants) Compare(list []Measurement) []Row {
	rows := make([]Row, len(list))
	for i, m := range list {
		p := c.Predict(m.Shape)
		rows[i] = Row{Partitions: m.Shape.Partitions, Predicted: p, Measured: m.Time, Error: p/m.Time - 1}
	}
	return rows
}

// terms is how many constants there are.
const terms = 4

// Calibrate returns the constants that fit measurements best: those, none below
// 0, with the least sum of squares of the errors as shares of what was measured.
// A term that the measurements do not need, or cannot tell from others, has a
// constant of 0. It is an error if there are fewer than two measurements, or one
// is not a time.
func Calibrate(list []Measurement) (Constants, error) {
	if len(list) < 2 {
		return Constants{}, fmt.Errorf("%d measurements: want at least 2, with different numbers of partitions", len(list))
	}
	rows := make([][terms]float64, len(list))
	var largest [terms]float64
	for i, m := range list {
		if err := m.Shape.Check(); err != nil {
			return Constants{}, fmt.Errorf("measurement %d: %w", i+1, err)
		}
		if !(m.Time > 0) || math.IsInf(m.Time, 0) {
			return Constants{}, fmt.Errorf("measurement %d, of %d partitions: a time of %v ms: want one above 0", i+1, m.Shape.Partitions, m.Time)
		}
		t := m.Shape.Expected()
		rows[i] = [terms]float64{t.Intra / m.Time, t.Border / m.Time, t.External / m.Time, t.Messages / m.Time}
		for j, x := range rows[i] {
			largest[j] = max(largest[j], x)
		}
	}
	best, least := [terms]float64{}, math.Inf(1)
	// The least sum of squares with no constant below 0 has some of them 0 and is
	// the plain least sum of squares of the others. There are sixteen choices.
	for set := 1; set < 1<<terms; set++ {
		x, ok := solve(rows, largest, set)
		if !ok {
			continue
		}
		sum := 0.0
		for _, r := range rows {
			e := -1.0
			for j := range x {
				e += r[j] * x[j]
			}
			sum += e * e
		}
		if sum < least*(1-1e-9) { // of equal ones the one with the fewest terms
			best, least = x, sum
		}
	}
	return Constants{best[0], best[1], best[2], best[3]}, nil
}

// solve returns the least squares of the terms in a set, the others 0; false if
// the set's terms cannot be told apart, or one is below 0.
func solve(rows [][terms]float64, scale [terms]float64, set int) (x [terms]float64, ok bool) {
	var use []int
	for j := range terms {
		if set>>j&1 != 0 {
			if scale[j] == 0 {
				return x, false
			}
			use = append(use, j)
		}
	}
	if len(use) > len(rows) {
		return x, false
	}
	a, b := mat.NewDense(len(rows), len(use), nil), mat.NewVecDense(len(rows), nil)
	for i, r := range rows {
		for c, j := range use {
			a.Set(i, c, r[j]/scale[j])
		}
		b.SetVec(i, 1)
	}
	var qr mat.QR
	qr.Factorize(a)
	if qr.Cond() > 1e10 {
		return x, false
	}
	var v mat.VecDense
	if err := qr.SolveVecTo(&v, false, b); err != nil {
		return x, false
	}
	for c, j := range use {
		if x[j] = v.AtVec(c) / scale[j]; !(x[j] >= 0) {
			return x, false
		}
	}
	return x, true
}
