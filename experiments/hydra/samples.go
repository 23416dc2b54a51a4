package hydra

import (
	"math"
	"strconv"

	"github.com/weft-sdn/weft/experiments"
)

// column returns the samples of a case as numbers; what is none is NaN.
func column(d *experiments.Data, key []string) (rows [][]float64) {
next:
	for _, row := range d.Rows() {
		for i, k := range key {
			if row[i] != k {
				continue next
			}
		}
		values := make([]float64, len(row))
		for i, text := range row {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				v = math.NaN()
			}
			values[i] = v
		}
		rows = append(rows, values)
	}
	return rows
}

// sum adds up a column; NaN if a sample lacks it, or there is none.
func sum(rows [][]float64, at int) float64 {
	if len(rows) == 0 {
		return math.NaN()
	}
	total := 0.0
	for _, row := range rows {
		total += row[at]
	}
	return total
}

// mean is sum for each sample.
func mean(rows [][]float64, at int) float64 { return sum(rows, at) / float64(len(rows)) }

// most returns the largest of a column.
func most(rows [][]float64, at int) float64 {
	if len(rows) == 0 {
		return math.NaN()
	}
	largest := math.Inf(-1)
	for _, row := range rows {
		largest = math.Max(largest, row[at]) // NaN if one is
	}
	return largest
}

// orZero is what JSON can hold of a figure.
func orZero(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
