package nf

import (
	"strconv"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
	"github.com/weft-sdn/weft/plan/size"
)

func TestExperiments(t *testing.T) {
	experimentstest.Rehearse(t, model(), func(_ string, round int) (rows [][]string) {
		for _, n := range size.PaperCounts() {
			rows = append(rows, []string{strconv.Itoa(n), "1", written(1/float64(n) + float64(round)/100)})
		}
		return rows
	})
}

// What the equations give as printed is what is known of them.
func TestStatements(t *testing.T) {
	reproduced := map[string]bool{}
	for _, s := range statements() {
		if s.What == "" || s.Paper == "" || s.AsPrinted == "" {
			t.Errorf("%+v", s)
		}
		reproduced[s.What] = s.Reproduced
	}
	for what, want := range map[string]bool{
		"best n on a single CPU, overhead 0 ms":                             false,
		"best n on a single CPU, overhead 0.005 ms":                         true,
		"best n on a single CPU, overhead 0.02 ms":                          false,
		"service times on a single CPU, eq. 4 and 8, for D = 1.00 ms":       false,
		"any D that gives the five best n on a single CPU":                  false,
		"eq. 5 = eq. 9 and eq. 6 = eq. 10 for equal overheads in all":       true,
		"best n of copies with a CPU each, eq. 6 with 0.0005·n/2 ms":        true,
		"best n of a chain with a CPU each, eq. 10 with n·O = 0.002·n/2 ms": true,
		"the same with 0.002·n/2 ms at each stage":                          false,
		"delay with a CPU each, n from 1 to 16":                             true,
	} {
		if got, there := reproduced[what]; !there || got != want {
			t.Errorf("%s: reproduced %v, there %v", what, got, there)
		}
	}
}

// A sample has all numbers of instances, and simulates what has a closed form.
func TestSample(t *testing.T) {
	for _, d := range []modelled{{true, 0}, {false, 0.01}} {
		rows, err := d.sample(1, true)
		if err != nil || len(rows) != 5 {
			t.Fatalf("%v: %v, %v", d, rows, err)
		}
		one, _ := strconv.ParseFloat(rows[0][2], 64)
		if want := d.printed(1); one < 0.96*want || one > 1.04*want {
			t.Errorf("%v: one instance takes %v ms, want %v", d, one, want)
		}
	}
}
