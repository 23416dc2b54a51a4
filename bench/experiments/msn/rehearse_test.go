package msn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
)

// rehearsal returns samples as an experiment takes them.
func rehearsal(experiment, name string, round int) (rows [][]string) {
	v := func(scale float64) string { return written(scale * (1 + float64(round)/10)) }
	switch experiment {
	case "msn-first-packet":
		for _, p := range fig8Paths() {
			rows = append(rows, []string{p.name, v(float64(len(name))), v(.1), v(2), v(3)})
		}
	case "msn-resilience":
		for i := range 200 {
			at, delay := float64(i)/20, v(1)
			if i >= 100 && i < 105 {
				delay = v(100)
			}
			rows = append(rows, []string{kindControl, written(at), delay}, []string{kindData, written(at), v(.2)})
		}
		rows = append(rows, []string{kindKilled, "5", "77"}, []string{kindRestarted, "5.1", "78"}, []string{kindShed, "", "0"}, []string{kindDuplicate, "", "0"})
	case "msn-scaling":
		for _, p := range fig13Paths() {
			crossed := 1
			if strings.Contains(name, "multiple") {
				crossed = 2
			}
			rows = append(rows, []string{p.name, fmt.Sprint(crossed), v(float64(crossed * len(p.switches))), v(.1), "2"})
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
