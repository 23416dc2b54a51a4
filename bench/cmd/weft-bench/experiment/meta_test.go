package experiment

import (
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
	"github.com/weft-sdn/weft/test/measure"
)

// For every statement of every experiment, a made-up result that contradicts it is said
// to, with a cause or without; one that has too few rounds is not judged. That every
// claim tests its statement, and every statement has a claim, is in the rehearsals.
func TestMetaVerdict(t *testing.T) {
	judged := 0
	for _, e := range allExperiments() {
		for _, says := range e.Statements {
			if err := says.Check(); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
			for _, v := range experimentstest.Contradictions(says) {
				judged++
				rounds := []float64{v, v, v, v, v, v}
				c := experiments.Claim{What: says.Name, Says: &says}.Of(measure.Median(rounds)).AtMost(v + 1)
				if c.Reproduced() != experiments.VerdictContradicts || c.Cause() == "" {
					t.Errorf("%s: %s is %v, and the paper says %s: %s, %q; want that it contradicts, and why", e.Name, says.Name, v, says.Says, c.Reproduced(), c.Cause())
				}
				if c.Met() != experiments.VerdictMet {
					t.Errorf("%s: %s: the mark is %s, whatever the paper says", e.Name, says.Name, c.Met())
				}
				if few := c.Of(measure.Median(rounds[1:])); few.Reproduced() != experiments.VerdictNone || few.Met() != experiments.VerdictNone {
					t.Errorf("%s: %s, of five rounds: %s, %s; want no verdict", e.Name, says.Name, few.Reproduced(), few.Met())
				}
			}
		}
	}
	if judged < 50 {
		t.Errorf("%d made-up results, want 50 or more", judged)
	}
	t.Logf("%d made-up results contradict", judged)
}

// Every experiment that names a figure of a paper with numbers states what it says.
func TestMetaStatements(t *testing.T) {
	without := map[string]string{
		"hydra-placement":  "the paper gives no costs",
		"hydra-map":        "nobody has published that map",
		"scp-faults":       "the paper measures no faults",
		"nf-autoscale":     "none of the papers measures scalers",
		"oshi-restoration": "the paper measures no outage",
		"oshi-te":          "the paper assigns no demands, its section V only says how",
	}
	for _, e := range allExperiments() {
		if _, none := without[e.Name]; none == (len(e.Statements) > 0) {
			t.Errorf("%s has %d statements; want some, or why there are none", e.Name, len(e.Statements))
		}
	}
}
