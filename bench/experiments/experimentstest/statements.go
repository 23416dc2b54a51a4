package experimentstest

import (
	"math"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
)

// Contradictions returns numbers that contradict a statement, whatever its tolerance:
// none is nearer to the paper's than half of it or half as much again.
func Contradictions(s experiments.Statement) (list []float64) {
	switch {
	case s.Kind == experiments.KindOrder && s.High == 1:
		return []float64{1, 1.05, 8.16}
	case s.Kind == experiments.KindOrder:
		return []float64{0.1, 0.95, 1}
	}
	if !math.IsInf(s.High, 0) {
		list = append(list, s.High+max(math.Abs(s.High)/2, 1e-3))
	}
	if !math.IsInf(s.Low, 0) {
		list = append(list, s.Low-max(math.Abs(s.Low)/2, 1e-3))
	}
	return list
}

// checkStatements checks the statements of an experiment: each can be contradicted, a
// claim tests it, every claim that tests one contradicts it where its figure does, and
// one that compares cases says under what they were measured.
func checkStatements(t *testing.T, e experiments.Experiment, s experiments.Summary) {
	t.Helper()
	for _, says := range e.Statements {
		if err := says.Check(); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		if !slices.ContainsFunc(s.Claims, func(c experiments.Claim) bool { return c.Says != nil && c.Says.Name == says.Name }) {
			t.Errorf("%s: no claim tests %q", e.Name, says.Name)
		}
	}
	for _, c := range s.Claims {
		if c.Says == nil {
			continue
		}
		if c.Says.Ratio && len(c.Sides) != 2 {
			t.Errorf("%s: %s does not say which cases it compares", e.Name, c.What)
		}
		for _, side := range c.Sides {
			if !s.Setups[side].Declared() {
				t.Errorf("%s: %s: the setup of case %q is not declared: %+v", e.Name, c.What, side, s.Setups[side])
			}
		}
		if c.Void != "" {
			t.Errorf("%s: %s can have no verdict even in a full run: %s", e.Name, c.What, c.Void)
		}
		c.Void = ""
		for _, v := range Contradictions(*c.Says) {
			if got := c.Exactly(v).Reproduced(); got != experiments.VerdictContradicts {
				t.Errorf("%s: %s is %v, and the paper says %s: %s, want that it contradicts", e.Name, c.What, v, c.Says.Says, got)
			}
		}
	}
}
