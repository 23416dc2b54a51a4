package oshi

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
)

// rehearsal returns samples as an experiment takes them.
func rehearsal(experiment, name string, round int) (rows [][]string) {
	switch experiment {
	case "oshi-forwarding", "oshi-overlay", "oshi-pseudowire":
		for _, rate := range packetRates(false) {
			us := written(float64(len(name)*round) + 1000/float64(rate))
			row := []string{strconv.Itoa(rate), us, us, us, us, us, "0"}
			if name == wayRouter {
				row[1], row[2], row[3], row[4] = "", "", "", ""
			}
			rows = append(rows, row)
		}
	case "oshi-cache":
		rows = append(rows, []string{"1000", written(float64(len(name) * round)), "100", "0", "0", "0", "0"})
	case "oshi-restoration":
		for i, f := range failures() {
			rows = append(rows, []string{f.name, "800", strconv.Itoa(round), written(float64(5*len(name) + i))})
		}
	case "oshi-te":
		for _, n := range teSizes() {
			for _, demands := range teCounts() {
				rows = append(rows, []string{fmt.Sprintf("drawn-%d", n), strconv.Itoa(n), strconv.Itoa(demands), "0.3", "0.9", written(float64(len(name)*round + n)), "0", "1"})
			}
		}
	case "oshi-steiner":
		for _, n := range endCounts() {
			rows = append(rows, []string{strconv.Itoa(n), written(float64(n*len(name) + round)), written(float64(n))})
		}
	}
	return rows
}

func TestExperiments(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			experimentstest.Rehearse(t, e, func(name string, round int) [][]string { return rehearsal(e.Name, name, round) })
		})
	}
}

// What the paper is said to show can be read.
func TestPaper(t *testing.T) {
	if rows, err := paperValues.Rows(); err != nil || len(rows) == 0 {
		t.Errorf("%d lines, %v", len(rows), err)
	}
}
