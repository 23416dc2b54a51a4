package experiments

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/test/measure"
)

// The intervals that a summary prints contain the true median in 93 % of the cases or
// more, for 6 to 30 rounds of times as skewed as those of a busy machine; of fewer
// rounds nothing is printed, and nothing judged.
func TestIntervalPrintedCovers(t *testing.T) {
	const trials = 300
	draw := rand.New(rand.NewPCG(3, 3))
	says := Value(1, .25).OfRatio().Said("alike", "alike")
	printed := func(n int) (of struct {
		CI95       []float64
		N          int
		Reproduced string
	}) {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Exp(draw.NormFloat64())
		}
		b, err := json.Marshal(Claim{What: "a ratio", Says: &says}.Of(measure.Median(values)))
		if err == nil {
			err = json.Unmarshal(b, &of)
		}
		if err != nil || of.N != n {
			t.Fatalf("of %d rounds: %+v, %v", n, of, err)
		}
		return of
	}
	for n := 1; n < measure.IntervalLeast; n++ {
		if of := printed(n); of.CI95 != nil || of.Reproduced != VerdictNone {
			t.Errorf("of %d rounds: %v, %s; want neither interval nor verdict", n, of.CI95, of.Reproduced)
		}
	}
	covered, all := 0, 0
	for n := measure.IntervalLeast; n <= 30; n++ {
		for range trials {
			of := printed(n)
			if all++; of.CI95[0] <= 1 && 1 <= of.CI95[1] {
				covered++
			}
			if of.Reproduced == VerdictContradicts && of.CI95[0] <= .75 && 1.25 <= of.CI95[1] {
				t.Errorf("%d rounds, %v: contradicts what its interval includes", n, of.CI95)
			}
		}
	}
	if covered < all*93/100 {
		t.Errorf("%d of %d intervals contain the median", covered, all)
	}
}
