package figure

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// tickText writes the number of a tick: short, and without zeros behind the
// point.
func tickText(v float64) string {
	short := func(v float64, unit string) string { return strconv.FormatFloat(v, 'g', 4, 64) + unit }
	switch a := math.Abs(v); {
	case a >= 1e6:
		return short(v/1e6, "M")
	case a >= 1e4:
		return short(v/1e3, "k")
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// linear are ticks at multiples of 1, 2 or 5.
type linear struct{}

// Ticks returns them.
func (linear) Ticks(low, high float64) (list []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, m := range []float64{5, 2} {
		if (high-low)/(step*m) >= 4 {
			step *= m
			break
		}
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		v, _ := strconv.ParseFloat(strconv.FormatFloat(i*step+0, 'g', 10, 64), 64) // + 0: no -0
		list = append(list, plot.Tick{Value: v, Label: tickText(v)})
	}
	return list
}

// logarithmic are ticks at powers of ten, and between them where there is room.
type logarithmic struct{}

// Ticks returns them.
func (logarithmic) Ticks(low, high float64) (list []plot.Tick) {
	decades := math.Log10(high / low)
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || decades < 3 && (m == 2 || m == 5) {
				t.Label = tickText(v)
			}
			list = append(list, t)
		}
	}
	return list
}

// around returns the ends of a logarithmic axis: 1, 2 or 5 times a power of ten
// beyond the values.
func around(low, high float64) (float64, float64) {
	down, up := math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Floor(math.Log10(high)))
	for _, m := range []float64{5, 2} {
		if down*m < low {
			down *= m
			break
		}
	}
	for _, m := range []float64{1, 2, 5, 10} {
		if up*m > high {
			up *= m
			break
		}
	}
	return down, up
}
