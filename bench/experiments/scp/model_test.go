package scp

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/bench/sim/httpload"
)

func modelled(rate float64, poisson bool) packets {
	m := model{httpload.Arrivals{Rate: rate, Poisson: poisson, Seed: 3}, modelValidity, modelTimeout, modelStay, modelLength}
	return m.run(rand.New(rand.NewPCG(1, 2)))
}

// Two discoveries of two packets in 10 s and two pairs, both ways, in 20 s are
// 0.6 packets a second, of which the share falls as one by the rate.
func TestModel(t *testing.T) {
	for _, poisson := range []bool{false, true} {
		for rate := 1.0; rate <= 10; rate++ {
			got := modelled(rate, poisson)
			want := 100 * 0.6 / (10*rate + 0.4)
			if math.Abs(got.percent()-want) > 0.12*want {
				t.Errorf("%v a second, poisson %v: %.3f %%, want about %.3f %%", rate, poisson, got.percent(), want)
			}
			if messages := (10*rate + 0.4) * modelLength.Seconds(); math.Abs(float64(got.all)-messages) > 0.06*messages {
				t.Errorf("%v a second: %d packets, want about %v", rate, got.all, messages)
			}
		}
	}
	if one, six := modelled(1, false).percent(), modelled(6, false).percent(); one >= 6 || six >= 1 {
		t.Errorf("%v %% and %v %%, the paper has less than 6 and 1", one, six)
	}
}

// Nothing is discovered anew, and no entry ends, while nothing is asked for.
func TestModelOfNothing(t *testing.T) {
	m := model{httpload.Arrivals{Rate: 0.5}, modelValidity, modelTimeout, modelStay, 1}
	if got := m.run(rand.New(rand.NewPCG(1, 2))); got.all != 6 || got.through != 6 {
		t.Errorf("got %+v, want the registrations only", got)
	}
}
