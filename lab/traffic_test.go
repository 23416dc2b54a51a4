package lab

import (
	"math"
	"testing"

	"github.com/weft-sdn/weft/lab/traffic"
)

// Real packets are counted and have the kernel's times; what is cut is lost.
func TestTraffic(t *testing.T) {
	t.Parallel()
	l := upForTest(t, standalone(linear(t, 2, 1)), Options{})
	for _, arrivals := range []traffic.Arrivals{traffic.PoissonArrivals, traffic.ConstantArrivals} {
		// A switch without processor time loses packets, and a host times: one run of several is whole.
		whole := false
		for n := 0; n < 20 && !whole; n++ {
			r, err := l.Traffic(t.Context(), "h1", "h2", traffic.Options{Arrivals: arrivals, Seed: 7, Words: []string{"attack"}, MeanWords: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", r)
			whole = r.Received == r.Sent && r.Unstamped == 0
			if r.Sent != 970 || r.Received > r.Sent || r.Received == 0 || r.Twice != 0 || r.Mean <= 0 || r.P50 > r.P99 || r.CI95 <= 0 || r.SourceCPU <= 0 || r.SinkCPU <= 0 {
				t.Errorf("%+v", r)
			}
		}
		if !whole {
			t.Errorf("%v: no run of 20 brought all packets", arrivals)
		}
	}
	if err := l.LinkDown(t.Context(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	r, err := l.Traffic(t.Context(), "h1", "h2", traffic.Options{Count: 50})
	if err != nil || r.Sent != 50 || r.Received != 0 || r.Loss != 1 || !math.IsNaN(float64(r.Mean)) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := l.Traffic(t.Context(), "h1", "nobody", traffic.Options{}); err == nil {
		t.Error("a host that there is not is no error")
	}
}
